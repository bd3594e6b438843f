"""A result in a notebook: the comment as a fragment of HTML, in the colours of the notebook's own theme."""

from __future__ import annotations

from gate.model import Result
from gate.reports.markdown import render
from gate.security import escape

LIMIT = 40_000
"""Maximum number of characters of the comment: a notebook is saved with its outputs."""
MOST_PROBLEMS = 5


def fragment(result: Result) -> str:
    """Return the verdict, the cases that show it, the next step and, folded, the numbers."""
    from gate.reports.html.page import from_markdown  # weight: only needed in a notebook

    lines = [render(result, limit=LIMIT)]
    lines += [f"- {escape.markdown(problem)}" for problem in result.problems[:MOST_PROBLEMS]]
    shown = from_markdown("\n".join(lines))
    return f'<div class="agent-gate">{shown}</div>'
