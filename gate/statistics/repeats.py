"""Tests if cases that were rerun because they failed once fail more often than before. Knows no agents."""

from __future__ import annotations

import math
from functools import cache, lru_cache

from msgspec import Struct

from gate.statistics.evalues import log_break_ratio

_UNITS, _LEAST_UNITS = 16, 2
"""Steps of the statistic per unit of natural logarithm: normal and coarsest. It only orders outcomes, so coarse steps
do little harm, and they save time in suites with many cases."""
_STEPS = 1024
"""Total number of steps above which the grid becomes coarser."""


class Repeated(Struct, frozen=True):
    """A case that failed once and was then rerun, and its stored trials."""

    passed_before: int
    before: int
    passed: int
    trials: int
    """Number of trials after the failure for which the case was picked, which does not count."""
    least: int
    """Minimum number of passing stored trials for the case to be picked."""


@lru_cache(maxsize=256)
def repeats_p(cases: tuple[Repeated, ...]) -> float:
    """Return the exact one-sided p-value of Σ log(½ + ½·LRᵢ), with LR of "the case broke" against "unchanged".

    Each case was picked for a failure that is left out here, and for at least ``least`` passes before. Given that, its
    total of passes, and that nothing changed, the stored and the new trials are exchangeable as long as ``least``
    stored ones pass: the number of passes before is hypergeometric, truncated below ``least``. The distribution of the
    sum is computed, not sampled, so P(p ≤ x) ≤ x for every x.
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
    """Return the statistic's values and their probabilities, by number of passes among the stored trials."""
    possible = range(max(least, passes - trials), min(before, passes) + 1)
    weights = [math.comb(before, b) * math.comb(trials, passes - b) for b in possible]
    scores = (_score(b, before, passes - b, trials, unit) for b in possible)
    return tuple((score, weight / sum(weights)) for score, weight in zip(scores, weights, strict=True))


@cache
def _score(passed_before: int, before: int, passed: int, trials: int, unit: int) -> int:
    ratio = math.exp(min(log_break_ratio(passed_before, before, passed, trials), 700.0))
    return round(unit * math.log((1 + ratio) / 2))
