"""The forms a result can be rendered in: one file each, found by name and loaded only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from gate.errors import ConfigError, nearest
from gate.model import Result

REPORTS: dict[str, str] = {
    "console": "gate.reports.console:render",
    "html": "gate.reports.html:render",
    "json": "gate.reports.json:render",
    "junit": "gate.reports.junit:render",
    "markdown": "gate.reports.markdown:render",
}


def load_report(form: str) -> Callable[[Result], str]:
    """The function that renders a result in this form; every one works with the result alone.

    Raises ConfigError for a form that is not registered.
    """
    if form not in REPORTS:
        raise ConfigError(f"unknown report form {form!r}", hint=nearest(form, list(REPORTS)))
    module, _, name = REPORTS[form].partition(":")
    render: Callable[[Result], str] = getattr(import_module(module), name)
    return render
