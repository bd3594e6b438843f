"""Means with their intervals, and the engine's oriented numbers as readers see them: candidate minus baseline, in the
criterion's own unit."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from itertools import chain

from msgspec.structs import replace

from gate.decision.outcomes import are_successes
from gate.model import Criterion, Estimate, MetricChange, Scale
from gate.model.finding import Change
from gate.statistics.intervals import deviation, mean, mean_interval, quantile, quantile_interval, wilson

# --- means ----------------------------------------------------------------------------------------


def estimate_of(groups: Collection[Sequence[float]], scale: Scale) -> Estimate | None:
    """Return the mean over cases, each represented by its own mean; None without values."""
    means = [mean(group) for group in groups if group]
    return estimate(means, list(chain.from_iterable(groups)), scale)


def estimate(means: Sequence[float], values: Sequence[float], scale: Scale) -> Estimate | None:
    """Return the mean over cases with its 95 % interval; level 0 where a single value has none."""
    if not means:
        return None
    value = mean(means)
    if len(values) == 1:
        return Estimate(value, value, value, 1, 1, level=0.0)
    if are_successes(values, scale):
        low, high = wilson(value * len(values), len(values))
        return _with_spread(Estimate(value, low, high, len(means), len(values)), means, values)
    sample = means if len(means) > 1 else values
    if len(sample) < 2:
        return Estimate(value, value, value, len(means), len(values), level=0.0)
    low, high = mean_interval(sample)
    least, most = scale.range
    found = Estimate(value, max(low, least), min(high, most), len(means), len(values))
    return _with_spread(found, means, values)


def _with_spread(found: Estimate, means: Sequence[float], values: Sequence[float]) -> Estimate:
    """Return the estimate with the standard deviations of cases and trials: √(Σ(x − x̄)² / (n − 1))."""
    return replace(found, sd=deviation(values), sd_cases=deviation(means))


def quantile_estimates(criterion: Criterion, values: Sequence[float]) -> tuple[tuple[float, Estimate], ...]:
    """Return each limited quantile with its interval, as far as the values suffice."""
    found = []
    if not values:
        return ()
    for q, _ in criterion.quantiles:
        low, high = quantile_interval(values, q)
        ends = max(low, min(values)), min(high, max(values))
        level = 0.95 if (low, high) == ends else 0.0
        found.append((q, Estimate(quantile(values, q), *ends, len(values), len(values), level)))
    return tuple(found)


# --- changes --------------------------------------------------------------------------------------


def natural(change: float, criterion: Criterion) -> float:
    """Return an oriented change as readers see it: candidate minus baseline; relative for money, time and counts."""
    change = criterion.direction.sign * change
    if criterion.scale.is_relative:
        return math.expm1(min(change, 50.0))
    return change


def natural_margin(margin: float, criterion: Criterion) -> float:
    """Return an oriented margin as readers see it; always positive."""
    if not criterion.scale.is_relative:
        return margin
    return abs(natural(-margin, criterion))


def change_of(found: MetricChange, criterion: Criterion) -> Change:
    """Return the paired change with its interval, the lower end first."""
    value = natural(found.change, criterion)
    if found.low is None or found.high is None:
        return Change(value, None, None, found.cases)
    low, high = sorted((natural(found.low, criterion), natural(found.high, criterion)))
    return Change(value, low, high, found.cases)


def change_estimate(found: MetricChange, criterion: Criterion) -> Estimate:
    """Return the paired change with its interval, whose bad end is bounded by the certificate."""
    change = change_of(found, criterion)
    if change.low is None or change.high is None or found.trials < 2:
        return Estimate(change.value, change.value, change.value, found.cases, found.trials, level=0.0)
    return Estimate(change.value, change.low, change.high, found.cases, found.trials, level=0.9)


def detectable_drop(found: MetricChange, criterion: Criterion) -> float | None:
    """Return the smallest drop that is found in 80 % of cases, in the criterion's unit; always positive."""
    if found.detectable is None:
        return None
    return natural_margin(found.detectable, criterion)
