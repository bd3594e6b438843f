"""The numbers of an explanation, and what was spent. Its words: test_golden.py."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.repeats import REPEATS_SHARES
from gate.decision.rows import spent
from gate.model import BaselineInfo, CaseStatus, CriterionResult, Stage, StageKind, SuiteResult, Verdict, accepted_by
from gate.model.evidence import RepeatsTest
from gate.model.finding import CaseTally, Finding, HeldMean
from gate.reports import markdown, view
from gate.reports.certainty import how_sure
from gate.reports.next_step import next_step
from gate.reports.reasons import fails, is_excused
from gate.reports.story import story
from gate.reports.view import View
from gate.reports.words import tell, tell_short
from gate.stored.explain import rule_lines

from .samples import ACCEPTED, BELOW, FAILED, INCONCLUSIVE, LOST, NO_BASELINE, NOT_COMPARED, PASSED, REGRESSED, result
from .situations import LATENCY, NARROW, NOT_SHOWN_FIXED, RESPONSE, decided, suites, with_evidence


def test_each_test_of_repeats_is_explained_and_counts_as_spent_whatever_it_found() -> None:
    suite = decided("INCONCLUSIVE", Stage(StageKind.END))
    assert suite.outcome is not None
    alpha = 1 / (suite.outcome.evidence.e_threshold * CASES_SHARE)
    tests = tuple(RepeatsTest(e, 0.2, s * alpha, 5, 12, 15, 24, 25) for e, s in enumerate(REPEATS_SHARES, start=1))
    asked = with_evidence(suite, repeats=tests)
    assert asked.outcome is not None
    assert sum("repeats" in line for line in rule_lines(asked)) == len(tests)
    assert spent(asked.outcome.evidence) - spent(suite.outcome.evidence) == pytest.approx(sum(REPEATS_SHARES))


@pytest.mark.parametrize("verdict", view.MAY_BE_MOVED)
def test_another_model_is_in_the_headline_of_what_it_may_explain_and_below_every_other(verdict: Verdict) -> None:
    answered = Finding.of("answered_by", what="model", now=("m-2",), before=("m-1",))
    suite = replace(
        REGRESSED, verdict=verdict, changes=(answered, Finding.of("cases_changed", how="new", cases=("a",)))
    )
    told = tell_short(answered)
    assert told in View(suite).headline
    assert View(suite).opening == ()
    fine = replace(suite, verdict=Verdict.PASS)
    assert told not in View(fine).headline
    assert (len(View(fine).opening), len(View(fine).changes)) == (1, 1)


def test_what_the_baseline_excuses_is_known_by_its_kind() -> None:
    excused = Finding.of("limit", case_id="a", value=4.5, limit=3.0)
    assert is_excused(CriterionResult(LATENCY, Verdict.PASS, (Finding.of("limit"), excused)))
    assert not is_excused(CriterionResult(LATENCY, Verdict.PASS, (Finding.of("limit"),)))
    assert is_excused(CriterionResult(RESPONSE, Verdict.PASS, (Finding.of("own_thresholds", cases=3, excused=1),)))
    assert not is_excused(CriterionResult(RESPONSE, Verdict.PASS, (Finding.of("own_thresholds", cases=3),)))


EXCUSED = replace(LOST, if_accepted=Verdict.BELOW_THRESHOLD)


@pytest.mark.parametrize(
    ("suite", "can"),
    [
        (LOST, True),
        (REGRESSED, False),  # a threshold is missed, too
        (EXCUSED, False),  # a mean that was excused is so no more
        (NOT_COMPARED, True),
        (replace(NOT_COMPARED, below=("tone",)), False),
        *((suite, False) for suite in (PASSED, INCONCLUSIVE, FAILED, BELOW)),
    ],
)
def test_a_loss_and_what_was_not_compared_can_be_accepted_unless_a_threshold_is_missed(
    suite: SuiteResult, can: bool
) -> None:
    accepted = accepted_by(suite, "ann")
    assert suite.is_acceptable is can
    assert (accepted.accepted, accepted.standing) == (("ann", Verdict.PASS) if can else ("", suite.verdict))


@pytest.mark.parametrize("suite", [REGRESSED, LOST, EXCUSED, BELOW, NOT_COMPARED, INCONCLUSIVE, FAILED])
def test_there_is_something_to_do_about_each_verdict_but_a_pass(suite: SuiteResult) -> None:
    assert next_step(suite)
    assert ("baseline accept" in next_step(suite)) is ("`ok`" in next_step(suite, "ok")) is suite.is_acceptable
    assert next_step(replace(suite, accepted="ann", if_accepted=Verdict.PASS)) == ""
    assert next_step(replace(suite, accepted="ann", if_accepted=Verdict.ERROR))


def test_there_is_nothing_to_do_about_a_pass_or_a_shard() -> None:
    shard = replace(INCONCLUSIVE, cause=Finding.of("shard", shard=1, of=2, trials=36, cases=12))
    assert (next_step(PASSED), next_step(shard), next_step(ACCEPTED)) == ("", "", "")


PROVEN = decided("REGRESSION", Stage(StageKind.CASE_RERUNS))
UNDECIDED = decided("INCONCLUSIVE", Stage(StageKind.END), p=0.14)
LOOKS_DO_NOT_DECIDE = (
    Finding.of("cases_fail", cases=(CaseTally("a", 0, 4, 5, 5),), why="base_fails_too"),
    Finding.of("cases_fail", cases=(CaseTally("a", 0, 4, 5, 5),), why="copies"),
    Finding.of("cases_fail", cases=(CaseTally("a", 0, 4, 1, 1),), why="thin_baseline"),
    Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=("pass_rate",), why="drifted"),
)


def test_what_fell_against_the_stored_baseline_alone_is_not_decided_by_more_trials() -> None:
    moved = replace(decided("PASS", Stage(StageKind.END)), verdict=Verdict.INCONCLUSIVE)
    assert "trials" not in next_step(replace(moved, cause=LOOKS_DO_NOT_DECIDE[-1]))


def test_only_a_suite_that_may_have_a_baseline_has_none_yet() -> None:
    for missing, none_yet, told in (
        ("no baseline of 'support' in the store", True, "no baseline yet"),
        ("baselines are switched off", False, "nothing is compared: baselines are switched off"),
    ):
        suite = replace(NO_BASELINE, baseline=BaselineInfo(None, missing=missing, none_yet=none_yet))
        assert told in View(suite).headline


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.REGRESSED])
def test_new_cases_that_never_passed_are_told_where_a_mean_may_hide_them(verdict: Verdict) -> None:
    found = Finding.of("cases_changed", how="new", cases=("a", "b"), never_passed=("b",))
    suite = replace(PASSED, verdict=verdict, changes=(found,))
    assert ("b passed in no trial" in View(suite).headline) is (verdict is Verdict.PASS)


def test_a_verdict_on_stored_trials_says_so_first() -> None:
    """Else the author of a page of documentation looks for the fault in it."""
    same = Finding.of("same_agent", commit="0123456789")
    view = View(replace(PASSED, verdict=Verdict.BELOW_THRESHOLD, warnings=(same,)))
    assert "the agent is the same as at 0123456; nothing was run, and its stored trials count" in view.headline
    assert not any("nothing was run" in line for line in view.warnings), "once"


def test_an_edited_case_that_misses_now_is_shown() -> None:
    gap = Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("a",))
    ok = PASSED.cases[0]
    known = (
        replace(ok, id="a", status=CaseStatus.EDITED, passed=0),
        replace(ok, id="b", status=CaseStatus.FLAKY, passed=0),
    )
    cause = Finding.of("incomplete", gaps=(gap,))
    suite = replace(PASSED, verdict=Verdict.NOT_COMPARED, cause=cause, cases=known)
    assert View(suite).table.ids == {"a"}, "another failing case does not explain it"


def test_a_limit_is_changed_where_a_limit_is_broken() -> None:
    broken = Finding.of("limit", Verdict.BELOW_THRESHOLD, q=0.95, value=4.0, limit=3.0)
    missed = Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.1, 0.9, 4), trials=4, error=None)
    for found, what in (
        (broken, "limit"),
        (missed, "threshold"),
        (Finding.of("hard_rule", Verdict.BELOW_THRESHOLD), "rule"),
    ):
        row = CriterionResult(RESPONSE, Verdict.BELOW_THRESHOLD, (found,))
        cause = Finding.of("criteria_decide", criteria=(RESPONSE.name,))
        suite = replace(PASSED, verdict=Verdict.BELOW_THRESHOLD, cause=cause, criteria=(row,))
        assert next_step(suite) == f"fix it, or change the {what} in a separate pull request"


def test_a_mean_of_zero_that_was_measured_is_told() -> None:
    mean = HeldMean(0.1, 0.9, 4, measured=0.0)
    row = CriterionResult(
        RESPONSE,
        Verdict.BELOW_THRESHOLD,
        (Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=mean, trials=12, error=None),),
    )
    assert "corrected from 0" in fails(row)


def test_no_run_stores_more_of_the_long_term_baseline() -> None:
    thin = Finding.of("thin_baseline", cases=10, wanted=6, least=5)
    suite = replace(decided("PASS", Stage(StageKind.CERTIFIED, 1)), warnings=(thin,))
    assert how_sure(suite).endswith("of each case; nightly runs would store more")
    assert how_sure(replace(suite, reference="anchor")).endswith("of each case")


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        (with_evidence(PROVEN, highest_e_value=1000.0), "fewer than 1 of 1,000 runs"),
        (with_evidence(PROVEN, highest_e_value=500.0), "fewer than 1 of 500 runs"),
        (with_evidence(PROVEN, highest_e_value=499.0), ""),  # proves nothing, and nothing else does
        (decided("REGRESSION", Stage(StageKind.SUITE_LOOK, 1), p=0.004), "fewer than 1 of 200 runs"),
        (decided("INCONCLUSIVE", Stage(StageKind.END), p=0.14), "14 % of runs"),
        (
            replace(
                PROVEN, outcome=None, cause=Finding.of("agent_fails", Verdict.REGRESSED, why="confirmed", p=0.0004)
            ),
            "fewer than 1 of 1,000 runs",
        ),
        (replace(PROVEN, outcome=None, cause=NOT_SHOWN_FIXED), ""),
        (decided("PASS", Stage(StageKind.CERTIFIED, 1)), "about 31 points"),
        (
            replace(decided("PASS", Stage(StageKind.CERTIFIED, 1)), finds=None),
            "only show a case that breaks outright",
        ),
        (
            replace(
                decided("PASS", Stage(StageKind.CERTIFIED, 1)),
                warnings=(Finding.of("thin_baseline", cases=4, wanted=5, least=1),),
            ),
            "fewer than 5 trials of 4 of 10 cases; runs on the default branch store more",
        ),
        (
            replace(
                decided("PASS", Stage(StageKind.CERTIFIED, 1)),
                warnings=(Finding.of("thin_baseline", cases=4, wanted=5, least=1),),
                changes=(Finding.of("base_run_beside", commit="0123456789ab"),),
            ),
            "about 31 points",  # what was run beside is no stored baseline, and stays as thin as it is
        ),
        (NARROW, "in 13 % of runs"),
        *((replace(UNDECIDED, cause=cause), "") for cause in LOOKS_DO_NOT_DECIDE),
        (BELOW, ""),  # by far
        *((suite, "") for suite in (NO_BASELINE, NOT_COMPARED, FAILED)),
    ],
)
def test_how_sure_a_verdict_is(suite: SuiteResult, told: str) -> None:
    said = how_sure(suite)
    assert told in said
    assert bool(said) is bool(told)
    assert View(suite).opening[:1] == ((said,) if said else ())


def test_it_is_told_how_sure_the_comparison_is_that_decided() -> None:
    anchor = replace(with_evidence(PROVEN, highest_e_value=1000.0), reference="anchor")
    suite = replace(PASSED, verdict=Verdict.REGRESSED, further=(anchor,), decided_by="anchor")
    assert how_sure(suite) == how_sure(anchor) != ""


def test_an_earlier_measurement_that_fell_short_is_told_above_every_fold() -> None:
    before = Finding.of("measured_before", verdicts=(Verdict.REGRESSED,), total=1, fingerprinted=True)
    lucky = replace(PASSED, warnings=(before,))
    told = "measurement 2 of this change (before: regressed)"
    assert told in View(lucky).headline
    assert told in markdown.render(result(lucky)).partition("<details>")[0].lower()
    passed = replace(PASSED, warnings=(before.but(verdicts=(Verdict.PASS,)),))
    assert View(passed).headline == View(PASSED).headline


PROOF = re.compile(r"\d/\d|e-value|\bp = |ruled out|confidence|[\d.]+ to [−+\d]|\[[−+\d]")
"""A pooled tally, a statistic or an interval: they stand further down."""


def test_what_is_read_first_has_no_statistics() -> None:
    told = [(name, f"{View(suite).headline}\n{how_sure(suite)}") for name, suite in suites()]
    assert [(name, text) for name, text in told if PROOF.search(text)] == []


def test_a_proof_is_told_below_the_headline_that_names_its_cases() -> None:
    cause = Finding.of("cases_broke", cases=(CaseTally("a", 0, 7, 5, 5),), of=40)
    suite = replace(decided("REGRESSION", Stage(StageKind.CASE_RERUNS), e_value=1000.0), cause=cause)
    assert "1 of 40 cases broke: a" in View(suite).headline
    assert not any("5/5" in line for line in story(suite))


@pytest.mark.parametrize("blocks", [True, False])
def test_only_a_loss_that_can_block_needs_more_cases_to_be_proven(blocks: bool) -> None:
    row = PASSED.criteria[0]
    criterion = replace(row.criterion, blocks_regression=blocks)
    cause = Finding.of("collapsed", criterion=criterion.name, cases=30, trials=30, copies=False)
    suite = replace(
        PASSED, verdict=Verdict.ERROR, cause=cause, criteria=(replace(row, criterion=criterion), *PASSED.criteria[1:])
    )
    told = f"{tell(cause, suite)}; {next_step(suite)}"
    assert ("too few to prove a loss" in told, "add cases" in told) == (blocks, blocks)
    assert ("its losses only warn" in told, "change the rule" in told) == (not blocks, not blocks)
