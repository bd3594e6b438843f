"""Runs cases through a configured agent, and looks at what is left of it afterwards."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

from gate.agents.base import Agent, create, parse_options
from gate.execute import Job, execute
from gate.model import Case, Trial, Turn


def case(name: str, *turns: str, **fields: Any) -> Case:
    return Case(name, tuple(Turn(turn) for turn in turns or ("hello",)), **fields)


def make(options: Mapping[str, Any], root: Path, environment: Mapping[str, str] | None = None) -> Agent:
    kind, parsed = parse_options(options)
    return create(kind, parsed, root=root, environment=os.environ if environment is None else environment)


async def drive(options: Mapping[str, Any], cases: Sequence[Case], root: Path, **more: Any) -> list[Trial]:
    _, parsed = parse_options(options)
    limits = {"concurrency": parsed.concurrency, "timeout": parsed.timeout, "retries": parsed.retries}
    async with make(options, root, more.get("environment")) as agent:
        todo = [Job(case, number) for case in cases for number in range(1, more.get("trials", 1) + 1)]
        async with aclosing(execute(agent, todo, **limits)) as trials:  # type: ignore[arg-type]
            return [trial async for trial in trials]


def run(options: Mapping[str, Any], cases: Sequence[Case], root: Path, **more: Any) -> dict[str, Trial]:
    """Trials by case id."""
    return {trial.case_id: trial for trial in asyncio.run(drive(options, cases, root, **more))}


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


def gone(text: str, within: float = 3.0) -> bool:
    """Whether no such process is left, soon."""
    end = time.monotonic() + within
    while processes_with(text):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


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
