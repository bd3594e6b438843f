"""The base commit's agent, run now, clears no change where it no longer does what was stored of it."""

from __future__ import annotations

import pytest

from gate.decision import Settings
from gate.model import Side, Trial, Verdict
from gate.model.finding import CaseTally, Finding

from .records import TRAJECTORY, cases, judge, once, stored, trial

SUITE = cases(40)
BEFORE = stored(SUITE, trajectory=1.0)
CASE = SUITE[0].id


def again(values: list[float], side: Side) -> list[Trial]:
    return [
        trial(CASE, n, round=n, tag="confirm", side=side, trajectory=value) for n, value in enumerate(values, start=2)
    ]


@pytest.mark.parametrize(
    ("base", "now", "clears"),
    [
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0], False),
        ([0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0], True),
        ([0, 0], [0, 0], True),
    ],
)
def test_a_base_that_fails_what_it_always_passed_clears_nothing(
    base: list[float], now: list[float], *, clears: bool
) -> None:
    first = once(SUITE, {CASE: {"trajectory": 0.0}}, trajectory=1.0)
    trials = [*first, *again(base, Side.BASELINE), *again(now, Side.CANDIDATE)]
    result = judge(SUITE, [TRAJECTORY], trials, BEFORE, settings=Settings(rerun="match"))
    assert result.verdict is not Verdict.REGRESSED
    fails = Finding.of("cases_fail", cases=(CaseTally(CASE, 0, 7, 5, 5),), why="base_fails_too")
    assert (result.cause == fails) is not clears
    assert result.verdict is Verdict.INCONCLUSIVE or clears


def test_a_base_that_fails_too_is_named_where_few_cases_leave_the_suite_open() -> None:
    few = SUITE[:4]
    first = once(few, {CASE: {"trajectory": 0.0}}, trajectory=1.0)
    trials = [*first, *again([0] * 9, Side.BASELINE), *again([0] * 15, Side.CANDIDATE)]
    result = judge(few, [TRAJECTORY], trials, stored(few, trajectory=1.0), settings=Settings(rerun="match"))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert (result.cause.kind, result.cause["why"]) == ("cases_fail", "base_fails_too")
