"""The causes of verdicts: which criterion or cases are at fault, and by which figures."""

from __future__ import annotations

from collections.abc import Sequence

from gate.decision.cases import edited, reads_text, removed, worst_wording
from gate.decision.comparison import PASS_RATE, Comparison
from gate.decision.trade import (
    MOST_SUSPECTS,
    ROUNDING,
    badness,
    most_suspect,
    moved,
    proven_by_cases,
    proven_by_mean,
    trade_of,
)
from gate.model import CaseResult, CaseStatus, Criterion, CriterionResult, Direction, Outcome, Verdict
from gate.model.finding import Fell, Finding, Uncompared


def no_worse(comparison: Comparison, outcome: Outcome | None) -> Finding:
    """Return what a pass rests on."""
    uncompared = Uncompared()
    if comparison.stored:
        new = [case.id for case in comparison.judged if case.id not in comparison.baseline]
        uncompared = Uncompared(len(new), len(edited(comparison)), len(removed(comparison)))
    if outcome is None:
        total = len(comparison.judged)
        return Finding.of(
            "thresholds_hold", checked=total - len(comparison.unchecked), cases=total, uncompared=uncompared
        )
    rate = outcome.evidence.metrics.get(PASS_RATE)
    low, cases = (None, 0) if rate is None else (rate.excluded, rate.cases)
    return Finding.of(
        "no_worse",
        cases=len(comparison.with_baseline.difference(comparison.unchecked)),
        rate_cases=cases,
        rate_low=low,
        uncompared=uncompared,
    )


def not_enough_evidence(rows: Sequence[CriterionResult], cases: Sequence[CaseResult]) -> Finding:
    """Return which criteria are open, and the cases that are suspected."""
    suspects = tuple(c.id for c in sorted(cases, key=badness) if c.status is CaseStatus.SUSPECT)
    return Finding.of("not_enough_evidence", criteria=tuple(row.criterion.name for row in rows), suspects=suspects)


def got_worse(
    comparison: Comparison, rows: Sequence[CriterionResult], cases: Sequence[CaseResult], outcome: Outcome | None
) -> Finding:
    """Return what a proven loss rests on: a trade, the cases that broke, or the suite as a whole."""
    trade = trade_of(outcome)
    if trade is not None:
        return trade if trade["named"] else trade.but(lost=most_suspect(cases) or trade["lost"])
    at_fault = [row for row in rows if row.verdict is Verdict.REGRESSED and row.criterion.blocking]
    broken = tuple(c.id for c in cases if c.status is CaseStatus.BROKEN)
    if broken and (outcome is None or proven_by_cases(outcome)):
        if outcome is None:
            return Finding.of("cases_broke", cases=broken)
        return Finding.of(
            "cases_broke", cases=broken, moved=moved(outcome.evidence, broken), of=outcome.evidence.paired
        )
    found = _whole_got_worse(comparison, at_fault, cases, outcome)
    missed = tuple(row.criterion.name for row in rows if row.criterion.blocking and row.is_below)
    moot = bool(missed) and found["perhaps_drift"] and comparison.settings.rerun != "never"
    return found.but(missed=missed, drift_moot=moot)


def _whole_got_worse(
    comparison: Comparison,
    at_fault: Sequence[CriterionResult],
    cases: Sequence[CaseResult],
    outcome: Outcome | None,
) -> Finding:
    """Nothing is named: the most suspect cases are what a reader looks at first. They are those that fell in what got
    worse; whether whole trials passed is the pass rate's own matter."""
    names = tuple(r.criterion.name for r in at_fault)
    alone = (r.criterion for r in at_fault if set(names).isdisjoint(r.criterion.parts))
    criterion = next(alone, at_fault[0].criterion)
    drift = outcome is not None and outcome.stage.drift_open and not comparison.base_ran_now
    by_mean = outcome is None or proven_by_mean(outcome, criterion.name)
    if criterion.name == PASS_RATE and outcome is not None:
        return Finding.of(
            "suite_got_worse", criteria=names, by_mean=by_mean, perhaps_drift=drift, suspects=most_suspect(cases)
        )
    return Finding.of(
        "suite_got_worse",
        criteria=names,
        by_mean=by_mean,
        perhaps_drift=drift,
        fell=_fell(criterion, cases),
        wording=worst_wording(comparison, criterion) if reads_text(criterion) else None,
    )


def _fell(criterion: Criterion, cases: Sequence[CaseResult]) -> tuple[Fell, ...]:
    """The cases whose score of a criterion got worse, the most first."""
    sign = 1.0 if criterion.direction is Direction.LOWER else -1.0
    found = []
    for case in cases:
        now, before = case.scores.get(criterion.name, (None, None))
        if case.status is CaseStatus.QUARANTINED or now is None or before is None:
            continue
        if sign * (now - before) > ROUNDING:
            found.append(Fell(case.id, before, now))
    return tuple(sorted(found, key=lambda f: (-sign * (f.now - f.before), f.case_id))[:MOST_SUSPECTS])
