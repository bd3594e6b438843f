"""Thresholds: of single cases, of suites too small for three passes, and what a baseline excuses."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.comparison import Incomparable
from gate.model import Case, Criterion, Direction, Scale, Verdict
from gate.model.facts import CriterionFails
from gate.model.findings import (
    CasesNotScored,
    HeldMean,
    MeanExcused,
    MeanOpen,
    MeanProvenShort,
    NoTrialReached,
    OwnThresholdsHold,
)
from gate.statistics.intervals import bounded_upper_bound, share_upper_bound

from .records import RESPONSE, TRAJECTORY, ask, cases, findings, follow, judge, once, stored, trial

HALF = replace(RESPONSE, threshold=0.5)
OWN = {"response": 0.9}


def always(value: float):  # type: ignore[no-untyped-def]
    return lambda _case, _side: {"response": value}


def times(suite, n: int, **scores):  # type: ignore[no-untyped-def]
    """``n`` passes of one fixed design."""
    return [trial(case.id, number, **scores) for case in suite for number in range(1, n + 1)]


# --- of single cases ------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", [RESPONSE, HALF])
def test_a_case_that_never_reaches_its_own_threshold_fails_the_suite(criterion: Criterion) -> None:
    suite = [Case("own", (), thresholds=OWN), *cases(9)]
    result, trials = follow(suite, [criterion], lambda c, _s: {"response": 0.0 if c == "own" else 1.0})
    assert result.verdict is Verdict.BELOW_THRESHOLD
    [found] = findings(result, "response")
    assert found.mean == HeldMean(0.0, 0.9, 1, "own")
    assert len(trials) <= 30
    fixed = judge(suite, [criterion], times(suite, 5, response=0.0), settings=Settings(exact_epochs=5))
    assert fixed.verdict is Verdict.BELOW_THRESHOLD


def test_a_new_case_is_held_to_its_own_threshold_beside_a_steady_baseline() -> None:
    suite = [*cases(12), Case("new", (), thresholds=OWN)]
    result, _ = follow(suite, [HALF], lambda c, _s: {"response": float(c != "new")}, stored(cases(12), response=1.0))
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert result.cause == CriterionFails("response")
    assert findings(result, "response")[0].mean.case_id == "new"


def test_further_passes_are_asked_for_while_an_own_threshold_is_open() -> None:
    suite = [Case("own", (), thresholds=OWN), *cases(9)]
    more = ask(suite, [HALF], once(suite, {"own": {"response": 0.8}}, response=1.0))
    assert more.runs == 10
    result, trials = follow(
        suite, [HALF], lambda c, _s: {"response": (0.8 if c == "own" else 1.0)}, settings=Settings(max_epochs=2)
    )
    assert (result.verdict, len(trials)) == (Verdict.INCONCLUSIVE, 20)
    [found] = findings(result, "response")
    assert isinstance(found, MeanOpen) and (found.trials, found.too_few) == (2, True)


def test_an_own_threshold_that_its_case_missed_before_is_excused_and_no_other_case_excuses_it() -> None:
    suite = [Case("own", (), thresholds=OWN), *cases(9)]
    now = once(suite, {"own": {"response": 0.0}}, response=1.0)
    missed = stored(suite[:1], response=0.0) + stored(suite[1:], response=1.0)
    excused = judge(suite, [HALF], now, missed)
    assert excused.verdict is Verdict.PASS
    assert OwnThresholdsHold(1, excused=1) in findings(excused, "response")
    both = [replace(suite[0], id="other"), *suite]
    trials = times(both[:1], 3, response=0.0) + times(suite[:1], 3, response=0.0) + times(suite[1:], 3, response=1.0)
    result = judge(both, [RESPONSE], trials, missed, settings=Settings(exact_epochs=3))
    assert result.verdict is Verdict.BELOW_THRESHOLD
    [found] = findings(result, "response")
    assert (found.mean.case_id, found.more) == ("other", 0)


@pytest.mark.slow
def test_own_thresholds_share_the_error_of_thresholds() -> None:
    """Twenty agents on their own thresholds: none of a few hundred suites is called below."""
    rng = Random(5)
    suite = cases(20, thresholds={"trajectory": 0.6})
    wrong = 0
    for _ in range(60):
        before = [trial(c.id, n, trajectory=float(rng.random() < 0.6)) for c in suite for n in range(1, 6)]
        result, _ = follow(suite, [TRAJECTORY], lambda _c, _s: {"trajectory": float(rng.random() < 0.6)}, before)
        wrong += result.verdict is Verdict.BELOW_THRESHOLD
    assert wrong <= 1


# --- too small for three passes -------------------------------------------------------------------


@pytest.mark.parametrize(("n", "threshold"), [(1, 0.5), (3, 0.5), (20, 0.1), (2, 0.8)])
def test_a_suite_at_zero_is_run_until_its_threshold_is_proven_missed(n: int, threshold: float) -> None:
    criterion = replace(RESPONSE, threshold=threshold)
    result, trials = follow(cases(n), [criterion], always(0.0))
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert isinstance(findings(result, "response")[0], MeanProvenShort)
    assert len(trials) <= max(4 * n, math.log(0.0025) / math.log1p(-threshold) + n)


def test_the_extension_ends_at_twenty_passes_and_is_for_auto_alone() -> None:
    criterion = replace(RESPONSE, threshold=0.1)
    result, trials = follow(cases(1), [criterion], always(0.0))
    assert (result.verdict, len(trials)) == (Verdict.BELOW_THRESHOLD, 20)
    [found] = findings(result, "response")
    assert isinstance(found, NoTrialReached) and found.trials == 20
    for settings, runs in (
        (Settings(max_epochs_to_measure=0), 3),
        (Settings(exact_epochs=2), 2),
        (Settings(runs=6), 3),
    ):
        assert len(follow(cases(1), [criterion], always(0.0), settings=settings)[1]) == runs


def test_a_threshold_that_some_trial_reaches_is_not_extended() -> None:
    result, trials = follow(cases(3), [HALF], lambda c, _s: {"response": float(c == "case-01")})
    assert (result.verdict, len(trials)) == (Verdict.INCONCLUSIVE, 9)


def test_graded_scores_that_never_reach_the_threshold_fail() -> None:
    values = {"case-00": 0.2, "case-01": 0.0, "case-02": 0.44}
    criterion = replace(RESPONSE, threshold=0.8)
    result, _ = follow(cases(3), [criterion], lambda c, _s: {"response": values[c]})
    assert result.verdict is Verdict.BELOW_THRESHOLD


def test_two_trials_are_too_few_for_none_of_them_reached_it() -> None:
    result = judge(cases(1), [HALF], times(cases(1), 2, response=0.3), settings=Settings(exact_epochs=2))
    assert result.verdict is Verdict.INCONCLUSIVE
    stopped = judge(cases(1), [HALF], times(cases(1), 3, response=0.4), stopped="the budget is spent")
    assert stopped.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("runs", [20, pytest.param(300, marks=pytest.mark.slow)])
def test_an_agent_that_just_meets_its_threshold_is_rarely_called_below(runs: int) -> None:
    """At a rate of .8, two cases: the extension keeps its error, and five in a thousand is all there is."""
    rng = Random(3)
    criterion = replace(TRAJECTORY, threshold=0.8)
    wrong = sum(
        follow(cases(2), [criterion], lambda _c, _s: {"trajectory": float(rng.random() < 0.8)})[0].verdict
        is Verdict.BELOW_THRESHOLD
        for _ in range(runs)
    )
    assert wrong <= runs / 60


# --- the bound ------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.floats(0, 1), st.sampled_from([0.05, 0.005, 1e-5]))
def test_chernoffs_bound_is_above_the_mean_and_no_tighter_than_the_exact_one(n: int, p: float, error: float) -> None:
    ones = round(p * n)
    bound = bounded_upper_bound(ones / n, n, error)
    assert share_upper_bound(ones, n, error) - 1e-9 <= bound <= 1
    assert bounded_upper_bound(0.0, n, error) == pytest.approx(1 - error ** (1 / n))


def test_chernoffs_bound_serves_other_scales_and_the_other_direction() -> None:
    likert = Criterion("tone", "tone", Scale.LIKERT, threshold=4.0)
    assert follow(cases(2), [likert], lambda c, _s: {"tone": 1.0 + (c == "case-00") * 0.2})[0].verdict is (
        Verdict.BELOW_THRESHOLD
    )
    lower = Criterion("harm", "harm", Scale.UNIT, Direction.LOWER, threshold=0.2)
    assert follow(cases(2), [lower], lambda _c, _s: {"harm": 0.95})[0].verdict is Verdict.BELOW_THRESHOLD


# --- what a baseline excuses ----------------------------------------------------------------------


def test_a_baseline_excuses_its_own_cases_alone() -> None:
    suite = cases(12)
    edited = {(c.id, "response"): Incomparable.EDITED for c in suite[1:]}
    before = stored(suite[:1], response=0.0) + stored(suite[1:], response=1.0)
    result = judge(suite, [HALF], once(suite, response=0.0), before, not_comparable=edited)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    mean = findings(result, "response")[0].mean
    assert (mean.before, mean.new_cases, mean.new_value) == (0.0, 11, 0.0)
    fine = judge(suite, [HALF], once(suite[:1], response=0.0) + once(suite[1:], response=0.6), before)
    assert fine.verdict is not Verdict.BELOW_THRESHOLD


def test_new_cases_at_zero_miss_a_threshold_of_one_beside_a_baseline_that_held() -> None:
    suite = [*cases(12), Case("new", ())]
    criterion = replace(TRAJECTORY, threshold=1.0)
    now = once(suite, {"new": {"trajectory": 0.0}}, trajectory=1.0)
    assert judge(suite, [criterion], now, stored(cases(12), trajectory=1.0)).verdict is Verdict.BELOW_THRESHOLD


# --- of the pass rate -----------------------------------------------------------------------------

RATE = Criterion("pass_rate", "pass_rate", Scale.BINARY, threshold=0.85, blocks_regression=False)
RATED = [TRAJECTORY, RATE]


def test_a_limit_on_the_pass_rate_is_judged_as_the_threshold_of_metric_0() -> None:
    suite = cases(10)
    half = {case.id: {"trajectory": 0.5} for case in suite[:5]}
    result = judge(suite, RATED, once(suite, half, trajectory=1.0), settings=Settings(exact_epochs=1))
    assert [(r.criterion.name, r.criterion.threshold) for r in result.criteria] == [
        ("pass rate", 0.85),
        ("trajectory", None),
    ]
    # 5 of 10 pass; at most 0.872 of them do, by Clopper and Pearson at 0.005 one-sided: not proven to be short of 0.85
    assert result.verdict is Verdict.INCONCLUSIVE
    [found] = findings(result, "pass rate")
    assert found.mean == HeldMean(0.5, 0.85, 10)
    many = times(suite[:5], 3, trajectory=0.5) + times(suite[5:], 3, trajectory=1.0)
    proven = judge(suite, RATED, many, settings=Settings(exact_epochs=3))
    assert proven.verdict is Verdict.BELOW_THRESHOLD
    assert share_upper_bound(15, 30, 0.005) < 0.85 <= share_upper_bound(5, 10, 0.005)
    strict = judge(suite, [TRAJECTORY, replace(RATE, strict=True)], once(suite, half, trajectory=1.0))
    assert strict.verdict is Verdict.BELOW_THRESHOLD
    assert judge(suite, RATED, once(suite, trajectory=1.0)).verdict is Verdict.PASS


def test_a_pass_rate_that_the_baseline_missed_too_is_excused_and_a_drop_blocks_as_ever() -> None:
    suite = cases(20)
    half = {case.id: {"trajectory": 0.0} for case in suite[:10]}
    before = [replace(t, number=n) for n in range(1, 6) for t in once(suite, half, trajectory=1.0)]
    same, _ = follow(suite, RATED, lambda c, _s: {"trajectory": float(c not in half)}, before)
    assert same.verdict is Verdict.PASS
    assert any(isinstance(found, MeanExcused) for found in findings(same, "pass rate"))
    dropped, _ = follow(suite, RATED, lambda _c, _s: {"trajectory": 0.0}, before)
    assert dropped.verdict is Verdict.REGRESSED


def test_where_a_trial_may_pass_or_not_its_pass_rate_is_not_measured() -> None:
    suite = cases(3)
    result = judge(suite, RATED, once(suite, {"case-00": {"trajectory": "judge down"}}, trajectory=1.0))
    assert result.criteria[0].verdict is Verdict.NOT_MEASURED
    assert isinstance(result.criteria[0].findings[0], CasesNotScored)


def test_a_pass_rate_that_only_reports_stands_beside_metric_0() -> None:
    suite = cases(10)
    result = judge(suite, [TRAJECTORY, replace(RATE, blocking=False)], stored(suite, 3, trajectory=0.0))
    assert [r.criterion.name for r in result.criteria] == ["pass rate", "trajectory", "pass_rate"]
    assert result.criteria[0].criterion.threshold is None
    assert result.criteria[2].verdict is Verdict.BELOW_THRESHOLD
    assert result.verdict is not Verdict.BELOW_THRESHOLD
