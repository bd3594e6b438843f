"""Drives a Python function, in child processes of the user's interpreter; worker.py is the other end of the line."""

from __future__ import annotations

import asyncio
import json
import math
import os
import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import MsgspecError, Struct
from pydantic import Field, field_validator

from gate import guest
from gate.agents.base import (
    Agent,
    AgentFailure,
    AgentOptions,
    Log,
    Request,
    allowed_environment,
    read_answer,
    refuse_truncated,
)
from gate.errors import ConfigError, MeasureError, brief, closest
from gate.model import ErrorKind, Invocation
from gate.model.strict import Words
from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.system.child import Descendants
from gate.system.processes import GRACE_SECONDS, Child, LineChannel

if TYPE_CHECKING:
    from gate.world.world import WorkerAddress

WORKER = Path(guest.__file__).with_name("worker.py")
RESULTS = WORKER.with_name("results.py")
START_SECONDS = 120.0
"""Seconds to import the agent."""
CANCEL_SECONDS = 1.0
"""Seconds for an async function to stop at the end of its turn before its process is ended."""
MOST_ALONE = 64
"""The most workers that hold one session each."""
STARTED_AT_ONCE = 2
MAX_STARTS = 3
"""Failed starts in a row after which no more workers are started."""
_PLACE = re.compile(r" \([^()]{1,500}:\d+\)$")
"""The place in the user's code that raised an exception; file names there are no sign of a provider's refusal."""


class PythonOptions(AgentOptions):
    """``python: module:attribute``."""

    python: str
    """The function, as ``module:attribute``; ``module.attribute`` is read too."""
    executable: str | None = None
    """The interpreter, or the folder of a virtual environment. Default: the interpreter that runs the gate."""
    path: Words = ()
    """More folders to import from, relative to the configuration; its own folder is always included."""
    workers: int = Field(default=1, ge=1, le=64)
    """Number of processes; as many as ``concurrency`` give each request its own."""

    @property
    def entry(self) -> tuple[str, ...]:
        name = self.modules[0].replace(".", "/")
        found: list[str] = []
        for folder in (".", *self.path):
            found += [posixpath.normpath(f"{folder}/{name}{suffix}") for suffix in (".py", "/__init__.py")]
        found += [name for name in map(posixpath.normpath, self.path) if name.startswith("..")]
        return tuple(found)

    @property
    def modules(self) -> tuple[str, ...]:
        module, colon, _ = self.python.partition(":")
        return (module if colon else self.python.rpartition(".")[0],)

    @property
    def is_local(self) -> bool:
        return True

    @field_validator("python")
    @classmethod
    def _names_an_attribute(cls, value: str) -> str:
        parts = value.replace(":", ".").split(".")
        file, _, attribute = value.rpartition(":")
        if file.endswith(".py") or "/" in value:
            module = file.removesuffix(".py").removeprefix("./").strip("/").replace("/", ".")
            raise ValueError(
                f"{value!r} names a file: write the module, as in {module or 'agent'}:{attribute or 'answer'}"
            )
        if len(parts) < 2 or not all(part.isidentifier() for part in parts) or value.count(":") > 1:
            raise ValueError(f"{value!r} is not of the form module:function, as in agent:answer")
        return value


class ImportFailedError(MeasureError):
    """The agent, or what runs in its place, could not be imported."""

    def __init__(self, what: str, needs: str, missing: str) -> None:
        super().__init__(what, where="agent.python")
        self.needs = needs
        """The module that could not be imported or lacks an attribute; empty if something else failed."""
        self.missing = missing
        """The module of the configuration, or a package around it, that does not exist; empty if something else
        failed."""


MOST_IMPORT_CHARS = 140
"""Maximum number of characters of why the agent cannot be imported, with our own words."""


class _Worker:
    """One child process, and the requests that it is working on."""

    def __init__(self, child: Child, lines: LineChannel, place: WorkerAddress | None) -> None:
        self.child = child
        self.place = place
        """Its address of the outside world, if that is recorded or replayed."""
        self._lines = lines
        self._pending: dict[str, asyncio.Future[_Reply]] = {}
        self._reading: asyncio.Task[None] | None = None
        self.asynchronous = False
        self.alive = True
        self._fault = ""
        self.casualties = 0
        """Number of requests in flight when the process ended."""
        self.condemned = False
        """True if the gate ended it, because of one request."""

    @property
    def exit_reason(self) -> str:
        """Description of how the process ended."""
        return self._fault or self.child.exit_reason

    @property
    def load(self) -> int:
        return len(self._pending)

    async def wait_ready(self) -> None:
        """Wait until the agent is imported. Raises MeasureError if it cannot be."""
        try:
            async with asyncio.timeout(START_SECONDS):
                line = await self._lines.next()
            first = {}
            if line:
                first = msgspec.convert(json.loads(line), dict[str, Any])
        except TimeoutError as error:
            raise MeasureError(f"the agent was not imported within {START_SECONDS:g} s") from error
        except (ValueError, MsgspecError, RecursionError):
            first = {"fatal": "it wrote into the line between its process and the gate"}
        if not isinstance(first.get("asynchronous"), bool):
            await self.child.settle()
            what = first.get("fatal") or f"the interpreter {self.child.exit_reason}: {self.child.tail}"
            needs, missing = [str(first.get(name) or "") for name in ("needs", "missing")]
            raise ImportFailedError(f"cannot import the agent: {what}", needs, shorten(missing, 200))
        self.asynchronous = first["asynchronous"]
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            while line := await self._lines.next():
                reply = _reply(line)
                future = self._pending.pop(reply.id, None)
                if future is None:
                    raise ValueError("a reply without a request")
                if not future.done():
                    future.set_result(reply)
        except (ValueError, MsgspecError, RecursionError):
            self._fault = "wrote into the line between it and the gate what is no reply"
        finally:
            await self._lost()

    async def _lost(self) -> None:
        self.alive = False
        self._lines.close()
        await self.child.settle()
        await self.child.end(0)
        self.casualties = len(self._pending)
        for future in self._pending.values():
            if not future.done():
                future.set_exception(ConnectionResetError())
        self._pending.clear()

    async def ask(self, request: Mapping[str, Any], log: Log) -> _Reply:
        """Return the worker's reply; the function's output is added to the log.

        Raises ConnectionResetError if the process ends before it replies.
        """
        number = token_hex(8)  # hard to guess: the user's code can write to the line, too
        future: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            self._lines.send({"id": number, "request": request})
            reply = await future
            log.add(reply.log)
            return reply
        except asyncio.CancelledError:
            await self._give_up(number, log)
            raise
        finally:
            self._pending.pop(number, None)

    async def _give_up(self, number: str, log: Log) -> None:
        """Ask an async function to stop; end the process if it does not, or cannot."""
        if not self.alive:
            return
        if self.asynchronous:
            stopped: asyncio.Future[_Reply] = asyncio.get_running_loop().create_future()
            self._pending[number] = stopped
            self._lines.send({"cancel": number})
            with suppress(TimeoutError, ConnectionResetError):
                async with asyncio.timeout(CANCEL_SECONDS):
                    log.add((await stopped).log)
                    return
        self._pending.pop(number, None)
        self.condemned = True
        await self.child.end(0)
        log.add(self.child.tail)

    async def end(self) -> None:
        """Give the process a moment to run its exit handlers, then end it."""
        if self.alive and not self._pending and self._reading is not None:
            self._lines.send({"end": True})
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE_SECONDS):
                    await self.child.process.wait()
        await self.child.end(0)
        if self._reading is not None:
            await self._reading
        self._lines.close()


class _Error(Struct):
    """A failure in the process."""

    kind: ErrorKind
    message: str
    transient: bool


class _Reply(Struct):
    """The outcome of one request: an answer with the seconds that it took, or an error."""

    id: str
    answer: Any = None
    duration: float = math.nan
    log: str = ""
    error: _Error | None = None


def _reply(line: bytes) -> _Reply:
    """Parse a reply from worker.py. User code can write to this line too, so anything else raises ValueError."""
    reply = msgspec.convert(json.loads(line), _Reply)
    if reply.error is None and not math.isfinite(reply.duration):
        raise ValueError("neither an answer nor an error")
    return reply


class PythonAgent(Agent):
    """Several requests share a process: async functions on its loop, others on its threads.

    A process that ends takes its requests along. If there were several, the culprit is unknown, so each is retried
    alone in a process set aside for suspects; only a request that ends that one, too, is to blame.
    """

    Options = PythonOptions

    def __init__(self, options: PythonOptions, root: Path, environment: Mapping[str, str]) -> None:
        self._options = options
        self._root = root
        self._interpreter = interpreter_of(options.executable, root)
        self._descendants = Descendants()
        passed = allowed_environment(environment, options.env)
        self._environment = self._descendants.marked({**passed, "PYTHONUNBUFFERED": "1"})
        self._workers: list[_Worker | None] = [None] * options.workers
        self._suspect_worker: list[_Worker | None] = [None]
        self._starting = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._suspects: set[tuple[str, int]] = set()
        self._sessions: dict[str, _Worker] = {}
        self._failed_starts = 0
        self._being_started: set[int] = set()
        self._changed = asyncio.Event()
        """Set, and replaced, when a worker is released or started."""
        self._worker_options: dict[str, Any] = {"results": str(RESULTS)}

    async def __aenter__(self) -> Self:
        self._descendants.watch(0 if self.user is None else self.user.number)
        try:
            self._workers = list(await asyncio.gather(*(self._start() for _ in self._workers)))
            if self.world is not None and "workers" not in self._options.model_fields_set:
                self._workers += [None] * (min(self._options.concurrency, MOST_ALONE) - 1)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        workers = [worker for worker in (*self._workers, *self._suspect_worker) if worker is not None]
        try:
            await asyncio.gather(*(worker.end() for worker in workers))
        finally:
            self._descendants.end()

    async def answer(self, request: Request) -> Invocation:
        reply = await self._reply(request)
        if isinstance(reply.answer, str):
            refuse_truncated(reply.answer)
        return read_answer(reply.answer, user=request.user, duration=reply.duration)

    async def _reply(self, request: Request) -> _Reply:
        key = (request.case_id, request.trial)
        if key not in self._suspects:
            return await self._ask(await self._worker(request, self._workers), request, key)
        request.clock.stop()
        async with self._alone:
            return await self._ask(await self._worker(request, self._suspect_worker), request, key)

    def process_of(self, session_id: str) -> str:
        worker = self._sessions.get(session_id)
        if worker is None:
            return ""
        return worker.child.name

    async def close_session(self, session_id: str) -> None:
        worker = self._sessions.pop(session_id, None)
        if worker is not None and worker.place is not None:
            worker.place.session_id = ""
            self._tell_waiting()

    async def _ask(self, worker: _Worker, request: Request, key: tuple[str, int]) -> _Reply:
        request.clock.start()
        try:
            reply = await worker.ask(request.payload(), request.log)
        except ConnectionResetError:
            if worker.condemned:
                raise AgentFailure(
                    ErrorKind.CRASH, "its process was ended for another request's sake", collateral=True
                ) from None
            if worker.casualties > 1:
                self._suspects.add(key)
            request.log.add(worker.child.tail)
            message, last = f"the agent's process {worker.exit_reason}", ""
            if worker.child.tail:
                message += f": {worker.child.tail}"
                last = worker.child.tail.splitlines()[-1]
            raise AgentFailure(ErrorKind.CRASH, message, collateral=worker.casualties > 1, said=last) from None
        error = reply.error
        if error is not None:
            said = _PLACE.sub("", error.message)
            raise AgentFailure(error.kind, error.message, transient=error.transient, said=said)
        return reply

    async def _worker(self, request: Request, slots: list[_Worker | None]) -> _Worker:
        """Return the worker that holds the session; for a new session the least busy one, started if needed."""
        held = self._sessions.get(request.session_id)
        if held is not None:
            if held.alive:
                return held
            raise AgentFailure(ErrorKind.CRASH, "the process that held the session has ended", collateral=True)
        if self.world is not None:
            return await self._alone_with(request, slots)
        living = _living(slots)
        if len(living) < len(slots):
            request.clock.stop()
            async with self._starting:
                living = await self._restart(slots)
        worker = min(living, key=lambda worker: worker.load)
        self._sessions[request.session_id] = worker
        return worker

    async def _alone_with(self, request: Request, slots: list[_Worker | None]) -> _Worker:
        """Return a worker that holds no other session: the outside world recognises the trial by the worker's address
        alone.

        More are started a few at a time, so that trials answered from a recording can finish first and free theirs.
        """
        request.clock.stop()
        while True:
            held = list(self._sessions.values())
            free = next((worker for worker in _living(slots) if worker not in held), None)
            if free is not None:
                assert free.place is not None
                free.place.session_id = request.session_id
                self._sessions[request.session_id] = free
                return free
            dead = (n for n, worker in enumerate(slots) if worker is None or not worker.alive)
            vacant = next((n for n in dead if n not in self._being_started), None)
            if vacant is None or len(self._being_started) >= STARTED_AT_ONCE:
                await self._changed.wait()
                continue
            self._being_started.add(vacant)
            try:
                await self._restart(slots, [vacant])
            finally:
                self._being_started.discard(vacant)
                self._tell_waiting()

    def _tell_waiting(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _restart(self, slots: list[_Worker | None], which: Sequence[int] | None = None) -> list[_Worker]:
        if which is None:
            which = range(len(slots))
        for index in which:
            worker = slots[index]
            if worker is not None and worker.alive:
                continue
            if self._failed_starts >= MAX_STARTS:
                raise AgentFailure(ErrorKind.CRASH, f"the agent's process failed to start {MAX_STARTS} times in a row")
            try:
                slots[index] = await self._start()
            except MeasureError as error:
                self._failed_starts += 1
                raise AgentFailure(ErrorKind.CRASH, error.what) from error
            self._failed_starts = 0
        return _living(slots)  # one may end while another starts

    async def _start(self) -> _Worker:
        place = None
        if self.world is not None:
            place = self.world.place()
        try:
            child, lines = await LineChannel.over_socket(
                lambda descriptor: self._launch(descriptor, place), 2 * MAX_ANSWER_BYTES
            )
        except OSError as error:
            what = f"the interpreter cannot be started: {error.strerror}"
            raise MeasureError(what, where=self._interpreter) from error
        worker = _Worker(child, lines, place)
        try:
            await worker.wait_ready()
        except ImportFailedError as error:
            await worker.end()
            if error.missing:
                folders = [self._root, *(self._root / path for path in self._options.path)]
                what = f"{self._options.python}: no module named {error.missing!r}"
                hint = _near_module(error.missing, folders)
                raise MeasureError(what, where="agent.python", hint=hint) from None
            error.what = brief(self.explained(error.what), MOST_IMPORT_CHARS)
            if "ModuleNotFoundError" in error.what:
                error.hint = "install it, or set agent.executable: .venv"
                if self._options.executable:
                    error.hint = f"install it in {self._options.executable}"
            if ":" not in self._options.python:  # read as module.attribute, but it may be just a module
                error.hint = f"expected module:attribute, as in {self._options.python}:answer"
            raise
        except BaseException:
            await worker.end()
            raise
        return worker

    async def _launch(self, descriptor: int, place: WorkerAddress | None) -> Child:
        options = {
            **self._worker_options,
            "fd": descriptor,
            "target": self._options.python,
            "paths": [str(self._root), *(str(self._root / path) for path in self._options.path)],
            "threads": -(-self._options.concurrency // self._options.workers),
            "limit": MAX_ANSWER_BYTES,
            "line_limit": 8 * MAX_ANSWER_BYTES,
        }
        argv = [self._interpreter, str(WORKER), json.dumps(options)]
        environment = self._environment
        if place is not None:
            environment = {**environment, **place.environment}
        return await Child.start(argv, cwd=self._root, environment=environment, pass_fds=(descriptor,), user=self.user)


def _living(slots: Sequence[_Worker | None]) -> list[_Worker]:
    return [worker for worker in slots if worker is not None and worker.alive]


def _near_module(name: str, folders: Sequence[Path]) -> str:
    """Return a hint that names the module with the nearest name in the same place."""
    *package, leaf = name.split(".")
    names = set()
    for folder in folders:
        place = folder.joinpath(*package)
        if not place.is_dir():
            continue
        for path in place.iterdir():
            if path.suffix == ".py":
                names.add(path.stem)
            if (path / "__init__.py").exists():
                names.add(path.name)
    near = closest(leaf, names)
    if near:
        return f"did you mean {'.'.join([*package, near])!r}?"
    return "modules are looked for beside the configuration and in agent.path"


def interpreter_of(executable: str | None, root: Path) -> str:
    if executable is None:
        return sys.executable
    path = root / Path(executable).expanduser()
    if path.is_dir():
        path = path / "bin/python"
    if not os.access(path, os.X_OK) or path.is_dir():
        raise ConfigError(
            f"no interpreter at {executable}",
            where="agent.executable",
            hint="name a python or the folder of a virtual environment",
        )
    return str(path)
