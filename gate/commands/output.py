"""The end of every command that gives a verdict: print the report and any problems, then exit."""

from __future__ import annotations

import os
import sys
from shlex import join
from typing import TYPE_CHECKING, NoReturn

import click

if TYPE_CHECKING:
    from gate.model import Result


def command_line() -> str:
    """This command as it was typed, for a report that says how to repeat it."""
    return join(["gate", *sys.argv[1:]])


def finish(result: Result, quiet: bool) -> NoReturn:
    """Prints the report and ends with the verdict's exit code."""
    from shutil import get_terminal_size

    from gate.reports.console import render, render_line
    from gate.security.escape import console

    color = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = get_terminal_size((100, 20)).columns
    encoding = sys.stdout.encoding or "utf-8"
    text = (
        render_line(result, encoding=encoding) if quiet else render(result, width=width, color=color, encoding=encoding)
    )
    try:
        click.echo(text)
    except BrokenPipeError:  # the reader left early; the verdict stands
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123  (or the interpreter complains when it flushes at exit)
    for problem in result.problems:
        click.echo(f"gate: {console(problem)}", err=True)
    raise SystemExit(int(result.exit_code))
