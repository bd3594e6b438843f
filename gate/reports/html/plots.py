"""Drawings as inline SVG that fill their place: positions are shares of the width, so nothing is stretched.

Shapes have classes, never colours: ``now`` and ``before`` for the two sides, ``band``, ``limit``, ``axis``.
``tokens.css`` gives them the colours of each scheme. Every drawing has a name for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from gate.model import Estimate

_EMPTY = Markup("")
_EDGE = 1.5
"""Margin on both sides for the dots at the ends, in percent of the width."""


class Axis(Struct, frozen=True):
    """The range of values that a drawing shows."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Return the position of a value in percent of the width; values outside the axis are at its ends."""
        size, share = self.high - self.low, 0.5
        if size > 0 and math.isfinite(size):
            share = (value - self.low) / size
        if not math.isfinite(share):
            share = 0.5
        return round(_EDGE + (100 - 2 * _EDGE) * min(max(share, 0.0), 1.0), 2)

    def at(self, value: float) -> str:
        return f"{self.place(value):g}%"


def axis_of(values: Sequence[float], bounds: tuple[float, float]) -> Axis:
    """Return an axis on which the values fill most of the width, within the bounds of the scale."""
    known = list(filter(math.isfinite, values))
    if not known:
        low, high = bounds
        if not math.isfinite(high):
            high = 1.0
        return Axis(low, high)
    low, high = min(known), max(known)
    spare = 0.12 * (high - low) or 0.1 * abs(high) or 0.1
    return Axis(max(low - spare, bounds[0]), min(high + spare, bounds[1]))


def intervals(
    axis: Axis,
    now: Estimate | None,
    before: Estimate | None,
    name: str,
    *,
    band: tuple[float, float] | None = None,
    limit: float | None = None,
) -> Markup:
    """Draw the candidate above the baseline: a dot for the mean, a bar for its interval.

    ``band``: from the worst mean that still counts as unchanged to the good end of the axis. ``limit``: the threshold.
    """
    parts = [Markup('<svg class="plot intervals" role="img" aria-label="{}" height="44">').format(name)]
    if band is not None:
        left, right = sorted(map(axis.place, band))
        shape = Markup('<rect class="band" x="{}%" width="{}%" y="2" height="40" rx="3"/>')
        parts.append(shape.format(left, round(right - left, 2)))
    parts.append(Markup('<line class="axis" x1="0" x2="100%" y1="43.5" y2="43.5"/>'))
    if limit is not None:
        line = Markup('<line class="limit" x1="{0}" x2="{0}" y1="1" y2="43"/>')
        parts.append(line.format(axis.at(limit)))
    for kind, side, y in (("before", before, 31), ("now", now, 14)):
        if side is not None:
            parts.append(_bar(axis, kind, side, y))
    return _EMPTY.join([*parts, Markup("</svg>")])


def _bar(axis: Axis, kind: str, side: Estimate, y: int) -> Markup:
    bar = Markup('<line class="{0}" x1="{1}" x2="{2}" y1="{4}" y2="{4}"/><circle class="{0}" cx="{3}" cy="{4}" r="5"/>')
    return bar.format(kind, axis.at(side.low), axis.at(side.high), axis.at(side.value), y)
