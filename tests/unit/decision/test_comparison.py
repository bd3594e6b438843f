"""Which of the stored trials a comparison takes for the newest."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from gate.decision import Settings
from gate.decision.comparison import Comparison
from gate.decision.sequential import state_of
from gate.model import Case, Score, Trial

from .records import TRAJECTORY, judge, trial


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


def test_what_replaces_the_last_epoch_counts_in_means_and_is_no_epoch() -> None:
    """The mean, the change and its interval are of the same trials, or the report would contradict itself."""
    suite = [Case(f"c{n}", ()) for n in range(4)]
    trials = [trial(case.id, n, round=n, trajectory=1.0) for case in suite for n in (1, 2)]
    trials += [trial("c0", n, round=3, tag="narrow", trajectory=float(n > 4)) for n in (3, 4, 5, 6)]
    stored = [trial(case.id, n, trajectory=float(n > 1 or case.id != "c0")) for case in suite for n in range(1, 6)]
    result = judge(suite, (TRAJECTORY,), trials, stored, settings=Settings(max_epochs=3))
    rate = result.criteria[0]
    assert result.course is not None and (result.course.epochs, result.course.narrowing) == (2, 4)
    assert rate.candidate is not None and rate.baseline is not None and rate.change is not None
    assert rate.candidate.value == pytest.approx((4 / 6 + 3) / 4)
    assert rate.change.value == pytest.approx(rate.candidate.value - rate.baseline.value)
