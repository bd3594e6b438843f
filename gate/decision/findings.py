"""The engine's oriented numbers as a reader means them: candidate minus baseline, in the criterion's own unit."""

from __future__ import annotations

import math

from gate.decision.engine.state import Metric, margin_of
from gate.model import Criterion, Direction, MetricChange
from gate.model.finding import Change


def natural(change: float, criterion: Criterion) -> float:
    """An oriented change as a reader means it: candidate minus baseline; relative for money, time and counts."""
    change = change if criterion.direction is Direction.HIGHER else -change
    return math.expm1(min(change, 50.0)) if criterion.scale.is_relative else change


def natural_margin(margin: float, criterion: Criterion) -> float:
    """An oriented margin likewise; always positive."""
    if not criterion.scale.is_relative:
        return margin
    return math.expm1(margin) if criterion.direction is Direction.LOWER else -math.expm1(-margin)


def margin_over(found: MetricChange, criterion: Criterion, cases: int) -> float:
    """The oriented margin that would hold for a suite of so many cases, of the same kind: where few cases widened it,
    more of them widen it less."""
    own = criterion.scale.default_margin if criterion.margin is None else criterion.margin
    if criterion.scale.is_relative or found.margin <= own:
        return found.margin
    return margin_of(Metric(criterion.name, "binary", criterion.direction, own), cases)


def change_of(found: MetricChange, criterion: Criterion) -> Change:
    """The paired change with its interval, its ends in order."""
    value = natural(found.change, criterion)
    if found.low is None or found.high is None:
        return Change(value, None, None, found.cases)
    low, high = sorted((natural(found.low, criterion), natural(found.high, criterion)))
    return Change(value, low, high, found.cases)
