"""The scales of scores with their properties, and the direction in which more is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Literal

from msgspec import Struct

MetricKind = Literal["binary", "bounded", "positive"]
"""The properties of a scale that the decision engine needs."""


class Scale(str, Enum):
    """The values of a metric, which decide how it is shown, compared and bounded."""

    BINARY = "binary"
    """0 or 1."""
    UNIT = "unit"
    """0 to 1."""
    SHARE = "share"
    """0 to 1, shown as a percentage."""
    LIKERT = "likert"
    """1 to 5."""
    PERCENT = "percent"
    """0 to 100."""
    SECONDS = "seconds"
    USD = "usd"
    COUNT = "count"

    @property
    def range(self) -> tuple[float, float]:
        """Return the lowest and highest possible score; the latter is infinite if unbounded."""
        return _TRAITS[self].ends

    @property
    def is_bounded(self) -> bool:
        """True if there is a highest possible score."""
        return math.isfinite(_TRAITS[self].ends[1])

    @property
    def is_zero_to_one(self) -> bool:
        """True if scores range from 0 to 1."""
        return self.range == (0.0, 1.0)

    @property
    def is_in_percent(self) -> bool:
        """True if scores are shown as percentages, and changes in points."""
        return self in (Scale.BINARY, Scale.SHARE)

    @property
    def kind(self) -> MetricKind:
        return _TRAITS[self].kind

    @property
    def is_relative(self) -> bool:
        """True if changes and margins are shares: of money, time and counts."""
        return self.kind == "positive"

    @property
    def default_margin(self) -> float:
        """Return the loss still called unchanged if a criterion sets no margin.

        For a bounded scale it is a tenth: scores of recorded agents move by .18 to .26 of the scale from trial to
        trial, which thirty cases bound within .10 but not within .05 (`benchmarks/margins.py`,
        docs/dev/decisions/0004-decision-rule.md).
        """
        return _TRAITS[self].margin

    @property
    def step(self) -> float | None:
        """Return the unit of a proposed threshold; None if none is proposed."""
        return _TRAITS[self].step


class _Traits(Struct, frozen=True):
    ends: tuple[float, float]
    kind: MetricKind
    margin: float
    step: float | None = None


_TRAITS: Mapping[Scale, _Traits] = {
    Scale.BINARY: _Traits((0.0, 1.0), "binary", margin=0.10, step=0.01),
    Scale.UNIT: _Traits((0.0, 1.0), "bounded", margin=0.10, step=0.01),
    Scale.SHARE: _Traits((0.0, 1.0), "bounded", margin=0.10, step=0.01),
    Scale.LIKERT: _Traits((1.0, 5.0), "bounded", margin=0.4, step=0.05),
    Scale.PERCENT: _Traits((0.0, 100.0), "bounded", margin=10.0, step=1.0),
    Scale.SECONDS: _Traits((0.0, math.inf), "positive", margin=0.30),
    Scale.USD: _Traits((0.0, math.inf), "positive", margin=0.20),
    Scale.COUNT: _Traits((0.0, math.inf), "positive", margin=0.20),
}


class Direction(str, Enum):
    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> float:
        """Return the factor that turns a change into a gain: 1 if more is better, else -1."""
        return 1.0 if self is Direction.HIGHER else -1.0

    def is_worse(self, value: float, other: float) -> bool:
        """True if a value is worse than another."""
        return value < other if self is Direction.HIGHER else value > other
