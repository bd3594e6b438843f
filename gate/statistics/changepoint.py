"""Whether, and since when, repeated measurements of the same cases moved: a scan over all points, by relabelling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random

from msgspec import Struct

LEAST_RUNS = 2
"""Runs on either side of a point: a single odd run is not yet a move."""
RELABELINGS = 999
FIRST_RELABELINGS = 199
FAR = 0.1
"""Above this p the scan stops early, which can only keep it from finding a point."""

Sums = Mapping[int, tuple[float, int]]
"""Of one case, by run: sum and number of its trials' values."""


class Move(Struct, frozen=True):
    """The point at which the values moved most."""

    run: int
    """The first run after it."""
    change: float
    """Mean over cases of their mean after it minus their mean before."""
    p: float
    """Two-sided, over all points: the share of relabellings that show as large a move anywhere."""


def largest_move(cases: Sequence[Sums], runs: int, *, seed: str, level: float = 0.01) -> Move | None:
    """The point with the largest standardised move, if its p is at most ``level``.

    The runs of each case change places, whole: under "nothing moved" every order is as likely as any other, however
    the trials of one run depend on one another. So P(found | nothing moved) is at most ``level``, given cases that vary
    independently of one another.

    Args:
        cases: of each case what each of its runs measured.
        runs: how many runs there are, in the order of their time.
        seed: the same seed and sums give the same result.
    """
    centred = [found for sums in cases if (found := _centred(sums))]
    points = range(LEAST_RUNS, runs - LEAST_RUNS + 1)
    if not centred or not points:
        return None
    slots = [[run for run, _ in case] for case in centred]
    spread = _spread(centred, points)
    observed, run = max((abs(z), s) for s, z in zip(points, _scan(slots, centred, points, spread), strict=True))
    if observed <= 0:
        return None
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
    return Move(run, _change(cases, run), p) if p <= level else None


def _centred(sums: Sums) -> list[tuple[int, float]]:
    """What each run of a case lies above the case's mean, summed over its trials; empty if it never varies."""
    trials = sum(n for _, n in sums.values())
    mean = sum(total for total, _ in sums.values()) / trials if trials else 0.0
    found = [(run, total - n * mean) for run, (total, n) in sorted(sums.items()) if n]
    return found if len(found) > 1 and any(abs(above) > 1e-12 for _, above in found) else []


def _spread(centred: Sequence[Sequence[tuple[int, float]]], points: range) -> list[float]:
    """The standard deviation of the sum after each point over all relabellings."""
    variances = []
    for point in points:
        total = 0.0
        for case in centred:
            n, after = len(case), sum(run >= point for run, _ in case)
            total += after * (n - after) / (n * (n - 1)) * sum(above**2 for _, above in case)
        variances.append(total)
    return [math.sqrt(variance) for variance in variances]


def _scan(
    slots: Sequence[Sequence[int]],
    centred: Sequence[Sequence[tuple[int, float]]],
    points: range,
    spread: Sequence[float],
) -> list[float]:
    """For each point, the standardised sum of what lies after it, if each case's blocks stand in these slots."""
    by_run: dict[int, float] = {}
    for places, case in zip(slots, centred, strict=True):
        for place, (_, above) in zip(places, case, strict=True):
            by_run[place] = by_run.get(place, 0.0) + above
    found, left = [], sum(above for run, above in by_run.items() if run >= points.start)
    for point, deviation in zip(points, spread, strict=True):
        found.append(left / deviation if deviation else 0.0)
        left -= by_run.get(point, 0.0)
    return found


def _change(cases: Sequence[Sums], point: int) -> float:
    """Over the cases that were measured on both sides of the point."""
    changes = []
    for sums in cases:
        sides = [[(t, n) for run, (t, n) in sums.items() if n and (run >= point) is after] for after in (False, True)]
        if all(sides):
            before, now = (sum(t for t, _ in side) / sum(n for _, n in side) for side in sides)
            changes.append(now - before)
    return math.fsum(changes) / len(changes) if changes else 0.0
