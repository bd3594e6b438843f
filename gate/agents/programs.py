"""A program that is the agent: started in the agent's environment and, if it stays, spoken to line by line."""

from __future__ import annotations

import asyncio
import errno
import os
import posixpath
import re
import shutil
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from gate.agents.base import Agent, AgentFailure
from gate.errors import ConfigError
from gate.model import ErrorKind
from gate.security.limits import MAX_ANSWER_BYTES
from gate.system.child import Descendants
from gate.system.processes import Child, LineChannel

if TYPE_CHECKING:
    from gate.world.world import WorkerAddress

_MODULE = re.compile(r"\w+(?:\.\w+)*")
NO_PROGRAM = frozenset({errno.ENOENT, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.ENOEXEC})
"""Errors of the system for what is not a program."""
MOST_OF_ERROR = 4_000
"""Characters of standard error that an error text holds; the last ones."""


def files_in(command: Sequence[str]) -> tuple[str, ...]:
    """Return what may be files in a command: its words, and `conf.yaml` of `--config=conf.yaml`."""
    values = [word.partition("=")[2] for word in command if word.startswith("-")]
    return tuple([posixpath.normpath(word) for word in (*command, *filter(None, values))])


def modules_in(command: Sequence[str]) -> tuple[str, ...]:
    """Return the modules that a command starts: `support.bot` of `python -m support.bot`."""
    return tuple([module for option, module in pairwise(command) if option == "-m" and _MODULE.fullmatch(module)])


class ProgramAgent(Agent):
    """Base of agents that are programs; everything that it started has ended when it is left."""

    def __init__(self, argv: Sequence[str], root: Path, environment: Mapping[str, str], *, key: str) -> None:
        """``key`` is the configuration key of the program."""
        self._argv, self._root, self._key = argv, root, key
        self._descendants = Descendants()
        self._environment = self._descendants.marked(environment)

    async def __aenter__(self) -> Self:
        folders = [""]  # of a name with a slash
        if "/" not in self._argv[0]:
            folders = self._environment.get("PATH", os.defpath).split(os.pathsep)
        if not any(shutil.which(str(self._root / folder / self._argv[0])) for folder in folders):
            raise self._no_program("no such executable")
        self._descendants.watch(0 if self.user is None else self.user.number)
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await asyncio.gather(*[line.end() for line in self.lines()])
        finally:
            self._descendants.end()

    def _no_program(self, reason: str) -> ConfigError:
        return ConfigError(
            f"cannot run {self._argv[0]!r}: {reason}",
            where=self._key,
            hint="is it installed, executable, and named relative to the configuration?",
        )

    @abstractmethod
    def lines(self) -> list[ProgramLine]:
        """Return the processes that stay, each with a session or without one."""

    async def start(self, more: Mapping[str, str] | None = None, **options: Any) -> Child:
        """Return a new process, with ``more`` in its environment. Raises ConfigError if the program is missing, or
        AgentFailure."""
        environment = {**self._environment, **(more or {})}
        try:
            return await Child.start(self._argv, cwd=self._root, environment=environment, user=self.user, **options)
        except OSError as error:
            if error.errno in NO_PROGRAM:
                raise self._no_program(str(error.strerror)) from error
            raise AgentFailure(ErrorKind.HOST, f"cannot run the command: {error}", transient=True) from error

    async def open_line(self) -> ProgramLine:
        """Return a process that stays, with its own address of the outside world if that is recorded or replayed."""
        place, start = None, self.start
        if self.world is not None:
            place = self.world.place()
            start = partial(self.start, place.environment)
        child, lines = await LineChannel.over_pipes(start, MAX_ANSWER_BYTES)
        return ProgramLine(child, lines, place)


class ProgramLine:
    """A process that stays and answers one request at a time over its standard streams."""

    def __init__(self, child: Child, lines: LineChannel, place: WorkerAddress | None) -> None:
        self.child = child
        self.alive = True
        self._lines, self._place = lines, place

    def take(self, session_id: str) -> None:
        """Serve this session from now on; none if it is empty."""
        if self._place is not None:
            self._place.session_id = session_id

    def send(self, message: Mapping[str, Any]) -> None:
        self._lines.send(message)

    async def next(self, *, called: str) -> bytes:
        """Return the next line. Raises AgentFailure if it is too long, or if the process has ended; ``called`` names it
        there."""
        try:
            await self._lines.drain()
            line = await self._lines.next()
        except ConnectionError:
            line = b""
        except ValueError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"an answer of more than {MAX_ANSWER_BYTES:,} bytes") from error
        if not line:
            await self.child.settle()
            await self.child.end(0)
            raise without_answer(self.child, called)
        return line

    async def end(self) -> None:
        self.alive = False
        self._lines.close()
        await self.child.end()


def without_answer(child: Child, called: str) -> AgentFailure:
    """Return the failure of a process that ended without an answer. Only its last line gives the reason; those before
    may report problems that it overcame."""
    tail = _end_of(child.tail) or "it wrote no error"
    ended = child.exit_reason
    if child.process.returncode == 0:
        ended += " without an answer"
    return AgentFailure(ErrorKind.CRASH, f"the {called} {ended}: {tail}", said=tail.splitlines()[-1])


def _end_of(text: str) -> str:
    """Return the end of a text, without a word that is cut off, which may be half of a secret."""
    if len(text) <= MOST_OF_ERROR:
        return text
    words = text[-MOST_OF_ERROR:].split(None, 1)
    return words[1] if len(words) > 1 else "a single word, too long to be shown"
