"""Child processes that leave nothing behind: groups, bounded output, signals in steps, and a last sweep for strays."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self
from uuid import uuid4

from gate.system import guardian
from gate.system.guardian import MARK, sweep

__all__ = ["GRACE_SECONDS", "MARK", "TAIL_BYTES", "Child", "Collector", "Descendants", "new_mark", "sweep"]

TAIL_BYTES = 4_096
"""How much of a child's last output is kept for messages."""
GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""
GUARDIAN = Path(guardian.__file__)


class Collector(asyncio.Protocol):
    """Reads a pipe to its end; keeps the last ``keep`` bytes, or with ``limit`` everything up to it."""

    def __init__(self, *, keep: int | None = None, limit: int | None = None) -> None:
        self._keep = keep
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0
        self.overflow = asyncio.Event()
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        if self.overflow.is_set():
            return
        self._pieces.append(data)
        self._size += len(data)
        if self._limit is not None and self._size > self._limit:
            self.overflow.set()
        if self._keep is not None and self._size > 16 * self._keep:
            self._pieces = [self.data]
            self._size = len(self._pieces[0])

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self.ended.set()

    @property
    def data(self) -> bytes:
        whole = b"".join(self._pieces)
        return whole if self._keep is None else whole[-self._keep :]


class Child:
    """A child process in a group of its own, whose standard error (and output, where not asked for) is drained."""

    def __init__(self, process: asyncio.subprocess.Process, tail: Collector) -> None:
        self.process = process
        self._tail = tail
        self._transports: list[asyncio.BaseTransport] = []

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        stdin: int = asyncio.subprocess.DEVNULL,
        output: Callable[[], asyncio.Protocol] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> Self:
        """Raises OSError where the program cannot be started. ``output`` makes the reader of standard output."""
        tail = Collector(keep=TAIL_BYTES)
        error_read, error_write = os.pipe()
        output_read, output_write = os.pipe() if output else (-1, error_write)
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=dict(environment),
                stdin=stdin,
                stdout=output_write,
                stderr=error_write,
                pass_fds=pass_fds,
                start_new_session=True,
            )
        except BaseException:
            _close(error_read, output_read)
            raise
        finally:
            _close(*{error_write, output_write})
        child = cls(process, tail)
        await child._read(error_read, lambda: tail)
        if output:
            await child._read(output_read, output)
        return child

    async def _read(self, fd: int, protocol: Callable[[], asyncio.Protocol]) -> None:
        pipe = open(fd, "rb", buffering=0)  # noqa: SIM115 - the transport closes it
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(protocol, pipe)
        self._transports.append(transport)

    @property
    def tail(self) -> str:
        """The last of what the child wrote, for messages."""
        return self._tail.data.decode("utf-8", "replace").strip()

    @property
    def exit_reason(self) -> str:
        """How the process ended, in words."""
        code = self.process.returncode
        if code is None:
            return "is still running"
        if code >= 0:
            return f"exited with status {code}"
        with suppress(ValueError):
            return f"was killed by {signal.Signals(-code).name}"
        return f"was killed by signal {-code}"

    async def settle(self, seconds: float = 1.0) -> None:
        """Waits shortly for a process that is ending, ends what it left in its group, and reads its last words."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.process.wait()
        self._signal(signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._tail.ended.wait()

    async def end(self, grace: float = GRACE_SECONDS) -> None:
        """SIGTERM to the group, SIGKILL after ``grace``; returns when the process is gone."""
        try:
            if self.process.returncode is None and grace > 0:
                self._signal(signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await self.process.wait()
        finally:
            self._signal(signal.SIGKILL)
            for transport in self._transports:
                transport.close()
        await self.process.wait()
        await asyncio.sleep(0)  # lets the pipes close before their loop does

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


def new_mark() -> str:
    """A value for MARK that no other run has."""
    return uuid4().hex


class Descendants:
    """Everything that one agent's processes come to start; nothing of it outlives the gate.

    ``end`` is called when the agent is left. A guardian does the same if the gate is killed and can do nothing itself.
    """

    def __init__(self) -> None:
        self._mark = new_mark()
        self._guardian: subprocess.Popen[bytes] | None = None

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment for a process that is started."""
        return {**environment, MARK: self._mark}

    def watch(self) -> None:
        """Starts the guardian, before the first process; without one, a killed gate leaves its processes behind."""
        with suppress(OSError):
            self._guardian = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-I", "-S", str(GUARDIAN), self._mark],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def end(self) -> None:
        """Kills whatever is left, in whatever group or session it is."""
        sweep(self._mark)
        if self._guardian is not None:
            self._guardian.kill()
            self._guardian.wait()
            assert self._guardian.stdin is not None
            self._guardian.stdin.close()
            self._guardian = None
