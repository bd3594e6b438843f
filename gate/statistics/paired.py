"""Evidence that a case got worse if some of its trials share their randomness with trials of the baseline."""

from __future__ import annotations

import math
from functools import cache

from msgspec import Struct

from gate.statistics.evalues import case_log_e, log_marginal_of
from gate.statistics.intervals import log_likelihood, log_power

_STEPS = 60
"""Steps of a golden-section search: the bracket shrinks to 10⁻¹² of the unit interval."""
_GOLDEN = (math.sqrt(5) - 1) / 2


class Coupled(Struct, frozen=True):
    """Counts of coupled pairs in which both trials passed, only the baseline's, only the candidate's, or neither."""

    both: int = 0
    before_only: int = 0
    now_only: int = 0
    neither: int = 0

    @property
    def pairs(self) -> int:
        return self.both + self.before_only + self.now_only + self.neither

    @property
    def exchanged(self) -> Coupled:
        """Return the counts with the sides exchanged."""
        return Coupled(self.both, self.now_only, self.before_only, self.neither)


@cache
def coupled_log_e(pairs: Coupled, passed_before: int, before: int, passed_now: int, now: int) -> float:
    """Return the log evidence that a case passes less often than before, by universal inference over coupled pairs.

    The numerator is that of `case_log_e`. The denominator is the largest likelihood under "no worse" (p_now ≥ p_before)
    for *any* joint law of a pair, so no assumption is made about how the two trials depend on each other. Without pairs
    the result is that of `case_log_e`.

    Args:
        pairs: the coupled trials.
        passed_before: passed trials at the baseline, of ``before``: all of them, coupled or not.
        passed_now: passed trials of the candidate, of ``now``, likewise.

    Returns:
        The natural logarithm of the e-value, at most that of `case_log_e`; above 0 is evidence for "worse".
    """
    if not pairs.pairs:
        return case_log_e(passed_before, before, passed_now, now)
    s_now, f_now = passed_now - pairs.both - pairs.now_only, now - passed_now - pairs.before_only - pairs.neither
    s_before = passed_before - pairs.both - pairs.before_only
    f_before = before - passed_before - pairs.now_only - pairs.neither
    value, p = _largest_on_edge(pairs, s_now + s_before, f_now + f_before)
    slope = _times(f_before - f_now, 1 - p) + _times(s_now - s_before, p)
    discordant = pairs.before_only + pairs.now_only
    t = _best_t(pairs, p)
    if discordant and t > 0:
        slope += (pairs.now_only - pairs.before_only) / t
    if slope > 0:  # the maximum lies inside "no worse": bounded by each part's own
        value = log_likelihood(pairs.both, pairs.before_only, pairs.now_only, pairs.neither)
        value = value + log_likelihood(s_now, f_now) + log_likelihood(s_before, f_before)
    return log_marginal_of(passed_before, before, passed_now, now) - value


def _largest_on_edge(pairs: Coupled, successes: int, failures: int) -> tuple[float, float]:
    """Return the largest log-likelihood if both sides pass equally often, and that rate; it is concave in the rate."""

    def at(p: float) -> float:
        t = _best_t(pairs, p)
        return (
            log_power(p - t, pairs.both)
            + log_power(t, pairs.before_only + pairs.now_only)
            + log_power(1 - p - t, pairs.neither)
            + log_power(p, successes)
            + log_power(1 - p, failures)
        )

    low, high = 0.0, 1.0
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = at(left), at(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = at(right)
        else:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = at(left)
    return max((at(p), p) for p in (0.0, 1.0, (low + high) / 2))


def _best_t(pairs: Coupled, p: float) -> float:
    """Return the likeliest probability that only one given side of a pair passes, for equal rates of both sides.

    It solves D/t = both/(p − t) + neither/(1 − p − t), a quadratic equation in t.
    """
    most = min(p, 1 - p)
    discordant, both, neither = pairs.before_only + pairs.now_only, pairs.both, pairs.neither
    if not discordant or most <= 0:
        return 0.0
    if not both and not neither:
        return most
    a = discordant + both + neither
    b = discordant + both * (1 - p) + neither * p
    c = discordant * p * (1 - p)
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    return min(most, 2 * c / (b + root))


def _times(count: int, share: float) -> float:
    if not count:
        return 0.0
    return count / share if share > 0 else math.copysign(math.inf, count)
