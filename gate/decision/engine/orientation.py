"""Values oriented so that larger is better; positive metrics become logarithms, so that a change is a ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from gate.decision.engine.state import Row, State
from gate.model import FULL


class Orientation:
    """Orients the rows of a state's trials."""

    def __init__(self, state: State) -> None:
        self.signs = [metric.direction.sign for metric in state.metrics]
        self.floors = {}
        for m, metric in enumerate(state.metrics):
            if metric.kind == "positive":
                self.floors[m] = _stands_for_zero(_rows_of(state), m)

    def __call__(self, row: Row) -> Row:
        """Return the oriented row; None replaces missing and non-finite values."""
        return [self._value(m, row[m] if m < len(row) else None) for m in range(len(self.signs))]

    def _value(self, m: int, value: float | None) -> float | None:
        if value is None or not math.isfinite(value):
            return None
        if m in self.floors:
            value = math.log(max(value, self.floors[m]))
        return self.signs[m] * value


def _rows_of(state: State) -> Iterator[Row]:
    """Yield the trials of whole epochs, on both sides."""
    for trials in state.baseline.values():
        yield from trials
    for round_ in state.rounds:
        if round_.tag == FULL:
            for trials in round_.trials.values():
                yield from trials


def _stands_for_zero(rows: Iterable[Row], m: int) -> float:
    """Return the replacement for zero in logarithms: the same for both sides, so relabelling does not change it.

    Half of the smallest positive value, but at most the mean: if nearly all values are zero, the few positive ones
    would otherwise be only twice as large, however large they are, and would vanish among the others.
    """
    values = []
    for row in rows:
        value = row[m] if m < len(row) else None
        if value is not None and 0 <= value < math.inf:
            values.append(value)
    positive = [value for value in values if value]
    if not positive:
        return 1.0
    return min(min(positive) / 2, sum([value / len(values) for value in positive]))
