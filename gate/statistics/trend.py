"""Finds the direction of a series of runs: the level of each run, a straight line through them, and its crossing of a
limit.

The unit of the tests is the run, not the trial: anything that the trials of one run share, such as the provider's form
on that day, is noise that a trend must exceed. Abrupt changes are left to `changepoint`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import astuple

from gate.statistics.intervals import t_quantile

C = TypeVar("C", bound=Hashable)
"""The type of the key of a case with its content."""
LEAST_RUNS = 8
"""Minimum number of runs for a trend: with fewer, their variation by chance is hardly known."""
ROUNDS = 12
"""Maximum number of rounds that alternate between cases and runs; one is enough if all runs have all cases."""


class Sums(Struct, frozen=True, gc=False):
    """The values of one case in one run."""

    n: int
    total: float
    squares: float
    least: float
    most: float


def together(sums: Sequence[Sums]) -> Sums:
    """Return the values of one case in several runs, at least one, merged into one."""
    if len(sums) == 1:
        return sums[0]
    n, total, squares, least, most = zip(*map(astuple, sums), strict=True)
    return Sums(sum(n), math.fsum(total), math.fsum(squares), min(least), max(most))


class Level(Struct, frozen=True):
    """The score that a run would have had on all cases of all runs together."""

    run: int
    value: float
    variance: float
    """The variance of the value due to differences between trials of a case: the minimum by chance."""


def levels(runs: Sequence[Mapping[C, Sums]], reach: float = 0.0) -> list[Level]:
    """Return one level for each run that measured anything.

    Additive fit: value = case + run. So a run is not better or worse for lacking the hard cases or having new ones.
    Runs that no case connects, however indirectly, cannot be compared; callers separate them first.

    Args:
        runs: per run, the values of its cases, by a key that identifies the case.
        reach: the maximum distance of two values, if bounded. One more value at half of it from its case's mean is
        counted, since a lack of failures does not show how much varies by chance.
    """
    numbers = [number for number, cells in enumerate(runs) if cells]
    if not numbers:
        return []
    place_of: dict[C, int] = {}
    places, means = [], []
    for number in numbers:
        cells = runs[number]
        places.append([place_of.setdefault(case, len(place_of)) for case in cells])
        means.append([sums.total / sums.n for sums in cells.values()])
    effects, middle = _fitted(places, means, len(place_of))
    single = _single_variance(runs, reach)
    found = []
    for number, effect in zip(numbers, effects, strict=True):
        trials = sum([sums.n for sums in runs[number].values()])
        found.append(Level(number, middle + effect, single / trials))
    return found


def _single_variance(runs: Sequence[Mapping[C, Sums]], reach: float) -> float:
    """Return the variance of single values around their case's mean within a run, which no move increases.

    If most cases ran once per run, around the case's mean over all runs, which a move does increase.
    """
    groups = [sums for cells in runs for sums in cells.values()]
    trials = sum([sums.n for sums in groups])
    if 3 * (trials - len(groups)) < trials:
        by_case: dict[C, list[Sums]] = defaultdict(list)
        for cells in runs:
            for case, sums in cells.items():
                by_case[case].append(sums)
        groups = list(map(together, by_case.values()))
    squares = [max(0.0, sums.squares - sums.total * sums.total / sums.n) for sums in groups]
    return (math.fsum(squares) + (reach / 2) ** 2) / (trials - len(groups) + 1)


def _fitted(cases: Sequence[Sequence[int]], values: Sequence[Sequence[float]], width: int) -> tuple[list[float], float]:
    """Return the effect of each run, 0 on average, and the mean over cases without the runs' effects.

    Args:
        cases: per run, the positions of its cases, from 0 below ``width``.
        values: the means of those cases.
        width: number of cases.
    """
    runs: list[list[int]] = [[] for _ in range(width)]
    by_case: list[list[float]] = [[] for _ in range(width)]
    for run, (places, own) in enumerate(zip(cases, values, strict=True)):
        for place, value in zip(places, own, strict=True):
            runs[place].append(run)
            by_case[place].append(value)
    of_run, of_case = list(map(math.fsum, values)), list(map(math.fsum, by_case))
    effects = [0.0] * len(cases)
    rounds = ROUNDS
    if all(len(of_one) == len(cases) for of_one in runs):  # every run has every case
        rounds = 1
    for _ in range(rounds):
        effects = _beside(of_run, cases, _beside(of_case, runs, effects))
    centre = math.fsum(effects) / len(effects)
    effects = [effect - centre for effect in effects]
    rest = _beside(of_case, runs, effects)
    return effects, math.fsum(rest) / len(rest)


def _beside(totals: Sequence[float], places: Sequence[Sequence[int]], others: Sequence[float]) -> list[float]:
    """Return the average of each row or column after subtracting the other's effects."""
    return [(total - sum(map(others.__getitem__, own))) / len(own) for total, own in zip(totals, places, strict=True)]


class FittedLine(Struct, frozen=True):
    """A straight line through levels, y = at + slope · (x − middle)."""

    slope: float
    error: float
    """Standard error of the slope, increased if neighbouring runs are alike."""
    at: float
    at_error: float
    middle: float
    """The mean of x."""
    df: float
    """Degrees of freedom, reduced if neighbouring runs are alike."""
    residual: float
    """Sum of squared distances from the line."""
    n: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return the two-sided interval of the slope."""
        half = t_quantile((1 + level) / 2, self.df) * self.error
        return self.slope - half, self.slope + half

    def goes(self, level: float) -> bool:
        """True if the slope is more than chance, at this level; otherwise the line explains nothing."""
        low, high = self.interval(1 - level)
        return low > 0 or high < 0

    def value(self, x: float) -> float:
        return self.at + self.slope * (x - self.middle)

    def bounds(self, x: float, level: float) -> tuple[float, float]:
        """Return the two-sided interval of the line itself at x."""
        spread = math.sqrt(self.at_error**2 + (self.error * (x - self.middle)) ** 2)
        half = t_quantile((1 + level) / 2, self.df) * spread
        return self.value(x) - half, self.value(x) + half


def fitted(points: Sequence[tuple[float, float]], least_variance: float = 0.0) -> FittedLine | None:
    """Return the least-squares line; None for fewer than four points, or if all have the same x.

    Its errors allow for similar neighbouring runs, like those of an agent that changes little by little: they are
    widened by √((1 + r)/(1 − r)), with r the residuals' lag-1 correlation, corrected for its bias in short series and
    never below 0 (Santer et al. 2000). The variance is never below that caused by the trials within the runs.

    Args:
        points: (x, y), ordered by x.
        least_variance: minimum variance of a single y.
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
    """Return the lag-1 correlation of residuals, corrected for the bias of short series; 0–0.9."""
    if residual <= 0:
        return 0.0
    n = len(rest)
    raw = math.fsum(a * b for a, b in pairwise(rest)) / residual
    return min(0.9, max(0.0, raw + (1 + 4 * raw) / n))


def crossing(
    line: FittedLine, limit: float, start: float, *, level: float, furthest: float
) -> tuple[float, float] | None:
    """Return the range of x after ``start`` in which the line's interval includes the limit (Fieller 1954).

    None if the line's interval at ``start`` includes the limit or lies beyond it, or if an end has not reached the
    limit by ``furthest``: a line must not be extended further than the evidence supports.
    """
    falls = line.value(start) > limit

    def distances(x: float) -> tuple[float, float]:
        """Return the distances to the limit from the end of the line's interval that meets it first, and the other."""
        low, high = line.bounds(x, level)
        if falls:
            return low - limit, high - limit
        return limit - high, limit - low

    def of_first_end(x: float) -> float:
        return distances(x)[0]

    def of_last_end(x: float) -> float:
        return distances(x)[1]

    if of_first_end(start) <= 0 or of_last_end(furthest) > 0:
        return None
    return _zero(of_first_end, start, furthest), _zero(of_last_end, start, furthest)


def _zero(falling: Callable[[float], float], low: float, high: float) -> float:
    """Return the point at which a function that is positive at ``low`` falls to 0, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
