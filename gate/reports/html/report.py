"""The HTML report: one self-contained page, without scripts, under a policy that lets nothing be loaded or run.

Chooses what the page says; ``templates/report.html`` lays it out. Every value is escaped as it enters the template, its
control characters are made visible, and it is cut to `_LIMIT` characters: the template cannot forget to.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from gate.model import CaseResult, CriterionResult, Estimate, Result, SuiteResult
from gate.reports import explanation, headline
from gate.reports import labels as words
from gate.reports.formatting import (
    change_sample,
    dimensions,
    evidence,
    interval,
    judge_line,
    sample,
    threshold,
    tool_times,
)
from gate.reports.reasons import reason
from gate.reports.trajectory_diff import differences
from gate.security.escape import one_line
from gate.security.limits import shorten

_LIMIT = 500
_MANY = 200
_FEW = 5


def render(result: Result) -> str:
    """A whole page. It loads no other resource, and everything from outside is escaped and bounded."""
    template, style = _page()
    return template.render(
        style=Markup(style),  # noqa: S704 - a file of ours
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        version=one_line(result.version, 30),
        verdict=words.VERDICTS[result.verdict],
        suites=[_suite(suite, words.explain_line(result, suite)) for suite in result.suites],
        command=words.command_lines(result.command),
        ends=words.exit_line(result.exit_code, result.verdict),
    )


@cache
def _page() -> tuple[Template, str]:
    loader = PackageLoader("gate.reports.html")
    pages = Environment(
        loader=loader,
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return pages.get_template("report.html"), loader.get_source(pages, "report.css")[0]


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else one_line(str(value), _LIMIT)


def _suite(suite: SuiteResult, explain: str) -> Mapping[str, Any]:
    worse = words.worse_cases(suite)
    return {
        "tone": suite.verdict.value,
        "id": one_line(suite.suite_id, 200),
        "verdict": words.VERDICTS[suite.verdict],
        "headline": explanation.headline(suite),
        "next": headline.next_step(suite),
        "accepted": suite.accepted,
        "criteria": [_criterion(criterion) for criterion in suite.criteria[:_MANY]],
        "further": [words.further_line(one) for one in suite.further[:_MANY]],
        "worse": _cases(words.worse_title(worse), worse, opened=3),
        "failing": _cases("Cases with failing trials, not shown to be worse", words.failing_cases(suite), opened=0),
        "improved": [f"{case.id}: {words.improvement(case, suite)}" for case in words.improved_cases(suite)[:_MANY]],
        "explain": explain,
        "changes": explanation.changes(suite)[:_MANY],
        "story": headline.story(suite)[:_MANY],
        "warnings": explanation.warnings(suite)[:_MANY],
        "facts": {
            "Cases": words.status_counts(suite),
            "Baseline": words.baseline_line(suite.baseline),
            "Stored": words.stored_line(suite),
            "Cost": words.cost_line(suite),
            "Time per tool": "; ".join(f"{name} {said}" for name, said in tool_times(suite)[:_FEW]),
            "Candidate": shorten(suite.commit or "", 40),
            "Seed": str(suite.seed),
        },
    }


# --- criteria -------------------------------------------------------------------------------------


def _criterion(result: CriterionResult) -> Mapping[str, Any]:
    criterion, verdict = result.criterion, words.shown(result)
    advisory = "" if criterion.blocking or criterion.blocks_regression else " (warns only)"
    return {
        "tone": verdict.value if words.is_ticked(result) or verdict.value != "pass" else "unchecked",
        "name": one_line(criterion.name, 200),
        "standing": f"{words.standing(result)}{advisory}",
        "wanted": threshold(criterion),
        "figures": (
            ("candidate", interval(result.candidate, criterion.scale), sample(result.candidate)),
            ("baseline", words.baseline_figure(result), sample(result.baseline)),
            ("change", words.change_figure(result), change_sample(result)),
        ),
        "plot": _plot(result),
        "reason": reason(result),
        "evidence": "; ".join(filter(None, [judge_line(result), evidence(result)])),
        "parts": [f"{one_line(name, 80)} {said}" for name, said in dimensions(result)[:_MANY]],
    }


def _plot(result: CriterionResult) -> Mapping[str, Any] | None:
    """Both intervals on one axis, with the threshold as a dashed line; the table beside it has the figures."""
    estimates = [(e, kind, y) for e, kind, y in ((result.candidate, "now", 15), (result.baseline, "before", 31)) if e]
    if not estimates:
        return None
    low, high = _axis(result, [e for e, _, _ in estimates])

    def x(value: float) -> float:
        return round(6 + 132 * min(max((value - low) / (high - low), 0.0), 1.0), 1)

    limit = result.criterion.threshold
    return {
        "title": "candidate above, baseline below" + (", threshold dashed" if limit is not None else ""),
        "limit": None if limit is None else x(limit),
        "rows": [
            {"kind": kind, "low": x(e.low), "value": x(e.value), "high": x(e.high), "y": y} for e, kind, y in estimates
        ],
    }


def _axis(result: CriterionResult, estimates: Sequence[Estimate]) -> tuple[float, float]:
    if result.criterion.scale.is_bounded:
        return result.criterion.scale.range
    limit = result.criterion.threshold
    highest = max([*(e.high for e in estimates), *([limit] if limit is not None else [])])
    return 0.0, highest * 1.1 if highest > 0 else 1.0


# --- cases ----------------------------------------------------------------------------------------


def _cases(title: str, cases: Sequence[CaseResult], *, opened: int) -> Mapping[str, Any]:
    more = f"{len(cases) - _MANY:,}" if len(cases) > _MANY else ""
    return {"title": title, "cases": [_case(case) for case in cases[:_MANY]], "opened": opened, "more": more}


def _case(case: CaseResult) -> Mapping[str, Any]:
    return {
        "id": one_line(case.id, 200),
        "standing": f"{words.status(case)}, {words.tally(case)}",
        "place": one_line(str(case.location), 200) if case.location else "",
        "reasons": case.reasons[:10],
        "turns": differences(case),
    }
