"""The CTRF report (Common Test Report Format, specification 1.0): the tests of `checks` as one JSON document.

An error counts as failed, because readers take every other CTRF outcome for a success; ``rawStatus`` has the verdict or
the case's status. Keys within ``extra`` are ours, and more may be added.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from gate.decision.outcomes import PASS_RATE
from gate.errors import ExitCode
from gate.model import BaselineInfo, CaseResult, Result, SuiteResult
from gate.reports.checks import NO_SUITE, Outcome, ReportItem, checks_of, told_seconds, unjudged
from gate.reports.labels import at_commit
from gate.reports.view import views_of
from gate.security.escape import one_line, visible
from gate.security.limits import MAX_ID_CHARS, shorten

SPECIFICATION = "1.0.0"
_MESSAGE_CHARS = 1_000
_OUTPUT_CHARS = 20_000
_STATUSES = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "failed",
    Outcome.ERROR: "failed",
    Outcome.SKIPPED: "skipped",
}


def render(result: Result) -> str:
    """Return the document as JSON in ASCII. Text from outside has no control characters and a bounded length."""
    tests = []
    for view in views_of(result):
        tests += [_test(view.suite.suite_id, check) for check in checks_of(view, result)]
    if not tests:
        tests = [_test(NO_SUITE, unjudged(result))]
    document: dict[str, Any] = {
        "reportFormat": "CTRF",
        "specVersion": SPECIFICATION,
        "reportId": _id_of(result, result.suites, str(_start(result))),
        "generatedBy": "Agent Gate",
        "results": {
            "tool": {"name": "Agent Gate", "version": _line(result.version)},
            "summary": _summary(result, tests),
            "tests": tests,
            "environment": _environment(result),
        },
        "extra": {"measured": _id_of(result, result.suites)},
    }
    if rate := _pass_rate(result):
        document["insights"] = {"passRate": rate}
    if baseline := _baseline(result):
        document["baseline"] = baseline
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _line(text: str, limit: int = MAX_ID_CHARS) -> str:
    return one_line(text, limit)


def _text(lines: Sequence[str]) -> str:
    return visible(shorten("\n".join(line for line in lines if line), _OUTPUT_CHARS))


def _milliseconds(seconds: float | None) -> int:
    """Return milliseconds; the format requires a number, and 0 means that the time is not known."""
    return round(1000 * (told_seconds(seconds) or 0.0))


def _sum(amounts: Sequence[float]) -> float | None:
    """Return the sum; None without amounts, or if it overflows, because JSON has no infinity."""
    total = sum(amounts)
    return total if amounts and math.isfinite(total) else None


def _start(result: Result) -> int:
    return min((_milliseconds(suite.started) for suite in result.suites), default=0)


def _id_of(result: Result, measured: Sequence[SuiteResult | BaselineInfo], *more: str) -> str:
    """Return a UUID of suites at commits: the id of a report, by which a later one can name it as its baseline."""
    names = [suite.suite_id for suite in result.suites]
    commits = []
    for one in measured:
        commits.append(at_commit(one.commit, dirty=one.dirty) if one.commit else None)
    return str(uuid5(NAMESPACE_URL, json.dumps(["agent-gate", names, commits, *more])))


def _summary(result: Result, tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts, start = Counter(test["status"] for test in tests), _start(result)
    duration = _milliseconds(result.duration)
    costs = []
    for suite in result.suites:
        costs += [cost for cost in (suite.cost_usd, suite.judge_cost_usd) if cost is not None]
    return {
        "tests": len(tests),
        **{status: counts[status] for status in ("passed", "failed", "skipped", "pending", "other")},
        "flaky": sum(bool(test.get("flaky")) for test in tests),
        "suites": len(result.suites),
        "start": start,
        "stop": start + duration,
        "duration": duration,
        "extra": {
            "verdict": result.verdict.value,
            "exitCode": int(result.exit_code),
            "agentRuns": sum(suite.agent_runs for suite in result.suites),
            "infrastructureErrors": sum(suite.errors for suite in result.suites),
            "infrastructureRetries": sum(suite.retried for suite in result.suites),
            "costUsd": _sum(costs),
        },
    }


def _environment(result: Result) -> dict[str, Any]:
    commits = {suite.commit for suite in result.suites}
    commit = next(iter(commits)) if len(commits) == 1 else None
    known: dict[str, Any] = {"commit": _line(commit)} if commit else {}
    if any(suite.dirty for suite in result.suites):
        known["extra"] = {"uncommittedChanges": True}
    return {**known, "healthy": result.exit_code is ExitCode.PASS}


# --- the baseline ---------------------------------------------------------------------------------


def _baseline(result: Result) -> dict[str, Any]:
    """Return the baselines, named by suites and commits; empty if a suite has none."""
    known = [suite.baseline for suite in result.suites if suite.baseline is not None and not suite.baseline.missing]
    if not known or len(known) < len(result.suites):
        return {}
    commits = [one.commit for one in known]
    found: dict[str, Any] = {"reportId": _id_of(result, known)}
    if len(set(commits)) == 1 and commits[0]:
        found["commit"] = _line(commits[0])
    sources = list(dict.fromkeys(one.source for one in known if one.source))
    return {**found, "source": _line(", ".join(sources))} if sources else found


def _pass_rate(result: Result) -> dict[str, float]:
    """Return the pass rate of a single suite, on both sides over their common cases; empty for several suites."""
    if len(result.suites) != 1:
        return {}
    for found in result.suites[0].criteria:
        if found.criterion.name == PASS_RATE:
            if found.compared is not None:
                before, now = found.compared
                return _rate(now, before)
            return _rate(found.candidate.value if found.candidate is not None else None, None)
    return {}


def _rate(now: float | None, before: float | None) -> dict[str, float]:
    """Return both sides and the change, without unknown or infinite values."""
    change = now - before if now is not None and before is not None else None
    rate = {}
    for name, value in (("current", now), ("baseline", before), ("change", change)):
        if value is not None and math.isfinite(value):
            rate[name] = value
    return rate


# --- tests ----------------------------------------------------------------------------------------


def _test(suite_id: str, check: ReportItem) -> dict[str, Any]:
    status = _STATUSES[check.outcome]
    found: dict[str, Any] = {
        "name": _line(check.name) or "(no name)",
        "status": status,
        "duration": _milliseconds(check.case.duration if check.case is not None else None),
        "suite": [_line(suite_id) or "suite", *map(_line, check.group)],
        "rawStatus": check.kind,
        "message": _line(check.message, _MESSAGE_CHARS),
        "trace": _text(check.details),
        "stdout": _text(check.output).split("\n") if any(check.output) else [],
        "type": _type(check),
    }
    known = {key: value for key, value in found.items() if value not in ("", [])}
    return known if check.case is None else {**known, **_of_case(check.case, status)}


def _type(check: ReportItem) -> str:
    if check.case is not None:
        return "case"
    return "criterion" if "criteria" in check.group else "verdict"


def _of_case(case: CaseResult, status: str) -> dict[str, Any]:
    """Return the trials of a case: the first execution and further ones, which the format calls retries."""
    found: dict[str, Any] = {
        "retries": max(0, case.trials + case.errors - 1),
        "flaky": status == "passed" and 0 < case.passed < case.trials,
        "extra": {
            "trials": case.trials,
            "passed": case.passed,
            "errors": case.errors,
            "baselineTrials": case.baseline_trials,
            "baselinePassed": case.baseline_passed,
        },
    }
    if case.location is not None:
        found["filePath"] = _line(case.location.path)
        if case.location.line is not None:
            found["line"] = case.location.line
    now, before = _share(case.passed, case.trials), _share(case.baseline_passed, case.baseline_trials)
    if rate := _rate(now, before):
        found["insights"] = {"passRate": rate}
    return found


def _share(passed: int, trials: int) -> float | None:
    return passed / trials if trials else None
