"""The forms a result can be rendered in: one file each, found by name and loaded only when asked for.

Findings become words by templates: of a suite in `words`, of a criterion in `reasons`. `explanation` makes the headline
and the next step of them, and `story` tells how the verdict came about. A `View` has all of it once for a suite, its
`RowView` for a criterion; `cases` says which cases are shown, `labels` names verdicts and costs, `formatting` knows
figures. The forms only lay that out: `console`, `markdown`, `html`, `notebook`, `json`, `openmetrics`, and as tests of
a test runner (`checks`) `junit` and `ctrf`. Histories (`history`) and line-ups (`lineup`) have words of their own.
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
"""Name → the function that renders a result; every one works with the result alone. Files are written in this order."""
FILES = tuple(name for name in REPORTS if name != "console")
"""The reports that have an option of their own on the command line: ``--junit PATH``."""


def load_report(form: str) -> Callable[[Result], str]:
    """Return the function that renders a result in this form. Raises ConfigError for an unknown form."""
    return REPORTS.load(form)
