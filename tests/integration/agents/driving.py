"""Runs cases through a configured agent, and looks at what is left of it afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from gate.agents.base import Agent, create, parse_options
from gate.model import Case, Trial, Turn
from gate.pipeline.execute import Job, execute
from tests.patience import eventually, skip, skipping, until


def case(name: str, *turns: str, **fields: Any) -> Case:
    return Case(name, tuple(Turn(turn) for turn in turns or ("hello",)), **fields)


def make(options: Mapping[str, Any], root: Path, environment: Mapping[str, str] | None = None) -> Agent:
    kind, parsed = parse_options(options)
    return create(kind, parsed, root=root, environment=os.environ if environment is None else environment)


async def drive(
    options: Mapping[str, Any],
    cases: Sequence[Case],
    root: Path,
    *,
    environment: Mapping[str, str] | None = None,
    hung: Callable[[Sequence[Trial]], object] | None = None,
) -> list[Trial]:
    """The trials. Once ``hung`` says so of those that are there, what is in flight has had its time.

    With ``hung`` it needs a `SkippingLoop`.
    """
    _, parsed = parse_options(options)
    limits = {"concurrency": parsed.concurrency, "timeout": parsed.timeout, "retries": parsed.retries}
    found: list[Trial] = []

    async def end_what_hangs() -> None:
        if hung is not None:
            await until(lambda: hung(found))
            skip(parsed.timeout)

    async with make(options, root, environment) as agent:
        watching = asyncio.create_task(end_what_hangs())
        try:
            async with aclosing(execute(agent, [Job(case, 1) for case in cases], **limits)) as finished:  # type: ignore[arg-type]
                async for trials in finished:
                    found += trials
        finally:
            watching.cancel()
        return found


def run(options: Mapping[str, Any], cases: Sequence[Case], root: Path, **more: Any) -> dict[str, Trial]:
    """Trials by case id."""
    return {trial.case_id: trial for trial in skipping(drive(options, cases, root, **more))}


def processes_with(text: str) -> list[int]:
    """The living processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if text.encode() in command and state != "Z" and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def gone(text: str) -> bool:
    """Whether no such process is left, once those that were killed have had the time to go."""
    return eventually(lambda: not processes_with(text))


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@asynccontextmanager
async def serving(handler: Any) -> AsyncIterator[int]:
    """A raw server on loopback: ``handler(reader, writer)`` for each connection. Gives the port."""

    handling: set[asyncio.Task[Any] | None] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        handling.add(asyncio.current_task())
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            handling.discard(asyncio.current_task())
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        tasks = [task for task in handling if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    """Request line, headers in lower case, body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:] if line)}
    return head[0], headers, await reader.readexactly(int(headers.get("content-length", 0)))


def response(body: bytes, status: str = "200 OK", kind: str = "application/json", extra: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
    return head.encode() + body
