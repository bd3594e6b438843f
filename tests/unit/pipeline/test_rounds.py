"""Trials of both sides take turns, and each has a number of its own."""

from __future__ import annotations

import pytest

from gate.decision import CONCURRENT
from gate.model import CONFIRM, ErrorKind, Side, Trial, TrialError
from gate.pipeline.execute import Job
from gate.pipeline.rounds import Numbers, base_is_silent, in_turn
from tests.unit.pipeline.test_execute import case


def jobs(side: Side, n: int) -> list[Job]:
    return [Job(case(f"c{i}"), 1, side=side) for i in range(n)]


def test_both_sides_run_a_few_trials_in_turn() -> None:
    base, own = jobs(Side.BASELINE, 5), jobs(Side.CANDIDATE, 3)
    assert in_turn([base, own], 2) == [base[:2], own[:2], base[2:4], own[2:], base[4:]]


def test_numbers_that_an_earlier_session_did_not_get_to_come_first() -> None:
    numbers = Numbers([Trial("a", n) for n in (1, 2, 4)] + [Trial("a", 1, side=Side.BASELINE), Trial("b", 2)])
    assert [numbers.next("a", Side.CANDIDATE) for _ in range(3)] == [3, 5, 6]
    assert [numbers.next("a", Side.BASELINE), numbers.next("b", Side.CANDIDATE)] == [2, 1]
    assert [numbers.next("b", Side.CANDIDATE), numbers.next("c", Side.CANDIDATE)] == [3, 1]


def test_a_few_of_the_base_alone_show_whether_it_is_there() -> None:
    base = jobs(Side.BASELINE, 15)
    assert in_turn([base], 2) == [base[:10], base[10:]]


@pytest.mark.parametrize(
    ("answers", "lost", "failed", "tag", "vain"),
    [
        (0, 10, 0, CONCURRENT, True),
        (0, 9, 0, CONCURRENT, False),
        (1, 20, 0, CONCURRENT, False),
        (0, 0, 10, CONCURRENT, True),
        (0, 0, 10, CONFIRM, False),
    ],
)
def test_a_base_that_never_answers_in_a_round_is_asked_in_vain(
    answers: int, lost: int, failed: int, tag: str, vain: bool
) -> None:
    errors = [None] * answers
    errors += [TrialError(ErrorKind.UNREACHABLE, "refused")] * lost + [TrialError(ErrorKind.CRASH, "x")] * failed
    trials = [Trial(f"c{i}", 1, 2, tag, Side.BASELINE, error=error) for i, error in enumerate(errors)]
    assert base_is_silent([*trials, Trial("c0", 1, 2, tag)]) is vain


def test_one_side_runs_at_once() -> None:
    own = jobs(Side.CANDIDATE, 5)
    assert in_turn([own], 2) == [own]
    assert in_turn([], 2) == []
