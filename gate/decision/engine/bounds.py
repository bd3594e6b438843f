"""The certificate of a metric: a bound on its paired change, and proof that it did not collapse."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import NormalDist, fmean, variance

from msgspec.structs import replace

from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.clusters import grouped
from gate.decision.engine.collapse import has_collapsed
from gate.decision.engine.coupled import paired_difference, values_in
from gate.decision.engine.state import TINY, Metric, State, margin_of
from gate.model import Direction, MetricChange
from gate.statistics.agreement import corrected_change
from gate.statistics.intervals import (
    detectable_drop,
    detectable_rate_drop,
    excluded_change,
    paired_change,
    squares,
    stratified_fisher_less,
    t_quantile,
)
from gate.statistics.shift import change_sd

_NORMAL = NormalDist()
TINY_BY_CHANCE = 0.2
"""Probability for suites with so few cases that the interval says nothing: they pass if chance alone shows as much more
often than this."""

Pair = tuple[list[float], list[float]]
"""The values of a case, now and at the baseline."""


def bound_of(cases: Sequence[CaseEvidence], state: State, m: int, *, ended: bool) -> MetricChange | None:
    """Return the paired mean change of a metric with its 90 % interval (5 % miss below the low end); None without
    pairs. Values are oriented: a loss is negative; positive metrics are logarithms.

    While epochs may follow, the interval covers variation between cases. At the end, for zeros and ones, it covers only
    the variation within these cases if that is tighter: otherwise differences between cases would keep an unchanged
    small suite inconclusive. This does not apply if a case seems broken or the tighter interval shows a fall: then
    cases differ.
    """
    ids: list[str] = []
    pairs: list[Pair] = []
    changes: list[float] = []
    inverses: list[float] = []
    for case in cases:
        now, before = values_of(case, m)
        if now and before:
            change, inverse = paired_difference(case.sample, case.sample_links, case.before, m)
            ids.append(case.id)
            pairs.append((now, before))
            changes.append(change)
            inverses.append(inverse)
    if not pairs:
        return None
    metric, units = state.metrics[m], grouped(ids, state.clusters)
    suspect = any(case.seems_worse for case in cases)
    found = _bound(metric, pairs, changes, fmean(inverses), units)
    if not found.holds and not (suspect and m == 0) and metric.kind == "binary" and len(pairs) <= TINY:
        by_chance = stratified_fisher_less([passes_of(pair, metric) for pair in pairs])
        found = replace(found, holds=by_chance > TINY_BY_CHANCE)
    if ended and len(units) == len(pairs) > TINY and has_tighter_interval(metric) and are_plain(cases):
        return _of_these_cases(found, pairs, metric)
    return found


def values_of(case: CaseEvidence, m: int) -> Pair:
    """Return the values of a metric in a case's fair sample, now and at the baseline."""
    return values_in(case.sample, m), values_in(case.before, m)


def has_tighter_interval(metric: Metric) -> bool:
    """True if the last interval of this metric may cover only the variation within these cases."""
    return metric.kind == "binary" and metric.slope == 1.0


def are_plain(cases: Sequence[CaseEvidence]) -> bool:
    """True if no case depends on a recording, and none seems broken."""
    if any(case.seems_worse for case in cases):
        return False
    return not any(link for case in cases for link in case.sample_links)


def _of_these_cases(found: MetricChange, pairs: Sequence[Pair], metric: Metric) -> MetricChange:
    """Return the bound with the interval of these very cases where that is tighter."""
    assert found.low is not None and found.high is not None  # several cases have a spread
    half = _NORMAL.inv_cdf(0.95) * change_sd([passes_of(pair, metric) for pair in pairs])
    low, high = max(found.low, found.change - half), min(found.high, found.change + half)
    if high < 0:
        return found
    return replace(found, low=low, high=high, holds=low >= -found.margin)


def passes_of(pair: Pair, metric: Metric) -> tuple[int, int, int, int]:
    """Return passed trials and all trials, of the candidate and then of the baseline."""
    middle = 0.5 * metric.direction.sign
    now, before = pair
    passed_now, passed_before = sum([value > middle for value in now]), sum([value > middle for value in before])
    return passed_now, len(now), passed_before, len(before)


def _bound(
    metric: Metric, pairs: Sequence[Pair], changes: Sequence[float], inverse: float, units: Sequence[Sequence[int]]
) -> MetricChange:
    """Return the bound.

    Args:
        changes: of each pair.
        inverse: the mean factor from the variance of one trial to that of a pair's change.
        units: the positions of the pairs in each unit, between which the interval measures spread.
    """
    n = len(units)
    differences = [fmean([changes[position] for position in members]) for members in units]
    extra = 0.0
    floor = -math.inf
    drop_of = detectable_drop
    if metric.kind == "binary":
        extra = inverse / 2 / n**2
        floor = -1.0
        drop_of = detectable_rate_drop
    change, low, high = paired_change(differences, extra_variance=extra)
    within = _within_sd(pairs, changes, inverse)
    if len(pairs) == 1 and within is not None:
        low, high = _one_case(*pairs[0])
    if metric.slope != 1.0 and math.isfinite(low):
        by = (metric.slope, metric.slope_error)
        change, low, high = corrected_change(change, low, high, by, t_quantile(0.95, max(1, n - 1)))
    trials = sum([len(now) for now, _ in pairs])
    trials_before = sum([len(before) for _, before in pairs])
    detectable = None
    if within is not None:
        detectable = drop_of(within, n, trials_before / n, trials / n) / metric.slope
    excluded = max(min(low, _excluded(pairs, differences, extra) / metric.slope), floor)
    low, margin = max(low, floor), margin_of(metric, len(pairs))
    return MetricChange(
        cases=len(pairs),
        trials=trials,
        change=change,
        low=finite(low),
        high=finite(min(high, -floor)),
        margin=margin,
        holds=low >= -margin,
        detectable=detectable,
        blocks_regression=metric.blocks_regression,
        excluded=finite(excluded),
    )


def finite(value: float) -> float | None:
    """Return the value; None if it is infinite."""
    if not math.isfinite(value):
        return None
    return value


def _excluded(pairs: Sequence[Pair], differences: Sequence[float], extra: float) -> float:
    """Return the bound for metrics with values between 0 and 1, which are often all the same; infinity for others,
    since these vary enough to show their spread."""
    values = list(chain.from_iterable(chain.from_iterable(pairs)))
    if min(values) < 0 or max(values) > 1:
        return math.inf
    trials = fmean([len(now) for now, _ in pairs])
    return excluded_change(differences, trials=trials, extra_variance=extra)


def _one_case(now: list[float], before: list[float]) -> tuple[float, float]:
    """Return Student's interval from the spread over trials: a single case has no spread over cases."""
    df = len(now) + len(before) - 2
    pooled = (squares(now) + squares(before)) / df
    half = t_quantile(0.95, df) * math.sqrt(pooled * (1 / len(now) + 1 / len(before)))
    change = fmean(now) - fmean(before)
    return change - half, change + half


def _within_sd(pairs: Sequence[Pair], differences: Sequence[float], inverse: float) -> float | None:
    """Return the pooled spread of trials within a case; from the differences if no case has two trials on a side."""
    repeated = [side for side in chain.from_iterable(pairs) if len(side) > 1]
    freedom = sum(map(len, repeated)) - len(repeated)
    if freedom:
        return math.sqrt(sum(map(squares, repeated)) / freedom)
    if len(differences) > 1:
        return math.sqrt(variance(differences) / inverse)
    return None


# --- collapse -------------------------------------------------------------------------------------


def collapsed_metrics(cases: Iterable[CaseEvidence], state: State) -> tuple[str, ...]:
    """Return the blocking metrics from 0 to 1 whose values in the candidate's epochs are all the worst, unlike the
    baseline's. No suite passes with one, however few cases it has."""
    cases = list(cases)
    found = []
    for m, metric in enumerate(state.metrics):
        if not metric.blocks_regression or metric.kind == "positive":
            continue
        worst = 0.0 if metric.direction is Direction.HIGHER else -1.0  # the values are oriented
        if has_collapsed([values_of(case, m) for case in cases], worst, worst + 1.0):
            found.append(metric.name)
    return tuple(found)
