"""Means, rates and quantiles with their intervals and exact tests."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from functools import cache
from statistics import NormalDist, stdev

# --- distributions --------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """Return the float nearest to the exact mean, like `statistics.mean` at a twentieth of the cost, in any order.

    So three scores of 0.7 have the mean 0.7: dividing their rounded sum by three gives less.
    """
    n = len(values)
    if n == 1:
        return values[0] + 0.0
    found = math.fsum(values) / n
    left = math.fsum([*values, *[-found] * n])
    if left == 0.0 or not math.isfinite(found):
        return found
    other = math.nextafter(found, math.copysign(math.inf, left))
    beyond = math.fsum([*values, *[-other] * n])
    if abs(left) == abs(beyond):
        return float(statistics.mean(values))
    return found if abs(left) < abs(beyond) else other


def mean_of_means(groups: Iterable[Sequence[float]]) -> float:
    """Return the mean over cases, each represented by the mean of its values."""
    return mean([mean(group) for group in groups])


def sample_variance(values: Sequence[float], middle: float | None = None) -> float:
    """Return the sample variance of at least two values, Σ(x − x̄)² / (n − 1); ``middle``: the mean, if already
    known."""
    if middle is None:
        middle = mean(values)
    return math.fsum([(value - middle) ** 2 for value in values]) / (len(values) - 1)


def deviation(values: Sequence[float], middle: float | None = None) -> float | None:
    """Return the sample standard deviation; None for fewer than two values."""
    if len(values) < 2:
        return None
    return math.sqrt(sample_variance(values, middle))


def log_beta(a: float, b: float) -> float:
    """Return log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def log_power(share: float, count: int) -> float:
    """Return the log of a share to the power of a count; 0 for a count of 0."""
    if not count:
        return 0.0
    return count * math.log(share) if share > 0 else -math.inf


def log_likelihood(*counts: int) -> float:
    """Return the maximum log-likelihood, over all shares, of one sequence of outcomes with these counts."""
    n = sum(counts)
    return sum([log_power(count / n, count) for count in counts if count])


def squares(values: Sequence[float]) -> float:
    """Return the sum of squares around the mean; `statistics.variance` is exact but thirty times as slow."""
    if not values:
        return 0.0
    centre = math.fsum(values) / len(values)
    return math.fsum([(value - centre) ** 2 for value in values])


def beta_cdf(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1.0 - beta_cdf(1 - x, b, a)
    front = math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta(a, b)) / a
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        step = 1.0
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            step = c * d
            fraction *= step
        if abs(step - 1) < 1e-15:
            break
    return front * fraction


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


@cache
def beta_quantile(p: float, a: float, b: float) -> float:
    """Return the x with I_x(a, b) = p, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if beta_cdf(middle, a, b) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


@cache
def t_quantile(p: float, df: float) -> float:
    """Return Student's t quantile from the beta quantile: t² / (df + t²) has a Beta(½, df/2) law."""
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1 - p, df)
    rest = beta_quantile(2 * (1 - p), df / 2, 0.5)  # df / (df + t²)
    return math.sqrt(df * (1 - rest) / rest)


def t_tail(t: float, df: float) -> float:
    """Return P(T > t) for Student's t, t ≥ 0."""
    return beta_cdf(df / (df + t * t), df / 2, 0.5) / 2


def binomial_at_least(k: int, n: int, p: float) -> float:
    """Return P(X ≥ k) for X ~ Bin(n, p)."""
    if k <= 0:
        return 1.0
    if k > n:
        return 0.0
    return beta_cdf(p, k, n - k + 1)


def fisher_less(passed_now: int, now: int, passed_before: int, before: int) -> float:
    """Return Fisher's one-sided p: the probability of this few passes now, or fewer, if both samples share one rate."""
    passes, total = passed_now + passed_before, now + before
    fewest = max(0, passes - before)
    ways = sum(math.comb(passes, k) * math.comb(total - passes, now - k) for k in range(fewest, passed_now + 1))
    return ways / math.comb(total, now)


def stratified_fisher_less(strata: Iterable[tuple[int, int, int, int]]) -> float:
    """Return the probability of this few passes now in total, or fewer, if both samples share one rate per stratum.

    ``strata``: arguments of `fisher_less`. The distribution is that of a sum of independent hypergeometric ones.
    """
    chances, seen = [1.0], 0
    for passed_now, now, passed_before, before in strata:
        passes, total = passed_now + passed_before, now + before
        ways = []
        for k in range(now + 1):
            ways.append(math.comb(passes, k) * math.comb(total - passes, now - k) / math.comb(total, now))
        summed = [0.0] * (len(chances) + now)
        for i, chance in enumerate(chances):
            for k, way in enumerate(ways):
                summed[i + k] += chance * way
        chances, seen = summed, seen + passed_now
    return sum(chances[: seen + 1])


# --- intervals ------------------------------------------------------------------------------------


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share (Wilson 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def all_pass(passed: int, trials: int, k: int) -> float:
    """Return the unbiased estimate of the probability that k trials all pass (pass^k): C(passed, k) / C(trials, k) (Yao
    et al. 2024)."""
    return math.comb(passed, k) / math.comb(trials, k)


def share_upper_bound(successes: int, n: int, error: float) -> float:
    """Return the one-sided Clopper–Pearson upper bound of a share, 0–1, with error at most ``error``.

    Also valid as a bound of the mean rate if the n trials have different rates (Hoeffding 1956, Theorem 4).
    """
    if successes >= n:
        return 1.0
    return beta_quantile(1 - error, successes + 1, n - successes)


def bounded_upper_bound(mean: float, n: int, error: float) -> float:
    """Return an upper bound of the mean of n independent values in 0–1, with error at most ``error``.

    Chernoff's bound: the largest m ≥ mean with n · KL(mean ‖ m) ≤ ln(1 / error). The values may have different laws
    (Hoeffding 1963, Theorem 1).
    """
    mean = min(1.0, max(0.0, mean))
    most = math.log(1 / error) / n
    low, high = mean, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _divergence(mean, middle) <= most:
            low = middle
        else:
            high = middle
    return high


def _divergence(p: float, q: float) -> float:
    """Return the Kullback–Leibler divergence of two shares."""
    found = 0.0
    for own, other in ((p, q), (1 - p, 1 - q)):
        if own <= 0:
            continue
        if other <= 0:
            return math.inf
        found += own * math.log(own / other)
    return found


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of a mean; (-inf, inf) for fewer than two values."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = t_quantile((1 + level) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    centre = mean(values)
    return centre - half, centre + half


def quantile(values: Sequence[float], q: float) -> float:
    """Return the smallest value such that at least the share ``q`` of the values is at or below it."""
    return sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]


def quantile_interval(values: Sequence[float], q: float) -> tuple[float, float]:
    """Return the 95 % order-statistic interval of the q-quantile; an end that n cannot bound is infinite (David &
    Nagaraja, 7.1)."""
    ordered, n, tail = sorted(values), len(values), (1 - 0.95) / 2
    low, high = -math.inf, math.inf
    for rank, value in enumerate(ordered, start=1):
        below = 1 - binomial_at_least(rank, n, q)  # P(fewer values lie below the quantile)
        if below <= tail:
            low = value
        if 1 - below <= tail and high == math.inf:
            high = value
    return low, high


# --- the paired change and its detectable size ----------------------------------------------------


def paired_change(
    differences: Sequence[float], *, level: float = 0.9, extra_variance: float = 0.0
) -> tuple[float, float, float]:
    """Return the mean of the cases' differences with Student's interval.

    Args:
        differences: candidate minus baseline, one mean per case, in the metric's unit.
        level: two-sided, 0–1.
        extra_variance: added to the variance of the mean: ½(1/kb + 1/kc)/N² keeps the interval of a binary metric from
        collapsing if no case happened to differ.

    Returns:
        (mean, low, high); for a single case the ends are infinite.
    """
    n = len(differences)
    centre = mean(differences)
    if n < 2:
        return centre, -math.inf, math.inf
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(stdev(differences) ** 2 / n + extra_variance)
    return centre, centre - half, centre + half


def simultaneous_change(
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


EARLY = 1 - 0.05 / 1.5
"""Level of a single look that leaves 95 % if a good look may end a schedule of at most three early; simulated."""


def excluded_change(differences: Sequence[float], *, trials: float, extra_variance: float) -> float:
    """Return the change that a mean exceeds with 95 % confidence: Student's bound with one more case that fell.

    Steady cases hide their failures: without any failure, the spread of the differences does not show what could be
    missed. So one more case is counted, in which one trial fell from 1 to 0.

    Args:
        differences: candidate minus baseline, one mean per case, of values from 0 to 1.
        trials: the candidate's trials per case.
        extra_variance: as for `paired_change`.
    """
    more = [*differences, -1.0 / trials]
    if len(more) < 3:
        return -math.inf
    spread = math.sqrt(stdev(more) ** 2 / len(more) + extra_variance)
    return mean(more) - t_quantile(EARLY, len(more) - 1) * spread


def detectable_rate_drop(within_sd: float, cases: int, baseline_trials: float, trials: float) -> float:
    """Return `detectable_drop` for a rate: a steady case that drops by d adds the spread √(d(1 − d)), which also
    counts.

    An approximation for one look at a drop that all cases share; `gate power` simulates the whole rule.
    """
    c, spread = 3.35**2 / cases, within_sd**2
    square, line, constant = 1 + c / trials, c / trials, c * spread * (1 / baseline_trials + 1 / trials)
    return min(1.0, (line + math.sqrt(line**2 + 4 * square * constant)) / (2 * square))


def detectable_drop(within_sd: float, cases: int, baseline_trials: float, trials: float) -> float:
    """Return the drop of a mean that is found with about 80 % power: 3.35 · σ_w · √((1/kb + 1/k)/N).

    3.35 = z(0.994) + z(0.8): one look at its share of the error budget (Miller 2024, section 5).

    Args:
        within_sd: σ_w, the standard deviation between trials of one case, in the metric's unit.
        cases: N.
        baseline_trials: kb, trials per case at the baseline.
        trials: k, trials per case of the candidate.
    """
    return 3.35 * within_sd * math.sqrt((1 / baseline_trials + 1 / trials) / cases)
