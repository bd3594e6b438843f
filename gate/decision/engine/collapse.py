"""The collapse of a metric: every value is the worst of its scale, and the baseline's were not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gate.statistics.intervals import mean_of_means, stratified_fisher_less

OFTEN = 0.5
"""If the baseline's mean is at least this far up its scale, chance alone cannot put every value at its worst."""
RARE = 0.05
"""For a lower baseline, chance is ruled out if its probability is at most this."""


def has_collapsed(pairs: Iterable[tuple[Sequence[float], Sequence[float]]], worst: float, best: float) -> bool:
    """True if all values are the worst of the scale, unlike the baseline's, beyond chance.

    ``pairs``: the values of each case now and at the baseline; cases without values on either side are left out.
    """
    counts, all_before = [], []
    for now, before in pairs:
        if not now or not before:
            continue
        if any(value != worst for value in now):
            return False
        all_before.append(before)
        counts.append((0, len(now), sum([value != worst for value in before]), len(before)))
    if not counts:
        return False
    share = (mean_of_means(all_before) - worst) / (best - worst)
    return share >= OFTEN or stratified_fisher_less(counts) <= RARE
