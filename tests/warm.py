"""Commands of the package in processes of their own which need not import it: forked from one that has.

Most of what a short command takes is its imports, and the tests start thousands. Such a process has a folder, an
environment, streams and an exit code of its own as any other; what it does not do is start an interpreter. A test of
that start asks for a cold one, and ``GATE_TESTS_COLD=1`` makes all of them cold.
"""

from __future__ import annotations

import array
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

FAR_SIDE = Path(__file__).with_name("warm_process.py")
ON_THE_PATH = Path(__file__).with_name("warm_gate.py")
COLD = sys.platform != "linux" or bool(os.environ.get("GATE_TESTS_COLD"))
AT_START = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""Variables whose name begins so are read once, when an interpreter starts."""
ABORT_SECONDS = 10.0
"""The seconds in which a command that did not end in time may say where it was."""
_started: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []
_made: list[str] = []


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
    """As subprocess.run of this interpreter with ``flags`` and ``words``, which begin with -m or -c; output is text.

    If it does not end in time, the error's note has its output, and where each of its threads was.
    """
    started = Started(words, cwd=cwd, environment=environment, flags=flags, stdin=stdin, cold=cold)
    try:
        out, err = started.communicate(timeout)
    except subprocess.TimeoutExpired as error:
        error.add_note("\n".join(_aborted(started)))
        raise
    return subprocess.CompletedProcess([sys.executable, *flags, *words], started.wait(), out, err)


def _aborted(started: Started) -> tuple[str, str]:
    """Ends the command and returns its output and errors; faulthandler adds its threads' stacks to these."""
    started.send_signal(signal.SIGABRT)
    with suppress(subprocess.TimeoutExpired):
        return started.communicate(ABORT_SECONDS)
    started.send_signal(signal.SIGKILL)
    return started.communicate()


class Started:
    """A command that is running; used as `subprocess.Popen`.

    ``heeds``: signals that it does not ignore, whoever runs these tests: under nohup, or in the background.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        flags: tuple[str, ...] = (),
        stdin: str = "",
        heeds: Sequence[signal.Signals] = (),
        cold: bool = False,
    ) -> None:
        self._streams = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed once they are read
        with tempfile.TemporaryFile() as given:
            given.write(stdin.encode())
            given.seek(0)
            files = given.fileno(), *(stream.fileno() for stream in self._streams)
            kind = {"-m": "module", "-c": "code"}[words[0]]
            about = {"cwd": str(cwd), "environment": dict(environment), "heeds": list(heeds)}
            self._process: _Fork | subprocess.Popen[bytes]
            if cold or COLD:
                self._process = subprocess.Popen(
                    [sys.executable, *flags, *words],
                    stdin=files[0],
                    stdout=files[1],
                    stderr=files[2],
                    cwd=cwd,
                    env=dict(environment),
                    preexec_fn=(lambda: [signal.signal(one, signal.SIG_DFL) for one in heeds]) if heeds else None,  # noqa: PLW1509
                )
            else:
                line = _far_side(flags, _at_start(environment))
                self._process = _Fork(line, {kind: words[1], "arguments": words[2:], **about}, files)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Return its output and errors once it has ended. Raises TimeoutExpired if it does not end in time."""
        self._process.wait(timeout)
        said = []
        for stream in self._streams:
            with stream:
                stream.seek(0)
                said.append(stream.read().decode("utf-8"))
        out, err = said
        return out, err

    def wait(self, timeout: float | None = None) -> int:
        return self._process.wait(timeout)

    def poll(self) -> int | None:
        return self._process.poll()

    def send_signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def returncode(self) -> int | None:
        return self._process.returncode


class _Fork:
    """A process that was forked far off, used as `subprocess.Popen`."""

    def __init__(self, line: socket.socket, message: Mapping[str, object], files: Sequence[int]) -> None:
        self._told, answer = socket.socketpair()
        with answer:
            socket.send_fds(line, [json.dumps(message).encode()], [*files, answer.fileno()])
        self.pid = _number(self._told)
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._told.settimeout(timeout)
            try:
                self.returncode = _number(self._told)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0) from None
            self._told.close()
        return self.returncode

    def poll(self) -> int | None:
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has ended since
                os.kill(self.pid, number)


def options_of_a_script(environment: Mapping[str, str]) -> dict[str, Any]:
    """Options of `subprocess` for a script that calls `gate`: its environment, in which that is forked, too."""
    if COLD:
        return {"env": dict(environment)}
    at_start = _at_start(environment)
    line = _far_side((), at_start).fileno()
    path = f"{_folder_of_the_command()}{os.pathsep}{environment['PATH']}"
    told = json.dumps({"line": line, "prefixes": AT_START, "at_start": dict(at_start)})
    return {"env": {**environment, "PATH": path, "GATE_TESTS_LINE": told}, "pass_fds": [line]}


@cache
def _folder_of_the_command() -> str:
    folder = tempfile.mkdtemp(prefix="gate-tests-")
    _made.append(folder)
    command = Path(folder, "gate")
    command.write_text(f"#!{sys.executable} -IS\n{ON_THE_PATH.read_text(encoding='utf-8')}", encoding="utf-8")
    command.chmod(0o755)
    return folder


def end() -> None:
    """Ends the processes to fork from, once all that they forked have ended."""
    for line, process in _started:
        line.close()
        process.wait()
    for folder in _made:
        shutil.rmtree(folder)
    for known in (_started, _made):
        known.clear()
    for function in (_far_side, _folder_of_the_command):
        function.cache_clear()


def _at_start(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in environment.items() if name.startswith(AT_START))


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
