"""The reasons why a suite could not be measured, or why its measurements cannot clear it."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.comparison import Comparison
from gate.decision.outages import commonest_error
from gate.model import Criterion, Direction, ErrorKind, Side, Trial
from gate.model.finding import Finding
from gate.statistics.intervals import mean, stratified_fisher_less

MAX_ERROR_CHARS = 120
"""Characters of the commonest error that stand in a headline."""
OFTEN = 0.5
"""A baseline whose mean is as high on its scale cannot come out at the worst value everywhere by luck alone."""
RARE = 0.05
"""From this probability down a lower baseline cannot either."""
LEAST_TRIALS = 3
"""Trials of each kind: of an unchanged case that passed each time, three failures in a row come in 2 % at most."""


def measuring_problem(comparison: Comparison) -> Finding | None:
    """Return why the suite could not be measured, or None if it could."""
    if not comparison.judged:
        return Finding.of("no_cases", quarantined=bool(comparison.cases))
    share, most = comparison.error_share, comparison.settings.max_error_rate
    if share > most:
        return Finding.of("too_many_errors", share=share, most=most, error=_commonest_error(comparison))
    silent = [case.id for case in comparison.judged if not comparison.measured(case.id)]
    if silent:
        return Finding.of(
            "cases_not_measured", cases=tuple(silent), of=len(comparison.judged), error=_commonest_error(comparison)
        )
    return _lost_case(comparison)


def _lost_case(comparison: Comparison) -> Finding | None:
    """Return the first case of which too much is missing for the rest to stand for it."""
    if not comparison.errors:
        return None
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        refused = sum(map(_asked_in_vain, trials))
        if refused:
            return _case_lost(comparison, case.id, refused, len(trials), not_recorded=True)
    for case in comparison.judged:
        trials = comparison.scheduled(case.id)
        lost = len(comparison.lost(comparison.candidate.get(case.id, ())))
        if len(trials) > 1 and 2 * lost > len(trials):
            return _case_lost(comparison, case.id, lost, len(trials), not_recorded=False)
    return None


def _case_lost(comparison: Comparison, case_id: str, lost: int, trials: int, *, not_recorded: bool) -> Finding:
    error = _commonest_error(comparison)
    return Finding.of("case_lost", case_id=case_id, lost=lost, trials=trials, error=error, not_recorded=not_recorded)


def _asked_in_vain(trial: Trial) -> bool:
    """True if a trial ended because it asked otherwise than its recording: a trial in its place would as well."""
    if trial.error is None or trial.error.kind is not ErrorKind.MISSING:
        return False
    return trial.replay is not None and bool(trial.replay.source)


def _commonest_error(comparison: Comparison) -> str:
    """Return the error that most of the candidate's lost trials ended in."""
    lost = [trial for trials in comparison.candidate.values() for trial in trials if not trial.measured]
    return commonest_error(lost, MAX_ERROR_CHARS)


# --- measured, and not to be believed -------------------------------------------------------------


def collapsed(comparison: Comparison) -> Finding | None:
    """Return the first blocking criterion whose every value is at its worst, where the baseline's were not.

    However few cases there are, such a suite does not pass.
    """
    for criterion in comparison.criteria:
        if not criterion.blocking or criterion.hard or not criterion.scale.is_bounded:
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
    """True if every value now is the worst of its scale and the baseline's values were not, beyond chance."""
    low, high = criterion.scale.range
    worst, best = (low, high) if criterion.direction is Direction.HIGHER else (high, low)
    counts = []
    for now, before in pairs:
        if any(value != worst for value in now):
            return False
        counts.append((0, len(now), sum(value != worst for value in before), len(before)))
    share = (mean([mean(before) for _, before in pairs]) - worst) / (best - worst)
    if share >= OFTEN:
        return True
    return share > 0 and stratified_fisher_less(counts) <= RARE


def base_fails_too(comparison: Comparison) -> Finding | None:
    """Return the cases in which each stored trial passed, and none does now, neither the base's nor the change's.

    The base commit's agent, run now, is a control: where it fails what it always passed, it cannot clear the change.
    The provider may have moved; or what runs as the base's agent is another, as behind a wrong address or in an
    environment of the change's.
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
            found.append(case_id)
    return Finding.of("cases_fail", cases=tuple(found)) if found else None
