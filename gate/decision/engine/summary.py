"""The evidence without the trials behind it: what an outcome carries, and every report draws on."""

from __future__ import annotations

import math

from gate.decision.engine.evidence import Bound, Evidence
from gate.decision.engine.schedule import unprovable
from gate.model.evidence import CaseCounts, EvidenceSummary, LookTest, MetricChange, MetricTest
from gate.model.trial import Side

SHOWN_E = 2.0
"""Cases from this e-value on are listed even if all their trials passed."""


def summary(evidence: Evidence) -> EvidenceSummary:
    looks = (
        LookTest(
            look.epochs,
            look.test.p,
            look.threshold,
            look.test.relabelings,
            {
                name: MetricTest(t.p_mean, t.p_concentrated, t.p_adjusted)
                for name, t in zip(look.names, look.test.metrics, strict=True)
            },
        )
        for look in evidence.looks
    )
    return EvidenceSummary(
        epochs=evidence.epochs,
        paired=len(evidence.cases),
        runs={side.value: evidence.runs[side] for side in Side},
        looks=tuple(looks),
        e_value=_finite(evidence.suite_e),
        highest_e_value=_finite(evidence.highest_suite_e),
        e_threshold=evidence.e_threshold,
        named=evidence.named,
        cases={
            case.id: CaseCounts(
                _finite(case.e_value), case.passed, case.trials, case.baseline_passed, case.baseline_trials
            )
            for case in evidence.cases.values()
            if case.e_value >= SHOWN_E or case.passed < case.trials
        },
        metrics={b.metric.name: _change(b) for b in evidence.bounds},
        unproven=evidence.unproven,
        unprovable=unprovable(evidence),
    )


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
        blocks_regression=bound.metric.blocks_regression,
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
