"""The distributions of cost and latency over trials, on both sides."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gate.model import Scale
from gate.reports.formatting import figure
from gate.reports.html.plots import Axis, histogram

_NAMES = {
    "seconds": ("Latency of a trial", Scale.SECONDS),
    "usd": ("Cost of a trial", Scale.USD),
    "tokens": ("Tokens of a trial", Scale.COUNT),
}
_SHARE = 0.99
"""The quantile at which the axis ends; the last bar contains the values beyond."""


def distributions(measured: Mapping[str, tuple[list[float], list[float]]]) -> list[Mapping[str, Any]]:
    """Return a drawing with medians and 95th percentiles for each figure that the agent reports."""
    found: list[Mapping[str, Any]] = []
    for name, (title, scale) in _NAMES.items():
        now, before = map(sorted, measured[name])
        if not now or now[-1] <= 0:
            continue
        high = max(_quantile(side, _SHARE) for side in (now, before) if side) or max(now)
        axis = Axis(0.0, high * 1.02)
        rows = [_row(side, values, scale) for side, values in (("now", now), ("before", before)) if values]
        described = "; ".join(f"{row['label']}: median {row['median']}, p95 {row['p95']}" for row in rows)
        found.append(
            {
                "title": title,
                "drawing": histogram(now, before, axis, f"{title}. {described}"),
                "rows": rows,
                "high": figure(axis.high, scale),
                "low": figure(0.0, scale),
            }
        )
    return found


def _row(side: str, values: Sequence[float], scale: Scale) -> Mapping[str, Any]:
    return {
        "side": side,
        "label": "this change" if side == "now" else "baseline",
        "n": f"{len(values):,}",
        "median": figure(_quantile(values, 0.5), scale),
        "p95": figure(_quantile(values, 0.95), scale),
        "most": figure(values[-1], scale),
    }


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that is at least as large as this share of the values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
