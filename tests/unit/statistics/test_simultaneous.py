"""Intervals of paired differences hold together, and a steady pair is no proof of equality."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest

from gate.statistics.intervals import paired_change, simultaneous_change


def test_a_single_comparison_of_scores_is_students_interval() -> None:
    differences = [0.1, -0.2, 0.05, 0.3, 0.0]
    assert simultaneous_change(differences, comparisons=1) == pytest.approx(paired_change(differences, level=0.95))


def test_more_comparisons_make_every_interval_wider() -> None:
    differences = [0.1, -0.2, 0.05, 0.3, 0.0]
    widths = [high - low for _, low, high in (simultaneous_change(differences, comparisons=m) for m in (1, 10, 100))]
    assert widths == sorted(widths)
    assert widths[0] < widths[1] < widths[2]


def test_zeros_and_ones_that_never_differ_leave_room_for_a_difference() -> None:
    value, low, high = simultaneous_change([0.0] * 30, comparisons=3, step=1.0)
    assert (value, -low) == (0.0, pytest.approx(high))
    assert 0.05 < high < 0.3
    assert simultaneous_change([0.0] * 30, comparisons=3, step=0.2)[2] < high


def test_the_interval_holds_the_mean_even_at_the_edge() -> None:
    value, low, high = simultaneous_change([1.0] * 20, comparisons=1, step=1.0)
    assert low < value == 1.0 <= high


def test_one_case_has_no_interval() -> None:
    assert simultaneous_change([0.5], comparisons=4) == (0.5, -math.inf, math.inf)


def test_all_intervals_cover_together() -> None:
    """Four agents alike on twenty cases of zeros and ones: six dependent differences, of which all hold in 95 %."""
    random, missed, runs = Random(7), 0, 400
    for _ in range(runs):
        rates = [random.betavariate(2, 1) for _ in range(20)]
        agents = [[float(random.random() < rate) for rate in rates] for _ in range(4)]
        pairs = [(agents[i], agents[j]) for i in range(4) for j in range(i)]
        found = [
            simultaneous_change([a - b for a, b in zip(x, y, strict=True)], comparisons=6, step=1.0) for x, y in pairs
        ]
        assert all(
            value == pytest.approx(fmean(x) - fmean(y)) for (value, _, _), (x, y) in zip(found, pairs, strict=True)
        )
        missed += any(not low <= 0 <= high for _, low, high in found)
    assert missed / runs <= 0.05
