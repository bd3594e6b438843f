"""Which of the stored trials a comparison takes for the newest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.decision.comparison import _newest
from gate.model import FULL, Side, Trial


@pytest.mark.parametrize(
    ("sizes", "newest"),
    [
        ((5, 5), (5,)),  # the last merge alone
        ((5, 1, 5), (1, 5)),
        ((5, 5, 1), (5, 1)),  # a night is too few, and with the merge before it six
        ((5, *[1] * 9), (1,) * 7),  # a week of nights
        ((5, 3, 3), (3, 3)),
        ((5, 1, 1), ()),  # nothing would be older
        ((5,), ()),
    ],
)
def test_the_newest_runs_are_five_trials_and_as_many_more_as_fit_into_seven(
    sizes: Sequence[int], newest: Sequence[int]
) -> None:
    runs = [f"r{n}" for n in range(len(sizes))]
    trials = [
        Trial("c", n, 1, FULL, Side.CANDIDATE, run=run)
        for run, size in zip(runs, sizes, strict=True)
        for n in range(size)
    ]
    assert len(_newest({"c": trials}, runs).get("c", ())) == sum(newest)
    assert all(trials[at].run in runs[len(runs) - len(newest) :] for at in _newest({"c": trials}, runs).get("c", ()))
