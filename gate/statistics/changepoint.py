"""Finds abrupt moves in repeated measurements.

`largest_move` relabels the runs of each case: for a few runs of the same agent, which differ only by their trials.
`pieces` divides a long history of levels, in which whole runs differ by chance, into stretches that are constant or
follow a line.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from msgspec import Struct

from gate.statistics.intervals import squares, t_tail
from gate.statistics.trend import FittedLine, Level, fitted

LEAST_RUNS = 2
"""Minimum number of runs on either side of a point: a single odd run is not yet a move."""
RELABELINGS = 999
FIRST_RELABELINGS = 199
FAR = 0.1
"""Above this p-value the scan stops early, which can only make it miss a point."""

Sums = Mapping[int, tuple[float, int]]
"""Sum and number of one case's values, by run."""


class Move(Struct, frozen=True):
    """The point at which the values moved most."""

    run: int
    """The first run after the move."""
    change: float
    """Mean over cases of the case's mean after the move minus its mean before."""
    p: float
    """Two-sided p-value over all points: the share of relabellings with at least as large a move anywhere."""


def largest_move(cases: Sequence[Sums], runs: int, *, seed: str, level: float = 0.01) -> Move | None:
    """Return the point with the largest standardised move if its p-value is at most ``level``, else None.

    Whole runs of each case change places: if nothing moved, every order is equally likely, however the trials within a
    run depend on each other. So P(found | nothing moved) is at most ``level`` if cases vary independently.

    Args:
        cases: per case, the sum and number of its values in each run.
        runs: number of runs, in time order.
        seed: the same seed and sums give the same result.
    """
    centred = list(filter(None, map(_centred, cases)))
    points = range(LEAST_RUNS, runs - LEAST_RUNS + 1)
    if not centred or not points:
        return None
    slots = [[run for run, _ in case] for case in centred]
    spread = _spread(centred, points)
    moves = list(map(abs, _scan(slots, centred, points, spread)))
    observed, run = max(zip(moves, points, strict=True))
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    as_large, drawn = 0, 0
    for most in (FIRST_RELABELINGS, RELABELINGS):
        while drawn < most:
            shuffled = [rng.sample(case, len(case)) for case in centred]
            as_large += max(map(abs, _scan(slots, shuffled, points, spread))) >= observed * (1 - 1e-12)
            drawn += 1
        if (as_large + 1) / (drawn + 1) > FAR:
            return None
    p = (as_large + 1) / (drawn + 1)
    if p > level:
        return None
    return Move(run, _change(cases, run), p)


def _centred(sums: Sums) -> list[tuple[int, float]]:
    """Return each run's distance from the mean of its case, summed over its trials; empty if the case never varies."""
    mean = _mean_of(sums.values())
    if mean is None:
        return []
    found = []
    varies = False
    for run, (total, n) in sorted(sums.items()):
        if n:
            above = total - n * mean
            varies = varies or abs(above) > 1e-12
            found.append((run, above))
    return found if varies and len(found) > 1 else []


def _spread(centred: Sequence[Sequence[tuple[int, float]]], points: range) -> list[float]:
    """Return the standard deviation of the sum after each point over all relabellings."""
    found = []
    for point in points:
        variance = 0.0
        for case in centred:
            n, after = len(case), sum([run >= point for run, _ in case])
            variance += after * (n - after) / (n * (n - 1)) * sum([above**2 for _, above in case])
        found.append(math.sqrt(variance))
    return found


def _scan(
    slots: Sequence[Sequence[int]],
    centred: Sequence[Sequence[tuple[int, float]]],
    points: range,
    spread: Sequence[float],
) -> list[float]:
    """Return for each point the standardised sum of the values after it, with each case's blocks in these slots."""
    by_run: dict[int, float] = {}
    for places, case in zip(slots, centred, strict=True):
        for place, (_, above) in zip(places, case, strict=True):
            by_run[place] = by_run.get(place, 0.0) + above
    found, left = [], sum([above for run, above in by_run.items() if run >= points.start])
    for point, deviation in zip(points, spread, strict=True):
        found.append(left / deviation if deviation else 0.0)
        left -= by_run.get(point, 0.0)
    return found


def _change(cases: Sequence[Sums], point: int) -> float:
    """Return the mean change over the cases measured on both sides of the point."""
    changes = []
    for sums in cases:
        before = _mean_of([one for run, one in sums.items() if run < point])
        now = _mean_of([one for run, one in sums.items() if run >= point])
        if before is not None and now is not None:
            changes.append(now - before)
    if not changes:
        return 0.0
    return math.fsum(changes) / len(changes)


def _mean_of(sums: Iterable[tuple[float, int]]) -> float | None:
    """Return the mean of values given as sums per run, or None if there are none."""
    whole, trials = 0.0, 0
    for total, n in sums:
        whole += total
        trials += n
    if not trials:
        return None
    return whole / trials


# --- long histories -------------------------------------------------------------------------------

LIKELIHOOD_95 = 7.35
"""Maximum distance of twice the log likelihood of a point from the best one's, so that 95 % of intervals hold the true
point: −2 ln(1 − √0.95) (Hansen 2000)."""


class Jump(Struct, frozen=True):
    """An abrupt move between two pieces."""

    at: int
    """Position of the first level after the move."""
    first: int
    """The 95 % interval of that position."""
    last: int
    p: float
    """Bound on the probability of so clear a step anywhere if only runs differ, independently and normally."""


class Piece(Struct, frozen=True):
    """Levels that are constant, or rise or fall steadily."""

    start: int
    end: int
    """Position after its last level."""
    is_line: bool
    """True if the levels follow a line; False if they are constant."""
    residual: float


class Partition(Struct, frozen=True):
    """A series of levels, divided into pieces."""

    pieces: tuple[Piece, ...]
    steps: tuple[Jump, ...]
    """The steps, one between each two adjacent pieces."""


def course(found: Sequence[Level], *, level: float) -> Partition:
    """Divide levels into pieces at abrupt moves, unless a straight line describes them better.

    The clearest point comes first, then each side is searched separately. A step counts if its p-value is at most
    ``level``. Between a stretch with steps and a straight line through it, the lower BIC wins: a slow decline is no
    staircase.
    """
    values = [one.value for one in found]
    floor = 0.0
    if found:
        floor = math.fsum([one.variance for one in found]) / len(found)
    return _parted(values, 0, len(values), floor, level)


def _parted(values: Sequence[float], start: int, end: int, floor: float, level: float) -> Partition:
    whole = Piece(start, end, False, squares(values[start:end]))
    step = _largest_step(values, start, end, floor)
    if step is None or step.p > level:
        return Partition((whole,), ())
    before = _parted(values, start, step.at, floor, level)
    after = _parted(values, step.at, end, floor, level)
    parted = Partition((*before.pieces, *after.pieces), (*before.steps, step, *after.steps))
    line = fitted([(float(at), values[at]) for at in range(start, end)], floor)
    if line is not None and line.goes(level) and _is_simpler(line, parted, floor):
        return Partition((Piece(start, end, True, line.residual),), ())
    return parted


def _is_simpler(line: FittedLine, parted: Partition, floor: float) -> bool:
    residual = math.fsum([piece.residual for piece in parted.pieces])
    parameters = len(parted.steps) + len(parted.pieces) + sum([piece.is_line for piece in parted.pieces])
    return _criterion(line.residual, 2, line.n, floor) <= _criterion(residual, parameters, line.n, floor)


def _criterion(residual: float, parameters: int, n: int, floor: float) -> float:
    """Return the BIC; a fit closer than chance allows does not lower it further."""
    return n * math.log(max(residual / n, floor, 1e-300)) + parameters * math.log(n)


def _largest_step(values: Sequence[float], start: int, end: int, floor: float) -> Jump | None:
    """Return the point that leaves the least variation unexplained, with its interval."""
    n = end - start
    points = range(start + LEAST_RUNS, end - LEAST_RUNS + 1)
    if not points:
        return None
    total, square = math.fsum(values[start:end]), squares(values[start:end])
    left, explained = math.fsum(values[start : points.start]), []
    for point in points:
        before, after = left / (point - start), (total - left) / (end - point)
        explained.append((point - start) * (end - point) / n * (after - before) ** 2)
        left += values[point]
    best = max(explained)
    if best <= 0:
        return None
    at = points[explained.index(best)]
    variance = max((square - best) / (n - 2), floor, 1e-300)
    near = []
    for point, one in zip(points, explained, strict=True):
        if (best - one) / variance <= LIKELIHOOD_95:
            near.append(point)
    p = min(1.0, len(points) * 2 * t_tail(math.sqrt(best / variance), n - 2))
    return Jump(at, near[0], near[-1], p)
