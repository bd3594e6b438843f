"""The evidence without the underlying trials: part of each outcome, and the basis of all reports."""

from __future__ import annotations

import math

from gate.decision.engine.bounds import Bound
from gate.decision.engine.case import CaseEvidence
from gate.decision.engine.evidence import Evidence
from gate.decision.engine.schedule import unprovable
from gate.model.evidence import CaseCounts, EvidenceSummary, MetricChange
from gate.model.trial import Side

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
            cases[case.id] = _counts(case, _finite(case.e_value))
    perhaps_gained = {}
    for case in _most_gained(evidence) if proven else ():
        perhaps_gained[case.id] = _gain(case)
    return EvidenceSummary(
        epochs=evidence.epochs,
        paired=len(evidence.cases),
        runs={side.value: evidence.runs[side] for side in Side},
        looks=tuple(evidence.looks),
        e_value=_finite(evidence.suite_e),
        highest_e_value=_finite(evidence.highest_suite_e),
        e_threshold=evidence.e_threshold,
        named=evidence.named,
        cases=cases,
        metrics={bound.metric.name: _change(bound) for bound in evidence.bounds},
        unproven=evidence.unproven,
        unprovable=unprovable(evidence),
        gained={case_id: _gain(evidence.cases[case_id]) for case_id in evidence.gained},
        repeats=tuple(evidence.repeats.tests),
        perhaps_gained=perhaps_gained,
    )


def _most_gained(evidence: Evidence) -> list[CaseEvidence]:
    """Return the likeliest gains if none can be named but the mirrored test of the suite proves that some exist."""
    changes = [bound.change for bound in evidence.bounds if bound.metric is evidence.state.metrics[0]]
    if evidence.gained or not changes or changes[0] < -ROUNDING:
        return []
    if evidence.gain_p > evidence.state.config.alpha:
        return []
    known = [case for case in evidence.cases.values() if case.log_gain > 0]
    return sorted(known, key=lambda case: (-case.log_gain, case.id))[:MOST_GAINS]


def _gain(case: CaseEvidence) -> CaseCounts:
    return _counts(case, math.exp(min(case.log_gain, 700.0)))


def _counts(case: CaseEvidence, e_value: float | None) -> CaseCounts:
    return CaseCounts(e_value, case.passed, case.trials, case.baseline_passed, case.baseline_trials)


def _change(bound: Bound) -> MetricChange:
    return MetricChange(
        cases=bound.cases,
        trials=bound.trials,
        change=bound.change,
        low=_finite(bound.low),
        high=_finite(bound.high),
        margin=bound.margin,
        holds=bound.holds,
        detectable=bound.detectable,
        excluded=_finite(bound.excluded),
        blocks_regression=bound.metric.blocks_regression,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
