"""One thing that was found of a criterion, and its numbers as a reader means them."""

from __future__ import annotations

import math

from msgspec import Struct

from gate.model import Criterion, Direction, Scale, Verdict, kind_of


class Finding(Struct, frozen=True):
    """One thing that was found of a criterion."""

    verdict: Verdict
    reason: str
    settles: bool = False
    """Whether it stands whatever else is run."""


OK = Verdict.PASS
NOTHING = Finding(OK, "nothing to hold it to: no threshold, and nothing of the baseline's to compare it with")
"""What is found where nothing was held against a criterion: no tick stands beside it."""


def plural(n: int, noun: str) -> str:
    """``1 case``, ``3 cases``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


RULED_OUT = "ruled out at 95 % confidence"
"""What the low end of a 90 % interval says: the true change lies below it in at most 5 % of runs like this one."""
POINTS = " points"
"""A hundredth of a share, as a change of it is counted."""


def natural(change: float, criterion: Criterion) -> float:
    """An oriented change as a reader means it: candidate minus baseline; relative for money, time and counts."""
    change = change if criterion.direction is Direction.HIGHER else -change
    return math.expm1(min(change, 50.0)) if kind_of(criterion.scale) == "positive" else change


def show_change(change: float, criterion: Criterion) -> str:
    return signed(natural(change, criterion), criterion)


def signed(value: float, criterion: Criterion) -> str:
    if kind_of(criterion.scale) == "positive":
        text = f"{value:+z.0%}"
    elif criterion.scale is Scale.BINARY:
        text = f"{100 * value:+z.1f}{POINTS}"
    else:
        text = f"{value:+z.3f}" if criterion.scale is Scale.UNIT else f"{value:+z.2f}"
    return text.replace("-", "−")


def show_margin(margin: float, criterion: Criterion) -> str:
    if kind_of(criterion.scale) == "positive":
        return f"{math.expm1(margin):.0%}" if criterion.direction is Direction.LOWER else f"{-math.expm1(-margin):.0%}"
    return f"{100 * margin:.1f} points" if criterion.scale is Scale.BINARY else f"{margin:g}"


def show(value: float, criterion: Criterion) -> str:
    if criterion.scale is Scale.BINARY:
        return f"{value:.1%}"
    unit = {Scale.SECONDS: " s", Scale.USD: " USD"}.get(criterion.scale, "")
    return f"{value:.4g}{unit}".replace("-", "−", int(value < 0))
