"""Finds trials that share their randomness, by the recordings that answered them. Pure.

A trial answered from the recording of a stored trial is paired with it; a draw counts once, however often it was
replayed. docs/dev/decisions/0023-coupled-trials.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gate.decision.engine.state import CONCURRENT, FULL, Partner
from gate.model import Side, Trial


class CoupledTrials(Struct, frozen=True):
    """The links between trials and those they replay, according to their recordings."""

    partners: Mapping[int, tuple[Trial, bool]] = {}
    """``id`` of a candidate's trial → the stored trial it is coupled with, and True if everything was replayed."""
    dropped: frozenset[int] = frozenset()
    """Trials (by ``id``) whose draw counts already, or that say nothing about what they were run for."""

    def links(self, trials: Sequence[Trial], stored: Sequence[Trial]) -> tuple[Partner | None, ...]:
        """Return the position of each trial's partner among the ``stored`` ones of its case; empty if none is
        coupled."""
        if not self.partners:
            return ()
        places = {id(trial): place for place, trial in enumerate(stored)}
        found = []
        for trial in trials:
            partner, whole = self.partners.get(id(trial), (None, False))
            place = None if partner is None else places.get(id(partner))
            found.append(None if place is None else Partner(place, whole))
        return tuple(found) if any(found) else ()


NONE = CoupledTrials()


def coupling(stored: Iterable[Trial], trials: Iterable[Trial]) -> CoupledTrials:
    """Return the pairs of trials, and the trials that repeat a draw that already counts.

    If the source is not among the stored trials there is no pair: the trial counts by itself, and further trials of the
    same source repeat it. A trial that claims replayed calls but names no source does not count: its proxy would have
    named one.
    """
    stored, trials = tuple(stored), tuple(trials)
    if not any(trial.replay is not None and trial.replay.replayed for trial in (*stored, *trials)):
        return NONE
    draws: dict[tuple[str, str], Trial] = {}
    dropped = set()
    for trial in stored:
        names = _names(trial)
        if any((trial.case_id, name) in draws for name in names):
            dropped.add(id(trial))
        else:
            draws |= {(trial.case_id, name): trial for name in names}
    partners, taken = {}, set()
    for trial in sorted(trials, key=_order):
        replay = trial.replay
        if replay is None or not replay.replayed:
            continue
        key = trial.case_id, replay.source
        partner = draws.get(key)
        known = key if partner is None else (trial.case_id, id(partner))
        if not replay.source or known in taken or _says_nothing(trial, partner):
            dropped.add(id(trial))
            continue
        taken.add(known)
        if partner is not None:
            partners[id(trial)] = partner, replay.whole
    return CoupledTrials(partners, frozenset(dropped))


def _names(trial: Trial) -> tuple[str, ...]:
    """Return the names by which a stored trial's draw is known: its own recording, and the one that answered it."""
    replay = trial.replay
    if replay is None:
        return ()
    return tuple(name for name in (replay.recording, replay.source if replay.coupled else "") if name)


def _order(trial: Trial) -> tuple[int, bool, int]:
    """Return a key that sorts by time, so that the trial that represents a draw never depends on outcomes."""
    return trial.round, trial.tag != FULL, trial.number


def _says_nothing(trial: Trial, partner: Trial | None) -> bool:
    """True if a replayed trial cannot show what it was run for: the current behaviour of the baseline's agent or of the
    provider. Also True for a copy of a stored trial on the baseline's own side."""
    if trial.side is Side.BASELINE:
        return partner is not None or trial.tag == CONCURRENT
    return trial.tag == CONCURRENT and trial.replay is not None and trial.replay.whole
