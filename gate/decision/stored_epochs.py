"""Epochs that a run makes in any case, to be stored for later changes, and which of them count in its own verdict.

They run after the verdict could be given, so an early end must not harm it. An epoch counts once it is complete: every
judged case was measured in it, and the agent was not down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from gate.decision.outcomes import lacks_a_score
from gate.model import FULL, STORED, Criterion, Side, Trial

DOWN_IN_A_ROW = 8
"""Consecutive trials without an answer, of cases that answered before, that indicate an outage within an epoch."""


def with_stored_epochs(
    trials: Sequence[Trial], judged: Collection[str], blocking: Iterable[Criterion]
) -> Sequence[Trial]:
    """Return the trials; complete epochs of this kind are tagged like any other epoch, and the rest is left out.

    ``blocking``: the criteria whose scores a complete epoch has.
    """
    if not any(trial.tag == STORED for trial in trials):
        return trials
    names = [criterion.name for criterion in blocking]
    answered = _answered_before(trials)
    found = [trial for trial in trials if trial.tag != STORED]
    for epoch in _epochs(trials):
        measured = {trial.case_id for trial in epoch if trial.measured and not lacks_a_score(trial, names)}
        if measured.issuperset(judged) and not _was_down(epoch, answered):
            last = max([trial.round for trial in epoch])  # in shards, rounds may have other numbers
            found += [replace(trial, tag=FULL, round=last) for trial in epoch]
    return tuple(found)


def rounds_of_outages(trials: Sequence[Trial]) -> frozenset[int]:
    """Return the rounds of these epochs in which the agent was down."""
    answered = _answered_before(trials)
    rounds: dict[int, list[Trial]] = {}
    for trial in trials:
        if trial.tag == STORED:
            rounds.setdefault(trial.round, []).append(trial)
    return frozenset([number for number, epoch in rounds.items() if _was_down(epoch, answered)])


def _answered_before(trials: Iterable[Trial]) -> frozenset[str]:
    """Return the cases that the candidate answered in trials outside these epochs."""
    found = set()
    for trial in trials:
        if trial.side is Side.CANDIDATE and trial.tag != STORED and trial.answered:
            found.add(trial.case_id)
    return frozenset(found)


def _epochs(trials: Iterable[Trial]) -> list[list[Trial]]:
    """Return the trials epoch by epoch: those of each case's first such round, then those of its second, and so on."""
    rounds_of: dict[str, dict[tuple[str, int], int]] = {}
    epochs: list[list[Trial]] = []
    for trial in trials:
        if trial.tag != STORED:
            continue
        rounds = rounds_of.setdefault(trial.case_id, {})
        number = rounds.setdefault((trial.run, trial.round), len(rounds))
        if number == len(epochs):
            epochs.append([])
        epochs[number].append(trial)
    return epochs


def _was_down(epoch: Iterable[Trial], answered: Collection[str]) -> bool:
    """True if most trials of cases that answered before did not answer, or several in a row did not."""
    known = [trial for trial in epoch if trial.case_id in answered]
    if 2 * sum([trial.answered for trial in known]) < len(known):
        return True
    in_a_row = 0
    for trial in sorted(known, key=lambda trial: trial.started or 0.0):
        in_a_row += 1
        if trial.answered:
            in_a_row = 0
        if in_a_row == DOWN_IN_A_ROW:
            return True
    return False
