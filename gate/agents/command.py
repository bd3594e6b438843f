"""Drives a program: one JSON object on standard input, one answer on standard output, once or line by line."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from time import perf_counter
from typing import IO, Annotated, Any

from pydantic import field_validator

from gate.agents.base import (
    AgentFailure,
    AgentOptions,
    Request,
    Stream,
    allowed_environment,
    decode_answer,
    read_answer,
    refuse_disguised,
    so_far,
)
from gate.agents.programs import ProgramAgent, ProgramLine, files_in, modules_in, without_answer
from gate.model import ErrorKind, Invocation
from gate.model.strict import WORDS_SCHEMA
from gate.security.limits import MAX_ANSWER_BYTES
from gate.system.processes import Collector

_SHELL = re.compile(r"\d?>{1,2}(?:&\d|[^>]*)|<{1,3}[^>]*|\|{1,2}|&{1,2}|\S*;")
"""Words that have a meaning only in a shell."""


_CALLS_SHELL = re.compile(r"\s*(?:/\S*/)?(?:sh|ash|bash|dash|ksh|zsh)\s+(?:-\S+\s+)*-[a-z]*c\s")
"""A command line that calls a shell itself, so it may contain such words."""


class CommandOptions(AgentOptions):
    """``command: program and arguments``."""

    command: Annotated[tuple[str, ...], WORDS_SCHEMA]
    """The program and its arguments, as a list or as a string split as a shell would; no shell runs it."""
    persistent: bool = False
    """True if one process answers many requests, one JSON line each, and echoes their ``id``."""

    @property
    def entry(self) -> tuple[str, ...]:
        return files_in(self.command)

    @property
    def modules(self) -> tuple[str, ...]:
        return modules_in(self.command)

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


class CommandAgent(ProgramAgent):
    """Runs a process per turn; if persistent, gives each session a process, which serves the next session
    afterwards."""

    Options = CommandOptions

    def __init__(self, options: CommandOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options.command, root, allowed_environment(environment, options.env), key="agent.command")
        self._persistent = options.persistent
        self._idle: list[ProgramLine] = []
        self._lines: dict[str, ProgramLine] = {}

    def lines(self) -> list[ProgramLine]:
        return [*self._idle, *self._lines.values()]

    async def answer(self, request: Request) -> Invocation:
        if self._persistent:
            return await self._next_line(request)
        return await self._run(request)

    def process_of(self, session_id: str) -> str:
        line = self._lines.get(session_id)
        return line.child.name if line is not None else ""

    async def close_session(self, session_id: str) -> None:
        line = self._lines.pop(session_id, None)
        if line is None:
            return
        line.take("")
        if line.alive:
            self._idle.append(line)
        else:
            await line.end()

    async def _run(self, request: Request) -> Invocation:
        output = Collector(limit=MAX_ANSWER_BYTES)
        with _question(request) as question:
            start = perf_counter()
            child = await self.start(request.environment, stdin=question.fileno(), output=lambda: output)
        ended = asyncio.ensure_future(child.process.wait())
        flooded = asyncio.ensure_future(output.overflow.wait())
        try:
            await asyncio.wait((ended, flooded), return_when=asyncio.FIRST_COMPLETED)
            duration = perf_counter() - start
            request.clock.stop()  # it has answered; a child process may still hold its output open
            if ended.done():
                await child.settle()
                with suppress(TimeoutError):
                    async with asyncio.timeout(1.0):
                        await output.ended.wait()
        except asyncio.CancelledError:
            if not request.clock.is_over or not output.data.strip():
                raise
            failure = request.clock.overrun()
            failure.message += ": it printed text, but did not end"
            raise _with_turn(failure, output.data) from None
        finally:
            ended.cancel()
            flooded.cancel()
            await child.end()
            request.log.add(child.tail)
        if output.overflow.is_set():
            raise AgentFailure(ErrorKind.PROTOCOL, f"an answer of more than {MAX_ANSWER_BYTES:,} bytes")
        if child.process.returncode != 0 or not output.data.strip():
            raise _with_turn(without_answer(child, "command"), output.data)
        answer = decode_answer(output.data)
        if isinstance(answer, str) and not isinstance(answer, Stream):
            refuse_disguised(answer)
        return read_answer(answer, user=request.user, duration=duration)

    async def _next_line(self, request: Request) -> Invocation:
        line = self._lines.get(request.session_id)
        if line is None:
            if self._idle:
                line = self._idle.pop()
            else:
                line = await self.open_line()
            self._lines[request.session_id] = line
            line.take(request.session_id)
        elif not line.alive:
            raise AgentFailure(ErrorKind.CRASH, "the process that held the session has ended")
        start = perf_counter()
        try:
            answer = await _ask(line, request.payload())
        except BaseException:
            await line.end()
            raise
        finally:
            request.log.add(line.child.tail)
            line.child.forget()
        return read_answer(answer, user=request.user, duration=perf_counter() - start)


def _with_turn(failure: AgentFailure, output: bytes) -> AgentFailure:
    """Return the failure with the turn that the program printed nevertheless: a forbidden call in it counts."""
    with suppress(AgentFailure):
        failure.turn = so_far(decode_answer(output))
    return failure


def _question(request: Request) -> IO[bytes]:
    """Return a file with the request, for the program's standard input."""
    try:
        question = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        question.write(json.dumps(request.payload()).encode() + b"\n")
        question.seek(0)
    except OSError as error:
        raise AgentFailure(ErrorKind.HOST, f"the request cannot be written: {error}", transient=True) from error
    return question


async def _ask(line: ProgramLine, request: dict[str, Any]) -> Any:
    """Return the answer of a persistent process. Raises AgentFailure."""
    asked = token_hex(8)  # so that earlier output cannot pass for an answer
    line.send({**request, "id": asked})
    read = await line.next(called="command")
    answer = decode_answer(read)
    if not isinstance(answer, dict) or answer.pop("id", None) != asked:
        text = f"the line does not answer the request, whose id it must have: {read[:150]!r}"
        raise AgentFailure(ErrorKind.PROTOCOL, text)
    return answer
