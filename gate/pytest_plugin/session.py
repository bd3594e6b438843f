"""Collects configurations in a session of `pytest --gate`, runs each once, and sets the exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from shlex import join

import pytest
from msgspec.structs import replace

from gate.config.load import load_config
from gate.errors import EXIT_PRECEDENCE, ExitCode, GateError, MeasureError
from gate.model import Result
from gate.pipeline.flow import run_gate
from gate.pipeline.progress import Progress, ProgressLines
from gate.pipeline.session import RunOptions
from gate.pytest_plugin.items import GateFile, GateItem
from gate.reports.checks import Outcome, ReportItem, checks_of
from gate.reports.console import render, render_line
from gate.reports.files import Outputs
from gate.reports.formatting import count
from gate.reports.view import views_of
from gate.security.escape import console

STOPPED = (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR)
"""The exit codes of an interrupted session, which are not changed."""


class GateRun:
    """A configuration in the session, with its selected items and its result."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: GateFile | None = None
        self.result: Result | None = None
        self.error: GateError | None = None
        self.selected: list[GateItem] = []

    @property
    def part(self) -> list[str]:
        """The ids of the selected cases if only some are selected; selecting only the verdict means all of them."""
        chosen = [item.case_id for item in self.selected if item.case_id is not None]
        if len(chosen) >= self.whole:
            return []
        return list(dict.fromkeys(chosen))

    @property
    def whole(self) -> int:
        """The number of cases in the configuration, selected or not."""
        if self.file is None:
            return 0
        return self.file.cases

    @property
    def problem(self) -> GateError | None:
        """The error that kept it from being collected or run."""
        if self.error is None and self.file is not None:
            return self.file.problem
        return self.error

    @property
    def code(self) -> ExitCode:
        if self.problem is not None:
            return self.problem.exit_code
        if self.result is None:
            return ExitCode.NOT_MEASURED
        return self.result.exit_code

    @cached_property
    def outcomes(self) -> dict[tuple[str, str | None], ReportItem]:
        """The outcome of each suite's verdict, which has no case, and of its cases."""
        assert self.result is not None
        found: dict[tuple[str, str | None], ReportItem] = {}
        for view in views_of(self.result):
            for check in checks_of(view, self.result):
                if not check.group:
                    found.setdefault((view.suite.suite_id, check.case_id), check)
        return found

    def run(self, progress: Progress) -> None:
        """Measure the selected cases, once. An error is kept: every item shows it."""
        part, words = self.part, ["gate", "run", "--config", str(self.path)]
        overrides = {}
        if part:
            overrides["select.ids"] = part
        for case_id in part:
            words += ["--case", case_id]
        options = RunOptions(command=join(words), fills_baseline=False)
        try:
            config = load_config(self.path, overrides)
            self.result = asyncio.run(run_gate(config, options, Outputs(), os.environ, progress))
        except GateError as error:
            self.error = error


class GateSession:
    """The plugin of one session. Raises ConfigError if a configuration cannot be read."""

    def __init__(self, config: pytest.Config, paths: Sequence[Path], *, distributed: bool) -> None:
        for path in paths:
            load_config(path)
        self._config = config
        self._runs = [GateRun(path) for path in paths]
        self._distributed = distributed
        self._others_failed = False
        self._ours: set[str] = set()

    # --- collection -----------------------------------------------------------------------------------

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> GateFile | None:
        """Return the collector for a configuration that the command line names as a file or by a node id."""
        for run in self._runs:
            if _resolved(run.path) == _resolved(file_path) and parent.session.isinitpath(file_path):
                run.file = run.file or GateFile.from_parent(parent, path=file_path)
                return run.file
        return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the configurations that the command line does not name, wherever they are, after the tests."""
        for run in self._runs:
            if run.file is None:
                items += self._collected(run, session)

    def _collected(self, run: GateRun, session: pytest.Session) -> list[pytest.Item]:
        run.file = GateFile.from_parent(session, path=run.path.absolute())
        return list(session.genitems(run.file))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for run in self._runs:
            self._select(run, session.items)

    def _select(self, run: GateRun, items: Sequence[pytest.Item]) -> None:
        run.selected = _of(run, items)
        self._ours |= {item.nodeid for item in run.selected}

    # --- running --------------------------------------------------------------------------------------

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Iterator[None]:
        yield
        if self._distributed and not session.shouldfail and not session.shouldstop:
            self._run_here(session)

    def _run_here(self, session: pytest.Session) -> None:
        """Run the cases after the tests of pytest-xdist's workers, in the process that started them."""
        for run in self._runs:
            items = self._collected(run, session)
            self._config.hook.pytest_collection_modifyitems(session=session, config=self._config, items=items)
            self._select(run, items)
            session.testscollected += len(items)
            for item, following in zip_longest(items, items[1:]):
                if session.shouldfail or session.shouldstop:
                    return
                self._config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Run the suites of a configuration before its first item, while pytest captures no output."""
        if not isinstance(item, GateItem):
            return
        run = next(run for run in self._runs if run.file is item.file)
        if run.result is None and run.error is None:
            run.run(self._progress())
        item.show(_found(item, run))

    def _progress(self) -> Progress:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if terminal is None or self._config.getoption("verbose") < 0:
            return Progress()
        terminal.ensure_newline()
        return ProgressLines(terminal._tw)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._others_failed = self._others_failed or (report.failed and report.nodeid not in self._ours)

    # --- the end --------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        refused = any(run.file is not None and run.file.problem for run in self._runs)
        if not refused and (self._config.getoption("collectonly") or session.exitstatus in STOPPED):
            return
        codes = [run.code for run in self._reached(session)]
        if self._others_failed:
            codes.append(ExitCode.FAILED)
        worst = min(codes, key=EXIT_PRECEDENCE.index, default=ExitCode.PASS)
        if worst is not ExitCode.PASS:
            session.exitstatus = int(worst)

    def _reached(self, session: pytest.Session) -> list[GateRun]:
        """Return all configurations except those that the session did not reach because an earlier failure ended it."""
        ended = bool(session.shouldfail or session.shouldstop)
        return [run for run in self._runs if not (ended and run.result is None and run.error is None)]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._config.getoption("collectonly"):
            return
        terminalreporter.section("agent gate")
        for run in self._runs:
            for line in _summary(run, terminalreporter):
                terminalreporter.write_line(line)


def _summary(run: GateRun, terminal: pytest.TerminalReporter) -> list[str]:
    if run.problem is not None:
        return [f"gate: {console(str(run.problem))}", f"exit {int(run.problem.exit_code)}"]
    if run.result is None:
        nothing = MeasureError("no case was run, so nothing was measured", where=str(run.path))
        return [f"gate: {console(str(nothing))}"]
    lines, shown = [], len(run.part)
    if shown:
        part = f"{shown} of {count(run.whole, 'case')}"
        lines.append(f"a part: {part}; the verdict is of these alone, and no baseline")
    width, encoding = terminal._tw.fullwidth, getattr(terminal._tw._file, "encoding", None) or "utf-8"
    verbosity = terminal.config.getoption("verbose")
    if verbosity < 0:
        return [*lines, *render_line(run.result, encoding=encoding).splitlines()]
    text = render(run.result, width=width, encoding=encoding, color=terminal.hasmarkup, verbose=verbosity > 0)
    lines += text.splitlines()
    for problem in run.result.problems:
        lines.append(f"gate: {console(problem)}")
    return lines


def _found(item: GateItem, run: GateRun) -> ReportItem:
    """Return the outcome of an item. If the gate fails, so does every verdict; if it does not, no item fails."""
    if run.error is not None:
        return ReportItem(item.name, outcome=Outcome.ERROR, kind="error", message=str(run.error))
    found = run.outcomes.get((item.suite.suite_id, item.case_id))
    if found is None:
        return ReportItem(item.name, outcome=Outcome.ERROR, kind="error", message="it is not in the result")
    return _as_the_gate_ends(found, run)


def _as_the_gate_ends(found: ReportItem, run: GateRun) -> ReportItem:
    """Return the check, failing only if the gate fails; if nothing else fails then, the verdicts do."""
    result, failing = run.result, {Outcome.FAILED, Outcome.ERROR}
    assert result is not None
    if result.exit_code is ExitCode.PASS and found.outcome in failing:
        message = f"{found.message} (does not block: the gate's verdict is {result.verdict.value})"
        return replace(found, outcome=Outcome.SKIPPED, message=message)
    if result.exit_code is ExitCode.PASS or found.case is not None:
        return found
    if failing.isdisjoint(check.outcome for check in run.outcomes.values()):
        return replace(found, outcome=Outcome.FAILED, message=f"exit {int(result.exit_code)}: {found.message}")
    return found


def _of(run: GateRun, items: Sequence[pytest.Item]) -> list[GateItem]:
    return [item for item in items if isinstance(item, GateItem) and item.file is run.file]


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))
