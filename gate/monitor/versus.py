"""Compares one window of production with another, or with a release's record: a canary with the stable version.

The two are not paired, so their difference has the interval of two independent shares: the squared distances of their
bounds are added (Newcombe 1998; Zou and Donner 2008 for means of cases). Two windows must also differ by Fisher's exact
test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.model import Scale, Verdict
from gate.reports.formatting import count, figure, figures
from gate.statistics.intervals import fisher_less, mean, mean_interval, wilson

MOST_SHARED = 0.1
"""Share of a window's traces that the other may also hold; with more, a version is compared with itself."""
LEVEL = 0.90
"""The level of the interval that must exclude a loss beyond the margin, as in a run."""
LEAST_CASES = 2
"""Cases that a record needs; fewer have no interval."""


class Arm(Struct, frozen=True):
    """One side of a comparison."""

    name: str
    values: tuple[float, ...]
    """The value of each independent unit, 0–1: the outcome of a trace, or a case's share of passed trials."""
    unit: str = "trace"
    unmeasured: int = 0
    """Number of further units without a value."""
    problem: str = ""
    """The reason why this side cannot be measured; empty if it can."""

    @property
    def rate(self) -> float:
        return mean(self.values)

    @property
    def at_worst(self) -> Arm:
        """The arm as if its unmeasured units had failed."""
        return replace(self, values=(*self.values, *(0.0,) * self.unmeasured), unmeasured=0)

    def bounds(self, level: float) -> tuple[float, float]:
        """Return the interval of the pass rate."""
        if set(self.values) <= {0.0, 1.0}:
            return wilson(sum(self.values), len(self.values), level)
        low, high = mean_interval(self.values, level)
        return max(0.0, low), min(1.0, high)


def difference(new: Arm, old: Arm, level: float) -> tuple[float, float]:
    """Return the interval of the new pass rate minus the old."""
    (low, high), (old_low, old_high) = new.bounds(level), old.bounds(level)
    change = new.rate - old.rate
    return (
        change - math.hypot(new.rate - low, old_high - old.rate),
        change + math.hypot(high - new.rate, old.rate - old_low),
    )


def compare_arms(new: Arm, old: Arm, *, alpha: float, margin: float, least: int) -> tuple[Verdict, str]:
    """Return the verdict on the new side, and a line about it for people.

    The verdict is `PASS`, `REGRESSED`, `INCONCLUSIVE`, or `NOT_MEASURED` if either side has too little data.

    Args:
        alpha: bound on the probability that a side that is equally good is called worse, in one look.
        margin: the loss of the pass rate that still counts as unchanged, 0–1.
        least: traces that a window needs.
    """
    for arm in (new, old):
        needed = least if arm.unit == "trace" else LEAST_CASES
        if arm.problem or len(arm.values) < needed:
            few = f"{count(len(arm.values), arm.unit)} of at least {needed} measured by these criteria"
            return Verdict.NOT_MEASURED, f"not measured: {arm.name}: {arm.problem or few}"
    verdict, text = _decided(new, old, alpha, margin)
    turned, _ = _decided(new.at_worst, old.at_worst, alpha, margin)
    if verdict is not Verdict.REGRESSED and turned not in (verdict, Verdict.PASS):
        lost = count(new.unmeasured, new.unit)
        why = f"{lost} could not be measured: as failures they would make it {turned.value}"
        return Verdict.NOT_MEASURED, f"not measured: {new.name}: {why}"
    return verdict, text


def _decided(new: Arm, old: Arm, alpha: float, margin: float) -> tuple[Verdict, str]:
    """Return the verdict on two sides that were measured."""
    low, high = difference(new, old, 1 - 2 * alpha)
    certain = difference(new, old, LEVEL)[0]
    unproven = Verdict.PASS if certain >= -margin else Verdict.INCONCLUSIVE
    verdict = Verdict.REGRESSED if high < 0 and _is_shown(new, old, alpha) else unproven
    change = f"{_points(new.rate - old.rate)} points [{_points(low)}, {_points(high)}]"
    sides = zip((old, new), figures((old.rate, new.rate), Scale.BINARY), strict=True)
    moved = " → ".join(f"{rate} ({arm.name}, {count(len(arm.values), arm.unit)})" for arm, rate in sides)
    text = f"{verdict.value}: pass rate {moved}, {change}"
    if verdict is Verdict.INCONCLUSIVE:
        text += f"; a loss of more than {figure(margin, Scale.BINARY)} is not ruled out: wait for more traces"
    return verdict, text


def _is_shown(new: Arm, old: Arm, alpha: float) -> bool:
    """True if single outcomes also differ by Fisher's exact test: in small windows the interval alone exceeds alpha."""
    if not {*new.values, *old.values} <= {0.0, 1.0}:
        return True
    passed = int(sum(new.values)), len(new.values), int(sum(old.values)), len(old.values)
    return fisher_less(*passed) <= alpha


def _points(value: float) -> str:
    return f"{100 * value:+.1f}"


def of_traces(name: str, outcomes: Sequence[bool | None], max_unmeasured: float, shared: int = 0) -> Arm:
    """Return a window's outcomes as one side; None stands for a trace that was not measured.

    ``shared``: how many of them the other window also holds. It is reported for both: a large window may hold a small
    one.
    """
    known = tuple(float(one) for one in outcomes if one is not None)
    lost = len(outcomes) - len(known)
    problem = ""
    if lost > max_unmeasured * len(outcomes):
        problem = f"{lost} of {len(outcomes)} traces could not be measured"
    if shared > MOST_SHARED * len(outcomes):
        problem = f"{shared} of its {count(len(outcomes), 'trace')} are in the other window, too: name two versions"
    return Arm(name, known, unmeasured=lost, problem=problem)


def of_cases(name: str, outcomes: Iterable[tuple[str, float]]) -> Arm:
    """Return a record's outcomes, grouped by case: trials of one case are not independent."""
    found: dict[str, list[float]] = {}
    for case_id, outcome in outcomes:
        found.setdefault(case_id, []).append(outcome)
    return Arm(name, tuple(map(mean, found.values())), "case")
