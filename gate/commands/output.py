"""The end of every command with a verdict: prints the report and any problems, then exits."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from shlex import join
from typing import TYPE_CHECKING, NoReturn

import click

from gate.errors import Cancelled, ExitCode, GateError

if TYPE_CHECKING:
    from gate.model import Result
    from gate.pipeline.progress import Progress
    from gate.reports.files import Outputs


def command_line() -> str:
    """Return the command line as typed, for a report that explains how to repeat it."""
    return join(["gate", *sys.argv[1:]])


def is_plain(environment: Mapping[str, str]) -> bool:
    """True if the terminal wants plain text: no colours and no cursor movements."""
    return bool(environment.get("NO_COLOR")) or is_dumb(environment)


def is_dumb(environment: Mapping[str, str]) -> bool:
    """True if the terminal supports only ASCII; a terminal without colours may support more."""
    return environment.get("TERM") == "dumb"


def encoding_of(environment: Mapping[str, str]) -> str:
    """Return the encoding of standard output."""
    return "ascii" if is_dumb(environment) else sys.stdout.encoding or "utf-8"


def width_of(environment: Mapping[str, str]) -> int | None:
    """Return the columns of the terminal or of ``COLUMNS``; None for a file or a pipe, where lines are not broken."""
    if not (sys.stdout.isatty() or environment.get("COLUMNS", "").isdigit()):
        return None
    return report_width()


def report_width() -> int:
    """Return the columns of a report: those of the terminal, or 80 for a file."""
    from shutil import get_terminal_size  # weight: few commands need it

    return get_terminal_size((80, 24)).columns


def show(text: str, width: int | None = None) -> None:
    """Print the output of a command, in lines of at most ``width`` columns."""
    from gate.reports.table import fit

    click.echo(fit(text, width))


def progress_of(quiet: bool) -> Progress:
    """Return the progress display for trials."""
    from gate.pipeline.progress import Progress, ProgressBar, ProgressLines

    if quiet:
        return Progress()
    moves = sys.stderr.isatty() and not os.environ.get("CI") and not is_plain(os.environ)
    return ProgressBar(sys.stderr) if moves else ProgressLines(sys.stderr)


@contextmanager
def simulated(suite: str) -> Iterator[Callable[[], None]]:
    """Count simulated changes on a terminal's standard error; yield the function that adds one."""
    from gate.security.escape import console

    done, is_shown = 0, sys.stderr.isatty() and not is_plain(os.environ)

    def tick() -> None:
        nonlocal done
        done += 1
        if is_shown and done % 10 == 0:
            sys.stderr.write(f"\r{console(suite, 60)}: {done} changes simulated")
            sys.stderr.flush()

    yield tick
    if is_shown:
        sys.stderr.write("\r\033[K")


@contextmanager
def errors_in_reports(outputs: Callable[[], Outputs]) -> Iterator[None]:
    """Write an error without a verdict to the reports as well, as far as they are known by then.

    Otherwise the verdict of an earlier run in these files could be taken for this run's.
    """
    try:
        yield
    except BaseException as error:
        from gate.reports.files import write_stubs

        write_stubs(outputs(), *_ending(error))
        raise


def _ending(error: BaseException) -> tuple[str, ExitCode]:
    """Return the message of an error without its traceback, and its exit code."""
    match error:
        case GateError():
            return str(error), error.exit_code
        case click.ClickException():
            return error.format_message(), ExitCode.CONFIGURATION
        case Cancelled() | KeyboardInterrupt() | click.Abort():
            return "stopped before there was a verdict", ExitCode(getattr(error, "exit_code", ExitCode.INTERRUPTED))
        case _:
            return f"unexpected {type(error).__name__}: {error}", ExitCode.NOT_MEASURED


def finish(result: Result, quiet: bool, verbose: bool = False) -> NoReturn:
    """Print the report and end with the verdict's exit code."""
    print_result(result, quiet, verbose)
    raise SystemExit(int(result.exit_code))


def print_result(result: Result, quiet: bool, verbose: bool = False) -> None:
    """Print the report, and its problems on stderr."""
    from gate.reports.console import render, render_line
    from gate.security.escape import console

    color = sys.stdout.isatty() and not is_plain(os.environ)
    encoding = encoding_of(os.environ)
    if quiet:
        text = render_line(result, encoding=encoding)
    else:
        text = render(result, width=report_width(), color=color, encoding=encoding, verbose=verbose)
    show(text)
    ended = [line for line in _ended_early(result) if quiet and line not in text]  # the full report already has it
    for problem in (*ended, *result.problems):
        click.echo(f"gate: {console(problem)}", err=True)


def _ended_early(result: Result) -> list[str]:
    """Return the reason for each suite that a spent budget stopped before its verdict was final."""
    return [suite.course.stopped for suite in result.suites if suite.course is not None and suite.course.stopped]
