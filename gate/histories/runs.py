"""The trials of one run, reduced to the numbers of a history: sums of each case's values, by criterion. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import truediv

from msgspec import Struct
from msgspec.structs import astuple, replace

from gate.decision.outcomes import PASS_RATE, RATE_METRIC, passed
from gate.decision.own_models import OwnModels, own_models_of
from gate.model import (
    FULL,
    STORED,
    Case,
    Criterion,
    Direction,
    End,
    Estimate,
    MeasuredTrial,
    Scale,
    Score,
    Side,
    Trial,
    TrialError,
)
from gate.statistics.intervals import deviation, mean, t_quantile, wilson
from gate.statistics.trend import Sums

EPOCHS = (None, FULL, STORED)
"""Tags of trials that count: reruns were picked by outcome."""
MOST_VALUE = 1e12
"""Maximum of a value: no honest cost, time or number of tokens is larger, and its square can still be summed."""
COST = "cost of a trial"
DURATION = "duration of a trial"
TOKENS = "tokens of a trial"
SPENT = {
    COST: Criterion(COST, "cost", Scale.USD, Direction.LOWER, blocking=False),
    DURATION: Criterion(DURATION, "latency", Scale.SECONDS, Direction.LOWER, blocking=False),
    TOKENS: Criterion(TOKENS, "tokens", Scale.COUNT, Direction.LOWER, blocking=False),
}
"""Amounts to follow besides the criteria, if trials report them."""


class RunValues(Struct, frozen=True):
    """One run in numbers."""

    trials: int
    """Number of the candidate's trials, reruns included."""
    failed: int
    """Number of trials in which the agent failed."""
    unmeasured: int
    """Number of trials lost to infrastructure."""
    values: Mapping[str, Mapping[str, Sums]]
    """The values of each metric, by case."""
    outcomes: Mapping[str, tuple[int, int]]
    """(passed, trials) of each case, reruns included."""
    models: OwnModels = {}
    """By criterion, the models that shaped its scores: its judges, and those that played the user."""


def reduced(trials: Iterable[MeasuredTrial], criteria: Sequence[Criterion], cases: Mapping[str, Case]) -> RunValues:
    """Return the run of these trials, judged by these criteria."""
    judged = [criterion for criterion in criteria if criterion.metric != RATE_METRIC]
    spent = spent_beside(criteria)
    counted: dict[str, list[MeasuredTrial]] = defaultdict(list)
    seen = failed = unmeasured = 0
    for trial in trials:
        if trial.side is not Side.CANDIDATE:
            continue
        seen += 1
        if trial.error is not None:
            if trial.end is End.UNMEASURED:
                unmeasured += 1
                continue
            failed += 1
        counted[trial.case_id].append(trial)
    values: dict[str, dict[str, Sums]] = defaultdict(dict)
    outcomes: dict[str, tuple[int, int]] = {}
    for case_id, own in counted.items():
        if case_id not in cases:
            continue
        measured: dict[str, list[float]] = defaultdict(list)
        passes = known = 0
        for trial in own:
            outcome = _outcome(trial, cases[case_id], judged)
            if outcome is not None:
                passes += outcome
                known += 1
            if trial.tag in EPOCHS:
                for name, value in _values(trial, outcome, spent):
                    if value is not None:
                        measured[name].append(value)
        if known:
            outcomes[case_id] = passes, known
        for name, single in measured.items():
            values[name][case_id] = _sums(single)
    models = own_models_of(chain.from_iterable(counted.values()))
    return RunValues(seen, failed, unmeasured, dict(values), outcomes, models)


def _outcome(trial: MeasuredTrial, case: Case, criteria: Sequence[Criterion]) -> bool | None:
    scores, error = {}, None
    for name, score in trial.scores.items():
        scores[name] = score if isinstance(score, Score) else Score(score)
    if trial.error is not None:
        error = TrialError(*trial.error)
    return passed(Trial(trial.case_id, trial.number, scores=scores, error=error), case, criteria)


def _values(trial: MeasuredTrial, outcome: bool | None, spent: frozenset[str]) -> Iterator[tuple[str, float | None]]:
    """Yield the trial's scores, its outcome, and what it spent beside the criteria."""
    for name, score in trial.scores.items():
        yield name, score.value if isinstance(score, Score) else score
    if outcome is not None:
        yield PASS_RATE, float(outcome)
    if DURATION in spent and trial.error is None:
        yield DURATION, trial.duration
    usage = trial.usage
    if usage is not None and COST in spent:
        yield COST, usage.cost_usd
    if usage is not None and TOKENS in spent:
        yield TOKENS, usage.tokens


def spent_beside(criteria: Iterable[Criterion]) -> frozenset[str]:
    """Return the names in `SPENT` that no criterion measures."""
    measured = {criterion.metric for criterion in criteria}
    return frozenset(name for name, one in SPENT.items() if one.metric not in measured)


def _sums(values: Sequence[float]) -> Sums:
    most = max(values)
    if most > MOST_VALUE:
        values = [min(value, MOST_VALUE) for value in values]
        most = MOST_VALUE
    total = squares = 0.0
    for value in values:  # faster than built-in functions for the few values of a case
        total += value
        squares += value * value
    return Sums(len(values), total, squares, min(values), most)


def described(cases: Sequence[Sums], scale: Scale) -> tuple[Estimate, float, float]:
    """Return the mean over cases, and the minimum and maximum: of trials, or of cases if a trial only passes or
    fails."""
    counts, totals, squares, least, most = zip(*map(astuple, cases), strict=True)
    means = list(map(truediv, totals, counts))
    estimate = _estimate(means, sum(counts), sum(totals), sum(squares), scale)
    if scale is Scale.BINARY:
        return estimate, min(means), max(means)
    return estimate, min(least), max(most)


def _estimate(means: Sequence[float], n: int, total: float, squares: float, scale: Scale) -> Estimate:
    """Return the mean with its 95 % interval, computed from sums as `gate.decision.estimates.estimate` does from
    values."""
    value = mean(means)
    if n == 1:
        return Estimate(value, value, value, 1, 1, level=0.0)
    sd = (max(0.0, squares - total * total / n) / (n - 1)) ** 0.5
    if scale.is_zero_to_one and total == squares:  # only zeros and ones
        return Estimate(value, *wilson(value * n, n), len(means), n, sd=sd)
    spread, size = sd, n
    if len(means) > 1:
        spread, size = deviation(means, value) or 0.0, len(means)
    half = t_quantile(0.975, size - 1) * spread / math.sqrt(size)
    low, high = value - half, value + half
    least, most = scale.range
    return Estimate(value, max(low, least), min(high, most), len(means), n, sd=sd)


def same_cases(own: Iterable[Case], newest: Mapping[str, Case], unchanged: frozenset[str]) -> dict[str, Case]:
    """Return the cases of a run; those with unchanged content get their current thresholds."""
    found = {case.id: case for case in own}
    for case_id in unchanged & found.keys():
        found[case_id] = replace(found[case_id], thresholds=newest[case_id].thresholds)
    return found
