"""A move is found where it was made, and nowhere else more often than promised."""

from __future__ import annotations

from random import Random

import pytest

from gate.statistics.changepoint import largest_move


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


def test_a_move_is_found_at_its_run() -> None:
    found = largest_move(drawn(Random(1), drop=0.3), 8, seed="x")
    assert found is not None
    assert found.run == 4
    assert found.change == pytest.approx(-0.3, abs=0.1)
    assert found.p <= 0.01


def test_an_improvement_is_a_move_too() -> None:
    found = largest_move(drawn(Random(1), drop=-0.3), 8, seed="x")
    assert found is not None
    assert found.change > 0


@pytest.mark.parametrize("block", [False, True])
def test_what_did_not_move_is_found_seldom_though_the_trials_of_a_run_are_one_draw(block: bool) -> None:
    found = [largest_move(drawn(Random(seed), block=block), 8, seed="x", level=0.05) for seed in range(40)]
    assert sum(move is not None for move in found) <= 6  # 2 on average; 7 or more once in 200


@pytest.mark.parametrize("runs", [0, 1, 2, 3])
def test_a_single_run_on_a_side_is_no_move(runs: int) -> None:
    assert largest_move([{run: (float(run == runs - 1), 1) for run in range(runs)}] * 50, runs, seed="x") is None


def test_what_never_varies_never_moves() -> None:
    assert largest_move([dict.fromkeys(range(8), (3.0, 3))] * 20, 8, seed="x") is None
    assert largest_move([], 8, seed="x") is None


def test_the_same_seed_gives_the_same_answer() -> None:
    cases = drawn(Random(3), drop=0.2)
    assert largest_move(cases, 8, seed="x") == largest_move(cases, 8, seed="x")
