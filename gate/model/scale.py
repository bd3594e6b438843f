"""What a score is a number of: scales, their ranges, and the direction in which more is better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from typing import Literal


class Scale(str, Enum):
    """What values a metric takes; decides how it is shown, compared and bounded."""

    BINARY = "binary"
    """0 or 1."""
    UNIT = "unit"
    """0 to 1."""
    LIKERT = "likert"
    """1 to 5."""
    PERCENT = "percent"
    """0 to 100."""
    SECONDS = "seconds"
    USD = "usd"
    COUNT = "count"


RANGES: Mapping[Scale, tuple[float, float]] = {
    Scale.BINARY: (0.0, 1.0),
    Scale.UNIT: (0.0, 1.0),
    Scale.LIKERT: (1.0, 5.0),
    Scale.PERCENT: (0.0, 100.0),
    Scale.SECONDS: (0.0, math.inf),
    Scale.USD: (0.0, math.inf),
    Scale.COUNT: (0.0, math.inf),
}
"""The least and the most that a score of a scale can be."""


class Direction(str, Enum):
    HIGHER = "higher"
    LOWER = "lower"


MetricKind = Literal["binary", "bounded", "positive"]
"""What the decision engine needs to know of a scale."""


def kind_of(scale: Scale) -> MetricKind:
    if scale is Scale.BINARY:
        return "binary"
    if scale in (Scale.SECONDS, Scale.USD, Scale.COUNT):
        return "positive"
    return "bounded"
