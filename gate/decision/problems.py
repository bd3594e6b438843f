"""The reasons why a suite could not be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.decision.comparison import Comparison, error_share
from gate.model import Criterion, Direction, ErrorKind, Trial
from gate.model.finding import Finding
from gate.security.limits import cut
from gate.statistics.intervals import mean, stratified_fisher_less

MAX_ERROR_CHARS = 120
"""Characters of the commonest error that stand in a headline."""
OFTEN = 0.5
"""A baseline whose mean is as high on its scale cannot come out at the worst value everywhere by luck alone."""
RARE = 0.05
"""From this probability down a lower baseline cannot either."""


def measuring_problem(comparison: Comparison) -> Finding | None:
    """Return why the suite could not be measured, or None if it could."""
    if not comparison.judged:
        return Finding.of("no_cases", quarantined=bool(comparison.cases))
    share, most = error_share(comparison), comparison.settings.max_error_rate
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
        refused = sum(_asked_in_vain(trial) for trial in trials)
        if refused:
            return Finding.of(
                "case_lost",
                case_id=case.id,
                lost=refused,
                trials=len(trials),
                error=_commonest_error(comparison),
                not_recorded=True,
            )
    for case in comparison.judged:
        trials = comparison.scheduled(case.id)
        lost = len(comparison.lost(comparison.candidate.get(case.id, ())))
        if len(trials) > 1 and 2 * lost > len(trials):
            return Finding.of(
                "case_lost", case_id=case.id, lost=lost, trials=len(trials), error=_commonest_error(comparison)
            )
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
            trials = sum(len(now[case_id]) for case_id in both)
            return Finding.of(
                "collapsed",
                criterion=criterion.name,
                cases=len(both),
                trials=trials,
                copies=bool(comparison.repeats.cases),
            )
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
