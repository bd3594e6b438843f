"""Children on an event loop: lines to their end, whoever holds a pipe open, and starts that fail without a leak."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gate.system.child import Dialogue, LostError
from gate.system.processes import Child, Collector, LineChannel
from gate.system.wire import LineReader

LIMIT = 1_000


def _open() -> set[int]:
    """The open descriptors, that of the listing aside."""
    listed = {int(path.name) for path in Path("/proc/self/fd").iterdir()}
    return {number for number in listed if Path(f"/proc/self/fd/{number}").exists()}


def _descriptors() -> int:
    return len(_open())


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """This many more may be opened."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(max(_open()))]
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(_open()) + 1 + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for descriptor in held:
            os.close(descriptor)


async def start(code: str, folder: Path, **options: Any) -> Child:
    argv = [sys.executable, "-I", "-S", "-c", code]
    return await Child.start(argv, cwd=folder, environment={}, **options)


async def over_pipes(code: str, folder: Path) -> tuple[Child, LineChannel]:
    return await LineChannel.over_pipes(lambda **options: start(code, folder, **options), LIMIT)


async def replies(code: str, folder: Path) -> tuple[list[bytes], str]:
    """What a child says until it says no more, and how it ended."""
    child, lines = await over_pipes(code, folder)
    found = []
    try:
        while line := await lines.next():
            found.append(line)
        await child.settle()
    finally:
        lines.close()
        await child.end(0)
    return found, child.exit_reason


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "said", "ended"),
    [
        ("print('one'); print('two')", [b"one\n", b"two\n"], "exited with status 0"),
        ("import sys; sys.stdout.write('one\\nhalf a li')", [b"one\n"], "exited with status 0"),
        ("import os; os.kill(os.getpid(), 9)", [], "was killed by SIGKILL"),
        ("import os; os.write(1, b'\\xff\\n'); os._exit(3)", [b"\xff\n"], "exited with status 3"),
        (  # a grandchild that holds the pipe open for an hour
            "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(3600)\nprint('one', flush=True)\n"
            "os._exit(4)",
            [b"one\n"],
            "exited with status 4",
        ),
    ],
)
def test_lines_end_with_the_child(code: str, said: list[bytes], ended: str, tmp_path: Path) -> None:
    assert asyncio.run(replies(code, tmp_path)) == (said, ended)


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError):
        asyncio.run(replies(f"print('x' * {10 * LIMIT})", tmp_path))


def test_a_child_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(3600)"

    async def main() -> str:
        child, lines = await over_pipes(code, tmp_path)
        assert await lines.next() == b"deaf\n"
        lines.close()
        await child.end(0.2)
        return child.exit_reason

    assert asyncio.run(main()) == "was killed by SIGKILL"


def test_a_socket_leaves_the_standard_streams_to_the_child(tmp_path: Path) -> None:
    code = "import os, sys; print('its own'); os.write(int(sys.argv[1]), b'a line\\n')"

    async def main() -> tuple[bytes, bytes]:
        output = Collector(limit=LIMIT)

        async def launch(descriptor: int) -> Child:
            argv = [sys.executable, "-I", "-S", "-c", code, str(descriptor)]
            return await Child.start(argv, cwd=tmp_path, environment={}, output=lambda: output, pass_fds=(descriptor,))

        child, lines = await LineChannel.over_socket(launch, LIMIT)
        line = await lines.next()
        await output.ended.wait()
        lines.close()
        await child.end(0)
        return line, output.data

    assert asyncio.run(main()) == (b"a line\n", b"its own\n")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("more", range(1, 12))
def test_a_start_without_free_descriptors_leaves_none_open(more: int, tmp_path: Path) -> None:
    """However many are left, and wherever in the start they run out."""

    async def main() -> None:
        await asyncio.sleep(0)
        before = _descriptors()
        with few_descriptors(more):
            try:
                child, lines = await over_pipes("", tmp_path)
            except OSError:
                pass
            else:
                lines.close()
                await child.end(0)
        await asyncio.sleep(0.05)
        assert _descriptors() <= before

    asyncio.run(main())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
def test_who_waits_for_a_child_is_told_that_descriptors_ran_out() -> None:
    before = _descriptors()
    with few_descriptors(2), pytest.raises(LostError, match="cannot be started: Too many open files"):
        Dialogue([sys.executable, "-c", ""], LineReader(LIMIT), environment={})
    assert _descriptors() == before


def test_what_is_sent_arrives_as_json(tmp_path: Path) -> None:
    async def main() -> bytes:
        child, lines = await over_pipes("print(input())", tmp_path)
        lines.send({"id": "ä"})
        await lines.drain()
        line = await lines.next()
        lines.close()
        await child.end(0)
        return line

    assert json.loads(asyncio.run(main())) == {"id": "ä"}
