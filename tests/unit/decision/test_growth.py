"""The work of a decision grows with the suite, not with its square. Calls are counted, time is not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import product
from types import FrameType

import pytest
from msgspec.structs import replace

from gate.decision import Comparison, Settings, next_step, verdict_on
from gate.model import Case, Trial

from .records import FORBIDDEN, LATENCY, RESPONSE, TRAJECTORY, cases, failed_trial, lost_trial, once, stored

CRITERIA = (replace(TRAJECTORY, threshold=0.5), RESPONSE, FORBIDDEN, LATENCY)
GOOD = {"trajectory": 1.0, "response": 0.8, "forbidden_tools": 1.0, "latency": 1.0}
BAD = {"trajectory": 0.0, "response": 0.1, "forbidden_tools": 1.0, "latency": 3.0}
SMALL, LARGE = 20, 80


def clean(suite: Sequence[Case]) -> list[Trial]:
    return once(suite, **GOOD)


def lost(suite: Sequence[Case]) -> list[Trial]:
    """One in twenty unreachable."""
    return [lost_trial(c.id) if n % 20 == 0 else t for n, (c, t) in enumerate(zip(suite, clean(suite), strict=True))]


def crashed(suite: Sequence[Case]) -> list[Trial]:
    """One in ten fails."""
    return [failed_trial(c.id) if n % 10 == 0 else t for n, (c, t) in enumerate(zip(suite, clean(suite), strict=True))]


def worse(suite: Sequence[Case]) -> list[Trial]:
    return once(suite, {case.id: BAD for case in suite[::3]}, **GOOD)


def calls(suite: Sequence[Case], trials: Sequence[Trial], baseline: Sequence[Trial], *, can_run: bool) -> Counter[str]:
    """The calls of Python functions in one decision, generators' steps included, by function."""
    found: Counter[str] = Counter()
    judge = next_step if can_run else verdict_on

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found[f"{frame.f_code.co_filename.rpartition('/gate/')[2]}:{frame.f_lineno}"] += 1

    sys.setprofile(count)
    try:
        judge(Comparison(suite, CRITERIA, trials, baseline, Settings()))
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.parametrize(
    ("trials_of", "can_run", "with_baseline"),
    [
        (crashed, False, True),
        *(
            pytest.param(*chosen, marks=pytest.mark.slow)
            for chosen in product((clean, lost, crashed, worse), (False, True), (False, True))
        ),
    ],
)
def test_four_times_the_cases_take_about_four_times_the_calls(trials_of, can_run, with_baseline):  # type: ignore[no-untyped-def]
    counts = []
    for size in (SMALL, LARGE):
        suite = cases(size)
        trials = trials_of(suite)
        baseline = stored(suite, 2, **GOOD) if with_baseline else []
        calls(suite, trials, baseline, can_run=can_run)  # for imports and caches
        counts.append(calls(suite, trials, baseline, can_run=can_run))
    few, many = counts
    steep = {where: (few[where], n) for where, n in many.items() if n > 150 * LARGE and n > 8 * few[where]}
    assert not steep
