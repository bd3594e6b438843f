"""Why a suite could not be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.decision.comparison import Comparison, error_share
from gate.model import Criterion, Direction, ErrorKind, Trial
from gate.model.facts import (
    AllQuarantined,
    CaseMostlyLost,
    CaseNotRecorded,
    CasesNotMeasured,
    Collapsed,
    NoCases,
    Problem,
    TooManyErrors,
)
from gate.security.limits import cut
from gate.statistics.intervals import mean, stratified_fisher_less

MAX_ERROR_CHARS = 120
"""Characters of the commonest error that stand in a headline."""
OFTEN = 0.5
"""A baseline whose mean is as high on its scale cannot come out at the worst value everywhere by luck alone."""
RARE = 0.05
"""From this probability down a lower baseline cannot either."""


def measuring_problem(comparison: Comparison) -> Problem | None:
    """Return why the suite could not be measured, or None if it could."""
    if not comparison.judged:
        return AllQuarantined() if comparison.cases else NoCases()
    share, most = error_share(comparison), comparison.settings.max_error_rate
    if share > most:
        return TooManyErrors(share, most, _commonest_error(comparison))
    silent = [case.id for case in comparison.judged if not comparison.measured(case.id)]
    if silent:
        return CasesNotMeasured(tuple(silent), len(comparison.judged), _commonest_error(comparison))
    return _lost_case(comparison)


def _lost_case(comparison: Comparison) -> Problem | None:
    """Return the first case of which too much is missing for the rest to stand for it."""
    if not comparison.errors:
        return None
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        refused = sum(_asked_in_vain(trial) for trial in trials)
        if refused:
            return CaseNotRecorded(case.id, refused, len(trials), _commonest_error(comparison))
    for case in comparison.judged:
        trials = comparison.scheduled(case.id)
        lost = len(comparison.lost(comparison.candidate.get(case.id, ())))
        if len(trials) > 1 and 2 * lost > len(trials):
            return CaseMostlyLost(case.id, lost, len(trials), _commonest_error(comparison))
    return None


def _asked_in_vain(trial: Trial) -> bool:
    """True if a trial ended because it asked otherwise than its recording: a trial in its place would as well."""
    return (
        trial.error is not None
        and trial.error.kind is ErrorKind.MISSING
        and trial.replay is not None
        and bool(trial.replay.source)
    )


def _commonest_error(comparison: Comparison) -> str:
    """Return the error that most of the candidate's lost trials ended in."""
    trials = (trial for group in comparison.candidate.values() for trial in group)
    counts = Counter(f"{t.error.kind.value}: {t.error.message}" for t in trials if t.error and not t.measured)
    if not counts:
        return ""
    text = min(counts, key=lambda text: (-counts[text], text))
    return cut(" ".join(text.split()), MAX_ERROR_CHARS)


def collapsed(comparison: Comparison) -> Collapsed | None:
    """Return the first blocking criterion whose every value is at its worst, where the baseline's were not.

    However few cases there are, such a suite does not pass.
    """
    for criterion in comparison.criteria:
        if not criterion.blocking or criterion.hard or not criterion.scale.is_bounded:
            continue
        now, before = comparison.values(criterion), comparison.stored_values(criterion)
        both = [case_id for case_id in comparison.paired if now.get(case_id) and before.get(case_id)]
        if both and _fell_to_the_worst([(now[case_id], before[case_id]) for case_id in both], criterion):
            trials = sum(len(now[case_id]) for case_id in both)
            return Collapsed(criterion.name, len(both), trials, bool(comparison.repeats.cases))
    return None


def _fell_to_the_worst(pairs: list[tuple[Sequence[float], Sequence[float]]], criterion: Criterion) -> bool:
    """True if every value now is the worst of its scale and the baseline's values were not, beyond chance."""
    low, high = criterion.scale.range
    worst, best = (low, high) if criterion.direction is Direction.HIGHER else (high, low)
    if any(value != worst for now, _ in pairs for value in now):
        return False
    share = (mean([mean(before) for _, before in pairs]) - worst) / (best - worst)
    if share >= OFTEN:
        return True
    counts = [(0, len(now), sum(value != worst for value in before), len(before)) for now, before in pairs]
    return share > 0 and stratified_fisher_less(counts) <= RARE
