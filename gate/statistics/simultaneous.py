"""Intervals of many paired differences that hold together."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gate.statistics.intervals import mean, paired_change


def paired_difference(
    differences: Sequence[float], *, comparisons: int, step: float = 0.0, level: float = 0.95
) -> tuple[float, float, float]:
    """Mean of the cases' differences with an interval that is one of several.

    All of ``comparisons`` intervals cover what they estimate with a probability of at least ``level``, however they
    depend on one another, if each covers it with 1 − (1 − level)/comparisons (Dunn 1961). Student's interval, and of
    zeros and ones with one more case on either side that differs by one trial (Bonett & Price 2012 for a single trial):
    steady cases hide what can differ. ``benchmarks/side_by_side.py`` measures the coverage.

    Args:
        differences: one agent's mean minus the other's, one of each case that both have.
        comparisons: intervals that are to hold together, at least 1.
        step: what one trial moves the mean of its case by, where scores are zeros and ones; else 0.
        level: of all together, 0–1.

    Returns:
        (mean, low, high); for a single case the ends are infinite.
    """
    own = 1 - (1 - level) / comparisons
    if len(differences) < 2:
        return mean(differences), -math.inf, math.inf
    _, low, high = paired_change([*differences, *([step, -step] if step else [])], level=own)
    centre = mean(differences)
    return centre, min(low, centre), max(high, centre)
