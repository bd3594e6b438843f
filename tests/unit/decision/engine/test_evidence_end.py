"""The interval that is certified where sampling ends: of these very cases, from the spread within each."""

from __future__ import annotations

from random import Random

import pytest

from gate.decision.engine.evidence import gather
from gate.decision.engine.state import Config, Metric, Round, State
from gate.model import FULL, MetricChange, Side
from gate.statistics.shift import change_sd

SUCCESS = Metric("success", "binary", margin=0.1)
EPOCHS = 3


def bounds(before: list[list[int]], now: list[list[int]]) -> tuple[MetricChange, MetricChange]:
    """The bound while epochs may follow, and at the end."""
    names = [f"c{number:02d}" for number in range(len(before))]
    stored = {name: [[float(value)] for value in values] for name, values in zip(names, before, strict=True)}
    rounds = tuple(
        Round(FULL, Side.CANDIDATE, {name: [[float(values[n])]] for name, values in zip(names, now, strict=True)})
        for n in range(EPOCHS)
    )
    evidence = gather(State((SUCCESS,), stored, rounds, Config(), 1))
    [early] = evidence.bounds
    evidence.end()
    [late] = evidence.bounds
    return early, late


def flaky(failing: int, trials: int, cases: int = 20) -> list[list[int]]:
    """In the first six cases so many trials fail, one after the other."""
    return [[int(case >= 6 or n >= failing) for n in range(trials)] for case in range(cases)]


def test_it_is_the_tighter_one_around_the_same_change() -> None:
    now = flaky(2, 3)
    now[3:6] = [[1, 1, 1]] * 3
    early, late = bounds(flaky(2, 5), now)
    assert late.change == early.change
    assert early.low < late.low < late.change < late.high < early.high
    assert late.excluded == early.excluded, "what is ruled out is said of the suite, as before"


def test_a_case_that_seems_broken_keeps_the_interval_over_the_cases() -> None:
    before, now = flaky(0, 5), flaky(0, 3)
    now[7] = [0, 0, 0]
    early, late = bounds(before, now)
    assert (late.low, late.high) == (early.low, early.high)


def test_a_fall_that_the_tighter_interval_shows_keeps_it_too() -> None:
    early, late = bounds(flaky(0, 5, 60), flaky(1, 3, 60))
    half = 1.645 * change_sd([(2, 3, 5, 5)] * 6 + [(3, 3, 5, 5)] * 54)
    assert early.change + half < 0
    assert (late.low, late.high) == (early.low, early.high)


@pytest.mark.parametrize("rate", [0.6, 0.9])
def test_the_spread_within_cases_is_that_of_their_trials(rate: float) -> None:
    rng = Random(3)
    counts = [
        (sum(rng.random() < rate for _ in range(3)), 3, sum(rng.random() < rate for _ in range(5)), 5)
        for _ in range(200)
    ]
    true = (rate * (1 - rate) * (1 / 3 + 1 / 5) / 200) ** 0.5
    assert change_sd(counts) == pytest.approx(true, rel=0.15)


def test_trials_that_are_all_alike_leave_some_spread() -> None:
    assert 0 < change_sd([(3, 3, 5, 5)] * 10) < 0.03
