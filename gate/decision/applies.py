"""Criteria that had something to check in the answers of the baseline, and have nothing now: claims, calls, sources.

A score that does not apply is no failure, and no pass either. Where an agent goes silent, a criterion of what it says
compares the few cases that are left, and would call that no worse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from gate.decision.cases import are_few
from gate.decision.comparison import Comparison
from gate.model import Criterion, Trial
from gate.model.finding import Finding
from gate.statistics.intervals import stratified_fisher_less

MOST_CASES = 200
"""Cases that a test rests on at most, the first of the suite: they prove what there is to prove."""


class _Applied(Struct, frozen=True):
    """The trials of one case to which a criterion applies, and all to which it could have applied."""

    before: int
    of_before: int
    now: int
    of_now: int

    @property
    def no_longer_applies(self) -> bool:
        """It always applied, and never does now."""
        return self.before == self.of_before and not self.now


def lost_checks(comparison: Comparison) -> tuple[Finding, ...]:
    """The blocking criteria that lost too much of what they checked at the baseline for a pass, in their order.

    It is too much where more cases fell away than may be removed, and chance would do as much in less than the error
    rate's part of this criterion: if both sides shared one rate in each case, the trials that have nothing to check
    would be drawn from all trials of the case.
    """
    blocking = [criterion for criterion in comparison.criteria if criterion.blocking]
    found = []
    for criterion in blocking:
        known = comparison.stored_values(criterion).keys() & comparison.with_baseline
        if are_few(len(known - comparison.values(criterion).keys()), len(known)):
            continue
        applied = dict(_applied(comparison, criterion))
        gone = tuple([case_id for case_id, one in applied.items() if one.no_longer_applies])
        if are_few(len(gone), len(applied)):
            continue
        if _as_silent_by_chance(applied.values()) <= comparison.settings.own_alpha / len(blocking):
            found.append(Finding.of("checks_fell_away", criterion=criterion.name, cases=gone, of=len(applied)))
    return tuple(found)


def _applied(comparison: Comparison, criterion: Criterion) -> Iterator[tuple[str, _Applied]]:
    """Yield the compared cases to which the criterion applied at the baseline."""
    for case_id in comparison.paired:
        if (case_id, criterion.name) in comparison.not_comparable:
            continue
        before = _count(comparison.counted(comparison.baseline[case_id]), criterion)
        now = _count(comparison.counted(comparison.measured(case_id, full=True)), criterion)
        if before[0] and now[1]:
            yield case_id, _Applied(*before, *now)


def _count(trials: Iterable[Trial], criterion: Criterion) -> tuple[int, int]:
    """Trials with a value, and those that have one or need none; what could not be measured is neither."""
    scores = [score for trial in trials if (score := trial.scores.get(criterion.name)) is not None]
    values = sum(score.value is not None for score in scores)
    return values, values + sum(score.value is None and not score.error for score in scores)


def _as_silent_by_chance(cases: Iterable[_Applied]) -> float:
    """The probability of as many trials now without anything to check, or more, if both sides are alike."""
    mixed = [one for one in cases if one.before + one.now < one.of_before + one.of_now][:MOST_CASES]
    return stratified_fisher_less([(one.now, one.of_now, one.before, one.of_before) for one in mixed])
