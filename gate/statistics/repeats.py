"""Tests whether cases that were asked again because they failed once fail more often than before. Knows no agents."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from msgspec import Struct

from gate.statistics.evalues import log_break_ratio

_UNITS, _LEAST_UNITS = 16, 2
"""Steps of the statistic to a natural logarithm. It orders outcomes, so its fineness matters little, and coarser ones
serve where the many cases of a large suite would take long."""
_STEPS = 1024
"""Total number of steps from which the grid is coarser."""


class Repeated(Struct, frozen=True):
    """A case that failed once and was then asked again, and its stored trials."""

    passed_before: int
    before: int
    passed: int
    trials: int
    """Trials after the failure that it was picked for, which is not among them."""
    least: int
    """It was picked only because at least so many of the stored trials passed."""


@lru_cache(maxsize=256)
def repeats_p(cases: tuple[Repeated, ...]) -> float:
    """The exact one-sided p-value of Σ log(½ + ½·LRᵢ), LR of "the case broke" against "unchanged".

    Each case was picked for a failure that is left out here, and for at least ``least`` passes before. Given that, its
    total of passes, and that nothing changed, the stored trials and the new ones are exchangeable as far as ``least``
    stored ones pass: the number of passes before is hypergeometric, cut off below ``least``. The law of the sum is
    computed, not drawn, so P(p ≤ x) ≤ x for every x.
    """
    law, observed = {0: 1.0}, 0
    unit = max(_LEAST_UNITS, min(_UNITS, _STEPS // max(1, len(cases))))
    for case in cases:
        observed += _score(case.passed_before, case.before, case.passed, case.trials, unit)
        ways = _ways(case.passed_before + case.passed, case.before, case.trials, case.least, unit)
        found: dict[int, float] = {}
        for total, mass in law.items():
            for score, share in ways:
                found[total + score] = found.get(total + score, 0.0) + mass * share
        law = found
    return min(1.0, math.fsum(mass for total, mass in law.items() if total >= observed))


@cache
def _ways(passes: int, before: int, trials: int, least: int, unit: int) -> tuple[tuple[int, float], ...]:
    """The statistic's values and their probabilities, by how many of the passes may lie among the stored trials."""
    possible = range(max(least, passes - trials), min(before, passes) + 1)
    weights = [math.comb(before, b) * math.comb(trials, passes - b) for b in possible]
    scores = (_score(b, before, passes - b, trials, unit) for b in possible)
    return tuple((score, weight / sum(weights)) for score, weight in zip(scores, weights, strict=True))


@cache
def _score(passed_before: int, before: int, passed: int, trials: int, unit: int) -> int:
    ratio = math.exp(min(log_break_ratio(passed_before, before, passed, trials), 700.0))
    return round(unit * math.log((1 + ratio) / 2))
