"""The evidence behind a decision as plain data: what `gate decide` prints and `gate explain` shows."""

from __future__ import annotations

import math
from typing import Any

from gate.decision.engine.evidence import Bound, Evidence
from gate.model import Side


def report(evidence: Evidence, cases_share: float) -> dict[str, Any]:
    """JSON values only. Changes are oriented (a loss is negative; positive metrics as log ratios); all p one-sided."""
    config = evidence.state.config
    return {
        "passes": evidence.passes,
        "paired": len(evidence.cases),
        "runs": {side.value: evidence.runs[side] for side in Side},
        "looks": [
            {
                "passes": look.passes,
                "p": look.test.p,
                "threshold": look.threshold,
                "relabelings": look.test.relabelings,
                "metrics": {
                    name: {"p_mean": t.p_mean, "p_concentrated": t.p_concentrated, "p_adjusted": t.p_adjusted}
                    for name, t in zip(look.names, look.test.metrics, strict=True)
                },
            }
            for look in evidence.looks
        ],
        "e_value": _finite(evidence.suite_e),
        "highest_e_value": _finite(evidence.highest_suite_e),
        "e_threshold": 1 / (config.alpha * cases_share),
        "named": list(evidence.named),
        "cases": {
            case.id: {
                "e_value": _finite(case.e_value),
                "passed": case.passed,
                "trials": case.trials,
                "baseline_passed": case.baseline_passed,
                "baseline_trials": case.baseline_trials,
            }
            for case in evidence.cases.values()
            if case.e_value >= 2 or case.passed < case.trials
        },
        "metrics": {b.metric.name: _bound(b) for b in evidence.bounds},
    }


def _bound(bound: Bound) -> dict[str, Any]:
    return {
        "cases": bound.cases,
        "trials": bound.trials,
        "change": bound.change,
        "low": _finite(bound.low),
        "high": _finite(bound.high),
        "margin": bound.margin,
        "holds": bound.holds,
        "detectable": bound.detectable,
        "gating": bound.metric.blocks_regression,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
