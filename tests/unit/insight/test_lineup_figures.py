"""Means and differences of several agents, who is dominated, and what votes in both orders come to."""

from __future__ import annotations

import pytest

from gate.insight.lineup_figures import Measured, count_comparisons, dominated, measures_of, preferences_of
from gate.model import Direction, Scale
from gate.model.lineup import Measure, OrderedVote

CASES = [f"case {n}" for n in range(30)]


def flat(*means: float) -> tuple[dict[str, list[float]], ...]:
    """Entries whose every case has nearly this value."""
    return tuple({case: [value + 0.001 * (n % 3)] for n, case in enumerate(CASES)} for value in means)


def measured(name: str, *means: float, direction: Direction = Direction.LOWER) -> Measured:
    return Measured(name, Scale.SECONDS, direction, flat(*means))


def rows(*found: Measured) -> tuple[Measure, ...]:
    return measures_of(found, count_comparisons(found))


def test_every_pair_in_every_row_is_a_comparison() -> None:
    assert count_comparisons([measured("a", 1, 2, 3), measured("b", 1, 2, 3)]) == 6
    assert count_comparisons([measured("a", 1, 2, 3)], preferences=3) == 6
    missing = Measured("a", Scale.SECONDS, Direction.LOWER, (*flat(1, 2), {}))
    assert count_comparisons([missing]) == 1


def test_a_difference_is_paired_over_the_cases_that_both_have() -> None:
    first = {"a": [1.0, 3.0], "b": [2.0], "c": [9.0]}
    second = {"a": [3.0], "b": [4.0], "d": [0.0]}
    (row,) = rows(Measured("x", Scale.SECONDS, Direction.LOWER, (first, second)))
    (found,) = row.differences
    assert (found.one, found.other, found.estimate.value, found.estimate.n) == (1, 0, 1.5, 2)
    assert row.estimates[0] is not None and row.estimates[0].n == 3


def test_what_nobody_measured_has_no_row() -> None:
    assert rows(Measured("x", Scale.SECONDS, Direction.LOWER, ({}, {}))) == ()


@pytest.mark.parametrize(("direction", "better"), [(Direction.LOWER, 0), (Direction.HIGHER, 1)])
def test_better_goes_by_the_direction(direction: Direction, better: int) -> None:
    (row,) = rows(measured("x", 1, 2, direction=direction))
    assert row.better(better, 1 - better)
    assert not row.better(1 - better, better)
    gain = row.gain(better, 1 - better)
    assert gain is not None and gain.value == pytest.approx(1.0) and gain.low <= gain.value <= gain.high


def test_steady_zeros_and_ones_show_no_difference_by_a_single_trial() -> None:
    ones = {case: [1.0] for case in CASES[:10]}
    (row,) = rows(Measured("x", Scale.BINARY, Direction.HIGHER, (ones, {**ones, CASES[0]: [0.0]})))
    assert not row.better(0, 1)


def test_no_difference_is_larger_than_the_scale() -> None:
    ones, zeros = ({case: [value] for case in CASES} for value in (1.0, 0.0))
    (row,) = rows(Measured("x", Scale.BINARY, Direction.HIGHER, (ones, zeros)))
    assert row.differences[0].estimate.low == -1.0


def test_who_is_worse_in_all_is_dominated_and_who_is_ahead_in_one_is_not() -> None:
    cost, latency = measured("cost", 1, 2, 3, 0.5), measured("latency", 1, 2, 3, 4)
    found = {one.entry: one for one in dominated(rows(cost, latency), 4)}
    assert found.keys() == {1, 2}
    assert all(one.proven for one in found.values())
    assert found[1].by == 0


def test_means_alone_prove_nothing() -> None:
    noisy = tuple({case: [float(shift + 10 * (n % 2))] for n, case in enumerate(CASES)} for shift in (0, 0))
    second = {case: [group[0] + (0.5 if n % 3 else -0.9)] for n, (case, group) in enumerate(noisy[1].items())}
    (found,) = dominated(rows(Measured("cost", Scale.SECONDS, Direction.LOWER, (noisy[0], second))), 2)
    assert (found.entry, found.by, found.proven) == (1, 0, False)


def test_who_tells_no_cost_is_compared_by_the_rest_and_cannot_dominate() -> None:
    cost = Measured("cost", Scale.USD, Direction.LOWER, (*flat(1), {}, *flat(2)))
    quality = measured("quality", 3, 4, 1, direction=Direction.HIGHER)
    found = {one.entry: one.by for one in dominated(rows(cost, quality), 3)}
    assert found == {2: 0}, "1 has the best quality, but nobody knows at what cost"


def vote(case: str, first: int, second: int, preferred: int | None, error: str = "") -> OrderedVote:
    return OrderedVote(case, first, second, preferred, error=error)


def test_only_both_orders_make_a_win() -> None:
    votes = [
        *(vote("won", *order, 1) for order in ((0, 1), (1, 0))),
        *(vote("lost", *order, 0) for order in ((0, 1), (1, 0))),
        vote("first", 0, 1, 0), vote("first", 1, 0, 1),
        vote("second", 0, 1, 1), vote("second", 1, 0, 0),
        vote("half", 0, 1, 1), vote("half", 1, 0, None),
        vote("none", 0, 1, None), vote("none", 1, 0, None),
        vote("broken", 0, 1, 1), vote("broken", 1, 0, None, error="no answer"),
        vote("alone", 0, 1, 1),
    ]  # fmt: skip
    (found,) = preferences_of(votes, [(1, 0)], 1)
    assert (found.wins, found.losses, found.ties) == (1, 1, 4)
    assert (found.first_twice, found.second_twice, found.unread) == (1, 1, 2)
    assert found.rate is not None
    assert found.rate.value == pytest.approx(0.5)
    assert found.rate.n == 6
    assert 0 <= found.rate.low < 0.5 < found.rate.high <= 1


def test_a_judge_that_always_prefers_a_place_makes_nobody_win() -> None:
    votes = [vote(case, first, 1 - first, first) for case in CASES for first in (0, 1)]
    (found,) = preferences_of(votes, [(1, 0)], 1)
    assert (found.wins, found.losses, found.first_twice) == (0, 0, 30)
    assert found.rate is not None and found.rate.value == 0.5


def test_without_a_readable_case_there_is_no_rate() -> None:
    (found,) = preferences_of([vote("a", 0, 1, None, error="down"), vote("a", 1, 0, 0)], [(1, 0)], 1)
    assert (found.rate, found.unread) == (None, 1)
