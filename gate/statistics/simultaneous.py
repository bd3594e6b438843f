"""Intervals of many paired differences that hold simultaneously."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gate.statistics.intervals import mean, paired_change


def paired_difference(
    differences: Sequence[float], *, comparisons: int, step: float = 0.0, level: float = 0.95
) -> tuple[float, float, float]:
    """Return the mean of the cases' differences with an interval that is one of several.

    All of ``comparisons`` intervals cover their true values with probability at least ``level``, however they depend on
    each other, if each covers it with 1 − (1 − level)/comparisons (Dunn 1961). Student's interval; for zeros and ones
    with one more case on either side that differs by one trial (Bonett & Price 2012 for a single trial), since steady
    cases hide possible differences. ``benchmarks/side_by_side.py`` measures the coverage.

    Args:
        differences: one agent's mean minus the other's, for each case that both have.
        comparisons: number of intervals that hold simultaneously, at least 1.
        step: change of a case's mean by one trial if scores are zeros and ones; else 0.
        level: for all intervals together, 0–1.

    Returns:
        (mean, low, high); for a single case the ends are infinite.
    """
    own = 1 - (1 - level) / comparisons
    if len(differences) < 2:
        return mean(differences), -math.inf, math.inf
    _, low, high = paired_change([*differences, *([step, -step] if step else [])], level=own)
    centre = mean(differences)
    return centre, min(low, centre), max(high, centre)
