"""However large the numbers of an agent are, every report is written, and none holds what is no number."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import cycle
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.model import Criterion, Result, Scale, SuiteResult, Verdict
from gate.model.finding import Finding, HeldMean
from gate.reports import REPORTS, load_report
from gate.reports.markdown import render_suite
from gate.reports.reasons import narrow_miss
from tests.properties import examples

from .samples import PASSED, RESULTS, hostile, result

EXTREMES = (1e308, -1e308, 5e-324, 0.0, 1e16, math.inf, -math.inf, math.nan)
NUMBERS = st.lists(st.floats(0, 1.7e308) | st.sampled_from((0.0, math.inf)), min_size=1, max_size=12).map(tuple)
"""Money and times are never negative: agents that tell such are refused."""
FEW = settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow])


def extreme(value: Any, numbers: Iterator[float]) -> Any:
    """The same with these in place of all of its fractions, in turn."""
    if isinstance(value, float):
        return next(numbers)
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: extreme(getattr(value, name), numbers) for name in value.__struct_fields__})
    if isinstance(value, tuple):
        return tuple(extreme(held, numbers) for held in value)
    if isinstance(value, dict):
        return {name: extreme(held, numbers) for name, held in value.items()}
    return value


def read(form: str, found: Result) -> None:
    """Renders the result, and reads it as a program does that is told of neither NaN nor infinity."""
    text = load_report(form)(found)
    text.encode("utf-8")
    match form:
        case "json" | "ctrf":
            json.loads(text, parse_constant=pytest.fail)
        case "junit":
            for element in ElementTree.fromstring(text).iter():
                assert math.isfinite(float(element.get("time", "0")))
        case "openmetrics":
            assert all(math.isfinite(float(line.split()[-1])) for line in text.splitlines() if line[0] != "#")


@pytest.mark.slow
@pytest.mark.parametrize("form", REPORTS)
@pytest.mark.parametrize("number", EXTREMES)
def test_every_report_takes_every_number(form: str, number: float) -> None:
    read(form, extreme(RESULTS["regressed"], cycle([number])))


@pytest.mark.slow
@FEW
@given(NUMBERS, st.sampled_from([*RESULTS.values(), result(hostile())]), st.sampled_from([*REPORTS]))
def test_every_report_takes_numbers_of_all_sizes_beside_each_other(
    numbers: tuple[float, ...], found: Result, form: str
) -> None:
    read(form, extreme(found, cycle(numbers)))


@pytest.mark.parametrize("form", REPORTS)
def test_sums_that_overflow_are_no_reason_to_write_nothing(form: str) -> None:
    """Each number is finite by itself; what a report adds up is not."""
    dear: SuiteResult = replace(PASSED, cost_usd=1e308, judge_cost_usd=1e308, duration=1e308)
    dear = replace(dear, cases=tuple(replace(case, duration=1e308) for case in dear.cases))
    found = result(dear, replace(dear, suite_id="other", cost_usd=1.7e308))
    read(form, found)
    render_suite(dear, found)


@pytest.mark.parametrize("distance", [1e-300, 1e-12])
def test_a_mean_a_hair_below_its_threshold_asks_for_no_number_of_cases(distance: float) -> None:
    missed = Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(-distance, 0.0, 10), trials=30, error=1e150)
    assert "more case" not in narrow_miss(missed, Criterion("c", "m", Scale.UNIT))


def test_a_threshold_that_leaves_the_baseline_room_needs_no_lowering() -> None:
    missed = Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=HeldMean(0.75, 0.9, 4), trials=4, error=0.25, room=0.33)
    criterion = Criterion("c", "m", Scale.UNIT)
    assert "a threshold of 0.3 leaves room" in narrow_miss(missed, criterion)
    told = narrow_miss(missed.but(room=None), criterion)
    assert "more cases would distinguish" in told and "leaves room" not in told
