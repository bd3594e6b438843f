"""The reasons a suite could not be measured, or its measurements cannot clear it."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.comparison import Comparison
from gate.decision.engine.collapse import has_collapsed
from gate.decision.outages import commonest_error
from gate.model import ErrorKind, Trial
from gate.model.finding import CaseTally, Finding

MAX_ERROR_CHARS = 120
"""Maximum number of characters of the most common error in a headline."""
LEAST_TRIALS = 3
"""Minimum trials of each kind: an unchanged case that always passed fails three times in a row in at most 2 %."""


def measuring_problem(comparison: Comparison) -> Finding | None:
    """Return the reason the suite could not be measured, or None if it could."""
    if not comparison.judged:
        return Finding.of("not_run", quarantined=bool(comparison.cases))
    most = comparison.settings.max_error_rate
    if comparison.error_share > most:
        return _trials_lost(
            comparison.lost(comparison.own), sum([not trial.again for trial in comparison.own]), most=most
        )
    silent: list[str] = []
    attempts: list[Trial] = []
    for case in comparison.judged:
        if not comparison.measured(case.id):
            silent.append(case.id)
            attempts += comparison.scheduled(case.id)
    if silent and not attempts:
        return Finding.of("not_run", cases=tuple(silent))
    if silent:
        return _trials_lost(attempts, len(attempts), cases=tuple(silent))
    lost = _lost_case(comparison)
    if lost is not None:
        return lost
    epochs, wanted = comparison.whole_epochs, comparison.settings.exact_epochs or 1
    if comparison.stopped and epochs < wanted:
        return Finding.of("not_run", epochs=epochs, wanted=wanted)
    return None


def _lost_case(comparison: Comparison) -> Finding | None:
    """Return the first case that lost too many trials for the rest to represent it."""
    if not comparison.errors:
        return None
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        refused = [trial for trial in trials if _asked_in_vain(trial)]
        if refused:
            return _trials_lost(refused, len(trials), cases=(case.id,))
    for case in comparison.judged:
        trials = comparison.scheduled(case.id)
        lost = comparison.lost(comparison.candidate.get(case.id, ()))
        if len(trials) > 1 and 2 * len(lost) > len(trials):
            return _trials_lost(lost, len(trials), cases=(case.id,))
    return None


def _trials_lost(lost: Sequence[Trial], of: int, *, cases: tuple[str, ...] = (), most: float | None = None) -> Finding:
    error = commonest_error(lost, MAX_ERROR_CHARS)
    return Finding.of("trials_lost", lost=len(lost), of=of, cases=cases, most=most, error=error)


def _asked_in_vain(trial: Trial) -> bool:
    """True if a trial ended because its requests differ from its recording: a retry would end the same way."""
    if trial.error is None or trial.error.kind is not ErrorKind.MISSING:
        return False
    return trial.replay is not None and bool(trial.replay.source)


# --- measured, but not credible -------------------------------------------------------------------


def collapsed(comparison: Comparison) -> Finding | None:
    """Return the first blocking criterion whose values are all the worst of its scale, unlike the baseline's, beyond
    chance.

    Such a suite does not pass, however few cases it has. None if the trials are the baseline's own.
    """
    if comparison.same_as:
        return None
    for criterion in comparison.blocking:
        if criterion.hard or not criterion.scale.is_bounded:
            continue
        both = comparison.values_of_both(criterion).values()
        worst, best = criterion.worst, criterion.best
        assert worst is not None and best is not None  # the scale is bounded
        if has_collapsed(both, worst, best):
            trials = sum([len(now) for now, _ in both])
            copies = bool(comparison.copies.cases)
            return Finding.of("collapsed", criterion=criterion.name, cases=len(both), trials=trials, copies=copies)
    return None


def copies_fail(comparison: Comparison) -> Finding | None:
    """Return the cases that always passed and now always fail with answers that are copies of one another."""
    if comparison.same_as or not comparison.copies.lost:
        return None
    return Finding.of("cases_fail", cases=comparison.copies.lost, why="copies")


def base_fails_too(comparison: Comparison) -> Finding | None:
    """Return the cases that passed in every stored trial and now fail in every trial of both the base and the change.

    The base commit's agent, run now, is a control: if it fails cases it always passed, it cannot clear the change. The
    provider may have moved, or the agent that runs as the base's is another one, for example because of a wrong address
    or an environment that belongs to the change.
    """
    if not comparison.base_now:
        return None
    run_now = {id(trial) for trial in comparison.base_now}
    found = []
    for case_id in comparison.paired:
        before: list[bool] = []
        base: list[bool] = []
        for trial in comparison.of_base(case_id):
            if id(trial) in run_now:
                base.append(comparison.passes(trial))
            else:
                before.append(comparison.passes(trial))
        now = [comparison.passes(trial) for trial in comparison.measured(case_id)]
        enough = min(len(before), len(base), len(now)) >= LEAST_TRIALS
        if enough and all(before) and not any(base) and not any(now):
            found.append(CaseTally(case_id, 0, len(now), len(before), len(before)))
    if not found:
        return None
    return Finding.of("cases_fail", cases=tuple(found), why="base_fails_too")
