"""Figures with their units, intervals and n."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Settings
from gate.model import (
    Criterion,
    CriterionResult,
    Direction,
    Estimate,
    EvidenceSummary,
    MetricChange,
    Outcome,
    Scale,
    Stage,
    StageKind,
    Verdict,
)
from gate.model.results import CalibratedJudge
from gate.pipeline.verdict import result_of
from gate.reports import load_report
from gate.reports.formatting import (
    chance_and_limit,
    change,
    change_interval,
    change_sample,
    count,
    difference_interval,
    dollars,
    end_and_margin,
    evidence,
    figure,
    figures,
    finer_sides,
    interval,
    judge_line,
    of_means,
    percentage,
    percents,
    sample,
    seconds,
    threshold,
)
from gate.reports.labels import baseline_figure, candidate_figure, change_picture

from .samples import PASSED


@pytest.mark.parametrize(
    ("value", "scale", "expected"),
    [
        (0.8167, Scale.BINARY, "81.7 %"),
        (1.0, Scale.BINARY, "100 %"),
        (0.8167, Scale.UNIT, "0.817"),
        (1.0, Scale.UNIT, "1.00"),
        (4.2, Scale.LIKERT, "4.20"),
        (87.25, Scale.PERCENT, "87.2"),
        (1240.0, Scale.COUNT, "1,240"),
        (3.0, Scale.COUNT, "3"),
        (-0.5, Scale.UNIT, "−0.50"),
        (None, Scale.UNIT, "not measured"),
        (math.nan, Scale.UNIT, "not measured"),
    ],
)
def test_figures(value: float | None, scale: Scale, expected: str) -> None:
    assert figure(value, scale) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0 ms"),
        (0.0000034, "3.4 µs"),
        (0.00004, "40 µs"),
        (0.0004, "0.4 ms"),
        (0.32, "320 ms"),
        (0.9999, "1 s"),
        (1.844, "1.84 s"),
        (61.25, "61.2 s"),
        (125, "2 min 5 s"),
        (180, "3 min"),
    ],
)
def test_seconds(value: float, expected: str) -> None:
    assert seconds(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "$0.00"),
        (0.000001234, "$0.00000123"),
        (0.0123, "$0.0123"),
        (0.5, "$0.50"),
        (1.2, "$1.20"),
        (1234.5, "$1,234.50"),
    ],
)
def test_dollars(value: float, expected: str) -> None:
    assert dollars(value) == expected


def test_intervals_say_the_unit_once() -> None:
    assert interval(Estimate(0.82, 0.71, 0.9, 40), Scale.UNIT) == "0.82 [0.71, 0.90]"
    assert interval(Estimate(0.8, 0.7, 0.9, 40), Scale.BINARY) == "80 % [70, 90]"
    assert interval(Estimate(1.2, 0.9, 1.5, 40), Scale.SECONDS) == "1.2 s [0.9, 1.5]"
    assert interval(Estimate(2.2e-5, 0.0, 6e-5, 40), Scale.SECONDS) == "22 µs [0, 60]"
    assert interval(Estimate(5.7e-5, 0.0, 1e-4, 40), Scale.SECONDS) == "57 µs [0, 100]"
    assert interval(Estimate(0.32, 5.7e-5, 1.2, 40), Scale.SECONDS) == "320 ms [0.057, 1200]"
    assert interval(Estimate(125, 90, 160, 40), Scale.SECONDS) == "2 min 5 s [90 s, 2 min 40 s]"
    assert difference_interval(Estimate(0.2, -0.1, 1.2, 40), Scale.SECONDS) == "+200 ms [−100, +1200]"
    assert interval(Estimate(0.5, 0.4, 0.6, 40), Scale.USD) == "$0.50 [0.40, 0.60]"
    assert interval(None, Scale.UNIT) == "–"


def test_changes_are_points_shares_or_units() -> None:
    drop = Estimate(-0.125, -0.2, 0.0, 40)
    assert change_interval(drop, Scale.BINARY) == "−12.5 [−20, ±0] points"
    assert change_interval(drop, Scale.UNIT) == "−0.125 [−0.20, ±0.00]"
    assert change_interval(drop, Scale.USD) == "a typical case −12.5 % [−20, ±0]"
    assert change(-0.125, Scale.USD) == "a typical case −12.5 %"
    assert change(-0.125, Scale.USD, unit=False) == "−12.5 %"


@pytest.mark.parametrize(
    ("now", "before", "typical", "said"),
    [
        (0.0435, 0.0843, 0.782, "the mean over all cases −48.4 %"),
        (1.5, 1.0, 0.2, "the mean over all cases +50 %"),
        (1.22, 1.0, 0.2, ""),
        (0.995, 1.0, 0.003, ""),
        (0.98, 1.0, 0.02, "the mean over all cases −2 %"),
        (0.0, 1.0, 0.2, "the mean over all cases −100 %"),
        (1.0, 0.0, 0.2, ""),
        (math.inf, 1.0, 0.2, ""),
        (1.0, 1.0, -1.0, ""),
    ],
)
def test_means_are_told_where_a_typical_case_changed_otherwise(
    now: float, before: float, typical: float, said: str
) -> None:
    sides = (Estimate(value, value, value, 9) for value in (now, before, typical))
    cost = Criterion("cost", "cost", Scale.USD, Direction.LOWER)
    row = CriterionResult(cost, Verdict.PASS, (), *sides, compared=(before, now))
    assert of_means(row) == said
    assert of_means(replace(row, criterion=replace(row.criterion, scale=Scale.UNIT))) == ""
    assert of_means(replace(row, compared=None)) == ""


def test_n_and_trials() -> None:
    assert sample(Estimate(0.5, 0, 1, 40, 40)) == "n = 40"
    assert sample(Estimate(0.5, 0, 1, 1204, 2400)) == "n = 1,204 (2,400 trials)"
    assert count(1, "case") == "1 case"
    assert count(0, "criterion", "criteria") == "0 criteria"


def test_demands() -> None:
    assert threshold(Criterion("a", "a", Scale.UNIT)) == "no worse than the baseline"
    assert threshold(Criterion("a", "a", Scale.UNIT, threshold=0.9)) == "at least 0.90"
    slow = Criterion("a", "a", Scale.SECONDS, Direction.LOWER, limit=10, quantiles=((0.95, 3.0),))
    assert threshold(slow) == "each at most 10 s, p95 at most 3 s"


@given(st.floats(), st.sampled_from(Scale), st.booleans())
@settings(deadline=None)
def test_any_float_can_be_shown(value: float, scale: Scale, signed: bool) -> None:
    for text in (figure(value, scale, signed=signed), seconds(abs(value)), dollars(abs(value)), percentage(value)):
        assert text
        assert "nan" not in text
        assert "inf" not in text


@given(st.floats(1e-4, 0.999), st.floats(1e-6, 0.1), st.sampled_from(Scale))
@settings(deadline=None)
def test_figures_that_differ_are_shown_to_differ(value: float, by: float, scale: Scale) -> None:
    low, high = scale.range[0], min(scale.range[1], 5.0)
    first = low + value * (high - low)
    second = first * (1 - by)
    one, other = figures((first, second), scale)
    assert one != other
    assert figures((first, first), scale) == [figure(first, scale)] * 2
    worse = end_and_margin(-value * (1 + by), value, scale)
    assert worse[0].lstrip("−") != worse[1]


def test_a_chance_is_told_apart_from_its_limit() -> None:
    assert chance_and_limit(0.00896, 0.009) == ("0.896 %", "0.9 %")
    assert chance_and_limit(0.0003, 0.009) == ("less than 0.1 %", "0.9 %")
    assert chance_and_limit(0.0003, 0.0008) == ("less than 0.1 %", "0.08 %")


def test_values_that_are_the_same_but_for_rounding_have_no_more_digits() -> None:
    assert figures((0.1 + 0.2, 0.3, None), Scale.UNIT) == ["0.30", "0.30", "not measured"]
    assert figures((0.7996, 0.8004), Scale.BINARY) == ["79.96 %", "80.04 %"]
    assert figures((125.04, 125.4), Scale.SECONDS) == ["2 min 5 s", "2 min 5.4 s"]
    assert figures((1234.504, 1234.5), Scale.USD) == ["$1,234.504", "$1,234.50"]


def test_candidate_baseline_and_threshold_are_told_apart_and_a_demand_is_shown_as_it_is_written() -> None:
    held = Criterion("a", "a", Scale.UNIT, threshold=0.8004)
    row = CriterionResult(
        held, Verdict.BELOW_THRESHOLD, (), Estimate(0.7996, 0.71, 0.9, 40), Estimate(0.8, 0.7, 0.9, 9)
    )
    assert threshold(held) == "at least 0.8004"
    assert candidate_figure(row) == "0.7996 [0.71, 0.90]"
    assert baseline_figure(row) == "0.80 [0.70, 0.90]"
    assert finer_sides(replace(row, baseline=None, candidate=None)) == 0


@given(st.floats(1e-9, 1e9), st.sampled_from([Scale.USD, Scale.SECONDS]))
@settings(deadline=None)
def test_nothing_that_is_there_is_shown_as_zero(value: float, scale: Scale) -> None:
    if scale is Scale.USD or value >= 1e-4:
        assert any(c in "123456789" for c in figure(value, scale))


def test_the_margin_that_is_told_is_the_one_that_decided() -> None:
    rate = Criterion("pass_rate", "pass_rate", Scale.BINARY, margin=0.1)
    row = CriterionResult(rate, Verdict.PASS, change=Estimate(-0.1, -0.15, -0.05, 10, 10, level=0.9))
    look = MetricChange(10, 10, -0.1, -0.15, -0.05, 0.2, True, None, True)
    summary = EvidenceSummary(1, 10, {}, (), None, None, 500.0, (), {}, {"pass_rate": look})
    few = replace(PASSED, criteria=(row,), outcome=Outcome("PASS", (), Stage(StageKind.CERTIFIED, 1), summary))
    assert evidence(row, few) == "margin 20 points"
    assert evidence(row, replace(few, outcome=None)) == "margin 10 points"
    within, beyond = (change_picture(row, one) for one in (few, replace(few, outcome=None)))
    assert within.index("┊") < within.index("●") and within != beyond
    for form in ("markdown", "console", "html", "junit", "ctrf"):
        text = load_report(form)(result_of([few], Settings(), command="gate run"))
        assert "margin 10 points" not in text


@given(st.floats(1e-5, 1 - 1e-5))
def test_a_share_of_some_is_told_as_neither_none_nor_all(share: float) -> None:
    for text in (percentage(share), percentage(-share, signed=True), percents(share), figure(share, Scale.BINARY)):
        assert float(text.strip("−+ %")) not in (0.0, 100.0), text
    assert (percents(0.0), percents(0.996), percents(0.996 - 0.001), percents(1.0)) == ("0", "99.6", "99.5", "100")
    assert (percents(0.312), percentage(1.0), percentage(0.0)) == ("31", "100 %", "0 %")


def test_a_calibrated_judge_is_told_in_a_line() -> None:
    rate = Estimate(0.9, 0.8, 0.95, 60, 60)
    now, before = Estimate(0.88, 0.80, 0.94, 40, 40), Estimate(0.84, 0.75, 0.91, 40, 40)
    known = CalibratedJudge(100, 92, 0.81, rate, rate, now, before, slope=0.8)
    row = CriterionResult(Criterion("clear", "clarity", Scale.UNIT), Verdict.PASS, change=now, judge=known)
    agreed = "judge agrees with people on 92 of 100 labels (κ 0.81)"
    assert judge_line(row) == f"{agreed}; corrected 0.88 [0.80, 0.94], baseline 0.84 [0.75, 0.91]"
    assert change_sample(row) == "n = 40, corrected"
    plain = replace(known, candidate=None, baseline=None, kappa=None, slope=1.0)
    assert judge_line(replace(row, judge=plain)) == f"{agreed.partition(' (')[0]}; not corrected"
    assert change_sample(replace(row, judge=plain)) == "n = 40"
    assert judge_line(replace(row, judge=None)) == ""


@pytest.mark.parametrize(
    ("value", "scale", "said"),
    [
        (2_999 / 3_000, Scale.BINARY, "99.97 %"),
        (1 / 3_000, Scale.BINARY, "0.03 %"),
        (1.0, Scale.BINARY, "100 %"),
        (0.0, Scale.BINARY, "0 %"),
        (0.9999, Scale.UNIT, "0.9999"),
        (1.0, Scale.UNIT, "1.00"),
        (1 - 1e-12, Scale.UNIT, "1.00"),
        (0.975, Scale.BINARY, "97.5 %"),
    ],
)
def test_nearly_all_is_not_all(value: float, scale: Scale, said: str) -> None:
    assert figure(value, scale) == said
