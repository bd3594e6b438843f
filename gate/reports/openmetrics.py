"""The OpenMetrics report: gauges as text, for GitLab (``artifacts: reports: metrics``) and file scrapers.

GitLab reads a subset: it cuts a line at ``#`` and splits it like a shell. So no label value contains ``#``, and every
label value is quoted; the text stays valid OpenMetrics for other readers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec import Struct

from gate.model import CriterionResult, Estimate, Result, SuiteResult, Verdict
from gate.security.escape import one_line

_LABEL_CHARS = 200
Labels = Mapping[str, str]


class Family(Struct, frozen=True):
    """A metric of the report; all metrics are gauges."""

    name: str
    help: str
    unit: str = ""


PASSED = Family("gate_passed", "1 where the suite's verdict is pass, else 0.")
CRITERION = Family("gate_criterion", "Mean score of a criterion, in its own unit.")
LOW = Family("gate_criterion_low", "Lower end of the 95 % interval of that mean.")
HIGH = Family("gate_criterion_high", "Upper end of the 95 % interval of that mean.")
CASES = Family("gate_cases", "Cases by status.")
SAME = Family("gate_cases_same_requests", "Cases in which the model was asked the same things, not measured again.")
RUNS = Family("gate_agent_runs", "Executions of the agent.")
ERRORS = Family("gate_infrastructure_errors", "Trials lost to infrastructure errors.")
AGENT = Family("gate_agent_cost_usd", "Reported or estimated cost of the agent.", "usd")
JUDGE = Family("gate_judge_cost_usd", "Cost of the judge.", "usd")
DURATION = Family("gate_duration_seconds", "Wall time of the suite.", "seconds")
FAMILIES = (PASSED, CRITERION, LOW, HIGH, CASES, SAME, RUNS, ERRORS, AGENT, JUDGE, DURATION)
Sample = tuple[Family, Labels, float]


def render(result: Result) -> str:
    """Return the text, which ends with ``# EOF``. Values that were not measured are omitted: they are not zero."""
    samples: dict[str, dict[str, float]] = {family.name: {} for family in FAMILIES}
    for suite in result.suites:
        for family, labels, value in _samples(suite):
            if math.isfinite(value):  # the first of two names that differ only in forbidden characters
                samples[family.name].setdefault(_labelled(labels), value)
    lines = [line for family in FAMILIES for line in _lines(family, samples[family.name])]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _lines(family: Family, samples: Mapping[str, float]) -> Iterator[str]:
    if not samples:
        return
    yield f"# TYPE {family.name} gauge"
    if family.unit:
        yield f"# UNIT {family.name} {family.unit}"
    yield f"# HELP {family.name} {family.help}"
    for labels, value in samples.items():
        yield f"{family.name}{labels} {value:.10g}"


def _labelled(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    flat = one_line(text, _LABEL_CHARS).replace("#", "＃")
    return flat.replace("\\", "\\\\").replace('"', '\\"')


def _samples(suite: SuiteResult) -> Iterator[Sample]:
    own = {"suite": suite.suite_id}
    yield PASSED, own, float(suite.verdict is Verdict.PASS)
    for found in suite.criteria:
        yield from _of_criterion(own, found)
    for status, number in sorted(Counter(case.status.value for case in suite.cases).items()):
        yield CASES, {**own, "status": status}, float(number)
    if suite.replayed is not None:
        yield SAME, own, float(suite.replayed.same)
    yield RUNS, own, float(suite.agent_runs)
    yield ERRORS, own, float(suite.errors)
    for family, spent in ((AGENT, suite.cost_usd), (JUDGE, suite.judge_cost_usd)):
        if spent is not None:
            yield family, own, spent
    yield DURATION, own, suite.duration


def _of_criterion(own: Labels, found: CriterionResult) -> Iterator[Sample]:
    estimate: Estimate | None = found.candidate
    if estimate is None:
        return
    # No label has the verdict: GitLab matches a metric with that of the target branch by its name and labels.
    labels = {**own, "criterion": found.criterion.name, "unit": found.criterion.scale.value}
    yield CRITERION, labels, estimate.value
    if estimate.level:
        yield LOW, labels, estimate.low
        yield HIGH, labels, estimate.high
