"""Child processes on an event loop: bounded output, lines read to the end, and termination in steps.

`gate.system.child` starts, signals and describes a child, also for blocking callers.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Self

from gate.system.child import exit_reason, signal_group
from gate.system.concealed import conceal
from gate.system.own_user import OwnUser

TAIL_BYTES = 16_384
"""Bytes at the end of a child's output to keep for messages."""
GRACE_SECONDS = 2.0
"""Seconds between SIGTERM and SIGKILL."""
PIPE_SECONDS = 0.1
"""Seconds for a process's last output to arrive; a descendant may hold its pipe open forever."""


class Collector(asyncio.Protocol):
    """Reads a pipe to its end; keeps the last ``keep`` bytes, or everything up to ``limit``."""

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

    def forget(self) -> None:
        self._pieces, self._size = [], 0

    @property
    def data(self) -> bytes:
        whole = b"".join(self._pieces)
        return whole if self._keep is None else whole[-self._keep :]


class Child:
    """A child process in a new group, whose standard error (and output, unless it is read) is drained."""

    def __init__(self, process: asyncio.subprocess.Process, tail: Collector) -> None:
        self.process = process
        self.name = token_hex(4)
        """A name unique among all processes of all runs; process ids may be reused."""
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
        user: OwnUser | None = None,
    ) -> Self:
        """Start a child. Raises OSError if the program cannot be started. ``output`` creates the reader of standard
        output.

        ``user``: the user that it runs as, if not the gate's.
        """
        conceal()
        tail = Collector(keep=TAIL_BYTES)
        error_read, error_write = os.pipe()
        output_read, output_write = -1, error_write
        try:
            if output:
                output_read, output_write = os.pipe()
            process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=cwd,
                env=dict(environment) if user is None else user.environment(environment),
                stdin=stdin,
                stdout=output_write,
                stderr=error_write,
                pass_fds=pass_fds,
                start_new_session=True,
                **({} if user is None else user.start),
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
        """The end of the child's output, for messages."""
        return self._tail.data.decode("utf-8", "replace").strip()

    def forget(self) -> None:
        """Drop all output up to now from `tail`."""
        self._tail.forget()

    @property
    def exit_reason(self) -> str:
        """Description of how the process ended."""
        return exit_reason(self.process.returncode)

    async def settle(self, seconds: float = 1.0) -> None:
        """Wait briefly for a process that is ending, end what it left in its group, and read its last output."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.process.wait()
        signal_group(self.process.pid, signal.SIGKILL)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._tail.ended.wait()

    async def end(self, grace: float = GRACE_SECONDS) -> None:
        """Send SIGTERM to the group, and SIGKILL after ``grace``; return when the process is gone."""
        try:
            if self.process.returncode is None and grace > 0:
                signal_group(self.process.pid, signal.SIGTERM)
                with suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await self.process.wait()
        finally:
            signal_group(self.process.pid, signal.SIGKILL)
            for transport in self._transports:
                transport.close()
        await self.process.wait()
        await asyncio.sleep(0)  # lets the pipes close before their loop does


def _close(*fds: int) -> None:
    for fd in fds:
        if fd >= 0:
            os.close(fd)


class LineChannel:
    """Lines to and from a child that cannot import the gate: one JSON object each, over pipes or a socket."""

    def __init__(self, child: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._child, self._reader, self._writer = child, reader, writer
        self._noticing = asyncio.ensure_future(self._notice_end())

    @classmethod
    async def over_pipes(cls, start: Callable[..., Awaitable[Child]], limit: int) -> tuple[Child, Self]:
        """Start a child with ``start(stdin=…, output=…)``; its standard streams carry lines of at most ``limit``
        bytes."""
        read, write = os.pipe()
        try:
            reader = asyncio.StreamReader(limit=limit)
            child = await start(stdin=read, output=lambda: asyncio.StreamReaderProtocol(reader))
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        loop = asyncio.get_running_loop()
        pipe = open(write, "wb", buffering=0)  # noqa: SIM115, PTH123 - the transport closes it
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
        return child, cls(child, reader, asyncio.StreamWriter(transport, protocol, None, loop))

    @classmethod
    async def over_socket(cls, start: Callable[[int], Awaitable[Child]], limit: int) -> tuple[Child, Self]:
        """Start a child with ``start(descriptor)``, a socket for the lines; its standard streams stay free."""
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                child = await start(theirs.fileno())
        except BaseException:
            ours.close()
            raise
        reader, writer = await asyncio.open_connection(sock=ours, limit=limit)
        return child, cls(child, reader, writer)

    async def _notice_end(self) -> None:
        await self._child.process.wait()
        await asyncio.sleep(PIPE_SECONDS)
        self._reader.feed_eof()

    async def next(self) -> bytes:
        """Return the next complete line; empty once the child is gone. Raises ValueError for a line over the limit."""
        try:
            line = await self._reader.readline()
        except OSError:
            return b""
        return line if line.endswith(b"\n") else b""

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a line; no effect if the child is gone, which `next` reports."""
        self._writer.write(json.dumps(message).encode() + b"\n")

    async def drain(self) -> None:
        """Wait until the child has read the data sent. Raises ConnectionError if it stopped reading."""
        await self._writer.drain()

    def close(self) -> None:
        """Close the channel; `Child.end` ends the child."""
        self._noticing.cancel()
        self._writer.close()
