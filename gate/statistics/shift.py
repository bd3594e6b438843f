"""Tests if every case passes a little less often: a likelihood ratio with a prior that is fitted to the suite
itself."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from operator import mul

from gate.statistics.intervals import log_power

GRID = (
    *(0.0, 0.01, 0.03, 0.07, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7),
    *(0.78, 0.85, 0.9, 0.94, 0.96, 0.975, 0.985, 0.993, 0.998, 1.0),
)
"""Possible pass rates of a case; denser where a single failure is most informative."""
_FIRST = (2.0, *[1.0] * 19, 12.0)
"""Weights of the grid before any case is seen: many cases always pass, and some never do."""
_FIRST_CASES = 5.0
"""Weight of that prior in the fit, in cases, so that a small suite does not rule out any rate."""
_STEPS = 20
SHIFT = 0.05
"""The tested drop of every case's pass rate. The statistic orders labellings, so its size matters little."""

Prior = tuple[float, ...]
"""Weights of GRID; they add up to 1."""


def fit_prior(totals: Mapping[tuple[int, int], int]) -> Prior:
    """Return the distribution of the cases' pass rates that makes the totals most likely: EM on a grid (Laird 1978).

    Args:
        totals: (passed, trials) of both sides together → number of such cases.
    """
    whole = sum(_FIRST)
    prior = first = [weight / whole for weight in _FIRST]
    seen = [(count, _likelihoods(passed, trials)) for (passed, trials), count in totals.items() if trials]
    for _ in range(_STEPS):
        found = [_FIRST_CASES * weight for weight in first]
        for count, likelihoods in seen:
            joint = list(map(mul, prior, likelihoods))
            share = count / sum(joint)
            for place, weight in enumerate(joint):
                found[place] += share * weight
        whole = sum(found)
        prior = [weight / whole for weight in found]
    return tuple(prior)


@lru_cache(maxsize=4096)
def _likelihoods(passed: int, trials: int) -> tuple[float, ...]:
    """Return the likelihood of each rate on the grid, relative to the largest."""
    logs = [log_power(rate, passed) + log_power(1 - rate, trials - passed) for rate in GRID]
    largest = max(logs)
    return tuple(math.exp(log - largest) for log in logs)


@lru_cache(maxsize=65536)
def log_shift_ratio(passed_before: int, before: int, passed_now: int, now: int, prior: Prior) -> float:
    """Return the log likelihood ratio of the candidate's passes: rate SHIFT below the baseline's against an equal rate.

    At most 700 in absolute value.
    """
    shifted = same = 0.0
    weights = _likelihoods(passed_before, before)
    for rate, weight, likely in zip(GRID, prior, weights, strict=True):
        lower = max(rate - SHIFT, 0.0)
        shifted += weight * likely * lower**passed_now * (1 - lower) ** (now - passed_now)
        same += weight * likely * rate**passed_now * (1 - rate) ** (now - passed_now)
    return math.log(max(shifted, 1e-300)) - math.log(max(same, 1e-300))


def change_sd(counts: Sequence[tuple[int, int, int, int]]) -> float:
    """Return the standard error of the mean change of these very cases, from the spread within each.

    That spread is the posterior mean of p(1 - p) under the distribution fitted to all cases, with the trials of both
    sides pooled: a few identical trials do not make it zero. Cases that change differently add nothing to it, unlike in
    a spread over the cases.

    Args:
        counts: per case, passed trials now, trials now, passed trials before, and trials before.
    """
    both = []
    for passed_now, now, passed_before, before in counts:
        both.append((passed_now + passed_before, now + before))
    variance = 0.0
    for (_, now, _, before), spread in zip(counts, spreads(both), strict=True):
        variance += spread * (1 / now + 1 / before)
    return math.sqrt(variance) / len(counts)


def fall_p(counts: Sequence[tuple[int, int, int, int]]) -> float:
    """Return the chance that so many or more new trials fail if every case passes as often as before.

    A case's rate is its posterior mean under the distribution fitted to the earlier trials of all cases. So the cases
    may be chosen by those trials: that the steadiest then pass less often is no sign of a fall.

    Args:
        counts: per case, passed trials now, trials now (0 if it was not run), passed trials before, and trials before.
    """
    failed = sum([now - passed_now for passed_now, now, _, _ in counts])
    fewer = [1.0] + [0.0] * (failed - 1)  # the chance of exactly 0, 1, … failures among the trials so far
    for rate, (_, now, _, _) in zip(rates([count[2:] for count in counts]), counts, strict=True):
        for _ in range(now):
            before = [0.0, *fewer[:-1]]
            fewer = [rate * same + (1 - rate) * less for same, less in zip(fewer, before, strict=True)]
    return max(0.0, 1 - sum(fewer)) if failed else 1.0


def spreads(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Return the variance p(1 - p) of one trial of each case: its posterior mean under the distribution fitted to all.

    Args:
        counts: per case, passed trials and trials.
    """
    return _posterior_means(counts, [1 - rate for rate in GRID])


def rates(counts: Sequence[tuple[int, int]]) -> list[float]:
    """Return the pass rate p of each case: its posterior mean under the distribution fitted to all.

    Args:
        counts: per case, passed trials and trials.
    """
    return _posterior_means(counts, [1.0] * len(GRID))


def _posterior_means(counts: Sequence[tuple[int, int]], factors: Sequence[float]) -> list[float]:
    """Return the posterior mean of each case's rate times a factor, given for each rate on GRID."""
    prior = fit_prior(Counter(counts))
    found = []
    for passed, trials in counts:
        joint = list(map(mul, prior, _likelihoods(passed, trials)))
        mean = 0.0
        for weight, rate, factor in zip(joint, GRID, factors, strict=True):
            mean += weight * rate * factor
        found.append(mean / sum(joint))
    return found


def shared_out(trials: int, variances: Sequence[float], done: Sequence[int]) -> list[int]:
    """Return the number of further trials of each case that makes the variance of the mean over cases smallest.

    Args:
        trials: how many there are to share out.
        variances: of one trial, per case.
        done: trials that each case has already, at least 1.
    """
    shares = [0] * len(variances)
    gains = []
    for place, variance in enumerate(variances):
        gains.append((-_gain(variance, done[place]), place))
    heapify(gains)
    for _ in range(trials):
        _, place = gains[0]
        shares[place] += 1
        heapreplace(gains, (-_gain(variances[place], done[place] + shares[place]), place))
    return shares


def _gain(variance: float, n: int) -> float:
    """Return by how much one more trial lowers the variance of the mean of ``n`` trials."""
    return variance / (n * (n + 1))
