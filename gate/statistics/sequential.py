"""Several independent p-values, looked at one after the other: their combination, and the level of each look."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist

_NORMAL = NormalDist()
_LOWEST = 4.0
"""A p-value counts as at most Φ(4), or one of 1 would rule out any later proof. This adds less than 10⁻⁸ to a level."""
_CELLS = 256
_RANGE = 8.0


def combined_p(stages: Sequence[tuple[float, float]]) -> float:
    """Return the combined p-value of independent ones: inverse normal, Σwz / √Σw².

    Args:
        stages: p-values and weights; the weights must not depend on the data behind the p-values.
    """
    if len(stages) == 1:
        return stages[0][0]
    total = 0.0
    for p, weight in stages:
        total += weight * _z(p)
    return _tail(total / _length([weight for _, weight in stages]))


def _z(p: float) -> float:
    if p >= 1:
        return -_LOWEST
    return max(-_LOWEST, -_NORMAL.inv_cdf(max(p, sys.float_info.min)))


def _length(weights: Sequence[float]) -> float:
    """Return √Σw², the standard deviation of a weighted sum of independent standard normal values."""
    return math.sqrt(sum([weight**2 for weight in weights]))


def _tail(z: float) -> float:
    return math.erfc(z / math.sqrt(2)) / 2


def nominal_level(spent: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """Return the combined p-value at which the last look rejects, so that it adds exactly ``spent[-1]`` to the error.

    Rejections by earlier looks are not counted again: the look spends P(not rejected before, and p ≤ level) (Lan &
    DeMets 1983; the law of the sum by Armitage, McPherson & Rowe 1969). Accurate to a thousandth of the level.

    Args:
        spent: per look so far, the error that it may add.
        weights: per look, the weight of its new p-value.
    """
    if len(spent) == 1:
        return spent[0]
    return _tail(_bound(spent, weights) / _length(weights))


@lru_cache(maxsize=256)
def _bound(spent: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """Return the weighted sum at which the last look rejects."""
    points, masses = _continuing(spent[:-1], weights[:-1])
    low, high = -_RANGE * sum(weights), _RANGE * 2 * sum(weights)
    for _ in range(60):
        middle = (low + high) / 2
        beyond = 0.0
        for point, mass in zip(points, masses, strict=True):
            beyond += mass * _tail((middle - point) / weights[-1])
        if beyond > spent[-1]:
            low = middle
        else:
            high = middle
    return high


@lru_cache(maxsize=256)
def _continuing(spent: tuple[float, ...], weights: tuple[float, ...]) -> tuple[list[float], list[float]]:
    """Return the distribution of the weighted sum if no look so far rejects, as probability masses on points."""
    if not spent:
        return [0.0], [1.0]
    points, masses = _continuing(spent[:-1], weights[:-1])
    top = _bound(spent, weights)
    low = -_RANGE * _length(weights)
    width = (top - low) / _CELLS
    below = []
    for edge in range(_CELLS + 1):
        mass_below = 0.0
        for point, mass in zip(points, masses, strict=True):
            mass_below += mass * _tail((point - low - edge * width) / weights[-1])
        below.append(mass_below)
    middles = [low + (cell + 0.5) * width for cell in range(_CELLS)]
    return middles, [after - before for before, after in pairwise(below)]
