"""Epochs that are run in any case, for later changes: the whole ones count in the verdict, the rest do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.stored_epochs import DOWN_IN_A_ROW, rounds_of_outages, with_stored_epochs
from gate.model import FULL, STORED, Trial, Verdict

from .records import RESPONSE, cases, failed_trial, judge, lost_trial, once, trial

SUITE = cases(20)
IDS = [case.id for case in SUITE]
HALF = replace(RESPONSE, threshold=0.5)


def epoch(value: float = 1.0, *, number: int = 2, round: int = 2) -> list[Trial]:
    """One epoch for later changes, in the order in which its trials were started."""
    trials = [trial(c, number, round=round, tag=STORED, response=value) for c in IDS]
    return [replace(one, started=float(n)) for n, one in enumerate(trials)]


def counted(*epochs: Sequence[Trial]) -> int:
    """Return how many trials are judged, of one epoch that the verdict needed and of these."""
    trials = [*once(SUITE, response=1.0), *(one for one_epoch in epochs for one in one_epoch)]
    found = with_stored_epochs(trials, IDS, [RESPONSE])
    assert {one.tag for one in found} == {FULL}
    return len(found)


def failing(trials: Sequence[Trial], numbers: Sequence[int]) -> list[Trial]:
    error = failed_trial("x").error
    return [replace(one, error=error, scores={}) if n in numbers else one for n, one in enumerate(trials)]


def test_the_mean_is_that_of_all_whole_epochs() -> None:
    needed = once(SUITE, response=0.7)
    assert judge(SUITE, [HALF], needed).verdict is Verdict.PASS
    low = [*needed, *epoch(0.2), *epoch(0.2, number=3, round=3)]
    assert judge(SUITE, [HALF], low).verdict is Verdict.BELOW_THRESHOLD
    [row] = [row for row in judge(SUITE, [HALF], low).criteria if row.criterion.name == "response"]
    assert row.candidate is not None and row.candidate.trials == 60


def test_an_epoch_that_a_budget_cut_short_does_not_count() -> None:
    assert counted(epoch()) == 40
    assert counted(epoch()[:-1]) == 20
    cut = judge(SUITE, [HALF], [*once(SUITE, response=0.7), *epoch(0.0)[:-1]])
    assert cut.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("spoil", "counts"),
    [
        (lambda trials: failing(trials, range(11)), False),
        (lambda trials: failing(trials, range(0, 20, 2)), True),
        (lambda trials: failing(trials, range(5, 5 + DOWN_IN_A_ROW)), False),
        (lambda trials: failing(trials, range(5, 4 + DOWN_IN_A_ROW)), True),
        (lambda trials: [replace(lost_trial(IDS[0], 2, round=2), tag=STORED), *trials[1:]], False),
        (lambda trials: [trial(IDS[0], 2, round=2, tag=STORED, response="no judge"), *trials[1:]], False),
    ],
    ids=["most fail", "half fail", "eight fail in a row", "seven fail in a row", "one is lost", "one has no score"],
)
def test_an_outage_on_the_way_is_none_of_the_run(spoil: Callable[[list[Trial]], list[Trial]], *, counts: bool) -> None:
    assert counted(spoil(epoch())) == (40 if counts else 20)


def test_a_lost_trial_that_was_run_again_leaves_its_epoch_whole() -> None:
    again = replace(trial(IDS[0], 3, round=2, tag=STORED, response=1.0), again=True)
    assert counted([replace(lost_trial(IDS[0], 2, round=2), tag=STORED), *epoch()[1:], again]) == 41


def test_cases_that_never_answered_tell_no_outage() -> None:
    """They failed in the epoch that the verdict needed, too."""
    broken = range(5, 5 + DOWN_IN_A_ROW)
    needed = [replace(failed_trial(c)) if n in broken else trial(c, response=1.0) for n, c in enumerate(IDS)]
    trials = [*needed, *failing(epoch(), broken)]
    assert len(with_stored_epochs(trials, IDS, [RESPONSE])) == 40
    assert rounds_of_outages(trials) == frozenset()


def test_only_the_epoch_of_the_outage_is_not_stored() -> None:
    down = failing(epoch(number=3, round=3), range(20))
    assert rounds_of_outages([*once(SUITE, response=1.0), *epoch(), *down]) == {3}


def test_cases_that_are_thinner_than_the_others_make_no_epoch() -> None:
    assert counted(epoch(), epoch(number=3, round=3)[:4]) == 40


def test_epochs_of_shards_are_joined_whatever_their_rounds_are_called() -> None:
    one, other = epoch()[:10], [replace(late, round=5) for late in epoch()[10:]]
    trials = [*once(SUITE, response=1.0), *one, *other]
    found = with_stored_epochs(trials, IDS, [RESPONSE])
    assert {late.round for late in found} == {1, 5} and len(found) == 40


def test_a_case_in_quarantine_need_not_be_measured() -> None:
    settings = Settings(quarantine={IDS[0]: "flaky (ada, until 2030-01-01)"})
    low = [*once(SUITE, response=0.7), *epoch(0.0)[1:], *epoch(0.0, number=3, round=3)[1:]]
    assert judge(SUITE, [HALF], low, settings=settings).verdict is Verdict.BELOW_THRESHOLD
    assert judge(SUITE, [HALF], low).verdict is Verdict.PASS
