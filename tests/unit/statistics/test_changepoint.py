"""A move is found where it was made, and nowhere else more often than promised."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from gate.statistics.changepoint import course, largest_move
from gate.statistics.trend import Level


def drawn(
    rng: Random, *, runs: int = 8, drop: float = 0.0, at: int = 4, block: bool = False
) -> list[dict[int, tuple[float, int]]]:
    """Forty cases of three trials a run; ``block``: the trials of a run are one draw."""
    cases = []
    for _ in range(40):
        rate, case = rng.uniform(0.5, 0.95), {}
        for run in range(runs):
            chance = rate - (drop if run >= at else 0.0)
            outcomes = [rng.random() < chance] * 3 if block else [rng.random() < chance for _ in range(3)]
            case[run] = (float(sum(outcomes)), 3)
        cases.append(case)
    return cases


@pytest.mark.slow
def test_a_move_is_found_at_its_run() -> None:
    found = largest_move(drawn(Random(1), drop=0.3), 8, seed="x")
    assert found is not None
    assert found == largest_move(drawn(Random(1), drop=0.3), 8, seed="x"), "a seed gives the same answer again"
    assert found.run == 4
    assert found.change == pytest.approx(-0.3, abs=0.1)
    assert found.p <= 0.01


def test_an_improvement_is_a_move_too() -> None:
    found = largest_move(drawn(Random(1), drop=-0.3), 8, seed="x")
    assert found is not None
    assert found.change > 0


@pytest.mark.parametrize(
    ("block", "seeds", "most"),
    [(True, 4, 1), *(pytest.param(block, 40, 6, marks=pytest.mark.slow) for block in (False, True))],
)
def test_what_did_not_move_is_found_seldom_though_the_trials_of_a_run_are_one_draw(
    block: bool, seeds: int, most: int
) -> None:
    found = [largest_move(drawn(Random(seed), block=block), 8, seed="x", level=0.05) for seed in range(seeds)]
    assert sum(move is not None for move in found) <= most  # of 40: 2 on average; 7 or more once in 200


@pytest.mark.parametrize("runs", [0, 1, 2, 3])
def test_a_single_run_on_a_side_is_no_move(runs: int) -> None:
    assert largest_move([{run: (float(run == runs - 1), 1) for run in range(runs)}] * 50, runs, seed="x") is None


def test_what_never_varies_never_moves() -> None:
    assert largest_move([dict.fromkeys(range(8), (3.0, 3))] * 20, 8, seed="x") is None
    assert largest_move([], 8, seed="x") is None


# --- long histories -------------------------------------------------------------------------------


def history(rng: Random, runs: int, rate: Callable[[int], float], spread: float = 0.02) -> list[Level]:
    return [Level(run, rate(run) + rng.gauss(0, spread), 0.0001) for run in range(runs)]


@pytest.mark.parametrize("seeds", [8, pytest.param(40, marks=pytest.mark.slow)])
def test_a_step_is_found_with_an_interval_that_holds_it(seeds: int) -> None:
    held = exact = 0
    for seed in range(seeds):
        found = course(history(Random(seed), 30, lambda run: 0.9 if run < 17 else 0.85), level=0.01)
        assert len(found.pieces) == len(found.steps) + 1
        held += any(step.first <= 17 <= step.last for step in found.steps)
        exact += any(step.at == 17 for step in found.steps)
    assert held >= 0.85 * seeds
    assert exact >= 0.45 * seeds


def test_two_steps_are_two() -> None:
    found = course(history(Random(3), 40, lambda run: 0.9 if run < 12 else 0.7 if run < 25 else 0.85), level=0.01)
    assert [step.at for step in found.steps] == [12, 25]


@pytest.mark.parametrize(("seeds", "least"), [(6, 5), pytest.param(20, 18, marks=pytest.mark.slow)])
def test_a_slow_decline_is_no_staircase(seeds: int, least: int) -> None:
    found = [course(history(Random(seed), 30, lambda run: 0.9 - 0.006 * run), level=0.01) for seed in range(seeds)]
    assert sum(not one.steps for one in found) >= least
    assert all(one.pieces[0].is_line for one in found if not one.steps)


@pytest.mark.parametrize(
    ("runs", "seeds"), [(12, 25), *(pytest.param(runs, 100, marks=pytest.mark.slow) for runs in (4, 8, 12, 60))]
)
def test_what_only_chance_moves_is_seldom_called_moved(runs: int, seeds: int) -> None:
    found = [course(history(Random(seed), runs, lambda _: 0.9), level=0.05) for seed in range(seeds)]
    assert sum(bool(one.steps) for one in found) <= 0.12 * seeds  # at most 5 of 100 on average; 13 once in a thousand


@pytest.mark.parametrize("runs", range(4))
def test_single_runs_never_move(runs: int) -> None:
    found = course([Level(run, float(run == runs - 1), 0.0001) for run in range(runs)], level=0.01)
    assert found.steps == ()


def test_runs_that_are_all_alike_are_one_piece() -> None:
    found = course([Level(run, 1.0, 0.0) for run in range(10)], level=0.01)
    assert (found.steps, len(found.pieces)) == ((), 1)
