"""Lines through runs: where they go, how sure that is, and when they meet a limit."""

from __future__ import annotations

from random import Random

import pytest

from gate.statistics.trend import Sums, crossing, fitted, levels


def sums(n: int, total: float) -> Sums:
    return Sums(n, total, total, 0.0, 1.0)


def noisy(rng: Random, n: int, slope: float, spread: float = 0.02) -> list[tuple[float, float]]:
    return [(float(x), 0.9 + slope * x + rng.gauss(0, spread)) for x in range(n)]


# --- levels ---------------------------------------------------------------------------------------


def test_a_run_without_the_hard_cases_is_no_better() -> None:
    both = {0: sums(10, 9), 1: sums(10, 3)}
    found = levels([both, {0: sums(10, 9)}, both], 1.0)
    assert [one.value for one in found] == pytest.approx([0.6, 0.6, 0.6], abs=0.01)


def test_levels_are_the_means_where_all_runs_hold_all_cases() -> None:
    runs = [{0: sums(5, 5), 1: sums(5, 2)}, {0: sums(5, 4), 1: sums(5, 1)}]
    assert [one.value for one in levels(runs, 1.0)] == pytest.approx([0.7, 0.5])


def test_a_run_that_measured_nothing_has_no_level() -> None:
    assert [one.run for one in levels([{7: sums(1, 1)}, {}, {7: sums(1, 0)}], 1.0)] == [0, 2]
    assert levels([{}, {}]) == levels([]) == []


def test_chance_is_never_taken_for_nothing_though_no_trial_failed() -> None:
    always = [dict.fromkeys(range(10), sums(3, 3)) for _ in range(4)]
    assert all(one.variance > 0 for one in levels(always, 1.0))


# --- lines ----------------------------------------------------------------------------------------


def test_a_line_is_found_as_it_was_drawn() -> None:
    line = fitted([(float(x), 2.0 - 0.5 * x) for x in range(6)])
    assert line is not None
    assert line.slope == pytest.approx(-0.5)
    assert line.value(10) == pytest.approx(-3.0)


@pytest.mark.parametrize("points", [[], [(0.0, 1.0)] * 3, [(1.0, 0.0)] * 9])
def test_too_little_gives_no_line(points: list[tuple[float, float]]) -> None:
    assert fitted(points) is None


def test_nineteen_of_twenty_intervals_hold_the_slope() -> None:
    held = 0
    for seed in range(200):
        line = fitted(noisy(Random(seed), 12, -0.003))
        assert line is not None
        low, high = line.interval(0.95)
        held += low <= -0.003 <= high
    assert held >= 180  # 190 on average; fewer than 180 once in a hundred


def test_runs_that_resemble_their_neighbours_are_less_evidence() -> None:
    steady = [(float(x), 0.9 + 0.02 * (x % 2)) for x in range(24)]
    drifting = [(float(x), 0.9 + 0.02 * (x // 6 % 2)) for x in range(24)]
    one, other = fitted(steady), fitted(drifting)
    assert one is not None and other is not None
    assert other.df < one.df
    assert other.error > 1.5 * one.error


# --- crossing -------------------------------------------------------------------------------------


def test_a_limit_is_met_where_it_lies() -> None:
    line = fitted(noisy(Random(1), 20, -0.01, 0.005))
    assert line is not None
    met = crossing(line, 0.65, 19.0, level=0.8, furthest=39.0)
    assert met is not None
    first, last = met
    assert first <= 25 <= last  # 0.9 − 0.01 · 25
    assert last - first < 6


def test_a_lower_is_better_limit_is_met_from_below() -> None:
    line = fitted([(x, 1.8 - y) for x, y in noisy(Random(1), 20, -0.01, 0.005)])
    assert line is not None
    met = crossing(line, 1.15, 19.0, level=0.8, furthest=39.0)
    assert met is not None and met[0] <= 25 <= met[1]


@pytest.mark.parametrize("limit", [0.2, 0.72, 0.95])
def test_nothing_is_said_beyond_the_evidence(limit: float) -> None:
    """Too far off; inside the line's interval already; on the other side, which a falling line never meets."""
    line = fitted(noisy(Random(1), 20, -0.01, 0.03))
    assert line is not None
    assert crossing(line, limit, 19.0, level=0.8, furthest=39.0) is None
