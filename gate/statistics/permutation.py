"""The joint permutation test of a suite, over several metrics at once. Knows no agents."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import accumulate, chain, combinations, product
from operator import add
from random import Random

from msgspec import Struct

from gate.model.evidence import MetricTest
from gate.statistics.evalues import log_break_ratio
from gate.statistics.shift import Prior, fit_prior, log_shift_ratio

# --- permutation ----------------------------------------------------------------------------------

Row = Sequence[float | None]
"""The values of one trial, one per metric; larger is better; None if not measured."""

Links = Sequence[tuple[int, int]]
"""Positions of coupled trials in ``now`` and in ``before``; each is in at most one pair."""

FIRST_RELABELINGS = 500
"""Number of relabellings after which a test that is far from significant stops."""
RELABELINGS = 4000
MOST_RELABELINGS = 40_000
MOST_DRAWS = 20_000_000
"""Maximum of relabellings times cases beyond the first RELABELINGS: limits the time for a large suite."""
FINE = 10
"""Minimum number of relabellings beyond the level for each statistic, or p is too coarse to fall below it."""
_EXACT = 500
"""A case with at most this many labellings of its trials is enumerated; for others this many are drawn."""
_UNIT = 1 << 30
_LANE = 96
_WIDTH = 3
"""Number of lanes per metric; the third is empty unless the metric consists of zeros and ones."""
_MASK = (1 << _LANE) - 1


class ComparedTrials(Struct, frozen=True):
    """The trials of one case that are compared."""

    now: Sequence[Row]
    """Trials of the candidate."""
    before: Sequence[Row]
    """Trials of the baseline."""
    links: Links = ()
    """The coupled trials, which share their randomness: the labels of a pair are only exchanged with each other."""
    held: Sequence[Row] = ()
    """Further trials whose labels stay fixed, so that "unchanged" says nothing about them. They only show which cases
    are steady, and may be from another day."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The trials of both sides and those with fixed labels."""
        return (*self.now, *self.before, *self.held)


class JointTest(Struct, frozen=True):
    """A test for candidate trials being worse than baseline trials of the same cases, over several metrics at once."""

    p: float
    metrics: tuple[MetricTest, ...]
    relabelings: int


def joint_permutation(
    cases: Sequence[ComparedTrials],
    metrics: int,
    *,
    seed: str,
    level: float = 0.02,
    fineness: int = FINE,
) -> JointTest:
    """Run the Westfall–Young min-p test over several statistics per metric: the mean drop, and one for a few large
    drops.

    The latter is Σ max(0, B̄ − C̄)³, or for a metric of zeros and ones the evidence that a tenth of the cases broke, Σ
    log(0.9 + 0.1·LRᵢ). Zeros and ones have a third statistic, the likelihood ratio of a drop that all cases share: it
    weighs a failure by how steady such cases are, while the mean counts all alike. Its prior is fitted to the totals of
    the cases, which no relabelling changes, so it is one fixed statistic, however well it fits.

    Within each case the trials are relabelled, with all metrics of a trial together; "unchanged" makes every labelling
    equally likely, so P(p ≤ x) ≤ x whatever the metrics' laws and dependence. A metric without values on one side adds
    nothing to that labelling. Stops early if p is far above the tested level. Source: Westfall & Young 1993.

    Args:
        cases: the trials of each case.
        metrics: number of values per trial; larger is better.
        seed: the same seed and trials give the same result.
        level: the p-value at or below which the caller rejects; the smaller, the more relabellings.
        fineness: lower is faster and coarser; a simulation of many tests needs no more.

    Returns:
        The p-value of the smallest p among all statistics, and those of each metric.
    """
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    priors = [_prior(cases, m) for m in range(metrics)]
    statistics = [2 if prior is None else 3 for prior in priors]
    tables = list(_tables(cases, priors, rng))
    if not tables or not metrics:
        return JointTest(1.0, (MetricTest(1.0, 1.0, 1.0),) * metrics, 0)
    observed = sum(table[0] for table in tables)
    totals: list[int] = []
    second = max(FIRST_RELABELINGS, RELABELINGS * fineness // FINE)
    wanted = math.ceil(fineness * sum(statistics) / level)
    enough = min(wanted, MOST_RELABELINGS, MOST_DRAWS // len(tables))
    for relabelings in (FIRST_RELABELINGS, second, max(second, enough)):
        drawn = [0] * (relabelings - len(totals))
        for table in tables:
            drawn = list(map(add, drawn, _draws(rng, table, len(drawn))))
        totals += drawn
        result = _min_p(observed, totals, statistics)
        if _is_clear(result, level, second):
            break
    return result


def _is_clear(result: JointTest, level: float, second: int) -> bool:
    """True if more relabellings would not change the comparison of p with the level.

    Relabelling only goes on below a bound, which falls from step to step: so P(p ≤ x) ≤ x holds for every x, not only
    for the level.
    """
    if result.relabelings >= second:
        return result.p > 3 * level
    return result.p > max(0.1, 5 * level)


def _tables(cases: Sequence[ComparedTrials], priors: Sequence[Prior | None], rng: Random) -> Iterator[list[int]]:
    """Yield the labellings of each case that has any; equal cases share them unless they are drawn."""
    made: dict[tuple[int, int, tuple[tuple[int, int], ...], tuple[Row, ...]], list[int] | None] = {}
    for case in cases:
        key = len(case.now), len(case.held), tuple(case.links), tuple(map(tuple, case.rows))
        table = made[key] if key in made else _labellings(case, priors, rng)
        if table is None or len(table) < _EXACT:
            made[key] = table
        if table:
            yield table


def _prior(cases: Sequence[ComparedTrials], m: int) -> Prior | None:
    """Return the distribution of the cases' pass rates in metric ``m``, fitted to totals that no relabelling changes;
    None unless the metric consists of zeros and ones."""
    totals: Counter[tuple[int, int]] = Counter()
    for case in cases:
        values = [row[m] for row in case.rows if row[m] is not None]
        passed = values.count(1)
        if passed + values.count(0) < len(values):
            return None
        totals[passed, len(values)] += 1
    return fit_prior(totals)


def _draws(rng: Random, table: list[int], count: int) -> Iterator[int]:
    """Yield ``count`` random entries, three times as fast as `Random.choices`: one byte each, rejecting unfair
    bytes."""
    size = len(table)
    if size > 256:
        return iter(rng.choices(table, k=count))
    fair = 256 - 256 % size
    unfair = bytes(range(fair, 256))
    found = b""
    while len(found) < count:
        found += rng.randbytes((count - len(found)) * 256 // fair + 16).translate(None, unfair)
    return map((table * (fair // size)).__getitem__, found[:count])


def _labellings(case: ComparedTrials, priors: Sequence[Prior | None], rng: Random) -> list[int] | None:
    """Return all statistics, packed into one integer, for each way to label ``len(now)`` trials as the candidate's.

    The first is the observed labelling. Integers keep ties exact and add up as fast as a single number. None if all
    labellings are equal.
    """
    rows, k = [*case.now, *case.before], len(case.now)
    ways = _ways(rows, k, case.links, rng) if case.now and case.before else ()
    packed = [0] * len(ways)
    for m, column in enumerate(zip(*case.rows, strict=True)):
        lanes = _lanes(column, (k, len(rows)), ways, priors[m])
        if lanes:
            packed = [total + (lane << _WIDTH * m * _LANE) for total, lane in zip(packed, lanes, strict=True)]
    return packed if len(set(packed)) > 1 else None


def _ways(rows: Sequence[Row], k: int, links: Links, rng: Random) -> Sequence[Sequence[int]]:
    """Return the ways to choose the candidate's trials, the observed one first.

    Labels are exchanged only among trials that lack the same values: which values could not be measured may differ
    between the sides (a judge that is down today), and must not look like a difference between the agents. If there are
    too many ways, a random set including the observed one represents all: given the set, each is equally likely.
    """
    pair_of = {}
    for pair, (here, there) in enumerate(links, 1):
        pair_of[here] = pair_of[k + there] = pair
    alike: dict[tuple[tuple[bool, ...], int], list[int]] = {}
    for i, row in enumerate(rows):
        lacking = tuple([value is None for value in row])
        alike.setdefault((lacking, pair_of.get(i, 0)), []).append(i)
    groups: list[tuple[list[int], int]] = []
    ways = 1
    for members in alike.values():
        chosen = bisect_left(members, k)  # the first ``k`` trials are the candidate's
        groups.append((members, chosen))
        ways *= math.comb(len(members), chosen)
    if ways > _EXACT:
        return [range(k), *[_drawn(groups, rng) for _ in range(_EXACT - 1)]]
    if len(groups) == 1:
        return _subsets(len(rows), k)
    parts = [combinations(members, chosen) for members, chosen in groups]
    return [tuple(chain.from_iterable(way)) for way in product(*parts)]


def _drawn(groups: Sequence[tuple[list[int], int]], rng: Random) -> list[int]:
    """Return the given number of random members of each group."""
    found = []
    for members, chosen in groups:
        found += rng.sample(members, chosen)
    return found


@cache
def _subsets(n: int, k: int) -> tuple[tuple[int, ...], ...]:
    return tuple(combinations(range(n), k))


_LIFT = _UNIT << 10
"""Added to every drop, which is at most 2¹⁰, so that no lane is negative; the same for every labelling."""


def _lanes(column: Row, sizes: tuple[int, int], ways: Sequence[Sequence[int]], prior: Prior | None) -> list[int]:
    """Return all statistics of a metric under each labelling; empty if they are the same under all.

    ``sizes``: number of the candidate's values, and number of values whose labels may change.
    """
    k, free = sizes
    known = {value for value in column if value is not None}
    here = k - column[:k].count(None)
    there = len(column) - k - column[k:].count(None)
    if not here or not there or len(known) == 1:
        return []
    values = tuple(0 if value is None else round(value * _UNIT) for value in column)
    whole, square = sum(values), _UNIT**2
    if prior is not None:
        parts = _all_sums(values[:free], k) if len(ways) == math.comb(free, k) else _part_sums(values, ways)
        passes = whole // _UNIT
        lanes = {p: _binary_lane(passes - p // _UNIT, there, p // _UNIT, here, prior) for p in set(parts)}
        return [lanes[p] for p in parts]
    drops = [(whole * here - part * (here + there)) // (here * there) for part in _part_sums(values, ways)]
    return [(d + _LIFT) | (d**3 // square << _LANE) if d > 0 else d + _LIFT for d in drops]


def _part_sums(values: Sequence[int], ways: Sequence[Sequence[int]]) -> list[int]:
    return [sum([values[i] for i in way]) for way in ways]


@lru_cache(maxsize=4096)
def _all_sums(values: tuple[int, ...], k: int) -> list[int]:
    """Return the sums for all choices of ``k`` values, cached: many cases have the same few zeros and ones."""
    return list(map(sum, combinations(values, k)))


def _binary_lane(passed_before: int, before: int, passed_now: int, now: int, prior: Prior) -> int:
    drop = (passed_before * now - passed_now * before) * _UNIT // (before * now)
    few = round(_few_broken(passed_before, before, passed_now, now) * _UNIT)
    shift = round(log_shift_ratio(passed_before, before, passed_now, now, prior) * _UNIT)
    return (drop + _LIFT) | (_UNIT + few) << _LANE | (_LIFT + shift) << 2 * _LANE


@cache
def _few_broken(passed_before: int, before: int, passed_now: int, now: int) -> float:
    """Return log(0.9 + 0.1·LR), with LR of "broke" against "unchanged". It only orders labellings."""
    return math.log(0.9 + 0.1 * math.exp(log_break_ratio(passed_before, before, passed_now, now)))


def _min_p(observed: int, totals: Sequence[int], statistics: Sequence[int]) -> JointTest:
    """Return the p-value of each statistic and of the smallest one (Westfall & Young 1993, step one).

    ``statistics``: their number, by metric.
    """
    size = len(totals) + 1
    smallest = [size] * len(totals)
    ranks: list[list[int]] = []
    for m, lanes in enumerate(statistics):
        ranks.append([])
        for lane in range(lanes):
            shift = (_WIDTH * m + lane) * _LANE
            values = [(total >> shift) & _MASK for total in totals]
            own = (observed >> shift) & _MASK
            counts = Counter([*values, own])  # many values are equal
            falling = sorted(counts, reverse=True)
            at_least = dict(zip(falling, accumulate(map(counts.__getitem__, falling)), strict=True))
            ranks[m].append(at_least[own])
            smallest = list(map(min, smallest, map(at_least.__getitem__, values)))
    smallest.sort()

    def adjusted(rank: int) -> float:
        return (1 + bisect_left(smallest, rank + 1)) / size

    tests = []
    for of_metric in ranks:
        p_shift = of_metric[2] / size if len(of_metric) > 2 else None
        adjusted_p = adjusted(min(of_metric))
        tests.append(MetricTest(of_metric[0] / size, of_metric[1] / size, adjusted_p, p_shift))
    return JointTest(adjusted(min(map(min, ranks))), tuple(tests), len(totals))
