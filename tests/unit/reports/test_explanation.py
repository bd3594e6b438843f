"""A decided suite in words: the wording of each kind of fact, once."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.commands.texts.explain import rule_lines
from gate.decision import CONCURRENT, Settings
from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.repeats import REPEATS_SHARES
from gate.decision.engine.state import CONFIRM
from gate.decision.trade import proven_by_mean
from gate.decision.verdict import spent
from gate.model import (
    FULL,
    PROBE,
    REPEAT,
    BaselineInfo,
    CrashFacts,
    Criterion,
    CriterionResult,
    Direction,
    EvidenceSummary,
    Outcome,
    Scale,
    Side,
    Stage,
    StageKind,
    SuiteResult,
    Trial,
    Verdict,
)
from gate.model import facts as fact
from gate.model.evidence import LookTest, MetricChange, MetricTest, RepeatsTest
from gate.model.findings import (
    CaseTally,
    Change,
    ChecksFellAway,
    FailuresGone,
    GotWorse,
    HeldMean,
    MeanProvenShort,
    NoLongerMeasured,
    QuantileExcused,
)
from gate.reports import explanation, headline
from gate.reports.formatting import listing
from gate.reports.labels import baseline_line
from gate.reports.reasons import reason
from tests.unit.decision.records import TRAJECTORY, cases, failed_trial, judge, lost_trial, once, stored, trial

from .samples import INCONCLUSIVE, PASSED, REGRESSED, estimate

UNCOMPARED = fact.Uncompared(new=1, edited=2, removed=3)
LOST = (CaseTally("a", 0, 4, 5, 5),)
GAINED = (CaseTally("b", 5, 5, 0, 5), CaseTally("c", 4, 4, 1, 5))
HEADLINES: list[tuple[fact.Cause, str]] = [
    (fact.CouldNotMeasure(fact.NoCases()), "could not measure: no cases"),
    (
        fact.ShardMeasured(2, 3, 8, 4),
        "shard 2 of 3: 8 trials of 4 cases; `gate merge` decides once all shards are done",
    ),
    (
        fact.ShardNotMeasured(2, 3, fact.CasesNotRun(("a", "b"), 4)),
        "could not measure shard 2 of 3: 2 of its 4 cases were not run: a, b",
    ),
    (fact.ThresholdsHold(40, 40, fact.Uncompared()), "every threshold holds over 40 cases"),
    (fact.ThresholdsHold(39, 40, fact.Uncompared()), "every threshold holds over 39 of 40 cases"),
    (
        fact.NoWorse(40, 40, -0.041, UNCOMPARED),
        "no worse than the baseline over 40 cases: a drop of more than 4.1 points is ruled out at 95 % confidence; "
        "1 new and 2 edited, held to thresholds only, 3 removed",
    ),
    (
        fact.NoWorse(9, 9, -0.041, fact.Uncompared()),
        "no worse than the baseline over 9 cases; so few cases rule out no particular drop",
    ),
    (
        fact.NoWorse(40, 40, -0.0412, fact.Uncompared()),
        "no worse than the baseline over 40 cases: a drop of more than 4.2 points is ruled out at 95 % confidence",
    ),
    (
        fact.NoWorse(40, 40, -0.0003, fact.Uncompared()),
        "no worse than the baseline over 40 cases: a drop of more than 0.1 points is ruled out at 95 % confidence",
    ),
    (
        fact.NoWorse(40, 40, 0.01, fact.Uncompared()),
        "no worse than the baseline over 40 cases: a drop is ruled out at 95 % confidence over these cases",
    ),
    (fact.NothingDecides(), "nothing was judged: no threshold"),
    (
        fact.BaselineMoved(("pass_rate",), before=True),
        "pass_rate fell against the stored baseline, but not against its newest runs: "
        "drift or luck, not shown to be this change",
    ),
    (
        fact.BaselineMoved(("pass_rate",)),
        "pass_rate fell against the stored baseline, but not against the base commit's agent run now: "
        "drift or luck, not shown to be this change",
    ),
    (
        fact.CasesNeverPass((CaseTally("a", 0, 11, 1, 1), CaseTally("b", 0, 12, 2, 2))),
        "2 cases that always passed never do now: a (1/1 → 0/11), b (2/2 → 0/12); "
        "the baseline has too few trials to prove it",
    ),
    (fact.NotEnoughEvidence(("a",), ("b",)), "not enough evidence on a; suspected: b"),
    (fact.CasesBroke(tuple("abcdefg")), "7 cases broke: a, b, c, d, e and 2 more"),
    (
        fact.CasesBroke(("a", "b"), (CaseTally("a", 0, 7, 5, 5), CaseTally("b", 0, 7, 4, 5)), 40),
        "2 of 40 cases broke, 9/10 → 0/14: a, b",
    ),
    (
        fact.SuiteGotWorse(("pass_rate",)),
        "pass_rate got worse over the suite: −12.5 points (−20 to −5) over 40 cases; "
        "broken: refund-late-order, refund-wrong-item",
    ),
    (
        fact.SuiteGotWorse(("pass_rate",), suspects=(CaseTally("a", 1, 3, 5, 5),)),
        "pass_rate got worse over the suite: −12.5 points (−20 to −5) over 40 cases; "
        "broken: refund-late-order, refund-wrong-item; most suspect: a 5/5 → 1/3",
    ),
    (
        fact.SuiteGotWorse(("tool_trajectory_avg_score",), by_mean=False, fell=(fact.Fell("a", 0.9, 0.41),)),
        "tool_trajectory_avg_score got worse in some cases; most suspect: a 0.90 → 0.41",
    ),
    (
        fact.TradedOff(LOST, GAINED, named=True, gained_named=True, policy="block"),
        "a trade: 1 case broke (5/5 → 0/4: a) and 2 improved (1/10 → 9/9: b, c)",
    ),
    (
        fact.TradedOff(LOST, GAINED, named=False, gained_named=False, policy="warn", waits=("pass rate",)),
        "a trade, which does not block by itself: some cases got worse, most suspect (5/5 → 0/4: a) and others "
        "improved as a group, most clearly b, c (1/10 → 9/9); not enough evidence on pass rate besides",
    ),
    (
        fact.CriterionFails("tool_trajectory_avg_score"),
        "tool_trajectory_avg_score fails: mean 0.81 over 40 cases, threshold 0.90; at best 0.871",
    ),
    (
        fact.CriterionNotMeasured("latency"),
        "latency could not be measured: no trial above its limit; p95 2.71 s, limit 3 s",
    ),
    (fact.CutShort("the budget is spent", 2, 5), "stopped: the budget is spent; 2 of 5 epochs were run"),
    (
        fact.SameAgent("5ed22641b0"),
        "the agent is the one of 5ed2264; nothing was run",
    ),
    (
        fact.SameAgent("5ed22641b0", fell_short=True),
        "the agent is the one of 5ed2264, which fell short (regressed); nothing was run",
    ),
    (
        fact.AgentFails(0.0004),
        "the agent fails where it answered at the baseline, also when asked again a while later "
        "(by chance in less than 0.1 % of unchanged agents)",
    ),
    (fact.Doubted(), "the rules moved; the agent fails in 2 cases, and did not at the baseline"),
]
DOUBTS = (fact.Stated("the rules moved"), fact.UnexplainedFailures(2))


def test_a_trade_tells_both_pass_rates_of_the_same_cases() -> None:
    """Two new cases that fail are no part of what was traded."""
    row = replace(REGRESSED.criteria[0], candidate=estimate(0.9, 0.8, 0.95, 42), compared=(0.93, 0.95))
    row = replace(row, criterion=replace(row.criterion, name="pass rate"))
    cause = fact.TradedOff(LOST, GAINED, named=True, gained_named=True, policy="block")
    suite = replace(REGRESSED, cause=cause, criteria=(row,))
    assert explanation.headline(suite).endswith("; pass rate 93 % → 95 % over 40 compared cases")
    same = replace(row, candidate=estimate(0.95, 0.8, 0.99, 40))
    assert explanation.headline(replace(suite, criteria=(same,))).endswith("; pass rate 93 % → 95 %")


@pytest.mark.parametrize(("cause", "said"), HEADLINES)
def test_each_cause_in_words(cause: fact.Cause, said: str) -> None:
    assert explanation.headline(replace(REGRESSED, cause=cause, doubts=DOUBTS)) == said


def test_no_cause_is_left_out() -> None:
    assert {type(cause) for cause, _ in HEADLINES} == set(get_args(fact.Cause))


def test_a_headline_ends_with_what_was_not_there_and_what_was_run() -> None:
    crashes = CrashFacts(("a", "b"), 9, 15, 0, 15, "crash: x")
    suite = replace(INCONCLUSIVE, has_baseline=False, crashes=crashes, scope="24 of 120 cases, tag smoke")
    assert explanation.headline(suite) == (
        "not enough evidence on pass_rate; no baseline yet; "
        "the agent failed in 9 of 15 trials of 2 cases, before in 0 of 15; 24 of 120 cases, tag smoke"
    )


def test_the_headline_is_that_of_the_reference_that_decided() -> None:
    anchor = replace(REGRESSED, reference="anchor")
    suite = replace(PASSED, verdict=Verdict.REGRESSED, further=(anchor,), decided_by="anchor")
    assert explanation.headline(suite) == "against the anchor: 2 cases broke: refund-late-order, refund-wrong-item"


PROBLEMS: list[tuple[fact.Problem, str]] = [
    (fact.NoCases(), "no cases"),
    (fact.AllQuarantined(), "every case is in quarantine: nothing is left to judge"),
    (
        fact.Outage(25, 40, compared=True, error="timeout: 60 s"),
        "an outage: 25 of 40 cases that answered at the baseline fail alike; most often: timeout: 60 s",
    ),
    (fact.Outage(40, 40, compared=False, error=""), "an outage: 40 of 40 cases fail"),
    (
        fact.FailsAllOver(18, 40, 0, 200, 9, 24, "crash: HTTP 500"),
        "the agent failed in 18 of 40 trials, before in 0 of 200; a while later 9 of 24 trials of cases that had "
        "answered before failed, too: it, or what it depends on, is down in part; most often: crash: HTTP 500",
    ),
    (
        fact.TooManyErrors(0.1004, 0.1, ""),
        "10.04 % of the trials ended in infrastructure errors; at most 10 % may",
    ),
    (fact.TooManyErrors(0.15, 0.1, ""), "15 % of the trials ended in infrastructure errors; at most 10 % may"),
    (
        fact.CasesNotMeasured(("a",), 40, "unreachable: reset"),
        "no trial of 1 of 40 cases could be measured: a; most often: unreachable: reset",
    ),
    (fact.CasesNotRun(("a",), 4), "1 of its 4 cases was not run: a"),
    (fact.CaseNotRecorded("a", 1, 5, ""), "the recordings have no answer to what 1 of 5 trials of a asked"),
    (fact.CaseMostlyLost("a", 3, 5, ""), "3 of 5 trials of a ended in infrastructure errors"),
]


@pytest.mark.parametrize(("problem", "said"), PROBLEMS)
def test_each_problem_in_words(problem: fact.Problem, said: str) -> None:
    suite = replace(PASSED, verdict=Verdict.ERROR, cause=fact.CouldNotMeasure(problem), has_baseline=False)
    assert explanation.headline(suite) == f"could not measure: {said}"


def test_no_problem_is_left_out() -> None:
    assert {type(problem) for problem, _ in PROBLEMS} == set(get_args(fact.Problem))


@pytest.mark.parametrize(
    ("doubt", "said"),
    [
        (fact.CriteriaNotCompared(("tone",)), "not compared with the baseline: tone"),
        (fact.CasesNotCompared(1, 2, 10), "3 of 10 cases of the baseline are no longer compared (1 removed, 2 edited)"),
        (fact.CasesNotCompared(0, 2, 10), "2 of 10 cases of the baseline are no longer compared (2 edited)"),
        (
            fact.CacheOrBroken(("c3",)),
            "c3 passed each time and now fails each time, as all repeats of a run are identical: a cache between "
            "trials would look like this, and so would a deterministic agent that broke; a second stored run tells "
            "(run the default branch's job again)",
        ),
        (
            ChecksFellAway("claims", ("b", "c"), 10),
            "claims: it has nothing to check in 2 of 10 cases (b, c), and always had at the baseline",
        ),
        (
            fact.ControlFell(("a",)),
            "a passed in each stored trial, and now fails in each, of the base commit's agent too: the provider moved, "
            "or that agent is not what was stored",
        ),
        (fact.LostDecide(8), "8 trials could not be measured, and counted as failed no pass is left"),
        (fact.LostDecide(0, 1), "1 answer could not be scored, and counted as failed no pass is left"),
        (
            fact.LostDecide(1, 2),
            "1 trial could not be measured and 2 answers could not be scored, and counted as failed no pass is left",
        ),
        (FailuresGone(1), "the failures did not come again: 1 trial of the same cases answered a while later"),
    ],
)
def test_each_doubt_in_words(doubt: fact.Doubt, said: str) -> None:
    assert explanation.doubt(replace(PASSED, doubts=(doubt,))) == said


CHANGES: list[tuple[fact.RuleChange, str]] = [
    (fact.Stated("two"), "two"),
    (fact.NewCases(("a",)), "new, held to thresholds only: a"),
    (
        fact.AnsweredBy("model", ("m-2",), ("m-1",)),
        "the provider answered with m-2 where the baseline had m-1; "
        "if this change did not ask for that, the provider moved",
    ),
    (fact.ToolsChanged(("orders",), ("orders: find is new",)), "the tools of orders changed: orders: find is new"),
    (fact.ToolsChanged(("orders",)), "the tools of orders changed since the baseline was recorded"),
    (fact.EditedCases(("a",)), "edited, held to thresholds only: a"),
    (fact.RenamedCases((("a", "b"),)), "renamed, and compared by their content: a → b"),
    (fact.RemovedCases(("a",)), "removed since the baseline: a"),
    (fact.CriterionApart("tone", NoLongerMeasured()), "not compared: tone: it is no longer measured"),
    (fact.RemovedCriteria(("tone",)), "not compared: tone: no longer measured"),
    (fact.NewCriteria(("tone",)), "new criterion, held to its threshold only: tone"),
    (
        fact.ByBaseRules(Verdict.PASS),
        "judged by the base's own rules; the change's stricter ones would say pass",
    ),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_each_change_in_words(change: fact.RuleChange, said: str) -> None:
    assert explanation.changes(replace(PASSED, changes=(change,))) == (said,)


ANSWERED = (fact.AnsweredBy("model", ("m-2",), ("m-1",)), fact.AnsweredBy("system", ("fp_2",), ("fp_1",)))
MODEL, SYSTEM = (explanation.answered_by(found) for found in ANSWERED)


@pytest.mark.parametrize("verdict", explanation.MAY_BE_MOVED)
def test_another_model_and_another_system_open_the_headline_of_what_they_may_explain(verdict: Verdict) -> None:
    suite = replace(REGRESSED, verdict=verdict, changes=(*ANSWERED, fact.NewCases(("a",))))
    assert explanation.headline(suite).startswith(f"{MODEL}, and {SYSTEM}, which may be why: 2 cases broke")
    assert explanation.opening(suite) == ()
    assert len(explanation.further_changes(suite)) == 3


def test_another_model_and_another_system_stand_right_below_every_other_headline() -> None:
    suite = replace(PASSED, changes=(fact.NewCases(("a",)), *ANSWERED))
    assert MODEL not in explanation.headline(suite)
    moved = "if this change did not ask for that, the provider moved"
    assert explanation.opening(suite) == (f"{MODEL}; {moved}", f"{SYSTEM}; {moved}")
    assert explanation.further_changes(suite) == ("new, held to thresholds only: a",)


WARNINGS: list[tuple[fact.Caution, str]] = [
    (fact.Stated("a note"), "a note"),
    (fact.AgentFailures(), "the agent failed in 1 of 7 trials of 1 case; most often: crash: x"),
    (
        fact.ThresholdExcused("tool_trajectory_avg_score", 0.0, 0.1, 0.9),
        "tool_trajectory_avg_score: 0.00 is below 0.90, as the baseline was (0.10): "
        "it does not block (`ratchet: false` would)",
    ),
    (
        fact.LimitExcused("latency", QuantileExcused(0.95, 3.5, 3.0)),
        "latency: p95 3.5 s, limit 3 s, as the baseline was above it too: it does not block (`ratchet: false` would)",
    ),
    (fact.FewCases(4, blind=True), "4 paired cases: so few only show a case that breaks outright"),
    (fact.FewCases(5, blind=False), "5 paired cases: only clear breaks can be found"),
    (
        fact.ThinBaseline(3, 5, 1, typical=5),
        "3 cases with fewer than 5 baseline trials (least: 1): a single broken case may be missed; "
        "runs on the default branch store more",
    ),
    (
        fact.ThinBaseline(3, 5, 2, typical=5, grows=False),
        "3 cases with fewer than 5 baseline trials (least: 2): a single broken case may be missed; "
        "`baseline.trials: 5` makes runs on the default branch store more",
    ),
    (fact.QuietRise("latency", 0.6), "latency: a typical case +60 %, beyond its margin; it warns only"),
    (fact.ScoresUnmeasured("latency", 1, 80), "latency: 1 of 80 scores could not be measured"),
    (fact.TrialsLost(1, 80), "1 of 80 trials ended in infrastructure errors and left no score"),
    (fact.FailuresExcused(12, 12, "crash: boom"), "the agent failed in 12 of 12 trials (crash: boom)"),
    (
        fact.FailuresExcused(9, 12, "crash: boom", at_base=True),
        "the base commit's agent failed in 9 of 12 trials (crash: boom)",
    ),
    (
        fact.BaseGone(16, "unreachable: refused"),
        "the base commit's agent gave no answer in 16 trials and was asked no more: what is compared is the stored "
        "baseline (unreachable: refused)",
    ),
    (
        fact.Unproven(("abcdef012345",), (), "the token may not read"),
        "the baseline of abcdef0 is unproven: no trusted job is known to have measured it (the token may not read), "
        "and whoever may write where baselines are kept may have written it",
    ),
    (
        fact.Unproven((), tuple((f"the baseline of {n}", "passed over") for n in range(5))),
        "the baseline of 0: passed over; the baseline of 1: passed over; the baseline of 2: passed over; 2 more",
    ),
    (
        fact.MeasuredBefore((Verdict.PASS, Verdict.BELOW_THRESHOLD), 2, fingerprinted=True),
        "measurement 3 of this change; before: pass, below threshold (another fingerprint of the agent is measured "
        "anew, and the error rate is that of one measurement)",
    ),
    (
        fact.MeasuredBefore((Verdict.INCONCLUSIVE,), 7, fingerprinted=False),
        "measurement 8 of this change; the newest 1 of 7 before: inconclusive (without a fingerprint of the agent each "
        "commit is measured anew, and the error rate is that of one measurement)",
    ),
    (
        fact.ProviderMoved(86_400.0, "abcdef012345", "pass rate", Scale.BINARY, -0.04, 0.001, 9),
        "since 1970-01-02 00:00 UTC, abcdef0 the same agent scores 4 points less on pass rate (p = 0.001, 9 runs): "
        "the provider drifted",
    ),
    (
        fact.ProviderMoved(86_400.0, None, "tone", Scale.LIKERT, 0.4, 0.02, 9, baseline_is_older=True),
        "the baseline was measured before that: since 1970-01-02 00:00 UTC the same agent scores 0.40 more on tone "
        "(p = 0.02, 9 runs): the provider drifted",
    ),
    (fact.AttemptsRepeated(2), "2 attempts repeated after an infrastructure error"),
    (
        fact.RepeatsOnce(97, 100),
        "repeats within a run are identical in 97 of 100 repeated cases, and differ between runs: "
        "they count as one trial (is there a cache between trials?)",
    ),
    (
        fact.RepeatsAlike(cached=False),
        "repeated trials give identical answers: a fixed seed, a cache, or a deterministic agent",
    ),
    (
        fact.RepeatsAlike(cached=True),
        "repeated trials give identical answers, and five times faster: a response cache answers, not the agent",
    ),
    (
        fact.CallsNotReported(("tools",)),
        "no answer reports a tool call, although answers of the baseline did: "
        "the scores of tools are right only if the agent made none",
    ),
    (
        fact.CallsNotReported(("tools", "order")),
        "no answer reports a tool call, although answers of the baseline did: "
        "the scores of tools, order are right only if the agent made none",
    ),
    (fact.EmptyAnswers(8, 9, ("pii",)), "8 of 9 answers are empty, and an empty answer holds pii"),
    (
        fact.OneAnswer(9, 3, ("pii",)),
        "all 9 answers to 3 cases are the same, and the same answer always holds pii",
    ),
    (
        fact.CasesUnchecked(("a",)),
        "1 case states nothing that a blocking criterion checks: it is unchecked, not passed (a)",
    ),
    (
        fact.CasesUnchecked(("a", "b"), were_checked=True),
        "2 cases are unchecked, not passed (a, b): no blocking criterion applies to what was answered, "
        "as one did at the baseline",
    ),
    (
        fact.NotAccepted("wendy at noon", ("tools",)),
        "the acceptance by wendy at noon does not count: tools misses a threshold, a limit or a hard rule, "
        "and that nobody can accept",
    ),
    (fact.CasesUnchecked(("a", "b")), "2 cases state nothing that is checked: they are unchecked, not passed (a, b)"),
]


@pytest.mark.parametrize(("warning", "said"), WARNINGS)
def test_each_warning_in_words(warning: fact.Caution, said: str) -> None:
    suite = replace(PASSED, warnings=(warning,), crashes=CrashFacts(("a",), 1, 7, 0, 0, "crash: x"))
    assert explanation.warnings(suite) == (said,)


def test_no_change_and_no_warning_is_left_out() -> None:
    assert {type(change) for change, _ in CHANGES} == set(get_args(fact.RuleChange))
    assert {type(warning) for warning, _ in WARNINGS} == set(get_args(fact.Caution))


# --- how it came about ----------------------------------------------------------------------------


def decided(verdict: str, stage: Stage, *, low: float = -0.29, e_value: float = 1.0, p: float = 0.14) -> SuiteResult:
    rate = MetricChange(10, 30, -0.1, low, 0.09, 0.2, low >= -0.2, 0.31, blocks_regression=True, excluded=low)
    look = LookTest(1, p, 0.005, 500, {"pass rate": MetricTest(p, p, p)})
    evidence = EvidenceSummary(1, 10, {}, (look,), e_value, e_value, 500.0, ("a",), {}, {"pass rate": rate})
    row = replace(INCONCLUSIVE.criteria[0], criterion=replace(INCONCLUSIVE.criteria[0].criterion, name="pass rate"))
    return replace(INCONCLUSIVE, criteria=(row,), outcome=Outcome(verdict, ("a",), stage, evidence))  # type: ignore[arg-type]


def test_a_proof_that_the_headline_tells_is_not_told_again() -> None:
    cause = fact.CasesBroke(("a",), (CaseTally("a", 0, 7, 5, 5),), 40)
    suite = decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0)
    told = replace(suite, course=fact.Course(1, 40, 1, 6, 6, runs=46, fixed_runs=200), cause=cause)
    assert explanation.headline(told) == "1 of 40 cases broke, 5/5 → 0/7: a"
    assert not any("a 5/5" in line or "(a)" in line for line in explanation.story(told))


def thin_in(cases: int, **facts: Any) -> SuiteResult:
    """A pass in which so many of ten cases have fewer than five stored trials."""
    suite = decided("PASS", Stage(StageKind.CERTIFIED, 1))
    thin = fact.ThinBaseline(cases, 5, 1, **facts)
    return replace(suite, verdict=Verdict.PASS, cause=fact.NothingDecides(), warnings=(thin,))


def test_a_thin_baseline_proves_no_single_break_however_clearly_one_is_seen() -> None:
    broken = (CaseTally("c03", 0, 13, 1, 1),)
    suite = replace(thin_in(10, blind=True), verdict=Verdict.INCONCLUSIVE, cause=fact.CasesNeverPass(broken))
    assert explanation.headline(suite) == (
        "1 case that always passed never does now: c03 (1/1 → 0/13); the baseline has too few trials to prove it; "
        "thin baseline, fewer than 5 stored trials a case (least: 1): a single broken case would not be proven with "
        "so few; runs on the default branch store more"
    )
    assert explanation.warnings(suite) == ("10 cases with fewer than 5 baseline trials (least: 1)",)


def test_the_headline_says_in_how_many_cases_a_baseline_is_thin_from_a_tenth_of_them_on() -> None:
    assert "; thin baseline, fewer than 5 stored trials in 4 of 10 cases (least: 1); " in explanation.headline(
        thin_in(4, typical=5)
    )
    assert "in 1 of 10 cases (least: 1)" in explanation.headline(thin_in(1, typical=5))
    one_of_many = replace(thin_in(1, typical=5), outcome=None, cases=PASSED.cases)
    assert "thin baseline" not in explanation.headline(one_of_many)
    assert "a single broken case may be missed" in explanation.warnings(one_of_many)[0]


def test_a_proof_by_repeats_shows_what_was_asked_again() -> None:
    suite = decided("REGRESSION", Stage(StageKind.REPEATS, 1))
    assert suite.outcome is not None
    test = RepeatsTest(1, 0.0004, 0.0016, 5, 6, 15, 24, 25)
    proven = replace(suite.outcome, evidence=replace(suite.outcome.evidence, repeats=(test,)))
    story = " ".join(explanation.story(replace(suite, outcome=proven)))
    assert "regression proven after the cases that had failed were run again" in story
    assert "5 cases that had failed were run again: 24/25 → 6/15" in story
    assert not proven_by_mean(proven, "pass rate")
    missed = replace(proven, evidence=replace(proven.evidence, repeats=(replace(test, p=0.2),)))
    assert "24/25" not in " ".join(explanation.story(replace(suite, outcome=missed)))


def test_each_test_of_repeats_is_explained_and_counts_as_spent_whatever_it_found() -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert suite.outcome is not None
    alpha = 1 / (suite.outcome.evidence.e_threshold * CASES_SHARE)
    tests = tuple(RepeatsTest(e, 0.2, s * alpha, 5, 12, 15, 24, 25) for e, s in enumerate(REPEATS_SHARES, start=1))
    asked = replace(suite.outcome, evidence=replace(suite.outcome.evidence, repeats=tests))
    lines = rule_lines(replace(suite, outcome=asked))
    assert f"repeats of 5 cases that failed, after epoch 1: p = 0.2, blocks at {0.08 * alpha:.2g}" in lines
    assert spent(asked.evidence) - spent(suite.outcome.evidence) == pytest.approx(sum(REPEATS_SHARES))


def test_crashes_are_counted_once_and_their_message_is_told() -> None:
    crashed = replace(
        INCONCLUSIVE, warnings=(fact.AgentFailures(),), crashes=CrashFacts(("a",), 1, 7, 0, 0, "crash: x")
    )
    assert explanation.headline(crashed).endswith("; the agent failed in 1 of 7 trials of 1 case")
    assert explanation.warnings(crashed) == ("the agent failed, most often: crash: x",)


def test_a_threshold_that_is_missed_for_certain_comes_before_a_drop_whose_drift_was_not_looked_for() -> None:
    short, fell = MeanProvenShort(HeldMean(0.0, 0.8, 12), 0.448), GotWorse(Change(-1.0, -1.0, -0.88, 12))
    row = CriterionResult(
        Criterion("trajectory", "trajectory", Scale.UNIT, threshold=0.8), Verdict.REGRESSED, (short, fell)
    )
    cause = fact.SuiteGotWorse(("trajectory",), perhaps_drift=True, missed=("trajectory",), drift_moot=True)
    missed = "its threshold is missed, too (mean 0.00 over 12 cases, threshold 0.80; at best 0.448)"
    change = "−1.00 (−1.00 to −0.88) over 12 cases"
    assert reason(row) == f"{missed}; {change}"
    assert explanation.headline(replace(REGRESSED, cause=cause, criteria=(row,))) == (
        f"trajectory: {missed}; trajectory got worse over the suite: {change}; whether the provider changed since the "
        "baseline was stored was not looked for: this fails anyway"
    )
    alone = replace(REGRESSED, cause=replace(cause, drift_moot=False), criteria=(row,))
    assert explanation.headline(alone).endswith(explanation.DRIFT)


def test_a_case_that_fails_each_time_has_one_set_of_counts_and_the_runs_add_up() -> None:
    course = fact.Course(
        *(1, 12, 1, 10, 10, 76, 30), reruns=10, baseline_reruns=6, confirming=48, baseline_confirming=24
    )
    cause = fact.CasesBroke(("c3",), (CaseTally("c3", 0, 11, 11, 11),), 12)
    suite = replace(
        decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0),
        cause=cause,
        course=course,
        crashes=CrashFacts(("c3",), 23, 23, 0, 23, "crash: x"),
        warnings=(fact.AgentFailures(),),
    )
    assert explanation.headline(suite) == (
        "1 of 12 cases broke: c3; the agent failed in 23 of 23 trials of it, confirmation included, before in 0 of 23"
    )
    assert explanation.warnings(suite) == ("the agent failed, most often: crash: x",)
    assert explanation.story(suite)[0] == (
        "1 trial of 12 cases; 1 suspicious, rerun 10 times (and 6 runs of the baseline's agent); 1 confirmed broken; "
        "failures asked for again a while later, 48 runs (24 of the baseline's agent); "
        "76 agent runs (30 of the baseline's agent)"
    )
    partly = replace(suite, crashes=CrashFacts(("c3",), 14, 23, 0, 23, "crash: x"))
    assert explanation.headline(partly) == (
        "1 of 12 cases broke, 11/11 → 0/11: c3; "
        "the agent failed in 14 of 23 trials of 1 case, confirmation included, before in 0 of 23"
    )


def test_the_runs_that_the_story_names_add_up_to_all() -> None:
    """Lost trials that were run again, cases in quarantine, both sides: each run is named once."""
    suite = cases(12)
    ids = [case.id for case in suite]

    def ran(case_ids: list[str], number: int, tag: str, **options: Any) -> list[Trial]:
        return [trial(c, number, round=number, tag=tag, trajectory=1.0, **options) for c in case_ids]

    base = {"side": Side.BASELINE}
    first = [lost_trial(ids[0]), lost_trial(ids[1]), *ran(ids[2:], 1, FULL)]
    again = [replace(t, again=True) for t in ran(ids[:2], 1, FULL)]
    trials = [*first, *again, *ran(ids[:3], 2, CONFIRM), *ran(ids[:2], 2, CONFIRM, **base), *ran(ids[:1], 3, CONFIRM)]
    trials += [*ran(ids[4:7], 4, REPEAT), *ran(ids[4:5], 4, REPEAT, **base), *ran(ids[1:], 5, FULL, **base)]
    trials += [*ran(ids[5:9], 6, CONCURRENT, **base), *ran(ids[5:7], 6, CONCURRENT), *ran(ids[1:5], 7, PROBE)]
    settings = Settings(quarantine={ids[11]: "known"}, rerun="match")
    result = judge(suite, [TRAJECTORY], trials, stored(suite, trajectory=1.0), settings=settings)
    assert explanation.story(result)[0] == (
        "1 trial of 11 cases; 1 run of cases in quarantine; 11 runs of the baseline's agent; "
        "3 suspicious, rerun 1–2 times (4 runs, and 2 of the baseline's agent); "
        "to see whether repeats are draws of their own, 4 runs (1 of the baseline's agent); "
        "to tell the change from a drift, 6 runs (4 of the baseline's agent); "
        "failures asked for again a while later, 4 runs; in place of trials that were lost, 2 runs; "
        f"{11 + 1 + 11 + 4 + 2 + 4 + 6 + 4 + 2} agent runs (18 of the baseline's agent) instead of 55"
    )
    assert len(trials) == 45


def test_an_epoch_that_was_cut_short_is_not_told_as_a_whole_one() -> None:
    suite = cases(12)
    result = judge(suite, [TRAJECTORY], once(suite[:7], trajectory=1.0), stored(suite, trajectory=1.0), stopped="clock")
    assert explanation.story(result)[0] == "at most 1 trial of 12 cases, 7 runs; 7 agent runs instead of 60"


def test_a_baseline_of_this_very_commit_is_said_to_be_one() -> None:
    info = BaselineInfo(None, missing="it is of this commit", of_itself=True)
    suite = replace(INCONCLUSIVE, has_baseline=False, baseline=info)
    assert explanation.headline(suite).endswith(
        "; nothing to compare with yet: the stored baseline is of this very commit; the next is compared with it"
    )


def test_a_baseline_that_does_not_count_is_not_said_to_be_none() -> None:
    info = BaselineInfo(None, missing="the baseline saved last is of this very commit", of_itself=True)
    assert baseline_line(info) == "nothing to compare with yet: the baseline saved last is of this very commit"
    assert baseline_line(replace(info, of_itself=False, missing="switched off")) == "none: switched off"


@pytest.mark.parametrize(("failing", "by_name"), [(2, False), (4, True)])
def test_headline_and_story_name_the_proof_that_decided(failing: int, by_name: bool) -> None:
    """Two broken cases of twenty are named, and do not prove the regression: the mean does. Four do."""
    suite = cases(20)
    trials = [trial(c.id, n, trajectory=float(i >= failing)) for i, c in enumerate(suite) for n in (1, 2, 3)]
    result = judge(suite, [TRAJECTORY], trials, stored(suite, trajectory=1.0), settings=Settings(exact_epochs=3))
    assert result.outcome is not None and len(result.outcome.cases) == failing
    said, proof = explanation.headline(result), explanation.story(result)[1]
    names = listing(case.id for case in suite[:failing])
    if by_name:
        assert said == f"4 of 20 cases broke, 20/20 → 0/12: {names}"
        assert proof.startswith(
            "regression proven after 3 trials a case: single cases fail more often than chance allows"
        )
    else:
        assert said.startswith(
            f"pass rate, trajectory got worse over the suite: −10 points over 20 cases; broken: {names}"
        )
        assert "most suspect" not in said, "they are named as broken"
        assert proof.startswith("regression proven after 3 trials a case: pass rate: the mean fell; by chance ")
        assert "single case" not in proof


def test_the_story_tells_the_proof_of_the_headline_first_and_by_its_criterion() -> None:
    suite = decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0)
    assert suite.outcome is not None
    tests = {"pass rate": MetricTest(0.003, 0.9, 0.003), "other": MetricTest(0.001, 0.9, 0.001)}
    look = replace(suite.outcome.evidence.looks[0], p=0.001, metrics=tests)
    evidence = replace(suite.outcome.evidence, looks=(look,))
    both = replace(suite, outcome=replace(suite.outcome, evidence=evidence))
    broke = replace(both, cause=fact.CasesBroke(("a",), (CaseTally("a", 0, 7, 5, 5),), 40))
    chance = "the mean fell; by chance that happens to 0.1 % of unchanged agents (limit 0.5 %)"
    single = "a single case fails more often than chance allows an unchanged agent"
    assert explanation.story(broke)[1] == (
        f"regression proven after reruns of the suspicious cases: {single}; besides, other: {chance}"
    )
    by_look = replace(both.outcome, stage=Stage(StageKind.SUITE_LOOK, 1))
    assert explanation.story(replace(broke, outcome=by_look))[1] == (
        f"regression proven: {single}; and after 1 trial a case: other: {chance}"
    )
    whole = replace(both, cause=fact.SuiteGotWorse(("pass rate", "other")), outcome=by_look)
    assert explanation.story(whole)[1] == (
        f"regression proven after 1 trial a case: pass rate: {chance}; "
        "a single case fails more often than chance allows an unchanged agent"
    )


def test_the_story_of_a_regression() -> None:
    course = fact.Course(*(1, 40, 2, 3, 5, 52, 4), fixed_runs=200, stopped="the clock", reruns=8, baseline_reruns=4)
    suite = replace(decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0), course=course)
    assert explanation.story(suite) == (
        "1 trial of 40 cases; 2 suspicious, rerun 3–5 times (8 runs, and 4 of the baseline's agent); "
        "1 confirmed broken (a); 52 agent runs (4 of the baseline's agent) instead of 200",
        "regression proven after reruns of the suspicious cases: "
        "a single case fails more often than chance allows an unchanged agent",
        "stopped: the clock",
    )


@pytest.mark.parametrize("failing", [1, 2])
def test_nothing_is_open_once_failures_that_came_again_prove_the_regression(failing: int) -> None:
    """Of one failing case the comparison alone would pass, of two it is open: the confirmation proves both."""
    suite = cases(40)
    down, others = [case.id for case in suite[:failing]], [case.id for case in suite[10:16]]
    trials = [*map(failed_trial, down), *once(suite[failing:], trajectory=1.0)]
    for number in range(2, 10):
        trials += [failed_trial(c, number, round=9, tag=PROBE) for c in down]
        trials += [trial(c, number, round=9, tag=PROBE, trajectory=1.0) for c in others]
    result = judge(suite, [TRAJECTORY], trials, stored(suite, trajectory=1.0))
    assert isinstance(result.cause, fact.AgentFails)
    said = headline.story(result)
    assert said[1].startswith(
        "regression proven by the failures that came again a while later; "
        "in the comparison without them an unchanged agent looks as bad or worse in "
    )
    assert len(said) == 2, "what would decide is no question any more"
    assert explanation.to_decide(result) == ""
    assert headline.next_step(result) == "fix it"


def test_of_an_agent_that_is_down_no_test_and_no_way_to_decide_is_told() -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    down = fact.CouldNotMeasure(fact.Outage(12, 12, compared=True, error="crash: boom"))
    told = explanation.story(replace(suite, verdict=Verdict.ERROR, cause=down, course=fact.Course(1, 12, runs=12)))
    assert told == ("1 trial of 12 cases; 1 confirmed broken (a); 12 agent runs",)


def test_an_inconclusive_answer_says_what_is_ruled_out_and_what_would_decide() -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert explanation.story(suite)[1:] == (
        "still open after the last trial: an unchanged agent looks as bad or worse in 14 % of runs; "
        "a drop of about 31 points shows in four of five such runs",
        "pass rate: lower than −29 points is ruled out at 95 % confidence; its margin is narrower",
        "to decide pass rate: more trials on both sides, or a margin of 0.29; of more cases the margin is narrower, "
        "and the estimate itself is beyond it",
        "suspected, but not proven at this error rate: a; more baseline trials would tell",
    )
    assert explanation.to_decide(suite).startswith("to decide pass rate: more trials on both sides, or a margin")
    assert explanation.to_decide(PASSED) == ""


def test_what_is_ruled_out_is_never_less_than_the_bound() -> None:
    told = " ".join(explanation.story(decided("INCONCLUSIVE", Stage(StageKind.END), low=-0.2901)))
    assert "pass rate: lower than −29.1 points is ruled out at 95 % confidence" in told


def test_two_bounds_of_one_change_are_explained_where_they_differ() -> None:
    def told(excluded: float, cases: int = 40) -> bool:
        suite = decided("PASS", Stage(StageKind.CERTIFIED, 1), low=-0.05)
        assert suite.outcome is not None
        evidence = suite.outcome.evidence
        rate = replace(evidence.metrics["pass rate"], low=-0.05, excluded=excluded)
        outcome = replace(suite.outcome, evidence=replace(evidence, metrics={"pass rate": rate}))
        cause = fact.NoWorse(cases, cases, excluded, fact.Uncompared())
        known = replace(suite, cause=cause, outcome=outcome, course=fact.Course(1, cases, runs=cases))
        return any("what is ruled out counts one failure more" in line for line in explanation.story(known))

    assert told(-0.12)
    assert not told(-0.05), "one bound needs no words"
    assert not told(-0.12, cases=9), "nothing is called ruled out"


def test_a_drift_of_the_provider_is_told() -> None:
    told = explanation.story(decided("INCONCLUSIVE", Stage(StageKind.DRIFTED)))
    assert told[2].startswith("the drop against the stored baseline did not show with both commits run now")
    told = explanation.story(decided("INCONCLUSIVE", Stage(StageKind.MOVED_BEFORE)))
    assert told[2] == "against the baseline's newest runs alone no drop shows: the provider may have moved before them"


def open_rate(cases: int, change: float, low: float, margin: float) -> tuple[MetricChange, Criterion]:
    found = MetricChange(cases, cases, change, low, 0.1, margin, False, 0.3, blocks_regression=True)
    return found, INCONCLUSIVE.criteria[0].criterion


def test_the_cases_that_would_decide_are_held_to_the_margin_of_so_many() -> None:
    """Two cases' worth of ten is a margin of 20 points; of twenty and more it is the configured 10."""
    found, rate = open_rate(10, -0.05, -0.30, 0.2)
    cases = explanation._enough(found, rate)
    assert cases == 250, "(0.25 / 0.05)² times as many, not the 28 of the margin that ten cases have"
    assert explanation._what_decides(found, rate) == "about 250 cases, or more baseline trials, or a margin of 0.30"
    near, _ = open_rate(10, 0.0, -0.201, 0.2)
    assert explanation._enough(near, rate) == 41
    large, _ = open_rate(100, -0.02, -0.15, 0.1)
    assert explanation._enough(large, rate) == 265
    assert explanation._what_decides(open_rate(10, -0.05, -0.2951, 0.2)[0], rate).endswith("or a margin of 0.30")


@given(st.integers(3, 60), st.floats(-0.3, 0.1), st.floats(0.01, 0.5))
def test_as_many_cases_as_are_said_to_decide_do(cases: int, change: float, half: float) -> None:
    margin = max(0.1, 2 / cases)
    assume(change - half < -margin < change)
    found, rate = open_rate(cases, change, change - half, margin)
    if enough := explanation._enough(found, rate):
        assert change - half * (cases / enough) ** 0.5 >= -max(0.1, 2 / enough) - 1e-9


@pytest.mark.parametrize(("change", "said"), [(-0.0999999999, "close to its margin"), (-0.2001, "beyond its margin")])
def test_what_no_number_of_cases_decides_asks_for_trials(change: float, said: str) -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert suite.outcome is not None
    evidence = suite.outcome.evidence
    rate = replace(evidence.metrics["pass rate"], change=change, low=-0.4)
    outcome = replace(suite.outcome, evidence=replace(evidence, metrics={"pass rate": rate}))
    (told,) = explanation._to_decide(suite, outcome.evidence)
    assert told == f"to decide pass rate: more trials on both sides; the estimate itself is {said}"


@pytest.mark.parametrize(("direction", "said"), [(Direction.HIGHER, "fell"), (Direction.LOWER, "rose")])
def test_a_proof_says_where_the_mean_went(direction: Direction, said: str) -> None:
    suite = decided("REGRESSION", Stage(StageKind.SUITE_LOOK, 1), p=0.0001)
    (row,) = suite.criteria
    known = replace(suite, criteria=(replace(row, criterion=replace(row.criterion, direction=direction)),))
    assert any(f"pass rate: the mean {said}; by chance" in line for line in explanation.story(known))
