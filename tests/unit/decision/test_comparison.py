"""Which of the stored trials a comparison takes for the newest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.decision import Settings
from gate.decision.comparison import Comparison
from gate.decision.sequential import state_of
from gate.model import Case, Score, Trial

from .records import TRAJECTORY


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
    order = [f"r{n}" for n, size in enumerate(sizes) for _ in range(size)]
    passed = {TRAJECTORY.name: Score(1.0)}
    stored = tuple(Trial("c", n, scores=passed, run=run) for n, run in enumerate(order, 1))
    runs = tuple(dict.fromkeys(order))
    now = (Trial("c", 1, scores=passed),)
    made = Comparison((Case("c", ()),), (TRAJECTORY,), now, stored, Settings(), stored_runs=runs)
    found = state_of(made, can_run=False, stopped=False).newest.get("c", ())
    assert [order[at] for at in found] == order[len(order) - sum(newest) :]
