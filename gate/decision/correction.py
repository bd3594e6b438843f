"""Corrects means, intervals and slopes by the judge's calibration. The scores themselves stay unchanged.

Zeros and ones are corrected by the judge's sensitivity and specificity, graded scores by the mean difference between
people's scores and the judge's (prediction-powered). Nothing is corrected if neither is possible, or if the labels do
not show that the judge follows people.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.outcomes import are_successes
from gate.model import Criterion, Direction, Estimate
from gate.model.calibration import GradedLabels, JudgeCalibration
from gate.model.results import CalibratedJudge
from gate.statistics.agreement import (
    Ends,
    clopper_pearson,
    corrected_interval,
    corrected_share,
    corrects,
    difference_error,
    is_usable,
    kappa,
    slope,
)
from gate.statistics.intervals import mean

PLAIN: Ends = (1.0, 0.0)
"""The slope of uncorrected scores and its error."""


class ByRates(Struct, frozen=True):
    """Correction of zeros and ones by Rogan and Gladen."""

    known: JudgeCalibration

    @property
    def slope(self) -> Ends:
        """Return the factor by which a true difference shows in the judge's verdicts, and its standard error."""
        return slope(self.known)

    def value(self, measured: float, fell: float) -> float:
        """Return a mean as people would score it; the share ``fell`` of it comes from failed trials.

        Failed trials have no verdict of the judge: they count as 0 and are not corrected.
        """
        judged = 1 - fell
        if not judged:
            return measured
        return _within(judged * corrected_share(measured / judged, self.known), (0.0, 1.0))

    def estimate(self, found: Estimate) -> Estimate:
        low, high = corrected_interval(found.value, found.trials, self.known)
        return Estimate(self.value(found.value, 0.0), low, high, found.n, found.trials)


class ByDifference(Struct, frozen=True):
    """Prediction-powered correction of graded scores: the mean plus the mean difference between people and the
    judge."""

    graded: GradedLabels
    ends: Ends

    @property
    def slope(self) -> Ends:
        """Return the slope of uncorrected scores: the difference is the same on both sides and cancels out in a
        change."""
        return PLAIN

    def value(self, measured: float, fell: float) -> float:
        return _within(measured + (1 - fell) * self.graded.bias, self.ends)

    def estimate(self, found: Estimate) -> Estimate:
        value = self.value(found.value, 0.0)
        if found.level == 0.0:
            return Estimate(value, value, value, found.n, found.trials, level=0.0)
        centre, half = found.value + self.graded.bias, self._half((1 + found.level) / 2)
        low = centre - math.hypot(found.value - found.low, half)
        high = centre + math.hypot(found.high - found.value, half)
        return Estimate(value, _within(low, self.ends), _within(high, self.ends), found.n, found.trials, found.level)

    def _half(self, p: float) -> float:
        """Return the distance from the mean difference to its ``p`` quantile."""
        low, high = self.ends
        return difference_error(self.graded, p, high - low)


Correction = ByRates | ByDifference


def correction_for(criterion: Criterion, values: Collection[float]) -> Correction | None:
    """Return the correction of a criterion's scores; None without one.

    There is none without a calibration, if the judge is not shown to be better than chance, or if scores are graded but
    people said only pass or fail, or graded too few answers to show that the judge follows them. ``values`` are of both
    sides, so that both are corrected alike.
    """
    known = criterion.calibration
    if known is None or criterion.hard or criterion.direction is Direction.LOWER:
        return None
    if are_successes(values, criterion.scale):
        return ByRates(known) if is_usable(known) else None
    if known.graded is None or not corrects(known.graded):
        return None
    return ByDifference(known.graded, criterion.scale.range)


def calibrated_judge(
    criterion: Criterion, correction: Correction | None, now: Estimate | None, before: Estimate | None
) -> CalibratedJudge | None:
    """Return the calibration of a criterion's judge, with corrected estimates if possible."""
    known = criterion.calibration
    if known is None:
        return None
    of_passed, of_failed = _rate(known.both_pass, known.passed), _rate(known.both_fail, known.failed)
    beyond_chance = None
    if known.labels:
        beyond_chance = kappa((known.both_pass, known.both_fail, known.only_judge, known.only_people))
    judge = CalibratedJudge(known.labels, known.agreed, beyond_chance, of_passed, of_failed)
    if correction is None:
        return judge
    candidate = None if now is None else correction.estimate(now)
    baseline = None if before is None else correction.estimate(before)
    return replace(judge, candidate=candidate, baseline=baseline, slope=correction.slope[0])


def _rate(successes: int, n: int) -> Estimate | None:
    if not n:
        return None
    return Estimate(successes / n, *clopper_pearson(successes, n), n, n)


def mean_fallen(groups: Sequence[Sequence[float]], fell: Sequence[int]) -> float:
    """Return the share of trials that the agent failed, averaged over cases."""
    return mean([failed / len(group) for group, failed in zip(groups, fell, strict=True)])


def _within(value: float, ends: Ends) -> float:
    return min(ends[1], max(ends[0], value))
