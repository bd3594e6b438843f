"""The mathematics of the gate: intervals, a joint permutation test, e-values. Knows no agents."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, combinations, product
from operator import add
from random import Random
from statistics import NormalDist, stdev

from msgspec import Struct

# --- distributions --------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> float:
    """The float nearest to the exact mean, as `statistics.mean` gives it at twenty times the cost, in any order.

    So three scores of 0.7 have the mean 0.7: the sum, itself rounded, divided by three is less.
    """
    n = len(values)
    found = math.fsum(values) / n
    left = math.fsum([*values, *[-found] * n])
    if left == 0.0 or not math.isfinite(found):
        return found
    other = math.nextafter(found, math.copysign(math.inf, left))
    beyond = math.fsum([*values, *[-other] * n])
    if abs(left) == abs(beyond):
        return float(statistics.mean(values))
    return found if abs(left) < abs(beyond) else other


def deviation(values: Sequence[float]) -> float | None:
    """The sample standard deviation, √(Σ(x − x̄)² / (n − 1)); None for fewer than two values."""
    if len(values) < 2:
        return None
    middle = mean(values)
    return math.sqrt(math.fsum((value - middle) ** 2 for value in values) / (len(values) - 1))


def log_beta(a: float, b: float) -> float:
    """log B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction (DLMF 8.17.22)."""
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
    """The x with I_x(a, b) = p, by bisection."""
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
    """Student's t quantile, from the beta quantile: t² / (df + t²) has a Beta(½, df/2) law."""
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1 - p, df)
    rest = beta_quantile(2 * (1 - p), df / 2, 0.5)  # df / (df + t²)
    return math.sqrt(df * (1 - rest) / rest)


def binomial_at_least(k: int, n: int, p: float) -> float:
    """P(X ≥ k) for X ~ Bin(n, p)."""
    if k <= 0:
        return 1.0
    return 0.0 if k > n else beta_cdf(p, k, n - k + 1)


def fisher_less(passed_now: int, now: int, passed_before: int, before: int) -> float:
    """Fisher's one-sided p: so few passes now, or fewer, if the passes of both samples fell at random."""
    passes, total = passed_now + passed_before, now + before
    fewest = max(0, passes - before)
    ways = sum(math.comb(passes, k) * math.comb(total - passes, now - k) for k in range(fewest, passed_now + 1))
    return ways / math.comb(total, now)


# --- intervals ------------------------------------------------------------------------------------


def wilson(successes: float, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson's score interval of a share (Wilson 1927); (0, 1) for n = 0."""
    if n == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def share_upper_bound(successes: int, n: int, error: float) -> float:
    """One-sided Clopper–Pearson upper bound of a share, missed with probability at most ``error``.

    Also valid where the n trials have different rates and the mean rate is bounded (Hoeffding 1956, Theorem 4).
    """
    return 1.0 if successes >= n else beta_quantile(1 - error, successes + 1, n - successes)


def bounded_upper_bound(mean: float, n: int, error: float) -> float:
    """Upper bound of the mean of n independent values in 0–1, missed with probability at most ``error``.

    Chernoff's bound: the largest m ≥ mean with n · KL(mean ‖ m) ≤ ln(1 / error). The values may have different
    laws (Hoeffding 1963, Theorem 1).
    """
    mean = min(1.0, max(0.0, mean))
    most = math.log(1 / error) / n
    low, high = mean, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _divergence(mean, middle) <= most else (low, middle)
    return high


def _divergence(p: float, q: float) -> float:
    """Kullback and Leibler's, of two shares."""
    parts = ((p, q), (1 - p, 1 - q))
    return sum(a * math.log(a / b) if b > 0 else math.inf for a, b in parts if a > 0)


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Student's interval of a mean; (-inf, inf) for fewer than two values."""
    if len(values) < 2:
        return -math.inf, math.inf
    half = t_quantile((1 + level) / 2, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    centre = mean(values)
    return centre - half, centre + half


def quantile(values: Sequence[float], q: float) -> float:
    """The smallest value with at least the share ``q`` of the values at or below it."""
    return sorted(values)[max(0, math.ceil(q * len(values) - 1e-9) - 1)]


def quantile_interval(values: Sequence[float], q: float, level: float = 0.95) -> tuple[float, float]:
    """Order-statistic interval of the q-quantile; an end that n cannot bound is infinite (David & Nagaraja, 7.1)."""
    ordered, n, tail = sorted(values), len(values), (1 - level) / 2
    below = [1 - binomial_at_least(k + 1, n, q) for k in range(n + 1)]  # P(at most k values lie under the quantile)
    lower = max((r for r in range(1, n + 1) if below[r - 1] <= tail), default=0)
    upper = min((r for r in range(1, n + 1) if 1 - below[r - 1] <= tail), default=0)
    return (ordered[lower - 1] if lower else -math.inf), (ordered[upper - 1] if upper else math.inf)


# --- e-values -------------------------------------------------------------------------------------

BROKEN_FRACTIONS = ((0.4, 1, 0.0), (0.2, 2, 0.0), (0.2, 0, 0.05), (0.2, 0, 0.15))
"""The mixture over the share of broken cases: (weight, cases of N, share); the share is cases / N + share."""


@cache
def case_log_e(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """log of the evidence that a case passes less often than it did, by universal inference.

    Numerator: beta-binomial marginals, baseline Beta(5, ½), candidate 0.8·Beta(0.15, 5) + 0.2·Beta(2, 2).
    Denominator: the maximum likelihood under "no worse" (p_now ≥ p_before). Under "no worse" it is at most a
    non-negative martingale that starts at 1, over any order in which the trials of either side are run
    (Wasserman, Ramdas & Balakrishnan 2020).
    """
    likely = _log_marginal(passed_before, before, 5, 0.5)
    gone, half = _log_marginal(passed_now, now, 0.15, 5), _log_marginal(passed_now, now, 2, 2)
    likely += math.log(0.8 * math.exp(gone) + 0.2 * math.exp(half))
    if passed_now * before >= passed_before * now:
        return likely - _log_likelihood(passed_before, before) - _log_likelihood(passed_now, now)
    return likely - _log_likelihood(passed_before + passed_now, before + now)


def _log_marginal(successes: int, n: int, a: float, b: float) -> float:
    """log-probability of one sequence of outcomes whose rate has a Beta(a, b) law."""
    return log_beta(a + successes, b + n - successes) - log_beta(a, b)


def _log_likelihood(successes: int, n: int) -> float:
    """The largest log-likelihood of any rate."""
    failures = n - successes
    return sum(k * math.log(k / n) for k in (successes, failures) if k)


def suite_e(log_es: Sequence[float]) -> float:
    """Evidence that some cases of a suite are broken: the mixture over the broken share π of Π(1 + π(eᵢ − 1)).

    An e-process, since the cases are independent: it may be looked at after every trial. Infinite where it overflows.
    """
    n = len(log_es)
    if not n:
        return 1.0
    es = [math.exp(min(value, 500.0)) for value in log_es]
    total = 0.0
    for weight, cases, share in BROKEN_FRACTIONS:
        pi = min(1.0, cases / n + share)
        log_product = sum(math.log1p(pi * (e - 1)) if pi < 1 else math.log(e) for e in es)
        total += weight * math.exp(min(log_product, 600.0))
    return total


def e_bh(log_es: Sequence[float], fdr: float) -> list[int]:
    """The indices that Benjamini–Hochberg on e-values names: false discovery rate at most ``fdr`` under any dependence.

    Source: Wang & Ramdas 2022.
    """
    order = sorted(range(len(log_es)), key=lambda i: -log_es[i])
    named = 0
    for k, i in enumerate(order, start=1):
        if log_es[i] >= math.log(len(log_es) / (k * fdr)):
            named = k
    return sorted(order[:named])


# --- permutation ----------------------------------------------------------------------------------

Row = Sequence[float | None]
"""The values of one trial, one per metric, larger is better; None where it was not measured."""

RELABELINGS = 4000
FIRST_RELABELINGS = 500
"""After so many a test that is far from mattering stops."""
_EXACT = 500
"""A case with at most so many ways to label its trials is enumerated; else so many are drawn for it."""
_UNIT = 1 << 30
_LANE = 96
_MASK = (1 << _LANE) - 1


class MetricTest(Struct, frozen=True):
    """What the joint permutation test found for one metric."""

    p_mean: float
    """Of the mean drop alone, not adjusted for the other statistics."""
    p_concentrated: float
    p_adjusted: float
    """The smaller of the two, adjusted for every statistic of the test."""


class JointTest(Struct, frozen=True):
    """Whether candidate trials are worse than baseline trials of the same cases, over several metrics at once."""

    p: float
    metrics: tuple[MetricTest, ...]
    relabelings: int


def joint_permutation(cases: Sequence[tuple[Sequence[Row], Sequence[Row]]], metrics: int, *, seed: str) -> JointTest:
    """Westfall–Young min-p over two statistics a metric: the mean drop, and one that a few large drops move most.

    The latter is Σ max(0, B̄ − C̄)³, and for a metric of zeros and ones the evidence that a tenth of the cases broke,
    Σ log(0.9 + 0.1·LRᵢ). ``cases`` holds (candidate trials, baseline trials) of each case. Inside a case the trials are
    relabelled, all metrics of a trial together; "unchanged" makes every labelling equally likely, so P(p ≤ x) ≤ x
    whatever the metrics' laws and dependence. A metric with no value on one side adds nothing to that labelling.
    Stops after 500 relabelings where p is far above anything that matters: that can only keep it from rejecting.
    """
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    rows = [row for case in cases for side in case for row in side]
    binary = [{row[m] for row in rows} <= {0, 1, None} for m in range(metrics)]
    tables = [table for now, before in cases if (table := _labellings(now, before, binary, rng))]
    if not tables or not metrics:
        return JointTest(1.0, tuple(MetricTest(1.0, 1.0, 1.0) for _ in range(metrics)), 0)
    observed = sum(table[0] for table in tables)
    totals: list[int] = []
    result = None
    for relabelings in (FIRST_RELABELINGS, RELABELINGS):
        drawn = [0] * (relabelings - len(totals))
        for table in tables:
            drawn = list(map(add, drawn, _draws(rng, table, len(drawn))))
        totals += drawn
        result = _min_p(observed, totals, metrics)
        if result.p > 0.1 and all(not 0.1 < m.p_mean < 0.22 for m in result.metrics):
            break
    assert result is not None
    return result


def _draws(rng: Random, table: list[int], count: int) -> Iterator[int]:
    """``count`` entries at random, three times as fast as `Random.choices`: one byte each, unfair bytes thrown away."""
    size = len(table)
    if size > 256:
        return iter(rng.choices(table, k=count))
    fair = 256 - 256 % size
    unfair = bytes(range(fair, 256))
    found = b""
    while len(found) < count:
        found += rng.randbytes((count - len(found)) * 256 // fair + 16).translate(None, unfair)
    return map((table * (fair // size)).__getitem__, found[:count])


def _labellings(now: Sequence[Row], before: Sequence[Row], binary: Sequence[bool], rng: Random) -> list[int] | None:
    """For each way to call ``len(now)`` of the trials the candidate's: all statistics, packed into one integer.

    The first is the labelling that was observed. Integers keep ties exact and add up as fast as one number.
    None where no labelling differs from another.
    """
    rows, k = [*now, *before], len(now)
    ways = _ways(rows, k, rng) if now and before else ()
    packed = [0] * len(ways)
    for m, column in enumerate(zip(*rows, strict=True)):
        if lanes := _lanes(column, k, ways, binary=binary[m]):
            packed = [total + (lane << 2 * m * _LANE) for total, lane in zip(packed, lanes, strict=True)]
    return packed if len(set(packed)) > 1 else None


def _ways(rows: Sequence[Row], k: int, rng: Random) -> Sequence[Sequence[int]]:
    """Which trials to call the candidate's, the observed ones first.

    Labels change hands only among trials that lack the same values: what could not be measured may differ between the
    sides (a judge that is down today), and must not pass for a difference of the agent. Where there are too many ways,
    a random set that includes the observed one stands for all: given the set, that is as likely as any other.
    """
    alike: dict[tuple[bool, ...], list[int]] = {}
    for i, row in enumerate(rows):
        alike.setdefault(tuple(value is None for value in row), []).append(i)
    groups = [(members, sum(i < k for i in members)) for members in alike.values()]
    if math.prod(math.comb(len(members), j) for members, j in groups) > _EXACT:
        drawn = ([i for members, j in groups for i in rng.sample(members, j)] for _ in range(_EXACT - 1))
        return [range(k), *drawn]
    if len(groups) == 1:
        return _subsets(len(rows), k)
    return [tuple(chain(*parts)) for parts in product(*(combinations(members, j) for members, j in groups))]


@cache
def _subsets(n: int, k: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations(range(n), k))


_LIFT = _UNIT << 10
"""Added to every drop, of at most 2¹⁰, so that no lane is negative; the same for every labelling."""


def _lanes(column: Row, k: int, ways: Sequence[Sequence[int]], *, binary: bool) -> list[int]:
    """Both statistics of a metric under each labelling; empty where they are the same under all."""
    known = {value for value in column if value is not None}
    here, there = (sum(value is not None for value in side) for side in (column[:k], column[k:]))
    if not here or not there or len(known) == 1:
        return []
    values = tuple(0 if value is None else round(value * _UNIT) for value in column)
    whole, square = sum(values), _UNIT**2
    if binary:
        parts = _part_sums(values, ways) if len(ways) != math.comb(len(column), k) else _all_sums(values, k)
        passes = whole // _UNIT
        lanes = {p: _binary_lane(passes - p // _UNIT, there, p // _UNIT, here) for p in set(parts)}
        return [lanes[p] for p in parts]
    drops = [(whole * here - part * (here + there)) // (here * there) for part in _part_sums(values, ways)]
    return [(d + _LIFT) | (d**3 // square << _LANE) if d > 0 else d + _LIFT for d in drops]


def _part_sums(values: Sequence[int], ways: Sequence[Sequence[int]]) -> list[int]:
    return [sum([values[i] for i in way]) for way in ways]


@lru_cache(maxsize=4096)
def _all_sums(values: tuple[int, ...], k: int) -> list[int]:
    """Many cases have the same few zeros and ones."""
    return list(map(sum, combinations(values, k)))


@cache
def _binary_lane(passed_before: int, before: int, passed_now: int, now: int) -> int:
    drop = (passed_before * now - passed_now * before) * _UNIT // (before * now)
    return (drop + _LIFT) | (_UNIT + round(_few_broken(passed_before, before, passed_now, now) * _UNIT)) << _LANE


def _few_broken(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """log(0.9 + 0.1·LR): LR of "broke" against "unchanged", with the rates' priors. It orders labellings, no more."""
    broke = _log_marginal(passed_before, before, 5, 0.5)
    gone, half = _log_marginal(passed_now, now, 0.15, 5), _log_marginal(passed_now, now, 2, 2)
    broke += math.log(0.3 * math.exp(gone) + 0.7 * math.exp(half))
    unchanged = _log_marginal(passed_before + passed_now, before + now, 1, 0.25)
    return math.log(0.9 + 0.1 * math.exp(broke - unchanged))


def _min_p(observed: int, totals: Sequence[int], metrics: int) -> JointTest:
    """Step one of Westfall & Young 1993: the p-value of each statistic, and of the smallest among all relabelings."""
    from bisect import bisect_left

    size = len(totals) + 1
    smallest = [size] * len(totals)
    ranks = []
    for lane in range(2 * metrics):
        shift = lane * _LANE
        values = [(total >> shift) & _MASK for total in totals]
        own = (observed >> shift) & _MASK
        ordered = sorted([*values, own])
        ranks.append(size - bisect_left(ordered, own))
        at_least = {value: size - bisect_left(ordered, value) for value in set(values)}
        smallest = [min(rank, at_least[value]) for rank, value in zip(smallest, values, strict=True)]
    smallest.sort()

    def adjusted(rank: int) -> float:
        return (1 + bisect_left(smallest, rank + 1)) / size

    tests = tuple(
        MetricTest(ranks[2 * m] / size, ranks[2 * m + 1] / size, adjusted(min(ranks[2 * m : 2 * m + 2])))
        for m in range(metrics)
    )
    return JointTest(adjusted(min(ranks)), tests, len(totals))


# --- the paired change and what could be seen of it -----------------------------------------------


def paired_change(
    differences: Sequence[float], *, level: float = 0.9, extra_variance: float = 0.0
) -> tuple[float, float, float]:
    """Mean of the cases' differences with Student's interval: (mean, low, high). Infinite ends for one case.

    ``extra_variance`` is added to the variance of the mean: ½(1/kb + 1/kc)/N² keeps the interval of a binary metric
    open where no case happened to differ.
    """
    n = len(differences)
    centre = mean(differences)
    if n < 2:
        return centre, -math.inf, math.inf
    half = t_quantile((1 + level) / 2, n - 1) * math.sqrt(stdev(differences) ** 2 / n + extra_variance)
    return centre, centre - half, centre + half


def detectable_drop(within_sd: float, cases: int, baseline_trials: float, trials: float) -> float:
    """The drop of a mean that is found with about 80 % power: 3.35 · σ_w · √((1/kb + 1/k)/N).

    3.35 = z(0.994) + z(0.8): one look at its share of the error budget (Miller 2024, section 5).
    """
    return 3.35 * within_sd * math.sqrt((1 / baseline_trials + 1 / trials) / cases)
