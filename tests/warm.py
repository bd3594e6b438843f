"""Commands of the package in processes of their own which need not import it: forked from one that has.

Most of what a short command takes is its imports, and the tests start thousands. Such a process has a folder, an
environment, streams and an exit code of its own as any other; what it does not do is start an interpreter. A test of
that start asks for a cold one, and ``GATE_TESTS_COLD=1`` makes all of them cold.
"""

from __future__ import annotations

import array
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

FAR_SIDE = Path(__file__).with_name("warm_process.py")
COLD = sys.platform != "linux" or bool(os.environ.get("GATE_TESTS_COLD"))
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""Variables whose name begins so are read once, when an interpreter starts."""
Streams = tuple[int, int, int]
_started: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


def run(
    words: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    flags: tuple[str, ...] = (),
    stdin: str = "",
    timeout: float = 900,
    cold: bool = False,
) -> subprocess.CompletedProcess[str]:
    """As subprocess.run of this interpreter with ``flags`` and ``words``, which begin with -m or -c; output is text."""
    command = [sys.executable, *flags, *words]
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        streams = given.fileno(), out.fileno(), err.fileno()
        if cold or COLD:
            code = _start(command, streams, timeout, cwd=cwd, env=dict(environment))
        else:
            kind = {"-m": "module", "-c": "code"}[words[0]]
            message = {kind: words[1], "arguments": words[2:], "cwd": str(cwd), "environment": dict(environment)}
            code = _ask(_far_side(flags, _at_start(environment)), message, streams, timeout)
        said = []
        for stream in (out, err):
            stream.seek(0)
            said.append(stream.read().decode("utf-8"))
    return subprocess.CompletedProcess(command, code, *said)


def end() -> None:
    """Ends the processes to fork from, once all that they forked have ended."""
    for line, process in _started:
        line.close()
        process.wait()
    _started.clear()
    _far_side.cache_clear()


def _start(command: list[str], streams: Streams, timeout: float, **options: Any) -> int:
    given, out, err = streams
    done = subprocess.run(command, stdin=given, stdout=out, stderr=err, timeout=timeout, check=False, **options)
    return done.returncode


def _at_start(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in environment.items() if name.startswith(AT_START))


def _ask(line: socket.socket, message: Mapping[str, object], streams: Streams, timeout: float) -> int:
    """Its exit code. Raises TimeoutExpired once it has been killed for its time."""
    told, answer = socket.socketpair()
    with told:
        with answer:
            socket.send_fds(line, [json.dumps(message).encode()], [*streams, answer.fileno()])
        pid = _number(told)
        told.settimeout(timeout)
        try:
            return _number(told)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(str(message), timeout) from None


def _number(told: socket.socket) -> int:
    found = array.array("i", told.recv(4))
    assert found, "the process that was to fork has ended"
    return found[0]


@cache
def _far_side(flags: tuple[str, ...], at_start: frozenset[tuple[str, str]]) -> socket.socket:
    """Started once per session, flags and variables of the start; ends when its line is closed."""
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with far:
        command = [sys.executable, *flags, str(FAR_SIDE), str(far.fileno())]
        others = {name: value for name, value in os.environ.items() if not name.startswith(AT_START)}
        process = subprocess.Popen(
            command,
            env={**others, **dict(at_start)},
            pass_fds=[far.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
    _started.append((near, process))
    return near
