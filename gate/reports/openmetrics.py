"""The OpenMetrics report: gauges as text, for GitLab (``artifacts: reports: metrics``) and file scrapers.

GitLab reads a subset: it cuts a line at ``#`` and splits it like a shell. So no label value contains ``#``, and every
label value is quoted; the text stays valid OpenMetrics for other readers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from gate.model import CriterionResult, Estimate, Result, SuiteResult, Verdict
from gate.security.escape import one_line

_LABEL_CHARS = 200
Labels = Mapping[str, str]


HELP = {
    "gate_passed": "1 where the suite's verdict is pass, else 0.",
    "gate_criterion": "Mean score of a criterion, in its own unit.",
    "gate_criterion_low": "Lower end of the 95 % interval of that mean.",
    "gate_criterion_high": "Upper end of the 95 % interval of that mean.",
    "gate_cases": "Cases by status.",
    "gate_cases_same_requests": "Cases in which the model was asked the same things, not measured again.",
    "gate_agent_runs": "Executions of the agent.",
    "gate_infrastructure_errors": "Trials lost to infrastructure errors.",
    "gate_agent_cost_usd": "Reported or estimated cost of the agent.",
    "gate_judge_cost_usd": "Cost of the judge.",
    "gate_duration_seconds": "Wall time of the suite.",
}
"""The metrics, all gauges, in the order of the report. The name of a metric with a unit ends with it."""
_UNITS = ("usd", "seconds")
Sample = tuple[str, Labels, float]


def render(result: Result) -> str:
    """Return the text, which ends with ``# EOF``. Values that were not measured are omitted: they are not zero."""
    samples: dict[str, dict[str, float]] = {name: {} for name in HELP}
    for suite in result.suites:
        for name, labels, value in _samples(suite):
            if math.isfinite(value):  # the first of two names that differ only in forbidden characters
                samples[name].setdefault(_labelled(labels), value)
    lines: list[str] = []
    for name, values in samples.items():
        lines += _lines(name, values)
    return "\n".join([*lines, "# EOF"]) + "\n"


def _lines(name: str, samples: Mapping[str, float]) -> Iterator[str]:
    if not samples:
        return
    yield f"# TYPE {name} gauge"
    unit = name.rpartition("_")[2]
    if unit in _UNITS:
        yield f"# UNIT {name} {unit}"
    yield f"# HELP {name} {HELP[name]}"
    for labels, value in samples.items():
        yield f"{name}{labels} {value:.10g}"


def _labelled(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    flat = one_line(text, _LABEL_CHARS).replace("#", "＃")
    return flat.replace("\\", "\\\\").replace('"', '\\"')


def _samples(suite: SuiteResult) -> Iterator[Sample]:
    own = {"suite": suite.suite_id}
    yield "gate_passed", own, float(suite.verdict is Verdict.PASS)
    for found in suite.criteria:
        yield from _of_criterion(own, found)
    for status, number in sorted(Counter(case.status.value for case in suite.cases).items()):
        yield "gate_cases", {**own, "status": status}, float(number)
    if suite.replayed is not None:
        yield "gate_cases_same_requests", own, float(suite.replayed.same)
    yield "gate_agent_runs", own, float(suite.agent_runs)
    yield "gate_infrastructure_errors", own, float(suite.errors)
    if suite.cost_usd is not None:
        yield "gate_agent_cost_usd", own, suite.cost_usd
    if suite.judge_cost_usd is not None:
        yield "gate_judge_cost_usd", own, suite.judge_cost_usd
    yield "gate_duration_seconds", own, suite.duration


def _of_criterion(own: Labels, found: CriterionResult) -> Iterator[Sample]:
    estimate: Estimate | None = found.candidate
    if estimate is None:
        return
    # No label has the verdict: GitLab matches a metric with that of the target branch by its name and labels.
    labels = {**own, "criterion": found.criterion.name, "unit": found.criterion.scale.value}
    yield "gate_criterion", labels, estimate.value
    if estimate.level:
        yield "gate_criterion_low", labels, estimate.low
        yield "gate_criterion_high", labels, estimate.high
