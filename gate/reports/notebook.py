"""A result in a notebook: a self-contained fragment of HTML, short for runs of any size.

Every text goes through `gate.security.escape`; colours are those of the notebook's own theme.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.model import CaseResult, Result
from gate.reports.cases import distinct, status, tally
from gate.reports.formatting import count
from gate.reports.labels import TONES, end_line
from gate.reports.rows import RowView
from gate.reports.view import View, views_of
from gate.security import escape

_SIGNS = {"good": "✓", "bad": "✗", "error": "!", "warn": "?", "mute": "–"}
_SUITES, _CRITERIA, _CASES = 5, 20, 10
_CELL = "text-align:left;padding:.15em 1em .15em 0"


def fragment(result: Result) -> str:
    """Return the verdict, its basis, and the cases to look at; at most about 100 kB."""
    parts = [_suite(view) for view in views_of(result)[:_SUITES]]
    parts.append(_more(len(result.suites) - _SUITES, "more suite"))
    parts += [f"<p>{_text(problem)}</p>" for problem in result.problems[:_SUITES]]
    end = f"<p><strong>{_text(end_line(result, result.verdict))}</strong></p>"
    return f'<div class="agent-gate">{"".join(parts)}{end}</div>'


def line(result: Result) -> str:
    """Return the result for a terminal: a line for each suite."""
    from gate.reports.console import render_line

    return render_line(result)


def _suite(view: View) -> str:
    mark = _SIGNS[TONES[view.suite.verdict]]
    parts = [f"<h4>{mark} {_text(view.suite.suite_id, 100)}: {_text(view.title)}</h4>"]
    if view.lead:
        parts.append(f"<p>{_text(' '.join(view.lead), 600)}</p>")
    todo = view.next_step()
    if todo:
        parts.append(f"<p><strong>Next:</strong> {_text(todo)}</p>")
    parts.append(_table(view.rows))
    parts.append(_more(len(view.rows) - _CRITERIA, "more criterion", "more criteria"))
    parts.append(_cases((*view.worse, *view.failing)))
    parts.append(f"<p><small>{_text(view.facts['Cost'])}; {_text(view.facts['Baseline'])}</small></p>")
    return "".join(parts)


def _table(criteria: Sequence[RowView]) -> str:
    heads = ("", "criterion", "wanted", "this change", "baseline", "change")
    rows = [_row("th", heads)]
    for row in criteria[:_CRITERIA]:
        rows.append(_row("td", _cells(row)))
    return f'<table style="border-collapse:collapse">{"".join(rows)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    shown = "".join(f'<{tag} style="{_CELL}">{_text(cell, 120)}</{tag}>' for cell in cells)
    return f"<tr>{shown}</tr>"


def _cells(row: RowView) -> tuple[str, ...]:
    sign = _SIGNS[row.tone]
    return (sign, row.name, row.wanted, row.candidate.text, row.baseline.text, row.change.text)


def _cases(cases: Sequence[CaseResult]) -> str:
    """Return the cases, each folded: its name and passes, with the reasons inside the fold."""
    folds = []
    for case in cases[:_CASES]:
        reasons = "".join([f"<li>{_text(reason)}</li>" for reason in distinct(case.reasons)[:3]])
        summary = f"<summary><code>{_text(case.id, 120)}</code> {status(case)}: {tally(case)}</summary>"
        folds.append(f"<details>{summary}<ul>{reasons}</ul></details>")
    folds.append(_more(len(cases) - _CASES, "more case with failing trials", "more cases with failing trials"))
    return "".join(folds)


def _more(left: int, what: str, plural: str = "") -> str:
    if left <= 0:
        return ""
    return f"<p>… and {count(left, what, plural)}</p>"


def _text(text: str, limit: int = 300) -> str:
    return escape.html(escape.one_line(text, limit))
