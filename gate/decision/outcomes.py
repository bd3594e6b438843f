"""The outcome of a single trial: the marks that apply to it, and its values. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gate.decision import all_pass, consistency
from gate.model import Case, Criterion, Direction, Scale, Score, Side, Trial

PASS_RATE = "pass rate"  # noqa: S105 - no password
"""The name of metric 0: 1 if a trial meets every blocking criterion."""
RATE_METRIC = "pass_rate"
"""The metric of a criterion that sets a limit on metric 0."""
COUNT_PASSES = frozenset({all_pass.METRIC, RATE_METRIC})
"""The metrics that count passing trials."""
OF_SEVERAL_TRIALS = COUNT_PASSES | {consistency.METRIC}
"""The metrics that are not defined for a single trial."""


def pass_rate(margin: float | None = None, own: Criterion | None = None) -> Criterion:
    """Return metric 0 as a criterion, with the limit set by the criterion ``own``."""
    if own is None:
        return Criterion(PASS_RATE, PASS_RATE, Scale.BINARY, margin=margin)
    return replace(own, name=PASS_RATE, metric=PASS_RATE, margin=margin, blocks_regression=True, fingerprint="")


# --- one trial and one criterion ------------------------------------------------------------------


def mark(criterion: Criterion, case: Case) -> float | None:
    """Return the limit that each trial must reach, or stay below if lower is better; None if single trials are not
    judged."""
    if criterion.metric in OF_SEVERAL_TRIALS:
        return None
    own = case.thresholds.get(criterion.name)
    if own is not None:
        return own
    if criterion.direction is Direction.LOWER:
        return criterion.limit
    if criterion.threshold is not None:
        return criterion.threshold
    return criterion.pass_threshold


def holds(criterion: Criterion, case: Case, score: Score | None) -> bool | None:
    """True if a trial meets the criterion or the criterion does not apply; None if it could not be measured."""
    limit = mark(criterion, case)
    if criterion.hard and limit is None:
        limit = 1.0
    if limit is None:
        return True
    if score is None:
        return None
    if score.value is None:
        return None if score.error else True
    if criterion.direction is Direction.LOWER:
        return score.value <= limit
    return score.value >= limit


def value_of(trial: Trial, criterion: Criterion) -> float | None:
    """Return the value of a trial; None if there is none."""
    score = trial.scores.get(criterion.name)
    if score is None:
        return None
    return score.value


def measured_values(trials: Sequence[Trial], criterion: Criterion) -> list[float]:
    """Return the measured values of these trials."""
    name = criterion.name
    found = []
    for trial in trials:
        score = trial.scores.get(name)
        if score is not None and score.value is not None:
            found.append(score.value)
    return found


def are_successes(values: Iterable[float], scale: Scale) -> bool:
    """True if all scores are 0 or 1 and count as successes, even if their scale allows other values."""
    return scale.is_zero_to_one and set(values) <= {0.0, 1.0}


# --- a whole trial --------------------------------------------------------------------------------


def passed(trial: Trial, case: Case, criteria: Iterable[Criterion]) -> bool | None:
    """True if every blocking criterion is met (metric 0).

    None if one could not be measured, even if another fails: while a judge is down, only failures would remain. A hard
    failure alone decides, since nothing else is scored. None also if no criterion applies, since nothing was checked. A
    trial in which the agent failed is a failed trial, regardless of the criteria.
    """
    if trial.error is not None:
        return False if trial.failed else None
    asked = checked = False
    found: bool | None = True
    for criterion in criteria:
        if not criterion.blocking:
            continue
        score = trial.scores.get(criterion.name)
        asked = True
        checked = checked or _applies(score)
        outcome = holds(criterion, case, score)
        if outcome is False and criterion.hard:
            return False
        if not outcome and found is not None:
            found = outcome
    if asked and not checked:
        return None
    return found


def outcomes_of(trials: Iterable[Trial], case: Case, criteria: Iterable[Criterion]) -> list[bool]:
    """Return True or False per trial for pass or fail, without trials of unknown outcome."""
    criteria = tuple(criteria)
    found = []
    for trial in trials:
        outcome = passed(trial, case, criteria)
        if outcome is not None:
            found.append(outcome)
    return found


def outcomes_by_case(
    trials: Iterable[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case]
) -> dict[str, list[bool]]:
    """Return True or False per candidate trial for pass or fail, by case, without trials that could not be measured."""
    groups = trials_by_outcome(trials, criteria, cases)
    return {case_id: [outcome for _, outcome in group] for case_id, group in groups.items()}


def trials_by_outcome(
    trials: Iterable[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case]
) -> dict[str, list[tuple[Trial, bool]]]:
    """Return the candidate's trials of known outcome by case, each with True if it passed.

    ``cases``: those with thresholds of their own; other cases have none.
    """
    groups: dict[str, list[tuple[Trial, bool]]] = {}
    for trial in trials:
        if trial.side is not Side.CANDIDATE:
            continue
        outcome = passed(trial, cases.get(trial.case_id) or Case(trial.case_id, ()), criteria)
        if outcome is not None:
            groups.setdefault(trial.case_id, []).append((trial, outcome))
    return groups


def as_values(outcomes: Iterable[bool]) -> list[float]:
    """Return 1 for each passing trial and 0 for each other."""
    return [float(outcome) for outcome in outcomes]


def lacks_a_score(trial: Trial, names: Iterable[str]) -> bool:
    """True if a trial's score for one of these criteria could not be computed."""
    for name in names:
        score = trial.scores.get(name)
        if score is not None and score.unmeasured:
            return True
    return False


def lacks_trials(criteria: Iterable[Criterion], trials: Iterable[Trial]) -> bool:
    """True if another epoch would make one of these criteria measurable: pass^k, or consistency."""
    reasons = {}
    for criterion in criteria:
        if criterion.metric == all_pass.METRIC:
            reasons[criterion.name] = all_pass.too_few(criterion.k)
        elif criterion.metric == consistency.METRIC:
            reasons[criterion.name] = consistency.TOO_FEW
    if not reasons:
        return False
    for trial in trials:
        for name, reason in reasons.items():
            if name in trial.scores and trial.scores[name].error == reason:
                return True
    return False


def unchecked(trial: Trial, criteria: Iterable[Criterion]) -> bool:
    """True if no blocking criterion applies to an answered trial: it could not fail."""
    asked = False
    for criterion in criteria:
        if criterion.blocking:
            asked = True
            if _applies(trial.scores.get(criterion.name)):
                return False
    return asked


def all_unchecked(trials: Sequence[Trial], criteria: Sequence[Criterion]) -> bool:
    """True if nothing was checked in any of the trials."""
    own = [criterion for criterion in criteria if criterion.metric not in COUNT_PASSES]
    return bool(trials) and all(unchecked(trial, own) for trial in trials)


def _applies(score: Score | None) -> bool:
    """True if a criterion applies; otherwise the score has neither a value nor an error."""
    return score is None or not score.does_not_apply
