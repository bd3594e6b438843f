"""A result as a notebook shows it: a fragment of HTML that needs nothing else, short however large the run was.

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
    """The verdict, what it rests on, and the cases to look at; at most about 100 kB."""
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
    facts = view.facts
    return "".join(
        [
            f"<h4>{mark} {_text(view.suite.suite_id, 100)}: {_text(view.title)}</h4>",
            f"<p>{_text(' '.join(view.lead), 600)}</p>" if view.lead else "",
            f"<p><strong>Next:</strong> {_text(todo)}</p>" if (todo := view.next_step()) else "",
            _table(view.rows),
            _more(len(view.rows) - _CRITERIA, "more criterion", "more criteria"),
            _cases((*view.worse, *view.failing)),
            f"<p><small>{_text(facts['Cost'])}; {_text(facts['Baseline'])}</small></p>",
        ]
    )


def _table(criteria: Sequence[RowView]) -> str:
    heads = ("", "criterion", "wanted", "candidate", "baseline", "change")
    rows = [_row("th", heads), *(_row("td", _cells(row)) for row in criteria[:_CRITERIA])]
    return f'<table style="border-collapse:collapse">{"".join(rows)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    shown = "".join(f'<{tag} style="{_CELL}">{_text(cell, 120)}</{tag}>' for cell in cells)
    return f"<tr>{shown}</tr>"


def _cells(row: RowView) -> tuple[str, ...]:
    sign = _SIGNS[row.tone]
    return (sign, row.name, row.wanted, row.candidate.text, row.baseline.text, row.change.text)


def _cases(cases: Sequence[CaseResult]) -> str:
    """Each folded: its name and how often it passed, and behind that why it did not."""
    folds = [
        f"<details><summary><code>{_text(case.id, 120)}</code> {status(case)}: {tally(case)}</summary>"
        f"<ul>{''.join(f'<li>{_text(reason)}</li>' for reason in distinct(case.reasons)[:3])}</ul></details>"
        for case in cases[:_CASES]
    ]
    case, several = (f"more {noun} with failing trials" for noun in ("case", "cases"))
    return "".join([*folds, _more(len(cases) - _CASES, case, several)])


def _more(left: int, what: str, plural: str = "") -> str:
    return f"<p>… and {count(left, what, plural)}</p>" if left > 0 else ""


def _text(text: str, limit: int = 300) -> str:
    return escape.html(escape.one_line(text, limit))
