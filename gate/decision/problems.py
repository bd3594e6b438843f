"""The reasons a suite could not be measured, or its measurements cannot clear it."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.comparison import Comparison
from gate.decision.outages import commonest_error
from gate.model import Criterion, ErrorKind, Side, Trial
from gate.model.finding import CaseTally, Finding
from gate.statistics.intervals import mean_of_means, stratified_fisher_less

MAX_ERROR_CHARS = 120
"""Maximum number of characters of the most common error in a headline."""
OFTEN = 0.5
"""If the baseline's mean is at least this far up its scale, chance alone cannot put every value at its worst."""
RARE = 0.05
"""For a lower baseline, chance is ruled out if its probability is at most this."""
LEAST_TRIALS = 3
"""Minimum trials of each kind: an unchanged case that always passed fails three times in a row in at most 2 %."""


def measuring_problem(comparison: Comparison) -> Finding | None:
    """Return the reason the suite could not be measured, or None if it could."""
    if not comparison.judged:
        return Finding.of("not_run", quarantined=bool(comparison.cases))
    most = comparison.settings.max_error_rate
    if comparison.error_share > most:
        trials = [trial for group in comparison.candidate.values() for trial in group]
        return _trials_lost(comparison.lost(trials), sum(not trial.again for trial in trials), most=most)
    silent = {case.id: comparison.scheduled(case.id) for case in comparison.judged if not comparison.measured(case.id)}
    if silent:
        lost = [trial for group in silent.values() for trial in group]
        if not lost:
            return Finding.of("not_run", cases=tuple(silent))
        return _trials_lost(lost, len(lost), cases=tuple(silent))
    return _lost_case(comparison)


def _lost_case(comparison: Comparison) -> Finding | None:
    """Return the first case that lost too many trials for the rest to represent it."""
    if not comparison.errors:
        return None
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        refused = list(filter(_asked_in_vain, trials))
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
    """Return the first blocking criterion whose values are all the worst, unlike the baseline's.

    Such a suite does not pass, however few cases it has.
    """
    for criterion in comparison.blocking:
        if criterion.hard or not criterion.scale.is_bounded:
            continue
        now, before = comparison.values(criterion), comparison.stored_values(criterion)
        both = [case_id for case_id in comparison.paired if now.get(case_id) and before.get(case_id)]
        if both and _fell_to_the_worst([(now[case_id], before[case_id]) for case_id in both], criterion):
            return Finding.of(
                "collapsed",
                criterion=criterion.name,
                cases=len(both),
                trials=sum(len(now[case_id]) for case_id in both),
                copies=bool(comparison.repeats.cases),
            )
    return None


def _fell_to_the_worst(pairs: list[tuple[Sequence[float], Sequence[float]]], criterion: Criterion) -> bool:
    """True if every value now is the worst of its scale and the baseline's values were better, beyond chance."""
    worst, best = criterion.worst, criterion.best
    assert worst is not None and best is not None  # the scale is bounded
    counts = []
    for now, before in pairs:
        if any(value != worst for value in now):
            return False
        counts.append((0, len(now), sum(value != worst for value in before), len(before)))
    share = (mean_of_means([before for _, before in pairs]) - worst) / (best - worst)
    if share >= OFTEN:
        return True
    return share > 0 and stratified_fisher_less(counts) <= RARE


def base_fails_too(comparison: Comparison) -> Finding | None:
    """Return the cases that passed in every stored trial and now fail in every trial of both the base and the change.

    The base commit's agent, run now, is a control: if it fails cases it always passed, it cannot clear the change. The
    provider may have moved, or the agent that runs as the base's is another one, for example because of a wrong address
    or an environment that belongs to the change.
    """
    if not any(trial.side is Side.BASELINE for trial in comparison.trials):
        return None
    stored = {id(trial) for trial in comparison.stored}
    found = []
    for case_id in comparison.paired:
        before: list[bool] = []
        base: list[bool] = []
        for trial in comparison.of_base(case_id):
            (before if id(trial) in stored else base).append(comparison.passes(trial))
        now = [comparison.passes(trial) for trial in comparison.measured(case_id)]
        enough = min(len(before), len(base), len(now)) >= LEAST_TRIALS
        if enough and all(before) and not any(base) and not any(now):
            found.append(CaseTally(case_id, 0, len(now), len(before), len(before)))
    return Finding.of("cases_fail", cases=tuple(found), why="base_fails_too") if found else None
