"""The world of one run: assigns addresses to trials, chooses their answers, and stores the exchanges."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Self

from msgspec import json as msgspec_json
from msgspec.structs import replace

from gate.errors import MeasureError
from gate.model import FULL, Replay, Side, Trial
from gate.security.redact import Redactor
from gate.system.serving import HOST
from gate.world.attempt import Answering, Attempt
from gate.world.cassette import CassetteWriter, Library, RecordedExchange, RecordedTape, path_of_run, source_of, tape_of
from gate.world.mcp import asks_what_there_is
from gate.world.options import Mode, Upstream, WorldOptions
from gate.world.outbound import Addressed, OutboundRequest
from gate.world.volatile import Volatile

MOST_BYTES = 200_000_000
"""Largest size of a run's recording; further calls go live."""
LAST_SECONDS = 0.5
"""Seconds for which calls may continue after the end of their trial."""


class WorkerAddress:
    """The address of a process that runs several trials in turn, and its current trial."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        """The variables that hold the address for the process."""
        self.session_id = ""


class World:
    """The world of a run, used as a context. Each attempt is opened before its first turn and closed after its last."""

    def __init__(
        self,
        options: WorldOptions,
        upstreams: Mapping[str, Upstream],
        folder: Path,
        redactor: Redactor,
        run: str,
        owner: str = "",
    ) -> None:
        self._owner = owner
        self.upstreams = upstreams
        self.volatile = Volatile(options.normalise)
        self.replays = False
        """True if trials are answered from recordings; those of the baseline itself never are."""
        self.outside = 0
        """Calls outside of any trial."""
        self.unkept: dict[str, int] = {}
        """The number of trials per reason why they were not recorded completely."""
        self.lost = 0
        """Trials of the baseline whose recording is missing."""
        self._options, self._folder, self._redactor, self._run = options, folder, redactor, run
        self._library = Library(folder)
        self._tapes: dict[str, list[RecordedTape]] = {}
        self._places: dict[str, WorkerAddress] = {}
        self._attempts: dict[str, Attempt] = {}
        self._last: dict[tuple[str, int, Side], Attempt] = {}
        self.port = options.port
        """The proxy's port, once it is open."""

    async def __aenter__(self) -> Self:
        path = path_of_run(self._folder, self._run)
        assert path is not None, "a run's id names a file"
        try:
            self._writer = CassetteWriter(path, MOST_BYTES, self._owner)
        except OSError as error:
            hint = "name another folder: world.store"
            what = f"recordings cannot be written: {error.strerror or error}"
            raise MeasureError(what, where=str(path), hint=hint) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    # --- before trials ----------------------------------------------------------------------------

    def couple(self, trials: Iterable[Trial]) -> None:
        """Couple the n-th trial of each case with the n-th recorded trial of the baseline."""
        self.replays = True
        whole = list(trials)
        runs = list(dict.fromkeys(trial.run for trial in whole))
        for trial in sorted(whole, key=lambda trial: (runs.index(trial.run), trial.number)):  # not by completion
            if trial.tag != FULL or not trial.measured or trial.replay is None or not trial.replay.recording:
                continue
            tape = self._library.tape(trial.replay.recording)
            if tape is None:
                self.lost += 1
            else:
                self._tapes.setdefault(trial.case_id, []).append(tape)

    # --- addresses --------------------------------------------------------------------------------

    def place(self) -> WorkerAddress:
        """Return a new address for a process that gets it once, at its start."""
        token = token_hex(16)
        place = WorkerAddress(self.environment(token))
        self._places[token] = place
        return place

    def environment(self, token: str) -> dict[str, str]:
        """Return the variables that hold the servers' addresses for an agent; ``token``: of a trial or a worker."""
        base = f"http://{HOST}:{self.port}/{token}"
        told: dict[str, str] = {}
        for one in self.upstreams.values():
            told |= dict.fromkeys(one.told, f"{base}/{one.name}")
        return {**told, "GATE_WORLD_URL": base}

    def attempt_of(self, token: str) -> tuple[bool, Attempt | None]:
        """Return whether the address is known, and the attempt that is using it."""
        place = self._places.get(token)
        if place is not None:
            return True, self._attempts.get(place.session_id)
        attempt = self._attempts.get(token)
        return attempt is not None, attempt

    # --- trials -----------------------------------------------------------------------------------

    def open(self, session_id: str, case_id: str, trial: int, side: Side, given: str = "") -> None:
        """Begin an attempt at a trial. ``given``: the texts of the case."""
        tape, tapes = None, self._tapes.get(case_id, [])
        if side is Side.CANDIDATE and 0 < trial <= len(tapes):
            tape = tapes[trial - 1]
        self._attempts[session_id] = Attempt(session_id, case_id, trial, side, tape, given)

    def spared(self, session_id: str) -> float:
        """Return the seconds that the turn saved because its answers were replayed."""
        return self._attempts[session_id].spared()

    async def close(self, session_id: str) -> str:
        """End an attempt; return the request without a recorded answer, if that ends the trial.

        The agent may get an answer before it is stored here, so pending calls get a moment to end.
        """
        attempt = self._attempts.pop(session_id)
        if attempt.calls:
            await asyncio.wait(tuple(attempt.calls), timeout=LAST_SECONDS)
        attempt.closed = True
        for task in (*attempt.calls.values(), *attempt.listening):
            task.cancel()
        if attempt.calls or attempt.whole_unless_told:
            attempt.whole = False
        self._last[attempt.case_id, attempt.trial, attempt.side] = attempt
        return attempt.missing

    def settle(self, case_id: str, trial: int, side: Side, *, measured: bool) -> Replay | None:
        """Return the sources of the last attempt's answers. If it is ``measured``, store it for later replay."""
        attempt = self._last.pop((case_id, trial, side), None)
        if attempt is None:
            return None
        attempt.ended()
        recording = self._kept(attempt) if measured and side is Side.CANDIDATE else ""
        source = attempt.tape.source if attempt.tape is not None else ""
        said = self._redactor.redact(attempt.difference)
        changed = tuple(map(self._redactor.redact, attempt.tools_changed))
        offered = tuple(sorted(attempt.tools))
        return Replay(source, attempt.replayed, attempt.live, said, recording, None, offered, changed)

    def _kept(self, attempt: Attempt) -> str:
        """Complete the recording of an attempt; return its name for a later replay, or empty if it is incomplete."""
        ordered = sorted(attempt.exchanges, key=lambda one: one.number)
        if not ordered or not attempt.whole:
            return ""
        if attempt.tape is not None and not attempt.live:
            return attempt.tape.source  # no new exchange
        for one in ordered:
            if one.replayed and not self._copied(attempt, one):
                return ""
        tape = tape_of(attempt.case_id, attempt.trial, ordered)
        kept = self._writer.end(attempt.case_id, attempt.trial, tape, len(ordered), attempt.name)
        return source_of(self._run, attempt.trial, tape) if kept else ""

    def _copied(self, attempt: Attempt, exchange: RecordedExchange) -> bool:
        """Copy a replayed exchange into this run's recording, because its record may become a baseline."""
        assert attempt.tape is not None
        for name in (exchange.request, exchange.response):
            body = attempt.tape.cassette.body(name)
            if body is None:
                return False
            self._writer.body(body, f"{exchange.upstream} {exchange.path} {name == exchange.request}")
        return self._writer.keep(exchange, attempt.name)

    # --- requests ---------------------------------------------------------------------------------

    def stdio(self, name: str) -> Upstream:
        """Return an MCP server on standard input and output; the agent starts it, so it needs no permission."""
        return Upstream(name=name, url="http://stdio", kind="mcp", answered_by=self._options.tools)

    def _mode(self, attempt: Attempt, upstream: Upstream) -> Mode:
        if self.replays and attempt.side is Side.CANDIDATE:
            return upstream.answered_by
        return "live"

    def is_closed(self, attempt: Attempt, upstream: Upstream) -> bool:
        """True if no request of an attempt is sent to this server."""
        return self._mode(attempt, upstream) in ("replay", "fail")

    def answering(self, attempt: Attempt, upstream: Upstream, asked: OutboundRequest, key: Addressed) -> Answering:
        """Return the way to answer a request of an attempt."""
        mode = self._mode(attempt, upstream)
        if mode == "live":
            return Answering(mode, None, None)
        exchange, body = attempt.recorded(key), None
        if exchange is not None:
            assert attempt.tape is not None
            body = attempt.tape.cassette.body(exchange.response)
        if mode == "replay" and upstream.kind == "model":
            mode = "fail"
        return Answering(mode, exchange, body, is_menu=asks_what_there_is(asked))

    def record(self, attempt: Attempt, asked: OutboundRequest, exchange: RecordedExchange, body: bytes) -> None:
        """Store an exchange with a server; an answer with a secret is not stored, because redaction would change it."""
        if attempt.closed or attempt.side is not Side.CANDIDATE:
            return
        text = body.decode("utf-8", "replace")
        if self._redactor.holds_value(body) or self._redactor.redact(text) != text:
            attempt.whole = False
            self.unkept["an answer holds a secret"] = self.unkept.get("an answer holds a secret", 0) + 1
            return
        group = f"{asked.upstream} {asked.path}"
        request = self._writer.body(self._shown(asked), group + " True")
        from_outside = self._writer.body(body, group + " False")
        kept = replace(exchange, request=request, response=from_outside)
        attempt.exchanges.append(kept)
        if not self._writer.keep(kept, attempt.name):
            attempt.whole = False
            self.unkept["the recording is full"] = self.unkept.get("the recording is full", 0) + 1

    def _shown(self, asked: OutboundRequest) -> bytes:
        """Return the redacted body of a request for storage."""
        value = asked.value
        if value is not None:
            return msgspec_json.encode(self._redactor.redact_json(value))
        return self._redactor.redact(asked.body.decode("utf-8", "replace")).encode()

    @property
    def notes(self) -> list[str]:
        """Notes for the user on the recordings of the run."""
        found = [f"world: {number:,} calls are not recorded: {why}" for why, number in self.unkept.items()]
        if self.lost:
            found.append(f"world: the recordings of {self.lost:,} trials of the baseline are not in {self._folder}")
        if self.outside:
            found.append(f"world: {self.outside:,} calls were made outside of a trial, and are not recorded")
        return found
