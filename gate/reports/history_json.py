"""A history as JSON, versioned: every run, every series with all of its points, versions and cases.

This is version 1. Within a version, keys may be added, but none is removed or changes its meaning.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gate.histories.cases import CaseHistory
from gate.histories.trends import Going, Histories, PastRun, Point, Series, SeriesMove, SuiteHistory, Version
from gate.model import Estimate
from gate.reports.history import break_lines, findings, warning_line
from gate.reports.json import plain

VERSION = 1


def render(found: Histories) -> str:
    """Return indented JSON in ASCII; never writes NaN or an infinity."""
    document = {
        "history": VERSION,
        "source": found.source,
        "suites": [suite_json(suite) for suite in found.suites],
        "left_out": msgspec.to_builtins(found.unread),
    }
    text = json.dumps(plain(document), allow_nan=False)  # indenting here is ten times slower, as it is not compiled
    return msgspec.json.format(text, indent=1) + "\n"


def suite_json(suite: SuiteHistory) -> dict[str, Any]:
    """Return one suite; runs are referred to by position, from 0, oldest first."""
    return {
        "suite": suite.suite_id,
        "findings": findings(suite),
        "runs": [_run(run) for run in suite.runs],
        "series": [_series(series, suite) for series in suite.series],
        "versions": [_version(version) for version in suite.versions],
        "cases": [_case(case) for case in suite.cases],
    }


def _run(run: PastRun) -> dict[str, Any]:
    return {
        "id": run.id,
        "created": run.created,
        "commit": run.commit,
        "dirty": run.dirty,
        "subject": run.subject or None,
        "agent": run.agent or None,
        "version": run.told or None,
        "where": run.where,
        "verdict": run.verdict or None,
        "releases": list(run.releases),
        "cases": len(run.cases),
        "trials": run.values.trials,
        "failed": run.values.failed,
        "unmeasured": run.values.unmeasured,
    }


def _series(series: Series, suite: SuiteHistory) -> dict[str, Any]:
    criterion = series.criterion
    return {
        "criterion": series.name,
        "metric": criterion.metric,
        "tag": series.tag or None,
        "scale": criterion.scale.value,
        "direction": criterion.direction.value,
        "threshold": criterion.threshold,
        "summary": msgspec.to_builtins(series.summary),
        "points": [_point(point) for point in series.points],
        "comparable_from": series.current[0].run,
        "breaks": break_lines([series], suite),
        "moves": [_move(move, suite) for move in series.moves],
        "trend": _trend(series.going),
        "early_warning": _early_warning(series),
    }


def _early_warning(series: Series) -> dict[str, Any] | None:
    if series.ahead is None:
        return None
    return {**msgspec.to_builtins(series.ahead), "text": warning_line(series)}


def _move(move: SeriesMove, suite: SuiteHistory) -> dict[str, Any]:
    commits = {
        "commit": suite.runs[move.run].commit,
        "from": suite.runs[move.first].commit,
        "to": suite.runs[move.last].commit,
    }
    return {**msgspec.to_builtins(move), "commits": commits}


def _point(point: Point) -> dict[str, Any]:
    return {"run": point.run, **_estimate(point.estimate), "min": point.least, "max": point.most}


def _trend(going: Going | None) -> dict[str, Any] | None:
    if going is None:
        return None
    return {
        "runs": going.runs,
        "beyond_chance": going.found,
        "per_run": _slope(going.by_run),
        "per_week": _slope(going.by_week),
    }


def _slope(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    return {"value": estimate.value, "low": estimate.low, "high": estimate.high, "level": estimate.level}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "average": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "level": estimate.level,
        "sd": estimate.sd,
        "cases": estimate.n,
        "n": estimate.trials,
    }


def _version(version: Version) -> dict[str, Any]:
    criteria = {}
    for value in version.values:
        criteria[value.name] = {**_estimate(value.estimate), "min": value.least, "max": value.most}
    return {
        "agent": version.agent or None,
        "commits": list(version.commits),
        "runs": list(version.runs),
        "criteria": criteria,
    }


def _case(case: CaseHistory) -> dict[str, Any]:
    return {
        "id": case.id,
        "passed": case.passed,
        "n": case.trials,
        "low": case.low,
        "high": case.high,
        "flaky": case.flaky,
        "by_run": [list(counts) for counts in case.by_record],
    }
