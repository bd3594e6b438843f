"""The numbers of an explanation: what would decide an open question, and what was spent. Its words: test_golden.py."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.commands.texts.explain import rule_lines
from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.repeats import REPEATS_SHARES
from gate.decision.trade import proven_by_mean
from gate.decision.verdict import spent
from gate.model import CriterionResult, OnTradeoff, Stage, StageKind, SuiteResult, Verdict
from gate.model import facts as fact
from gate.model import findings as found
from gate.model.evidence import RepeatsTest
from gate.model.findings import CaseTally, NoLongerMeasured
from gate.reports import explanation
from gate.reports.headline import accepting_helps, next_step
from gate.reports.labels import same_cause
from gate.reports.reasons import is_excused

from .samples import FAILED, INCONCLUSIVE, PASSED, REGRESSED
from .situations import LATENCY, RESPONSE, decided, suites, traded, with_evidence

OPEN = INCONCLUSIVE.criteria[0].criterion


def enough(cases: int, change: float, low: float, margin: float) -> int:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert suite.outcome is not None
    rate = suite.outcome.evidence.metrics["pass rate"]
    return explanation._enough(replace(rate, cases=cases, change=change, low=low, margin=margin), OPEN)


def test_the_cases_that_would_decide_are_held_to_the_margin_of_so_many() -> None:
    """Two cases' worth of ten is a margin of 20 points; of twenty and more it is the configured 10."""
    assert enough(10, -0.05, -0.30, 0.2) == 250, "(0.25 / 0.05)² times as many, not the 28 of ten cases' margin"
    assert enough(10, 0.0, -0.201, 0.2) == 41
    assert enough(100, -0.02, -0.15, 0.1) == 265


@given(st.integers(3, 60), st.floats(-0.3, 0.1), st.floats(0.01, 0.5))
def test_as_many_cases_as_are_said_to_decide_do(cases: int, change: float, half: float) -> None:
    margin = max(0.1, 2 / cases)
    assume(change - half < -margin < change)
    if needed := enough(cases, change, change - half, margin):
        assert change - half * (cases / needed) ** 0.5 >= -max(0.1, 2 / needed) - 1e-9


def test_each_test_of_repeats_is_explained_and_counts_as_spent_whatever_it_found() -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert suite.outcome is not None
    alpha = 1 / (suite.outcome.evidence.e_threshold * CASES_SHARE)
    tests = tuple(RepeatsTest(e, 0.2, s * alpha, 5, 12, 15, 24, 25) for e, s in enumerate(REPEATS_SHARES, start=1))
    asked = with_evidence(suite, repeats=tests)
    assert asked.outcome is not None
    assert sum("repeats" in line for line in rule_lines(asked)) == len(tests)
    assert spent(asked.outcome.evidence) - spent(suite.outcome.evidence) == pytest.approx(sum(REPEATS_SHARES))


def test_a_proof_by_repeats_is_none_by_the_mean() -> None:
    (proven,) = (suite.outcome for name, suite in suites() if name == "a proof by repeats")
    assert proven is not None
    assert not proven_by_mean(proven, "pass rate")


@pytest.mark.parametrize("verdict", explanation.MAY_BE_MOVED)
def test_another_model_opens_the_headline_of_what_it_may_explain_and_stands_below_every_other(verdict: Verdict) -> None:
    answered = fact.AnsweredBy("model", ("m-2",), ("m-1",))
    suite = replace(REGRESSED, verdict=verdict, changes=(answered, fact.NewCases(("a",))))
    told = explanation.answered_by(answered)
    assert explanation.headline(suite).startswith(told)
    assert (explanation.opening(suite), len(explanation.further_changes(suite))) == ((), 2)
    fine = replace(suite, verdict=Verdict.PASS)
    assert told not in explanation.headline(fine)
    assert (len(explanation.opening(fine)), len(explanation.further_changes(fine))) == (1, 1)


def test_the_headline_names_no_composite_beside_its_part() -> None:
    part = CriterionResult(replace(RESPONSE, name="part"), Verdict.REGRESSED)
    whole = CriterionResult(replace(RESPONSE, name="whole", parts=("part", "other")), Verdict.REGRESSED)
    suite = replace(REGRESSED, criteria=(part, whole))
    assert explanation.causes(suite, ("whole", "part")) == ["part"]
    assert explanation.causes(suite, ("whole",)) == ["whole"], "parts that hold explain nothing"
    held = replace(suite, criteria=(replace(part, verdict=Verdict.PASS), whole))
    assert (bool(same_cause(whole, suite)), same_cause(whole, held)) == (True, "")


def test_what_the_baseline_excuses_is_known_by_its_kind() -> None:
    excused = found.TrialExcused("a", 4.5, 3.0)
    assert is_excused(CriterionResult(LATENCY, Verdict.PASS, (found.NoTrialBeyond(), excused)))
    assert not is_excused(CriterionResult(LATENCY, Verdict.PASS, (found.NoTrialBeyond(),)))
    assert is_excused(CriterionResult(RESPONSE, Verdict.PASS, (found.OwnThresholdsHold(3, 1),)))
    assert not is_excused(CriterionResult(RESPONSE, Verdict.PASS, (found.OwnThresholdsHold(3),)))


GONE = replace(INCONCLUSIVE.criteria[0], not_compared=NoLongerMeasured())


def doubted(*doubts: fact.Doubt, criteria: tuple[CriterionResult, ...] = ()) -> SuiteResult:
    return replace(INCONCLUSIVE, cause=fact.Doubted(), doubts=doubts, criteria=criteria)


@pytest.mark.parametrize(
    ("suite", "helps"),
    [
        (replace(REGRESSED, criteria=REGRESSED.criteria[:1]), True),
        (REGRESSED, False),  # a threshold is missed, too
        (PASSED, False),
        (INCONCLUSIVE, False),
        (FAILED, False),
        (doubted(fact.CasesNotCompared(3, 0, 24)), True),
        (doubted(fact.CriteriaNotCompared(("pass_rate",)), criteria=(GONE,)), True),
        (doubted(fact.Stated("the suite is gone")), True),
        (doubted(fact.ControlFell(("a",))), False),
        (doubted(fact.CacheOrBroken(("a",))), False),
        (doubted(fact.LostDecide(3)), False),
    ],
)
def test_accepting_is_offered_where_it_helps(suite: SuiteResult, helps: bool) -> None:
    assert accepting_helps(suite) is helps


@pytest.mark.parametrize("policy", ["block", "warn", "accept"])
def test_there_is_something_to_do_about_a_trade_unless_it_is_accepted(policy: OnTradeoff) -> None:
    trade = traded(policy, verdict=Verdict.REGRESSED if policy == "block" else Verdict.INCONCLUSIVE)
    assert (next_step(trade) == "") is (policy == "accept")
    assert (next_step(PASSED), next_step(replace(PASSED, cause=fact.ShardMeasured(1, 2, 36, 12)))) == ("", "")


def test_a_proof_that_the_headline_tells_is_not_told_again() -> None:
    cause = fact.CasesBroke(("a",), (CaseTally("a", 0, 7, 5, 5),), 40)
    suite = replace(decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0), cause=cause)
    assert "5/5" in explanation.headline(suite)
    assert not any("5/5" in line for line in explanation.story(suite))
