"""The forms a result can be rendered in: one file each, found by name and loaded only when asked for."""

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
    """The function that renders a result in this form. Raises ConfigError for a form that nobody offers."""
    return REPORTS.load(form)
