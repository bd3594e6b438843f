"""Finds trials that share their randomness, by the recordings that answered them. Pure.

A trial answered from the recording of a stored trial is paired with it; a draw counts once, however often it was
replayed. docs/dev/decisions/0023-coupled-trials.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from gate.decision.engine.state import CONCURRENT, Partner
from gate.model import FULL, Side, Trial


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
            link = None
            if id(trial) in self.partners:
                partner, whole = self.partners[id(trial)]
                if id(partner) in places:
                    link = Partner(places[id(partner)], whole)
            found.append(link)
        if not any(found):
            return ()
        return tuple(found)


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
        keys = [(trial.case_id, name) for name in _names(trial)]
        if draws.keys().isdisjoint(keys):
            draws |= dict.fromkeys(keys, trial)
        else:
            dropped.add(id(trial))
    partners, taken = {}, set()
    for trial in sorted(trials, key=_order):
        replay = trial.replay
        if replay is None or not replay.replayed:
            continue
        known: tuple[str, str | int] = (trial.case_id, replay.source)
        partner = draws.get((trial.case_id, replay.source))
        if partner is not None:
            known = (trial.case_id, id(partner))
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
    names = []
    if replay is not None and replay.recording:
        names.append(replay.recording)
    if replay is not None and replay.coupled:
        names.append(replay.source)
    return tuple(names)


def _order(trial: Trial) -> tuple[int, bool, int]:
    """Return a key that sorts by time, so that the trial that represents a draw never depends on outcomes."""
    return trial.round, trial.tag != FULL, trial.number


def _says_nothing(trial: Trial, partner: Trial | None) -> bool:
    """True if a replayed trial cannot show what it was run for: the current behaviour of the baseline's agent or of the
    provider. Also True for a copy of a stored trial on the baseline's own side."""
    if trial.side is Side.BASELINE:
        return partner is not None or trial.tag == CONCURRENT
    return trial.tag == CONCURRENT and trial.replay is not None and trial.replay.whole
