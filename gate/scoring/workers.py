"""Worker processes as the gate sees them: started, given work, replaced when they die, and ended with the run.

A cluster is also such a worker, through the process that connects to it. No secret values are sent: a batch that
contains one is scored here.
"""

from __future__ import annotations

import asyncio
import pickle
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self

from gate import errors
from gate.agents.base import allowed_environment
from gate.errors import ConfigError, GateError, MeasureError
from gate.scoring.batch import Batch, ScoredBatch, ScoringSetup, pack_batch, score_batch
from gate.security.redact import Redactor
from gate.system import wire
from gate.system.child import module_command, new_mark
from gate.system.guardian import MARK, sweep
from gate.system.processes import Child
from gate.system.serialize import pack, unpack

START_SECONDS = 60.0
"""Seconds within which a worker, or a cluster, has to be ready."""
LEAVE_SECONDS = 10.0
"""Seconds within which a worker has to exit once it gets no more work."""
ATTEMPTS = 3
"""The most workers that may die while scoring one batch."""
AHEAD = 2
"""Batches given to a worker process at once: the one being scored, and the next."""
RESUME = "finished trials are kept: continue with --resume"


class DiedError(Exception):
    """The worker is gone; `exit_reason` gives the cause."""


class WorkerLink(asyncio.Protocol):
    """A worker process and its pending requests."""

    def __init__(self) -> None:
        self._child: Child | None = None
        self._numbers = count(1)
        self._reading = wire.Frames()
        self._asked: dict[int, asyncio.Future[bytes]] = {0: asyncio.get_running_loop().create_future()}
        """Pending answers by number; 0 is its report that it is ready."""
        self.gone = False

    async def start(self, argv: Sequence[str], setup: bytes, environment: Mapping[str, str]) -> int:
        """Start the worker and send it the setup; return the number of batches that it takes at once.

        Raises DiedError, TimeoutError, or the worker's error about the setup.
        """
        ready = self._asked[0]
        self._child = await Child.start(
            argv, cwd=Path.cwd(), environment=environment, stdin=asyncio.subprocess.PIPE, output=lambda: self
        )
        async with asyncio.timeout(START_SECONDS):
            await self._send(wire.SETUP, 0, setup)
            slots: int = unpack(await ready)
        return slots

    async def ask(self, data: bytes) -> bytes:
        """Return the answer to a packed batch. Raises DiedError, or the worker's error."""
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send(wire.REQUEST, number, data)
            found: bytes = await answer
            return found
        finally:
            self._asked.pop(number, None)

    async def _send(self, kind: int, number: int, data: bytes) -> None:
        if self.gone or self._child is None or self._child.process.stdin is None:
            raise DiedError
        with suppress(BrokenPipeError, ConnectionResetError):  # the end of its output tells the same
            self._child.process.stdin.write(wire.frame(kind, number, data))
            await self._child.process.stdin.drain()

    def data_received(self, data: bytes) -> None:
        for kind, number, message in self._reading.take(data):
            waiting = self._asked.get(number)
            if waiting is None or waiting.done():
                continue
            if kind == wire.FAILED:
                waiting.set_exception(_error(message))
            else:
                waiting.set_result(message)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.gone = True
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(DiedError())
            if not waiting.cancelled():
                waiting.exception()  # else asyncio reports it as never retrieved

    async def exit_reason(self) -> str:
        """Return a description of how the worker ended."""
        if self._child is None:
            return "was never started"
        await self._child.settle()
        last = self._child.tail.rpartition("\n")[2]
        if self._child.process.returncode == -signal.SIGKILL:
            last = ""  # it could say nothing: these are the words of a process that it left behind
        return f"{self._child.exit_reason}: {last}" if last else self._child.exit_reason

    async def end(self, patience: float = LEAVE_SECONDS) -> None:
        """Let the worker exit, and kill it after ``patience`` seconds."""
        if self._child is None:
            return
        process = self._child.process
        if process.stdin is not None:
            process.stdin.close()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    await process.wait()
        finally:
            await self._child.end(grace=0)


def _error(message: bytes) -> GateError:
    kind, what, where, hint = unpack(message)
    found: type[GateError] = getattr(errors, kind)
    return found(what, where=where, hint=hint)


class Workers:
    """The base class of executors that score in other processes."""

    slots = 0
    module: Sequence[str] = ()
    """The module to run in the process, and its arguments."""

    def __init__(self, setup: ScoringSetup, redactor: Redactor, environment: Mapping[str, str]) -> None:
        self._setup, self._redactor = setup, redactor
        self._mark = new_mark()
        self._environment = {**allowed_environment(environment, self.allowed), MARK: self._mark}
        self._packed = b""
        self._links: list[WorkerLink] = []

    allowed: Sequence[str] = ()
    """Names of environment variables that the worker needs in addition to the usual ones."""

    async def __aenter__(self) -> Self:
        try:
            self._packed = pack(self._setup)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            what = f"a custom metric cannot be sent to another process: {error}"
            hint = "keep in it only what pickle can take, or leave `executor` out"
            raise ConfigError(what, where="executor", hint=hint) from None
        if self._redactor.holds_value(self._packed):
            what = "the criteria hold the value of a secret of the environment, which is not sent anywhere"
            raise ConfigError(what, where="executor", hint="take it out of them, or leave `executor` out")
        try:
            await self._open()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _open(self) -> None:
        raise NotImplementedError

    async def _close(self) -> None:
        try:
            await asyncio.gather(*[link.end() for link in self._links])
        finally:
            sweep(self._mark)

    async def _start(self) -> tuple[WorkerLink, int]:
        """Return a new worker, and the number of batches that it takes at once."""
        link = WorkerLink()
        self._links.append(link)
        try:
            argv, environment = module_command(*self.module, environment=self._environment)
            return link, await link.start(argv, self._packed, environment)
        except DiedError:
            what = f"a worker process {await link.exit_reason()}"
        except TimeoutError:
            await link.end(patience=0)
            what = f"a worker process was not ready within {START_SECONDS:g} s"
        except OSError as error:
            what = f"a worker process cannot be started: {error.strerror}"
        raise MeasureError(what, where="executor", hint=RESUME)

    async def score(self, batch: Batch) -> ScoredBatch:
        data = pack_batch(batch)
        if self._redactor.holds_value(data):
            return score_batch(self._setup, batch, self._redactor)
        answer = await self._ask(data)
        if self._redactor.holds_value(answer):
            return score_batch(self._setup, batch, self._redactor)
        scored: ScoredBatch = unpack(answer)
        return scored

    async def _ask(self, data: bytes) -> bytes:
        raise NotImplementedError


class Processes(Workers):
    """Several worker processes on this machine. One that dies is replaced, and its work is sent again."""

    module = ("gate.scoring.worker",)

    def __init__(self, processes: int, setup: ScoringSetup, redactor: Redactor, environment: Mapping[str, str]) -> None:
        super().__init__(setup, redactor, environment)
        self._processes = processes
        self.slots = AHEAD * processes
        self._free: asyncio.Queue[_WorkerSlot] = asyncio.Queue()

    async def _open(self) -> None:
        links = await asyncio.gather(*[self._start() for _ in range(self._processes)])
        for place in [_WorkerSlot(link) for link, _ in links] * AHEAD:
            self._free.put_nowait(place)

    async def _ask(self, data: bytes) -> bytes:
        place = await self._free.get()
        try:
            for _ in range(ATTEMPTS):
                link = place.link
                try:
                    return await link.ask(data)
                except DiedError:
                    exit_reason = await link.exit_reason()
                async with place.replacing:
                    if place.link is link:
                        place.link, _seats = await self._start()
        finally:
            self._free.put_nowait(place)
        what = f"{ATTEMPTS} worker processes died over the same trials; the last one {exit_reason}"
        raise MeasureError(what, where="executor", hint=f"{RESUME}; if they run out of memory, set fewer processes")


class _WorkerSlot:
    """A worker process, or the one that replaces it."""

    def __init__(self, link: WorkerLink) -> None:
        self.link = link
        self.replacing = asyncio.Lock()
