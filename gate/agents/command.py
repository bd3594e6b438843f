"""Drives a program: one JSON object on its standard input, one answer on its standard output, once or line by line."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import IO, Annotated, Any, Self

from msgspec.structs import replace
from pydantic import field_validator

from gate.agents.base import (
    WORDS_SCHEMA,
    Agent,
    AgentFailure,
    AgentOptions,
    Request,
    Stream,
    allowed_environment,
    decode_answer,
    read_answer,
    refuse_disguised,
)
from gate.errors import ConfigError
from gate.model import ErrorKind, Invocation, RecordedTrial
from gate.security.limits import MAX_ANSWER_BYTES
from gate.system.child import Descendants
from gate.system.processes import Child, Collector, LineChannel
from gate.world.world import WorkerAddress

_SHELL = re.compile(r"\d?>{1,2}(?:&\d|[^>]*)|<{1,3}[^>]*|\|{1,2}|&{1,2}|\S*;")
"""Words that mean something to a shell alone."""


_CALLS_SHELL = re.compile(r"\s*(?:/\S*/)?(?:sh|ash|bash|dash|ksh|zsh)\s+(?:-\S+\s+)*-[a-z]*c\s")
"""A command line that calls a shell by itself: what means something to a shell may stand in it."""
MOST_OF_ERROR = 4_000
"""Characters of standard error, its last ones, that an error's text holds."""


class CommandOptions(AgentOptions):
    """``command: program and arguments``."""

    command: Annotated[tuple[str, ...], WORDS_SCHEMA]
    """The program and its arguments, as a list or as one string split like a shell's; no shell runs it."""
    persistent: bool = False
    """Whether a process answers many requests, one JSON line each, and echoes their ``id``."""

    @property
    def is_local(self) -> bool:
        return True

    @field_validator("command", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str) and _CALLS_SHELL.match(value[0]):
            value = value[0]  # `[sh -c '…']`: quotes mean nothing within a YAML list
        if isinstance(value, str):
            calls_shell = _CALLS_SHELL.match(value)
            value = shlex.split(value)
            shell = next((word for word in value if _SHELL.fullmatch(word)), None)
            if shell is not None and not calls_shell:
                raise ValueError(f"no shell reads {shell!r}: write [sh, -c, '…']")
        if not value:
            raise ValueError("name a program")
        return value


class CommandAgent(Agent):
    """Runs a process per turn; or, if persistent, gives each session a process and reuses it for the next session."""

    Options = CommandOptions

    def __init__(self, options: CommandOptions, root: Path, environment: Mapping[str, str]) -> None:
        self._argv = options.command
        self._persistent = options.persistent
        self._root = root
        self._descendants = Descendants()
        self._environment = self._descendants.marked(environment)
        self._idle: list[_Line] = []
        self._lines: dict[str, _Line] = {}

    @classmethod
    def make(
        cls,
        options: CommandOptions,
        *,
        root: Path,
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - replay's
    ) -> CommandAgent:
        return cls(options, root, allowed_environment(environment, options.env))

    async def __aenter__(self) -> Self:
        self._descendants.watch()
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*(line.end() for line in (*self._idle, *self._lines.values())))
        finally:
            self._descendants.end()

    async def answer(self, request: Request) -> Invocation:
        return await (self._next_line(request) if self._persistent else self._run(request))

    async def close_session(self, session_id: str) -> None:
        line = self._lines.pop(session_id, None)
        if line is not None and line.place is not None:
            line.place.session_id = ""
        if line is not None and line.alive:
            self._idle.append(line)
        elif line is not None:
            await line.end()

    async def _start(self, more: Mapping[str, str] | None = None, **options: Any) -> Child:
        environment = {**self._environment, **(more or {})}
        try:
            return await Child.start(self._argv, cwd=self._root, environment=environment, **options)
        except (FileNotFoundError, PermissionError, NotADirectoryError) as error:
            raise ConfigError(
                f"cannot run {self._argv[0]!r}: {error.strerror}",
                where="agent.command",
                hint="is it installed, executable, and named relative to the configuration?",
            ) from error
        except OSError as error:
            raise AgentFailure(ErrorKind.HOST, f"cannot run the command: {error}", transient=True) from error

    async def _run(self, request: Request) -> Invocation:
        output = Collector(limit=MAX_ANSWER_BYTES)
        with _question(request) as question:
            start = perf_counter()
            child = await self._start(request.environment, stdin=question.fileno(), output=lambda: output)
        ended = asyncio.ensure_future(child.process.wait())
        flooded = asyncio.ensure_future(output.overflow.wait())
        try:
            await asyncio.wait((ended, flooded), return_when=asyncio.FIRST_COMPLETED)
            duration = perf_counter() - start
            request.clock.stop()  # it has answered; a child that it left may hold its output open
            if ended.done():
                await child.settle()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await output.ended.wait()
        finally:
            ended.cancel()
            flooded.cancel()
            await child.end()
            request.log.add(child.tail)
        if output.overflow.is_set():
            raise AgentFailure(ErrorKind.PROTOCOL, f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        if child.process.returncode != 0:
            raise _ended(child)
        answer = decode_answer(output.data)
        if isinstance(answer, str) and not isinstance(answer, Stream):
            refuse_disguised(answer)
        return replace(read_answer(answer, user=request.user), duration=duration)

    async def _next_line(self, request: Request) -> Invocation:
        line = self._lines.get(request.session_id)
        if line is None:
            line = self._idle.pop() if self._idle else await self._open_line()
            self._lines[request.session_id] = line
            if line.place is not None:
                line.place.session_id = request.session_id
        elif not line.alive:
            raise AgentFailure(ErrorKind.CRASH, "the process that held the session has ended")
        start = perf_counter()
        try:
            answer = await line.ask(request.payload())
        except BaseException:
            await line.end()
            raise
        finally:
            request.log.add(line.written())
        return replace(read_answer(answer, user=request.user), duration=perf_counter() - start)

    async def _open_line(self) -> _Line:
        place = None if self.world is None else self.world.place()
        start = self._start if place is None else partial(self._start, place.environment)
        child, lines = await LineChannel.over_pipes(start, MAX_ANSWER_BYTES)
        return _Line(child, lines, place)


def _question(request: Request) -> IO[bytes]:
    """A file with the request, to be the program's standard input."""
    try:
        question = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        question.write(json.dumps(request.payload()).encode() + b"\n")
        question.seek(0)
    except OSError as error:
        raise AgentFailure(ErrorKind.HOST, f"the request cannot be written: {error}", transient=True) from error
    return question


def _ended(child: Child) -> AgentFailure:
    """That the program ended without an answer. Its last line says why; those before may tell of what it overcame."""
    tail = _end_of(child.tail) or "it wrote no error"
    return AgentFailure(ErrorKind.CRASH, f"the command {child.exit_reason}: {tail}", said=tail.splitlines()[-1])


def _end_of(text: str) -> str:
    """The last of a text, without the word that is cut off: it may be half of a secret."""
    if len(text) <= MOST_OF_ERROR:
        return text
    words = text[-MOST_OF_ERROR:].split(None, 1)
    return words[1] if len(words) > 1 else "a single word, too long to be shown"


class _Line:
    """A persistent process, asked one thing at a time."""

    def __init__(self, child: Child, lines: LineChannel, place: WorkerAddress | None) -> None:
        self._child = child
        self.place = place
        """Its address of the outside world, where that is recorded or replayed."""
        self._lines = lines
        self.alive = True

    def written(self) -> str:
        """What the process wrote on standard error since it was last asked for."""
        text = self._child.tail
        self._child.forget()
        return text

    async def ask(self, request: dict[str, Any]) -> Any:
        asked = token_hex(8)  # what a process prints before it is asked cannot be taken for an answer
        try:
            self._lines.send({**request, "id": asked})
            await self._lines.drain()
            line = await self._lines.next()
        except ConnectionError:
            line = b""
        except ValueError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"an answer of more than {MAX_ANSWER_BYTES:,} bytes") from error
        if not line:
            await self._child.settle()
            await self._child.end(0)
            raise _ended(self._child)
        answer = decode_answer(line)
        if not isinstance(answer, dict) or answer.pop("id", None) != asked:
            raise AgentFailure(
                ErrorKind.PROTOCOL, f"the line does not answer the request, whose id it must have: {line[:150]!r}"
            )
        return answer

    async def end(self) -> None:
        self.alive = False
        self._lines.close()
        await self._child.end()
