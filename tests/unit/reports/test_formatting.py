"""Figures with their units, intervals and n."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Settings
from gate.model import (
    Criterion,
    CriterionResult,
    Estimate,
    EvidenceSummary,
    MetricChange,
    Outcome,
    Scale,
    Stage,
    StageKind,
    Verdict,
)
from gate.pipeline.verdict import result_of
from gate.reports import load_report
from gate.reports.formatting import (
    chance_and_limit,
    dollars,
    end_and_margin,
    figure,
    figures,
    percentage,
    percents,
    seconds,
    threshold,
)
from gate.reports.rows import RowView

from .samples import PASSED


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
    assert RowView(row, PASSED).candidate.text == "0.7996 [0.71, 0.90]"
    assert RowView(row, PASSED).baseline.text == "0.80 [0.70, 0.90]"


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
    assert RowView(row, few).evidence == "margin 20 points"
    assert RowView(row, replace(few, outcome=None)).evidence == "margin 10 points"
    for form in ("markdown", "console", "html", "junit", "ctrf"):
        text = load_report(form)(result_of([few], Settings(), command="gate run"))
        assert "margin 10 points" not in text


@given(st.floats(1e-5, 1 - 1e-5))
def test_a_share_of_some_is_told_as_neither_none_nor_all(share: float) -> None:
    for text in (percentage(share), percentage(-share, signed=True), percents(share), figure(share, Scale.BINARY)):
        assert float(text.strip("−+ %")) not in (0.0, 100.0), text
    assert (percents(0.0), percents(0.996), percents(0.996 - 0.001), percents(1.0)) == ("0", "99.6", "99.5", "100")
    assert (percents(0.312), percentage(1.0), percentage(0.0)) == ("31", "100 %", "0 %")
