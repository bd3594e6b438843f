"""The evidence behind a decision as public JSON, for `gate decide` and the JSON report."""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from gate.model.evidence import EvidenceSummary, Stage, StageKind

_STAGES = {
    StageKind.SUITE_LOOK: "suite look {0}",
    StageKind.CASES_AT_PASS: "cases at pass {0}",
    StageKind.CASE_RERUNS: "case reruns",
    StageKind.REPEATS: "repeats of failing cases at pass {0}",
    StageKind.CERTIFIED: "certified at pass {0}",
    StageKind.UNPROVEN: "a case that always passed never does now, and the baseline cannot prove it",
    StageKind.END: "end of schedule",
    StageKind.NOTHING: "nothing to compare",
    StageKind.DRIFTED: "not confirmed against the baseline's agent run now (drift or chance)",
    StageKind.MOVED_BEFORE: "not confirmed against the baseline's newest runs",
}


def report(evidence: EvidenceSummary) -> dict[str, Any]:
    """Return the evidence as JSON values. Changes are oriented (a loss is negative; positive metrics as log ratios);
    all p-values are one-sided."""
    found: dict[str, Any] = to_builtins(evidence)
    for metric in found["metrics"].values():
        metric["gating"] = metric.pop("blocks_regression")  # the protocol's own key
    return found


def stage_name(stage: Stage) -> str:
    """Return the protocol's name: ``suite look 1``, or ``suite look 1, confirmed against the baseline's agent run
    now``."""
    name = _STAGES[stage.kind].format(stage.epochs)
    return f"{name}, confirmed against the baseline's agent run now" if stage.confirmed else name
