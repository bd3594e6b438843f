"""A calibrated judge: what its labels change in thresholds, the certificate and reports, and what they never change."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.correction import ByDifference, ByRates, correction_for
from gate.model import Criterion, Direction, Scale, SuiteResult, Verdict
from gate.model.calibration import GradedLabels, JudgeCalibration

from .records import cases, failed_trial, findings, judge, stored, trial

KNOWN = JudgeCalibration(540, 280, 120, 60)
"""Sensitivity .9, specificity .7."""
HARSH = JudgeCalibration(700, 290, 10, 300)
"""Sensitivity .7, specificity .967."""
JUDGED = Criterion("clear", "task_completion", Scale.BINARY, threshold=0.75, pass_threshold=1.0)
GRADED = Criterion("clarity", "clarity", Scale.UNIT, threshold=0.7)


def passing(n: int, of: int, name: str = "clear", **options):  # type: ignore[no-untyped-def]
    return [trial(f"case-{i:02d}", 1, **{name: float(i < n)}, **options) for i in range(of)]


def row(result: SuiteResult, name: str = "clear"):  # type: ignore[no-untyped-def]
    return next(r for r in result.criteria if r.criterion.name == name)


def known(criterion: Criterion = JUDGED, by: JudgeCalibration = KNOWN) -> Criterion:
    return replace(criterion, calibration=by)


def test_a_threshold_is_held_against_the_corrected_mean_and_the_scores_stay() -> None:
    """A lenient judge passes 77 of 100: people would pass (.77 − .3) / .6 = 78 %; of 70, 67 %."""
    [found] = findings(judge(cases(100), [known()], passing(77, 100)), "clear")
    assert found.verdict is Verdict.PASS and not found.is_excused
    assert found["mean"].value == pytest.approx(0.7833, abs=1e-3)
    assert found["mean"].measured == pytest.approx(0.77)
    result = judge(cases(100), [known()], passing(70, 100))
    [found] = findings(result, "clear")
    assert found.verdict is Verdict.BELOW_THRESHOLD
    assert found["mean"].value == pytest.approx(0.6667, abs=1e-3)
    assert row(result).candidate.value == pytest.approx(0.7)


def test_a_harsh_judge_no_longer_fails_an_agent_that_people_would_pass() -> None:
    """Of an agent that people pass in 90 % it passes 63 %, which alone is below 75 %."""
    trials = passing(189, 300)
    assert judge(cases(300), [JUDGED], trials).verdict is Verdict.BELOW_THRESHOLD
    [found] = findings(judge(cases(300), [known(by=HARSH)], trials), "clear")
    assert found.verdict is Verdict.PASS and not found.is_excused
    assert found["mean"].value == pytest.approx(0.9, abs=0.01)


def test_failures_of_the_agent_are_no_verdicts_of_the_judge() -> None:
    """Each case crashes in one of two trials, and of the others the judge passes 90 %: people would pass half."""
    trials = [*passing(90, 100), *(failed_trial(f"case-{i:02d}", 2) for i in range(100))]
    result = judge(cases(100), [known()], trials, settings=Settings(confirm_after=None))
    [found] = findings(result, "clear")
    assert found["mean"].value == pytest.approx(0.5)  # type: ignore[union-attr]
    assert found["mean"].measured == pytest.approx(0.45)  # type: ignore[union-attr]


def test_the_baseline_is_corrected_alike_where_it_excuses() -> None:
    before = passing(69, 100)
    found = row(judge(cases(100), [known()], passing(70, 100), before)).findings[0]
    assert found.is_excused
    assert found["mean"].before == pytest.approx(0.65)


@pytest.mark.parametrize("options", [{"hard": True, "threshold": 1.0}])
def test_plain_comparisons_stay_plain(options: dict[str, object]) -> None:
    found = judge(cases(20), [replace(known(), **options)], passing(10, 20))
    assert found.verdict is Verdict.BELOW_THRESHOLD
    assert row(found).judge.candidate is None


def test_a_change_and_its_interval_are_divided_by_the_slope_and_the_test_is_not_touched() -> None:
    rng = Random(7)
    now = [trial(f"case-{i:02d}", k, clear=float(rng.random() < 0.7)) for i in range(40) for k in (1, 2, 3)]
    before = [trial(f"case-{i:02d}", k, clear=float(rng.random() < 0.75)) for i in range(40) for k in (1, 2, 3)]
    plain, corrected = (
        judge(cases(40), [replace(one, threshold=None)], now, before, settings=Settings(exact_epochs=3))
        for one in (JUDGED, known())
    )
    one, other = (r.outcome.evidence for r in (plain, corrected))
    assert one.looks == other.looks
    assert one.cases == other.cases
    raw, held = one.metrics["clear"], other.metrics["clear"]
    assert held.change == pytest.approx(raw.change / 0.6)
    assert held.low is not None and raw.low is not None
    assert held.low < raw.low / 0.6 + 1e-12
    assert held.margin == raw.margin
    assert held.detectable == pytest.approx(raw.detectable / 0.6)  # type: ignore[operator]
    assert row(plain).candidate == row(corrected).candidate


@pytest.mark.slow
def test_a_drop_that_the_judge_shrinks_below_the_margin_is_not_certified() -> None:
    """Seven points of verdicts are within a margin of ten; of what people would say they are twelve."""
    suite, before = cases(42), stored(cases(42), 10, clear=1.0)
    down = {i for i in range(42) if i % 3 == 0}
    now = [trial(f"case-{i:02d}", k, clear=float(not (i in down and k <= 2))) for i in range(42) for k in range(1, 11)]
    plain, corrected = (
        judge(suite, [replace(one, threshold=None)], now, before, settings=Settings(exact_epochs=10))
        for one in (JUDGED, known())
    )
    assert plain.outcome.evidence.metrics["clear"].holds
    assert not corrected.outcome.evidence.metrics["clear"].holds


def test_graded_scores_are_shifted_by_the_difference_that_people_show() -> None:
    by = JudgeCalibration(40, 40, 10, 10, GradedLabels(100, bias=-0.1, sd=0.2, correlation=0.6))
    trials = [trial(f"case-{i:02d}", clarity=0.6 + 0.3 * (i % 2)) for i in range(40)]
    assert judge(cases(40), [GRADED], trials).verdict is not Verdict.BELOW_THRESHOLD
    result = judge(cases(40), [known(GRADED, by)], trials)
    [found] = findings(result, "clarity")
    assert found["mean"].value == pytest.approx(0.65)  # type: ignore[union-attr]
    held = row(result, "clarity")
    plain, shifted = held.candidate, held.judge.candidate
    assert shifted.value == pytest.approx(plain.value - 0.1)
    assert shifted.high - shifted.low > plain.high - plain.low


def test_what_cannot_be_corrected_is_not() -> None:
    assert isinstance(correction_for(known(), {0.0, 1.0}), ByRates)
    assert correction_for(known(GRADED), {0.3, 1.0}) is None  # people said pass or fail
    assert isinstance(correction_for(known(GRADED), {0.0, 1.0}), ByRates)
    assert correction_for(known(by=JudgeCalibration(5, 0, 0, 0)), {1.0}) is None
    assert correction_for(replace(known(), direction=Direction.LOWER), {1.0}) is None
    assert correction_for(JUDGED, {1.0}) is None
    likert = replace(GRADED, scale=Scale.LIKERT)
    by = JudgeCalibration(10, 10, 0, 0, GradedLabels(20, 0.5, 0.1, 0.7))
    assert isinstance(correction_for(known(likert, by), {3.0}), ByDifference)


@pytest.mark.parametrize(
    "graded",
    [
        GradedLabels(2, 0.3, 0.0, 1.0),
        GradedLabels(19, 0.3, 0.1, 0.99),
        GradedLabels(40, 0.3, 0.1, -0.9),
        GradedLabels(40, 0.3, 0.1, -1.0),
        GradedLabels(40, 0.3, 0.0, 0.0),
        GradedLabels(40, 0.3, 0.1, 0.3),
    ],
)
def test_graded_labels_that_do_not_show_that_the_judge_follows_people_turn_no_verdict(graded: GradedLabels) -> None:
    by = JudgeCalibration(graded.labels, 0, 0, 0, graded)
    trials = [trial(f"case-{i:02d}", clarity=0.4 + 0.2 * (i % 2)) for i in range(40)]
    assert correction_for(known(GRADED, by), {0.4, 0.6}) is None
    result = judge(cases(40), [known(GRADED, by)], trials)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert row(result, "clarity").judge.candidate is None


def test_labels_that_all_differ_alike_are_no_certainty() -> None:
    by = JudgeCalibration(20, 20, 0, 0, GradedLabels(40, 0.1, 0.0, 1.0))
    trials = [trial(f"case-{i:02d}", clarity=0.65) for i in range(40)]
    shifted = row(judge(cases(40), [known(GRADED, by)], trials), "clarity").judge.candidate
    assert shifted.value == pytest.approx(0.75)
    assert shifted.low < 0.7 < 0.8 < shifted.high


def test_what_is_known_of_the_judge_stands_beside_the_estimates() -> None:
    found = row(judge(cases(100), [known()], passing(77, 100), passing(80, 100))).judge
    assert (found.labels, found.agreed) == (1000, 820)
    assert found.kappa == pytest.approx(0.615, abs=0.01)
    assert found.sensitivity.value == pytest.approx(0.9)
    assert found.specificity.low < 0.7 < found.specificity.high
    assert found.candidate.low < 0.783 < found.candidate.high
    assert found.baseline.value == pytest.approx(0.8333, abs=1e-3)
    assert row(judge(cases(9), [JUDGED], passing(9, 9))).judge is None
