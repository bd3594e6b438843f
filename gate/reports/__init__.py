"""The formats of a result: one file each, found by name and loaded only when needed.

Templates turn findings into words: those on a suite in `words`, those on a criterion in `reasons`. From them a `View`
builds everything that is said of a suite, its longer parts in `certainty`, `next_step` and `story`; a `RowView` does so
for a criterion. `cases` selects the cases to show, `labels` names verdicts and costs, `formatting` formats figures. The
formats only lay this out: `console`, `markdown`, `json`, `openmetrics`, and, as tests of a test runner (`checks`),
`junit` and `ctrf`. `notebook` and most of `html` are the Markdown as HTML. Histories (`history`) and line-ups
(`lineup`) have separate texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gate.registry import Registry

if TYPE_CHECKING:
    from gate.model import Result

_BUILT_IN = {
    "console": "gate.reports.console:render",
    "junit": "gate.reports.junit:render",
    "ctrf": "gate.reports.ctrf:render",
    "openmetrics": "gate.reports.openmetrics:render",
    "html": "gate.reports.html:render",
    "json": "gate.reports.json:render",
    "markdown": "gate.reports.markdown:render",
}
REPORTS = Registry["Callable[[Result], str]"]("report", "agent_gate.reports", _BUILT_IN)
"""Name → the function that renders a result; each needs only the result. Files are written in this order."""
FILES = ("junit", "openmetrics", "html", "json", "markdown")
"""The reports with their own command-line option, such as ``--junit PATH``; ``--report NAME=PATH`` writes any."""


def load_report(form: str) -> Callable[[Result], str]:
    """Return the function that renders a result in this format. Raises ConfigError for an unknown format."""
    return REPORTS.load(form)
