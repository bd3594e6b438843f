"""The values of a criterion on both sides, case by case, and the losses of cases that follow from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from random import Random
from statistics import fmean

from msgspec import Struct

from gate.decision.comparison import Comparison
from gate.decision.estimates import estimate_of
from gate.decision.outcomes import PASS_RATE, as_values, outcomes_of
from gate.model import Criterion, Estimate, Scale

MOST_LABELLINGS = 300
"""Maximum number of relabellings of a case that its chance losses are computed from."""

BothSides = tuple[Estimate | None, Estimate | None]
"""The estimates of the candidate and the baseline."""


class Pairs(Struct, frozen=True):
    """The values of a criterion for each judged case, on both sides; empty or missing for a case without values."""

    now: Mapping[str, Sequence[float]]
    before: Mapping[str, Sequence[float]]

    def groups(self, cases: Iterable[str]) -> tuple[list[Sequence[float]], list[Sequence[float]]]:
        """Return the values of these cases, of the candidate and of the baseline."""
        now: list[Sequence[float]] = []
        before: list[Sequence[float]] = []
        for case_id in cases:
            now.append(self.now.get(case_id, ()))
            before.append(self.before.get(case_id, ()))
        return now, before

    def estimates(self, cases: Iterable[str], scale: Scale) -> BothSides:
        """Return the means over these cases on both sides."""
        now, before = self.groups(cases)
        return estimate_of(now, scale), estimate_of(before, scale)

    def losses(self, cases: Iterable[str], criterion: Criterion) -> dict[str, float]:
        """Return the losses of these cases against the baseline, without cases that lack values on a side."""
        found = {}
        for case_id in cases:
            now, before = self.now.get(case_id), self.before.get(case_id)
            if now and before:
                loss = _loss_of(now, before, criterion)
                if loss is not None:
                    found[case_id] = loss
        return found

    def by_chance(self, case_id: str, criterion: Criterion, rng: Random) -> list[float]:
        """Return the losses of a case under relabellings of its trials: all of them, or a sample if there are many."""
        now, values = len(self.now[case_id]), [*self.now[case_id], *self.before[case_id]]
        ways: Iterable[Sequence[int]] = combinations(range(len(values)), now)
        if math.comb(len(values), now) > MOST_LABELLINGS:
            ways = [rng.sample(range(len(values)), now) for _ in range(MOST_LABELLINGS)]
        found = []
        for way in ways:
            here = [values[place] for place in way]
            there = [value for place, value in enumerate(values) if place not in way]
            found.append(_loss_of(here, there, criterion) or 0.0)
        return found


def _loss_of(now: Sequence[float], before: Sequence[float], criterion: Criterion) -> float | None:
    """Return the loss of the mean; for money, time and counts the log ratio, None if that is undefined."""
    mean_now, mean_before = fmean(now), fmean(before)
    if criterion.scale.is_relative:
        if min(mean_now, mean_before) <= 0:
            return None
        mean_now, mean_before = math.log(mean_now), math.log(mean_before)
    return criterion.direction.sign * (mean_before - mean_now)


def pairs_of(comparison: Comparison, criterion: Criterion, *, by_all: bool = False) -> Pairs:
    """Return the values of a criterion in whole epochs, by judged case; for the pass rate 1 for each passing trial and
    0 for each other.

    The baseline's trials pass by the criteria that can be compared, and so do the candidate's unless they are judged
    ``by_all`` criteria.
    """
    now: dict[str, Sequence[float]] = {}
    before: dict[str, Sequence[float]] = {}
    if criterion.name != PASS_RATE:
        return Pairs(comparison.values(criterion), comparison.stored_values(criterion))
    for case in comparison.judged:
        criteria = comparison.deciding(case.id)
        if case.id in comparison.with_baseline:
            before[case.id] = as_values(outcomes_of(comparison.baseline[case.id], case, criteria))
        if by_all:
            criteria = comparison.criteria
        now[case.id] = as_values(outcomes_of(comparison.measured(case.id, full=True), case, criteria))
    return Pairs(now, before)
