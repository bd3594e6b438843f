"""Finds where a series of runs is going: the level of each run, a straight line through them, and when it meets a
limit.

What is tested here are runs, not trials: whatever the trials of one run have in common, such as the provider's mood of
that day, is the noise that a trend has to stand out from. Changes that happen at once are left to `changepoint`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise

from msgspec import Struct
from msgspec.structs import astuple

from gate.statistics.intervals import t_quantile

LEAST_RUNS = 8
"""Runs below which no trend is stated: with fewer, how far they differ by chance is hardly known."""
ROUNDS = 12
"""Rounds of the alternation between cases and runs; a history in which all runs hold all cases needs one."""


class Sums(Struct, frozen=True, gc=False):
    """The values of one case in one run."""

    n: int
    total: float
    squares: float
    least: float
    most: float


class Level(Struct, frozen=True):
    """The score of a run, had it run the cases that all of them together hold."""

    run: int
    value: float
    variance: float
    """The variance of the value, as far as the trials of a case differ: the least that chance alone does."""


def levels(runs: Sequence[Mapping[int, Sums]], reach: float = 0.0) -> list[Level]:
    """One level for each run that measured anything.

    Additive fit: value = case + run. So a run that lacks the hard cases, or has new ones, is not better or worse for
    it. Runs that no case connects, however indirectly, are not comparable; callers part them before.

    Args:
        runs: of each run, the values of its cases, by a number that stands for the case.
        reach: how far apart two values can lie, if that is bounded. One more value half as far from its case's mean is
            counted, since where no failure was seen, none is no measure of chance.
    """
    held = [(number, cells) for number, cells in enumerate(runs) if cells]
    if not held:
        return []
    place_of = {case: place for place, case in enumerate(dict.fromkeys(chain.from_iterable(runs)))}
    places, means, trials = [], [], []
    for _, cells in held:
        places.append([place_of[case] for case in cells])
        means.append([sums.total / sums.n for sums in cells.values()])
        trials.append(sum([sums.n for sums in cells.values()]))
    effects, middle = _fitted(places, means, len(place_of))
    single = _single_variance([cells for _, cells in held], reach)
    found = []
    for (number, _), effect, n in zip(held, effects, trials, strict=True):
        found.append(Level(number, middle + effect, single / n))
    return found


def _single_variance(runs: Sequence[Mapping[int, Sums]], reach: float) -> float:
    """The variance of a single value around its case's mean in its run, which no move adds to.

    If most cases were run once a run, around the case's mean over all runs, which a move makes larger.
    """
    every = list(chain.from_iterable([cells.values() for cells in runs]))
    within, most = [sums for sums in every if sums.n > 1], sum([sums.n for sums in every])
    spare = sum([sums.n - 1 for sums in within])
    if 3 * spare < most:
        within = _over_runs(runs)
        spare = sum([sums.n - 1 for sums in within])
    squares = [sums.squares - sums.total * sums.total / sums.n for sums in within]
    square = math.fsum([one for one in squares if one > 0])
    return (square + (reach / 2) ** 2) / (spare + 1)


def _over_runs(runs: Sequence[Mapping[int, Sums]]) -> list[Sums]:
    """The values of each case in all runs; of their ends nothing is said."""
    by_case: dict[int, list[Sums]] = defaultdict(list)
    for cells in runs:
        for case, sums in cells.items():
            by_case[case].append(sums)
    columns = [tuple(zip(*map(astuple, own), strict=True)) for own in by_case.values()]
    return [Sums(sum(n), math.fsum(total), math.fsum(squares), 0.0, 0.0) for n, total, squares, *_ in columns]


def _fitted(cases: Sequence[Sequence[int]], values: Sequence[Sequence[float]], width: int) -> tuple[list[float], float]:
    """Return the effect of each run, 0 on average, and the mean over cases of what they have beside it.

    Args:
        cases: of each run, the places of its cases, from 0 below ``width``.
        values: the means of those cases.
        width: the number of cases.
    """
    runs: list[list[int]] = [[] for _ in range(width)]
    by_case: list[list[float]] = [[] for _ in range(width)]
    for run, (places, own) in enumerate(zip(cases, values, strict=True)):
        for place, value in zip(places, own, strict=True):
            runs[place].append(run)
            by_case[place].append(value)
    of_run, of_case = list(map(math.fsum, values)), list(map(math.fsum, by_case))
    effects = [0.0] * len(cases)
    is_whole = all(len(of_one) == len(cases) for of_one in runs)
    for _ in range(1 if is_whole else ROUNDS):
        effects = _beside(of_run, cases, _beside(of_case, runs, effects))
    centre = math.fsum(effects) / len(effects)
    effects = [effect - centre for effect in effects]
    rest = _beside(of_case, runs, effects)
    return effects, math.fsum(rest) / len(rest)


def _beside(totals: Sequence[float], places: Sequence[Sequence[int]], others: Sequence[float]) -> list[float]:
    """Return the average of each row or column without the share of the other."""
    return [(total - sum(map(others.__getitem__, own))) / len(own) for total, own in zip(totals, places, strict=True)]


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
        """Return the distance from an end of the line's interval to the limit."""
        low, high = line.bounds(x, level)
        is_low = near if side > 0 else not near
        return side * ((low if is_low else high) - limit)

    if distance(start, True) <= 0 or distance(furthest, False) > 0:
        return None
    return Crossing(
        _zero(lambda x: distance(x, True), start, furthest), _zero(lambda x: distance(x, False), start, furthest), level
    )


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the place at which a function that is above 0 at ``low`` falls to it, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
