"""The trials of one run, reduced to the numbers of a history: sums of each case's values, by criterion. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import ge, le, truediv
from typing import cast

from msgspec import Struct
from msgspec.structs import astuple, replace

from gate.decision.outcomes import PASS_RATE, RATE_METRIC, marks, passed
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
    values_of,
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
    for alike in _alike(cases[case_id] for case_id in counted if case_id in cases):
        table = _Table(alike, counted)
        passes = table.passes(judged)
        for case_id, own in table.by_case(passes):
            outcomes[case_id] = int(sum(own)), len(own)
        for name, column in table.columns(passes, spent):
            for case_id, own in table.by_case(column):
                values[name][case_id] = _sums(own)
    models = own_models_of(chain.from_iterable(counted.values()))
    return RunValues(seen, failed, unmeasured, dict(values), outcomes, models)


def spent_beside(criteria: Iterable[Criterion]) -> frozenset[str]:
    """Return the names in `SPENT` that no criterion measures."""
    measured = {criterion.metric for criterion in criteria}
    return frozenset(name for name, one in SPENT.items() if one.metric not in measured)


def _alike(cases: Iterable[Case]) -> Iterable[list[Case]]:
    """Return the cases grouped by the marks of their trials."""
    found: dict[tuple[tuple[str, float], ...], list[Case]] = defaultdict(list)
    for case in cases:
        found[tuple(sorted(case.thresholds.items()))].append(case)
    return found.values()


Column = Sequence[float | None]
"""The value of each trial in a table; None for trials without one."""


class _Table:
    """The trials of cases with the same marks, one case after another."""

    def __init__(self, cases: Sequence[Case], trials: Mapping[str, Sequence[MeasuredTrial]]) -> None:
        self._case = cases[0]
        self._trials: list[MeasuredTrial] = []
        self._parts: list[tuple[str, int, int]] = []
        for case in cases:
            start = len(self._trials)
            self._trials += trials[case.id]
            self._parts.append((case.id, start, len(self._trials)))
        names = dict.fromkeys(chain.from_iterable([trial.scores for trial in self._trials]))
        self._scores: dict[str, Column] = {name: values_of(name, self._trials) for name in names}

    def by_case(self, column: Column) -> Sequence[tuple[str, Sequence[float]]]:
        """Return the values of each case that has any."""
        if None not in column:
            whole = cast("Sequence[float]", column)
            return [(case_id, whole[start:end]) for case_id, start, end in self._parts]
        found = []
        for case_id, start, end in self._parts:
            own = [value for value in column[start:end] if value is not None]
            if own:
                found.append((case_id, own))
        return found

    def passes(self, criteria: Sequence[Criterion]) -> list[bool | None]:
        """Return the outcome of each trial, like `passed`, which is called only for trials with a missing score."""
        held = marks(self._case, criteria)
        found = [True if held and trial.error is None else None for trial in self._trials]
        nothing = [None] * len(found)
        for name, limit, is_most in held:  # a list expression, since a long history has millions of values
            meets = le if is_most else ge
            scored = zip(found, self._scores.get(name, nothing), strict=True)
            found = [None if one is None or value is None else one and meets(value, limit) for one, value in scored]
        for number, trial in enumerate(self._trials):
            if found[number] is None:
                found[number] = self._passed(trial, criteria)
        return found

    def _passed(self, trial: MeasuredTrial, criteria: Sequence[Criterion]) -> bool | None:
        scores, error = {}, None
        for name, score in trial.scores.items():
            scores[name] = score if isinstance(score, Score) else Score(score)
        if trial.error is not None:
            error = TrialError(*trial.error)
        return passed(Trial(trial.case_id, trial.number, scores=scores, error=error), self._case, criteria)

    def columns(self, passes: Column, spent: frozenset[str]) -> Iterator[tuple[str, Column]]:
        """Yield the values of the trials by metric, without reruns."""
        reruns = [number for number, trial in enumerate(self._trials) if trial.tag not in EPOCHS]
        for name, column in self._all(passes, spent):
            counted = list(column)
            for number in reruns:
                counted[number] = None
            yield name, counted

    def _all(self, passes: Column, spent: frozenset[str]) -> Iterator[tuple[str, Column]]:
        yield from self._scores.items()
        yield PASS_RATE, [None if outcome is None else float(outcome) for outcome in passes]
        if DURATION in spent:
            yield DURATION, [trial.duration if trial.error is None else None for trial in self._trials]
        if COST in spent or TOKENS in spent:
            usages = [trial.usage for trial in self._trials]
            if COST in spent:
                yield COST, [None if usage is None else usage.cost_usd for usage in usages]
            if TOKENS in spent:
                yield TOKENS, [None if usage is None else usage.tokens for usage in usages]


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
