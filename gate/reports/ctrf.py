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
    baseline = _baseline(result)
    if baseline:
        document["baseline"] = baseline
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def _line(text: str, limit: int = MAX_ID_CHARS) -> str:
    return one_line(text, limit)


def _text(lines: Sequence[str]) -> str:
    return visible(shorten("\n".join(filter(None, lines)), _OUTPUT_CHARS))


def _milliseconds(seconds: float | None) -> int:
    """Return milliseconds; the format requires a number, and 0 means that the time is not known."""
    return round(1000 * (told_seconds(seconds) or 0.0))


def _sum(amounts: Sequence[float]) -> float | None:
    """Return the sum; None without amounts, or if it overflows, because JSON has no infinity."""
    total = sum(amounts)
    if amounts and math.isfinite(total):
        return total
    return None


def _start(result: Result) -> int:
    return min((_milliseconds(suite.started) for suite in result.suites), default=0)


def _id_of(result: Result, measured: Sequence[SuiteResult | BaselineInfo], *more: str) -> str:
    """Return a UUID of suites at commits: the id of a report, by which a later one can name it as its baseline."""
    names = [suite.suite_id for suite in result.suites]
    commits: list[str | None] = []
    for one in measured:
        if one.commit:
            commits.append(at_commit(one.commit, dirty=one.dirty))
        else:
            commits.append(None)
    return str(uuid5(NAMESPACE_URL, json.dumps(["agent-gate", names, commits, *more])))


def _summary(result: Result, tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts, start = Counter(test["status"] for test in tests), _start(result)
    duration = _milliseconds(result.duration)
    costs: list[float] = []
    runs = errors = retries = 0
    for suite in result.suites:
        runs += suite.agent_runs
        errors += suite.errors
        retries += suite.retried
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
            "agentRuns": runs,
            "infrastructureErrors": errors,
            "infrastructureRetries": retries,
            "costUsd": _sum(costs),
        },
    }


def _environment(result: Result) -> dict[str, Any]:
    known: dict[str, Any] = {}
    commits = {suite.commit for suite in result.suites}
    if len(commits) == 1:
        commit = commits.pop()
        if commit:
            known["commit"] = _line(commit)
    if any(suite.dirty for suite in result.suites):
        known["extra"] = {"uncommittedChanges": True}
    return {**known, "healthy": result.exit_code is ExitCode.PASS}


# --- the baseline ---------------------------------------------------------------------------------


def _baseline(result: Result) -> dict[str, Any]:
    """Return the baselines, named by suites and commits; empty if a suite has none."""
    known = []
    for suite in result.suites:
        if suite.baseline is None or suite.baseline.missing:
            return {}
        known.append(suite.baseline)
    if not known:
        return {}
    found: dict[str, Any] = {"reportId": _id_of(result, known)}
    commits = {one.commit for one in known}
    if len(commits) == 1 and known[0].commit:
        found["commit"] = _line(known[0].commit)
    sources = dict.fromkeys(one.source for one in known)
    source = ", ".join(filter(None, sources))
    if source:
        found["source"] = _line(source)
    return found


# --- tests ----------------------------------------------------------------------------------------


def _test(suite_id: str, check: ReportItem) -> dict[str, Any]:
    status = _STATUSES[check.outcome]
    duration = None
    if check.case is not None:
        duration = check.case.duration
    found: dict[str, Any] = {
        "name": _line(check.name) or "(no name)",
        "status": status,
        "duration": _milliseconds(duration),
        "suite": [_line(suite_id) or "suite", *map(_line, check.group)],
        "rawStatus": check.kind,
        "message": _line(check.message, _MESSAGE_CHARS),
        "trace": _text(check.details),
        "stdout": _text(check.output).split("\n"),
        "type": _type(check),
    }
    known = {key: value for key, value in found.items() if value not in ("", [""])}
    if check.case is not None:
        known.update(_of_case(check.case, status))
    return known


def _type(check: ReportItem) -> str:
    if check.case is not None:
        return "case"
    if "criteria" in check.group:
        return "criterion"
    return "verdict"


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
    return found
