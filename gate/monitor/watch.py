"""The monitor itself: reads new data, scores the sample, stores it, and reports the status.

Files are read in the order of the times in them, one piece at a time, so that the spans of a trace that is spread over
several files arrive together, and memory stays flat however large the backlog is.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from msgspec import Struct

from gate.config.load import Config
from gate.config.production import MonitorSection
from gate.config.resolve import Plan
from gate.monitor.alerts import Alerts
from gate.monitor.intake import AHEAD_SECONDS, Intake
from gate.monitor.model import Counts, WatchedTrace
from gate.monitor.observe import MOST_TURNS, Observer, Scoring
from gate.monitor.receive import Inbox
from gate.monitor.report import Expected, MonitorReport, to_json, to_prometheus
from gate.monitor.sources import Files, GrowingFile, Line, Position
from gate.monitor.spans import TelemetryTraces
from gate.monitor.store import MonitorState
from gate.monitor.window import Status, WindowFinding, after_silence, decide
from gate.reports.formatting import count
from gate.security import files
from gate.security.redact import Redactor
from gate.suites.base import losses_of, not_read
from gate.suites.messages import FieldPaths
from gate.system.http import Client

if TYPE_CHECKING:
    from gate.judges.client import Judge

BATCH = 256
"""Conversations that are scored and stored together."""
PUBLISH_SECONDS = 5.0
"""Seconds between two publications of figures during a large backlog."""
LOOK_SECONDS = 600.0
"""Seconds within which lines count as read at the same time; at most half of `monitor.silence`."""
IDLE_SECONDS = 30.0
"""Seconds after its last span until a trace counts as complete."""
PAUSE_SECONDS = 5.0
"""Seconds between checks for new traces."""
LEAST_LOST = 3
"""Unreadable or possibly incomplete traces from which a check may count as lost."""
ATTEMPTS = 3
"""Attempts to reach a target in one `once`."""
_END = re.compile(rb'"(?:endTimeUnixNano|end_time_unix_nano)"\s*:\s*"?(\d{16,20})')

Say = Callable[[MonitorReport], None]


class Setup(Struct, frozen=True):
    """A configured monitor: its sources, its criteria, and the destinations of its figures."""

    config: Config
    plan: Plan
    scoring: Scoring
    redactor: Redactor
    alerts: Alerts
    state_path: Path
    places: tuple[Path, ...]
    """Files and folders of traces."""
    fields: FieldPaths
    json: Path | None = None
    """The file for the JSON report."""
    expected: Expected = Expected()
    inbox: Inbox | None = None
    """The inbox of received requests."""

    @property
    def section(self) -> MonitorSection:
        """The section of the configuration, with the limits, the sample and times."""
        return self.config.file.monitor

    @property
    def max_unmeasured(self) -> float:
        """Share of traces that may be without an outcome."""
        return self.config.file.gate.max_error_rate


class Watch:
    """A running monitor with its state."""

    def __init__(self, setup: Setup, state: MonitorState, judge: Judge | None = None) -> None:
        self._setup, self._state = setup, state
        self._observer = Observer(setup.scoring, setup.redactor, judge)
        self._files = Files(setup.places, state.positions())
        self._intake = Intake(setup.section.sample_rate, setup.fields, TelemetryTraces(), state.has, idle=IDLE_SECONDS)
        self._batch: list[WatchedTrace] = []
        self._criteria = setup.scoring.fingerprint
        self._published = self._began = 0.0
        self._look = 0
        self._before = state.standing
        self._stored: dict[str, Position] = {}
        """The positions in the files as last stored."""
        self._bad = self._lost = self._scored = self._ahead = 0
        self.problems: list[str] = []
        """The problems of the last attempt to publish."""

    async def once(self, client: Client) -> MonitorReport:
        """Read everything available, publish, and end; incomplete traces are left to the next call."""
        await self._catch_up(client)
        for file in self._files.open.values():
            line = file.last_line()
            if line is not None:
                self._add(file, line)
        now = time()
        self._batch.extend(self._intake.ready(now))
        self._batch.extend(self._intake.ready_ahead(now))
        self._ahead = self._intake.ahead(now)
        await self._store()
        for attempt in range(ATTEMPTS):
            report = await self._publish(client)
            if not self.problems or attempt == ATTEMPTS - 1:
                break
            await asyncio.sleep(self._until_next_attempt())
        return report

    async def forever(self, client: Client, say: Say) -> None:
        """Watch until cancelled. ``say`` is called at the beginning and at each change of status."""
        told = None
        while True:
            await self._catch_up(client)
            self._batch.extend(self._intake.arrived_before(time() - IDLE_SECONDS))
            await self._store()
            self._empty_inbox()
            report = await self._publish(client)
            if report.status is not told:
                say(report)
                told = report.status
            await asyncio.sleep(PAUSE_SECONDS)

    @property
    def lost(self) -> str:
        """The reason why new traces could not be measured, if too many were unreadable; else empty."""
        if self._are_few(self._lost):
            return ""
        held = f" of {self._lost:,} traces" if self._lost > self._bad else ""
        return (
            f"{count(self._bad, 'new line')}{held} could not be read, and {count(self._scored, 'trace')} could: "
            f"{self._intake.problem}"
        )

    @property
    def unsettled(self) -> str:
        """The reason why `once` could not measure new traces, if too many end later than now; else empty."""
        if self._are_few(self._ahead):
            return ""
        return (
            f"{self._ahead:,} new traces end later than now, so that nobody can say whether they are complete, and "
            f"{self._scored:,} could be scored: set the clock of the machine that they come from, or this one's"
        )

    def _are_few(self, missing: int) -> bool:
        """True if so few traces are missing that the others can be measured without them."""
        return missing < LEAST_LOST or missing <= self._setup.max_unmeasured * (missing + self._scored)

    def report(self) -> MonitorReport:
        """Return the current report."""
        return report_of(self._state, self._setup, self._notes())

    # --- reading ----------------------------------------------------------------------------------

    async def _catch_up(self, client: Client) -> None:
        self._begin_look(time())
        self._files.look()
        while True:
            unread = [file for file in self._files.open.values() if not file.is_done()]
            if not unread:
                break
            behind = min(unread, key=_clock_of)
            if not self._read(behind):
                self._files.look(again=True)
            self._batch.extend(self._intake.ready(min(map(_clock_of, unread))))
            if len(self._batch) >= BATCH:
                await self._store()
            if time() - self._published >= PUBLISH_SECONDS:
                await self._store()
                await self._publish(client)
            await asyncio.sleep(0)  # lets a signal be handled between two pieces

    def _begin_look(self, now: float) -> None:
        self._began, self._before, self._look = now, self._state.standing, self._state.next_look()

    def _read(self, file: GrowingFile) -> bool:
        """Read the next piece of a file; False if there was nothing new."""
        before = file.read_to
        try:
            lines = file.read()
        except OSError:
            self._files.forget(file)
            return False
        for line in lines:
            self._add(file, line)
        end = None
        if lines and lines[-1].data is not None:
            end = _END.search(lines[-1].data)
        if end is not None:
            file.clock = max(file.clock, _believed(int(end[1]) / 1e9))
        return file.read_to != before

    def _add(self, file: GrowingFile, line: Line) -> None:
        self._batch.extend(self._intake.add(file.identity, line, counted=line.end <= file.counted))

    # --- storing and publishing -------------------------------------------------------------------

    async def _store(self) -> None:
        """Score and store complete conversations and the positions in the files; nothing is read meanwhile."""
        observed = []
        for start in range(0, len(self._batch), BATCH):
            observed += await self._observer.observe(self._batch[start : start + BATCH])
        known = self._files.open.values()
        standing = [file.position(self._intake.settled(file.identity, file.offset)) for file in known]
        positions = [position for position in standing if self._stored.get(position.identity) != position]
        counts = self._intake.take_counts() + Counts(
            truncated=sum(file.take_truncated() for file in known),
            cut=sum(len(one.invocations) > MOST_TURNS for one in self._batch),
        )
        self._bad, self._lost = self._bad + counts.bad, self._lost + counts.lost
        self._scored += len(observed)
        now = time()
        if now - self._began > min(LOOK_SECONDS, self._setup.section.silence / 2):
            self._begin_look(now)
        if observed or positions or counts != Counts():
            exports = self._setup.alerts.exports
            self._state.commit(
                observed,
                positions,
                counts,
                now=self._began,
                look=self._look,
                criteria=self._criteria,
                export=exports,
            )
            self._files.remember(positions)
            self._stored.update((position.identity, position) for position in positions)
        self._batch.clear()
        finding = decide_now(self._state, self._setup, now, self._before)
        self._state.change(finding.status, finding.why, now, blind=finding.blind)

    async def _publish(self, client: Client) -> MonitorReport:
        report = self.report()
        self._published = time()
        self.problems = await self._setup.alerts.tell(self._state, report, self._published, client)
        if self._setup.json is not None:
            self._write(self._setup.json, to_json(report))
        prometheus = self._setup.section.prometheus
        if prometheus:
            self._write(self._setup.config.root / prometheus, to_prometheus(report, self._setup.plan.suite.id))
        return report

    def _write(self, path: Path, text: str) -> None:
        try:
            files.write_text(path, text)
        except OSError as error:
            self.problems.append(f"{path}: {error.strerror or error}")

    def _empty_inbox(self) -> None:
        """Empty the inbox of requests whose traces are stored; no other file holds them."""
        inbox = self._setup.inbox
        if inbox is None:
            return
        for position in self._state.positions():
            if position.path == str(inbox.path) and position.safe == position.offset:
                inbox.empty(position.safe)

    def _until_next_attempt(self) -> float:
        waits = [delivery.next_at - time() for delivery in self._state.deliveries().values() if delivery.error]
        return min(10.0, max(0.1, *waits, 0.1))

    def _notes(self) -> list[str]:
        notes = []
        if self._files.not_read:
            notes.append(f"files that were not read (compressed, unreadable, or too many): {self._files.not_read}")
        if self._setup.inbox is not None and self._setup.inbox.refused:
            notes.append(f"requests that were no OTLP: {self._setup.inbox.refused}")
        if self._intake.waiting:
            notes.append(f"traces that are not complete yet: {self._intake.waiting}")
        if self._intake.unread:
            notes.append(not_read(losses_of(self._intake.unread)))
        if self._intake.problem:
            notes.append(f"the last line that could not be read: {self._intake.problem}")
        notes += [f"not delivered: {problem}" for problem in self.problems]
        return notes


def decide_now(state: MonitorState, setup: Setup, now: float, before: Status | None = None) -> WindowFinding:
    """Return the finding on the window. ``before``: the status so far, if not the stored one: while files are read, it
    is the status at the beginning, so that the order of traces does not matter."""
    section, criteria = setup.section, setup.scoring.fingerprint
    outcomes = state.outcomes(section.window, criteria)
    found = decide(outcomes, before or state.standing, section, setup.max_unmeasured)
    seen = state.last_seen(criteria)
    return found if seen is None else after_silence(found, now - seen, section.silence)


def report_of(state: MonitorState, setup: Setup, notes: Sequence[str] = ()) -> MonitorReport:
    """Return the report on the stored traces."""
    now = time()
    return MonitorReport(
        decide_now(state, setup, now),
        tuple(state.window(setup.section.window, setup.scoring.fingerprint)),
        setup.scoring,
        state.counts,
        now,
        setup.section.sample_rate,
        setup.expected,
        tuple(notes),
    )


def _clock_of(file: GrowingFile) -> float:
    return file.clock


def _believed(at: float) -> float:
    """Return a time, or 0 if it lies more than `AHEAD_SECONDS` in the future."""
    return at if at <= time() + AHEAD_SECONDS else 0.0
