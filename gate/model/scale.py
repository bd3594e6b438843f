"""The scales of scores with their properties, and the direction in which more is better."""

from __future__ import annotations

import math
from enum import Enum
from typing import Literal, Self

MetricKind = Literal["binary", "bounded", "positive"]
"""The properties of a scale that the decision engine needs."""


class Scale(str, Enum):
    """The values of a metric, which decide how it is shown, compared and bounded."""

    range: tuple[float, float]
    """The lowest and highest possible score; the latter is infinite if unbounded."""
    kind: MetricKind
    default_margin: float
    """The loss still called unchanged if a criterion sets no margin.

    For a bounded scale it is a tenth: scores of recorded agents move by .18 to .26 of the scale from trial to trial,
    which thirty cases bound within .10 but not within .05 (`benchmarks/margins.py`,
    docs/dev/decisions/0004-decision-rule.md).
    """
    step: float | None
    """The unit of a proposed threshold; None if none is proposed."""

    def __new__(
        cls,
        value: str,
        ends: tuple[float, float] = (0.0, 1.0),
        kind: MetricKind = "bounded",
        margin: float = 0.10,
        step: float | None = None,
    ) -> Self:
        made = str.__new__(cls, value)
        made._value_ = value
        made.range, made.kind, made.default_margin, made.step = ends, kind, margin, step
        return made

    BINARY = "binary", (0.0, 1.0), "binary", 0.10, 0.01
    """0 or 1."""
    UNIT = "unit", (0.0, 1.0), "bounded", 0.10, 0.01
    """0 to 1."""
    SHARE = "share", (0.0, 1.0), "bounded", 0.10, 0.01
    """0 to 1, shown as a percentage."""
    LIKERT = "likert", (1.0, 5.0), "bounded", 0.4, 0.05
    """1 to 5."""
    PERCENT = "percent", (0.0, 100.0), "bounded", 10.0, 1.0
    """0 to 100."""
    SECONDS = "seconds", (0.0, math.inf), "positive", 0.30
    USD = "usd", (0.0, math.inf), "positive", 0.20
    COUNT = "count", (0.0, math.inf), "positive", 0.20

    @property
    def is_bounded(self) -> bool:
        """True if there is a highest possible score."""
        return math.isfinite(self.range[1])

    @property
    def is_zero_to_one(self) -> bool:
        """True if scores range from 0 to 1."""
        return self.range == (0.0, 1.0)

    @property
    def is_in_percent(self) -> bool:
        """True if scores are shown as percentages, and changes in points."""
        return self in (Scale.BINARY, Scale.SHARE)

    @property
    def is_relative(self) -> bool:
        """True if changes and margins are shares: of money, time and counts."""
        return self.kind == "positive"


class Direction(str, Enum):
    """The direction in which a metric is better."""

    HIGHER = "higher"
    LOWER = "lower"

    @property
    def sign(self) -> float:
        """Return the factor that turns a change into a gain: 1 if more is better, else -1."""
        return 1.0 if self is Direction.HIGHER else -1.0

    def is_worse(self, value: float, other: float) -> bool:
        """True if a value is worse than another."""
        return value < other if self is Direction.HIGHER else value > other

    def is_loss(self, change: float) -> bool:
        """True if a change is one for the worse; no change is none."""
        return self.is_worse(change, 0.0)
