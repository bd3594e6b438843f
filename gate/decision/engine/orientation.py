"""Values oriented so that larger is better; positive metrics become logarithms, so that a change is a ratio."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import chain

from gate.decision.engine.state import Row, State
from gate.model import FULL


def oriented(state: State) -> Callable[[Row], Row]:
    """Return a function that orients a trial; None replaces missing and non-finite values."""
    signs = [metric.direction.sign for metric in state.metrics]
    of_epochs = [round_.trials for round_ in state.rounds if round_.tag == FULL]
    floors: dict[int, float] = {}
    for m, metric in enumerate(state.metrics):
        if metric.kind == "positive":
            sides = [state.baseline, *of_epochs]
            rows = chain.from_iterable([chain.from_iterable(trials.values()) for trials in sides])
            floors[m] = _stands_for_zero([row[m] for row in rows if m < len(row)])

    def orient(row: Row) -> Row:
        found: list[float | None] = []
        for m, sign in enumerate(signs):
            value = row[m] if m < len(row) else None
            if value is None or not math.isfinite(value):
                found.append(None)
                continue
            if m in floors:
                value = math.log(max(value, floors[m]))
            found.append(sign * value)
        return found

    return orient


def _stands_for_zero(values: Iterable[float | None]) -> float:
    """Return the replacement for zero in logarithms: the same for both sides, so relabelling does not change it.

    Half of the smallest positive value, but at most the mean: if nearly all values are zero, the few positive ones
    would otherwise be only twice as large, however large they are, and would vanish among the others.
    """
    known = [value for value in values if value is not None and 0 <= value < math.inf]
    positive = [value for value in known if value]
    if not positive:
        return 1.0
    return min(min(positive) / 2, sum([value / len(known) for value in positive]))
