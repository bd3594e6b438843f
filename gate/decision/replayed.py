"""The share of a run that recordings answered, and what the change made the model see: facts for the reports. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.comparison import Comparison
from gate.model import Trial
from gate.model.course import LiveCase, ReplayedShare


def replayed_share(comparison: Comparison) -> ReplayedShare | None:
    """Return the share that the baseline's recordings answered; None if no trial had one."""
    groups = {case.id: comparison.candidate.get(case.id, ()) for case in comparison.judged}
    trials = [trial for group in groups.values() for trial in group]
    if not any(trial.replay is not None and trial.replay.source for trial in trials):
        return None
    ran = {case_id: group for case_id, group in groups.items() if group}
    live = tuple(_live(case_id, group) for case_id, group in ran.items() if not same_world(comparison, group))
    saved = [usd for trial in trials if (usd := trial.saved_usd) is not None]
    return ReplayedShare(
        cases=len(ran),
        same=len(ran) - len(live),
        runs=sum(one.runs for one in live),
        calls=sum(one.calls for one in live),
        replayed=sum(trial.replay.replayed for trial in trials if trial.replay is not None),
        saved_usd=sum(saved) if saved else None,
        live=live,
    )


def same_world(comparison: Comparison, trials: Sequence[Trial]) -> bool:
    """True if the model was asked the same things in each of a case's trials as in a trial that the baseline holds.

    A recording that the baseline does not hold shows nothing, whatever the record says of it.
    """
    known = comparison.coupling
    if not known.partners:
        return False
    return any(id(trial) in known.partners for trial in trials) and all(
        trial.replay is not None and trial.replay.same and (id(trial) in known.partners or id(trial) in known.dropped)
        for trial in trials
    )


def difference(trials: Sequence[Trial]) -> str:
    """Return the first difference from the recording, in the first trial that reports one."""
    for trial in trials:
        if trial.replay is not None and trial.replay.difference:
            return trial.replay.difference
    return ""


def _live(case_id: str, trials: Sequence[Trial]) -> LiveCase:
    """A trial without a word of its recording counts as live: what it asked for is not known."""
    asked = [trial for trial in trials if trial.replay is None or not trial.replay.same]
    calls = sum(trial.replay.live for trial in trials if trial.replay is not None)
    return LiveCase(case_id, len(asked), calls, difference(trials))
