"""The test that names groups, in the worlds of its benchmark: wrong at most as often as it says."""

from __future__ import annotations

import pytest

from benchmarks.concentration import WORLDS, measure
from gate.statistics.concentration import STATED, concentrated
from gate.statistics.intervals import binomial_at_least

GROUPS = [frozenset(range(10)), frozenset(range(5, 25))]
FIXED = [[0.0, 1.0]] * 40


def test_a_group_that_lost_is_named_with_its_p() -> None:
    losses = [1.0 if place < 9 else 0.0 for place in range(40)]
    (one,) = concentrated(losses, GROUPS, [[0.0, 0.0, 1.0]] * 40, seed="s")
    assert one.group == 0
    assert one.p <= 0.01


def test_nothing_is_named_without_losses_or_groups() -> None:
    assert concentrated([0.0] * 40, GROUPS, FIXED, seed="s") == []
    assert concentrated([], [], [], seed="s") == []
    assert concentrated([1.0] * 40, GROUPS, FIXED, seed="s") == []


def test_one_case_is_no_matter_of_a_group() -> None:
    losses = [1.0 if place == 3 else 0.0 for place in range(40)]
    assert concentrated(losses, [frozenset(range(3))], [[0.0]] * 40, seed="s") == []


def test_a_group_that_is_better_is_not_named() -> None:
    losses = [-1.0 if place < 9 else 0.0 for place in range(40)]
    assert concentrated(losses, [GROUPS[0]], FIXED, seed="s") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_a_wrong_group_is_named_no_more_often_than_stated(name: str) -> None:
    large = "of 1,200" in name
    runs = 8 if large else 20
    right, wrong = measure(WORLDS[name], runs, f"test {name}")
    assert binomial_at_least(wrong, runs, STATED) > 0.001
    if large:
        assert right >= 7
