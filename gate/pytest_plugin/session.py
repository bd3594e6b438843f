"""Collects configurations in a session of `pytest --gate`, runs each once, and sets the exit code."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join

import pytest
from msgspec.structs import replace

from gate.config.load import load_config
from gate.errors import EXIT_PRECEDENCE, ExitCode, GateError, MeasureError
from gate.model import Result
from gate.pipeline.flow import run_gate
from gate.pipeline.progress import NoProgress, Progress, ProgressLines
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
        chosen = list(dict.fromkeys(item.case_id for item in self.selected if item.case_id is not None))
        return chosen if sum(item.case_id is not None for item in self.selected) < self.whole else []

    @property
    def whole(self) -> int:
        """The number of cases in the configuration, selected or not."""
        return 0 if self.file is None else self.file.cases

    @property
    def code(self) -> ExitCode:
        problem = self.error or (self.file.problem if self.file is not None else None)
        if problem is not None:
            return problem.exit_code
        return self.result.exit_code if self.result is not None else ExitCode.NOT_MEASURED

    def run(self, progress: Progress) -> None:
        """Measure the selected cases, once. An error is kept: every item shows it."""
        words = ["gate", "run", "--config", str(self.path), *(w for case_id in self.part for w in ("--case", case_id))]
        overrides = {"select.ids": self.part} if self.part else {}
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
        run = next((run for run in self._runs if _resolved(run.path) == _resolved(file_path)), None)
        if run is None or not parent.session.isinitpath(file_path):
            return None
        run.file = run.file or GateFile.from_parent(parent, path=file_path)
        return run.file

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
            for place, item in enumerate(items):
                if session.shouldfail or session.shouldstop:
                    return
                following = items[place + 1] if place + 1 < len(items) else None
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
            return NoProgress()
        terminal.ensure_newline()
        return ProgressLines(terminal._tw)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._others_failed = self._others_failed or (report.failed and report.nodeid not in self._ours)

    # --- the end --------------------------------------------------------------------------------------

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._config.getoption("collectonly") and not any(run.file and run.file.problem for run in self._runs):
            return
        refused = any(run.file is not None and run.file.problem for run in self._runs)
        if session.exitstatus in STOPPED and not refused:
            return
        codes = [run.code for run in self._reached(session)]
        if self._others_failed:
            codes.append(ExitCode.FAILED)
        worst = next((code for code in EXIT_PRECEDENCE if code in codes), ExitCode.PASS)
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
    problem = run.error or (run.file.problem if run.file is not None else None)
    if problem is not None:
        return [f"gate: {console(str(problem))}", f"exit {int(problem.exit_code)}"]
    if run.result is None:
        nothing = MeasureError("no case was run, so nothing was measured", where=str(run.path))
        return [f"gate: {console(str(nothing))}"]
    shown = len(run.part)
    part = (
        [f"a part: {shown} of {count(run.whole, 'case')}; the verdict is of these alone, and no baseline"]
        if shown
        else []
    )
    width, encoding = terminal._tw.fullwidth, getattr(terminal._tw._file, "encoding", None) or "utf-8"
    if terminal.config.getoption("verbose") < 0:
        return [*part, *render_line(run.result, encoding=encoding).splitlines()]
    verbose = terminal.config.getoption("verbose") > 0
    text = render(run.result, width=width, encoding=encoding, color=terminal.hasmarkup, verbose=verbose)
    return [*part, *text.splitlines(), *(f"gate: {console(problem)}" for problem in run.result.problems)]


def _found(item: GateItem, run: GateRun) -> ReportItem:
    """Return the outcome of an item. If the gate fails, so does every verdict; if it does not, no item fails."""
    if run.error is not None:
        return ReportItem(item.name, outcome=Outcome.ERROR, kind="error", message=str(run.error))
    assert run.result is not None
    view = next((view for view in views_of(run.result) if view.suite.suite_id == item.suite.suite_id), None)
    checks = [] if view is None else checks_of(view, run.result)
    own = (c for c in checks if not c.group and (c.case.id if c.case else None) == item.case_id)
    found = next(own, None)
    if found is None:
        return ReportItem(item.name, outcome=Outcome.ERROR, kind="error", message="it is not in the result")
    return _as_the_gate_ends(found, run.result)


def _as_the_gate_ends(found: ReportItem, result: Result) -> ReportItem:
    """Return the check, failing only if the gate fails; if nothing else fails then, the verdicts do."""
    failing = (Outcome.FAILED, Outcome.ERROR)
    if result.exit_code is ExitCode.PASS:
        message = f"{found.message} (does not block: the gate's verdict is {result.verdict.value})"
        return replace(found, outcome=Outcome.SKIPPED, message=message) if found.outcome in failing else found
    if found.case is None and found.outcome not in failing:
        checks = (check for view in views_of(result) for check in checks_of(view, result))
        if not any(check.outcome in failing for check in checks if not check.group):
            return replace(found, outcome=Outcome.FAILED, message=f"exit {int(result.exit_code)}: {found.message}")
    return found


def _of(run: GateRun, items: Sequence[pytest.Item]) -> list[GateItem]:
    return [item for item in items if isinstance(item, GateItem) and item.file is run.file]


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))
