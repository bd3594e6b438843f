"""Where a series of runs is going: the level of each run, a straight line through them, and when it meets a limit.

What is tested here are runs, not trials: whatever the trials of one run have in common, such as the provider's mood of
that day, is the noise that a trend has to stand out from. Changes that happen at once are left to `changepoint`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from gate.statistics.intervals import t_quantile

LEAST_RUNS = 8
"""Runs below which no trend is stated: with fewer, how far they differ by chance is hardly known."""
ROUNDS = 12
"""Of the alternation between cases and runs; a history in which all runs hold all cases needs one."""


class Sums(Struct, frozen=True, gc=False):
    """The values of one case in one run."""

    n: int
    total: float
    squares: float
    least: float
    most: float


CaseRuns = Mapping[int, Sums]
"""Of one case, by run."""


class Level(Struct, frozen=True):
    """What a run scored, had it run the cases that all of them together hold."""

    run: int
    value: float
    variance: float
    """Of the value, as far as the trials of a case differ: the least that chance alone does."""


def levels(cases: Sequence[CaseRuns], runs: int, reach: float = 0.0) -> list[Level]:
    """One level for each run that measured anything.

    Additive fit: value = case + run. So a run that lacks the hard cases, or has new ones, is not better or worse for
    it. Runs that no case connects, however indirectly, are not comparable; callers part them before.

    Args:
        cases: of each case, its values by run.
        runs: how many runs there are.
        reach: how far apart two values can lie, if that is bounded. One more value half as far from its case's mean is
            counted, since where no failure was seen, none is no measure of chance.
    """
    weight, trials = [0] * runs, [0] * runs
    held = []
    for case in cases:
        found = sorted([(run, sums.total / sums.n, sums.n) for run, sums in case.items() if sums.n])
        held.append([(run, y) for run, y, _ in found])
        for run, _, n in found:
            weight[run] += 1
            trials[run] += n
    held = [case for case in held if case]
    if not held:
        return []
    whole = all(len(case) == sum(map(bool, weight)) for case in held)
    effects = _alternated(held, weight, 1 if whole else ROUNDS)
    middle = math.fsum([math.fsum([y - effects[run] for run, y in case]) / len(case) for case in held]) / len(held)
    single = _single_variance(cases, reach)
    return [Level(run, middle + effects[run], single / trials[run]) for run in range(runs) if weight[run]]


def _single_variance(cases: Sequence[CaseRuns], reach: float) -> float:
    """The variance of a single value around its case's mean in its run, which no move adds to.

    If most cases were run once a run, around the case's mean over all runs, which a move makes larger.
    """
    within = [sums for case in cases for sums in case.values() if sums.n > 1]
    spare, most = sum([sums.n - 1 for sums in within]), sum([sums.n for case in cases for sums in case.values()])
    if 3 * spare < most:
        within = [_over_runs(case.values()) for case in cases]
        spare = sum(sums.n - 1 for sums in within if sums.n)
    squares = [sums.squares - sums.total * sums.total / sums.n for sums in within if sums.n]
    square = math.fsum([one for one in squares if one > 0])
    return (square + (reach / 2) ** 2) / (spare + 1)


def _over_runs(found: Iterable[Sums]) -> Sums:
    held = list(found)
    total, squares = math.fsum(one.total for one in held), math.fsum(one.squares for one in held)
    return Sums(sum(one.n for one in held), total, squares, 0.0, 0.0)


def _alternated(held: Sequence[Sequence[tuple[int, float]]], weight: Sequence[int], rounds: int) -> list[float]:
    """The effect of each run: what its cases lie above their own levels, both estimated in turn."""
    effects = [0.0] * len(weight)
    for _ in range(rounds):
        sums = [0.0] * len(weight)
        for case in held:
            own = 0.0
            for run, y in case:
                own += y - effects[run]
            own /= len(case)
            for run, y in case:
                sums[run] += y - own
        effects = [total / n if n else 0.0 for total, n in zip(sums, weight, strict=True)]
    measured = [effect for effect, n in zip(effects, weight, strict=True) if n]
    centre = math.fsum(measured) / len(measured) if measured else 0.0
    return [effect - centre for effect in effects]


class FittedLine(Struct, frozen=True):
    """A straight line through levels, y = at + slope · (x − middle)."""

    slope: float
    error: float
    """Standard error of the slope, widened where neighbouring runs are alike."""
    at: float
    at_error: float
    middle: float
    """The mean of x."""
    df: float
    """Degrees of freedom, lowered where neighbouring runs are alike."""
    residual: float
    """Sum of the squared distances from it."""
    n: int

    def interval(self, level: float) -> tuple[float, float]:
        """The slope's, two-sided."""
        half = t_quantile((1 + level) / 2, self.df) * self.error
        return self.slope - half, self.slope + half

    def value(self, x: float) -> float:
        return self.at + self.slope * (x - self.middle)

    def bounds(self, x: float, level: float) -> tuple[float, float]:
        """The interval of the line itself at x, two-sided."""
        spread = math.sqrt(self.at_error**2 + (self.error * (x - self.middle)) ** 2)
        half = t_quantile((1 + level) / 2, self.df) * spread
        return self.value(x) - half, self.value(x) + half


def fitted(points: Sequence[tuple[float, float]], least_variance: float = 0.0) -> FittedLine | None:
    """The line of least squares; None for fewer than four points, or if all have one x.

    Its errors hold for runs whose neighbours are alike, as those of an agent that changes little by little: they are
    widened by √((1 + r)/(1 − r)), r the residuals' lag-1 correlation, corrected for its bias in short series and never
    below 0 (Santer et al. 2000). The variance is never below what the trials within the runs give by chance.

    Args:
        points: (x, y), in the order of x.
        least_variance: of a single y.
    """
    n = len(points)
    if n < 4:
        return None
    middle = math.fsum(x for x, _ in points) / n
    at = math.fsum(y for _, y in points) / n
    square = math.fsum((x - middle) ** 2 for x, _ in points)
    if square <= 0:
        return None
    slope = math.fsum((x - middle) * (y - at) for x, y in points) / square
    rest = [y - at - slope * (x - middle) for x, y in points]
    residual = math.fsum(r * r for r in rest)
    alike = _likeness(rest, residual)
    kept = n * (1 - alike) / (1 + alike)
    df = max(1.0, kept - 2)
    variance = max(residual / (n - 2), least_variance) * (n - 2) / df
    return FittedLine(slope, math.sqrt(variance / square), at, math.sqrt(variance / n), middle, df, residual, n)


def _likeness(rest: Sequence[float], residual: float) -> float:
    """The lag-1 correlation of residuals, corrected for the bias of short series; 0–0.9."""
    if residual <= 0:
        return 0.0
    n = len(rest)
    raw = math.fsum(a * b for a, b in pairwise(rest)) / residual
    return min(0.9, max(0.0, raw + (1 + 4 * raw) / n))


class Crossing(Struct, frozen=True):
    """When a line meets a limit."""

    first: float
    """The earliest x that the interval of the line allows."""
    last: float
    level: float


def crossing(line: FittedLine, limit: float, start: float, *, level: float, furthest: float) -> Crossing | None:
    """When the line meets the limit after ``start``: the x whose interval of the line holds it (Fieller 1954).

    None if the line's interval at ``start`` holds the limit or lies beyond it already, or if one of its ends has not
    met the limit by ``furthest``: nobody may continue a line for longer than there is evidence for it.
    """
    side = 1.0 if line.value(start) > limit else -1.0

    def distance(x: float, near: bool) -> float:
        """How far an end of the line's interval still is from the limit."""
        low, high = line.bounds(x, level)
        end = (low if near else high) if side > 0 else (high if near else low)
        return side * (end - limit)

    if distance(start, True) <= 0 or distance(furthest, False) > 0:
        return None
    return Crossing(
        _zero(lambda x: distance(x, True), start, furthest), _zero(lambda x: distance(x, False), start, furthest), level
    )


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is above 0 at ``low`` falls to it, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
