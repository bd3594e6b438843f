"""Trials of both sides take turns."""

from __future__ import annotations

from gate.model import Side
from gate.pipeline.execute import Job
from gate.pipeline.rounds import in_turn
from tests.unit.pipeline.test_execute import case


def jobs(side: Side, n: int) -> list[Job]:
    return [Job(case(f"c{i}"), 1, side=side) for i in range(n)]


def test_both_sides_run_a_few_trials_in_turn() -> None:
    base, own = jobs(Side.BASELINE, 5), jobs(Side.CANDIDATE, 3)
    assert in_turn([base, own], 2) == [base[:2], own[:2], base[2:4], own[2:], base[4:]]


def test_one_side_runs_at_once() -> None:
    own = jobs(Side.CANDIDATE, 5)
    assert in_turn([own], 2) == [own]
    assert in_turn([], 2) == []
