"""A result as a notebook shows it: a fragment of HTML that needs nothing else, short however large the run was.

Every text goes through `gate.security.escape`; colours are those of the notebook's own theme.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.model import CaseResult, CriterionResult, Result, SuiteResult, Verdict
from gate.reports import explanation
from gate.reports import headline as lead
from gate.reports import labels as words
from gate.reports.formatting import count, threshold
from gate.security import escape

_MARKS = {
    Verdict.NOT_APPLIED: "–",
    Verdict.PASS: "✓",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NOT_MEASURED: "?",
    Verdict.NOT_COMPARED: "✗",
    Verdict.BELOW_THRESHOLD: "✗",
    Verdict.REGRESSED: "✗",
    Verdict.ERROR: "!",
}
_SUITES, _CRITERIA, _CASES = 5, 20, 10
_CELL = "text-align:left;padding:.15em 1em .15em 0"


def fragment(result: Result) -> str:
    """The verdict, what it rests on, and the cases to look at; at most about 100 kB."""
    parts = [_suite(suite) for suite in result.suites[:_SUITES]]
    parts.append(_more(len(result.suites) - _SUITES, "more suite"))
    parts += [f"<p>{_text(problem)}</p>" for problem in result.problems[:_SUITES]]
    end = f"<p><strong>{_text(words.end_line(result, result.verdict))}</strong></p>"
    return f'<div class="agent-gate">{"".join(parts)}{end}</div>'


def line(result: Result) -> str:
    """The same for a terminal: a line for each suite."""
    from gate.reports.console import render_line

    return render_line(result)


def _suite(suite: SuiteResult) -> str:
    mark, verdict = _MARKS[suite.verdict], words.VERDICTS[suite.verdict]
    todo = lead.next_step(suite)
    cases = (*words.worse_cases(suite), *words.failing_cases(suite))
    return "".join(
        [
            f"<h4>{mark} {_text(suite.suite_id, 100)}: {verdict}</h4>",
            f"<p>{_text(explanation.headline(suite), 400)}</p>",
            f"<p><strong>next:</strong> {_text(todo)}</p>" if todo else "",
            _table(suite.criteria),
            _more(len(suite.criteria) - _CRITERIA, "more criterion", "more criteria"),
            _cases(cases),
            f"<p><small>{_text(words.cost_line(suite))}; {_text(words.baseline_line(suite.baseline))}</small></p>",
        ]
    )


def _table(criteria: Sequence[CriterionResult]) -> str:
    heads = ("", "criterion", "wanted", "candidate", "baseline", "change")
    rows = [_row("th", heads), *(_row("td", _cells(found)) for found in criteria[:_CRITERIA])]
    return f'<table style="border-collapse:collapse">{"".join(rows)}</table>'


def _row(tag: str, cells: Sequence[str]) -> str:
    shown = "".join(f'<{tag} style="{_CELL}">{_text(cell, 120)}</{tag}>' for cell in cells)
    return f"<tr>{shown}</tr>"


def _cells(found: CriterionResult) -> tuple[str, ...]:
    verdict = words.shown(found)
    ticked = words.is_ticked(found) or verdict is not Verdict.PASS
    return (
        _MARKS[verdict] if ticked else "–",
        found.criterion.name,
        threshold(found.criterion),
        words.candidate_figure(found),
        words.baseline_figure(found),
        words.change_figure(found),
    )


def _cases(cases: Sequence[CaseResult]) -> str:
    """Each folded: its name and how often it passed, and behind that why it did not."""
    folds = [
        f"<details><summary><code>{_text(case.id, 120)}</code> {words.status(case)}: {words.tally(case)}</summary>"
        f"<ul>{''.join(f'<li>{_text(reason)}</li>' for reason in words.distinct(case.reasons)[:3])}</ul></details>"
        for case in cases[:_CASES]
    ]
    case, several = (f"more {noun} with failing trials" for noun in ("case", "cases"))
    return "".join([*folds, _more(len(cases) - _CASES, case, several)])


def _more(left: int, what: str, plural: str = "") -> str:
    return f"<p>… and {count(left, what, plural)}</p>" if left > 0 else ""


def _text(text: str, limit: int = 300) -> str:
    return escape.html(escape.one_line(text, limit))
