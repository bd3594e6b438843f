"""The evidence without the underlying trials: part of each outcome, and the basis of all reports."""

from __future__ import annotations

from collections.abc import Iterable

from gate.decision.engine.bounds import finite
from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.evidence import Evidence
from gate.decision.engine.schedule import unprovable
from gate.model.evidence import CaseCounts, EvidenceSummary
from gate.model.trial import Side
from gate.statistics.evalues import e_of

SHOWN_E = 2.0
"""Cases with at least this e-value are listed even if all their trials passed."""


ROUNDING = 1e-9
"""A mean that drops by no more than this has not fallen: the difference is rounding."""
MOST_GAINS = 5
"""Number of cases to list if a gain is proven but none can be named."""


def summary(evidence: Evidence, *, proven: bool = False) -> EvidenceSummary:
    """Return the summary; ``proven``: for a regression, include the likely gains elsewhere in the suite."""
    cases = {}
    for case in evidence.cases.values():
        if case.e_value >= SHOWN_E or case.passed < case.trials:
            cases[case.id] = _counts(case, case.e_value)
    metrics = {}
    for metric, bound in zip(evidence.state.metrics, evidence.bounds, strict=True):
        if bound is not None:
            metrics[metric.name] = bound
    perhaps_gained = []
    if proven:
        perhaps_gained = _most_gained(evidence)
    return EvidenceSummary(
        epochs=evidence.epochs,
        paired=len(evidence.cases),
        runs={side.value: evidence.runs[side] for side in Side},
        looks=tuple(evidence.looks),
        e_value=finite(evidence.suite_e),
        highest_e_value=finite(evidence.highest_suite_e),
        e_threshold=evidence.e_threshold,
        named=evidence.named,
        cases=cases,
        metrics=metrics,
        unproven=evidence.unproven,
        unprovable=unprovable(evidence),
        gained=_gains([evidence.cases[case_id] for case_id in evidence.gained]),
        repeats=tuple(evidence.repeats.tests),
        perhaps_gained=_gains(perhaps_gained),
    )


def _most_gained(evidence: Evidence) -> list[CaseEvidence]:
    """Return the likeliest gains if none can be named but the mirrored test of the suite proves that some exist."""
    rate = evidence.bounds[0]
    if evidence.gained or rate is None or rate.change < -ROUNDING:
        return []
    if evidence.gain_p > evidence.config.alpha:
        return []
    known = [case for case in evidence.cases.values() if case.log_gain > 0]
    return sorted(known, key=lambda case: (-case.log_gain, case.id))[:MOST_GAINS]


def _gains(cases: Iterable[CaseEvidence]) -> dict[str, CaseCounts]:
    """Return the counts of these cases, with the evidence that they gained."""
    return {case.id: _counts(case, e_of(case.log_gain)) for case in cases}


def _counts(case: CaseEvidence, e_value: float) -> CaseCounts:
    return CaseCounts(e_value, case.passed, case.trials, case.baseline_passed, case.baseline_trials)
