"""Child processes: how to start one, send it requests, end it with its descendants, and report how it ended.

Everything here blocks the calling thread; `gate.system.processes` does the same on an event loop.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from threading import Timer
from time import monotonic
from typing import IO, Any, Generic, TypeVar
from uuid import uuid4
from weakref import finalize

from gate.stopping import LOOK_SECONDS, STOPPING
from gate.system import guardian
from gate.system.concealed import conceal
from gate.system.guardian import MARK, sweep
from gate.system.wire import GarbledError, Reading

LEAVE_SECONDS = 1.0
"""Seconds for a process to leave by itself when there are no more requests."""
_BEGIN = (
    "import json, os, runpy, sys; ours, path, kept = json.loads(sys.argv.pop(2)); "
    "sys.path.insert(0, ours); import gate; sys.path[:] = path; os.environ.update(kept); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_OURS = str(Path(__file__).parents[2])
"""The folder with the package, searched first, because a user's folder may have the same name."""
_STEERING = ("PYTHONPATH",)
"""Variables that would put other modules before the gate's; set again once the child has found the package."""

T = TypeVar("T")


def leave_after_request(requests: SimpleQueue[Any]) -> None:
    """End this process after its current request, by putting ``None`` in the queue, and soon even if that request
    hangs."""
    requests.put(None)
    leave = Timer(LEAVE_SECONDS, os.kill, (os.getpid(), signal.SIGKILL))
    leave.daemon = True
    leave.start()


# --- start ----------------------------------------------------------------------------------------


def launch(
    argv: Sequence[str],
    *,
    environment: Mapping[str, str],
    cwd: Path | str | None = None,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int | None = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Return a process in a new session: it has no terminal to prompt on, and `signal_group` reaches its children.

    ``environment`` is all that it sees, even in `/proc`. Raises OSError if the program cannot be started.
    """
    conceal()
    return subprocess.Popen(  # noqa: S603 - a list, and no shell
        argv, cwd=cwd, env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )


def run(
    argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, stdin: bytes = b"", seconds: float
) -> tuple[int, bytes, bytes]:
    """Run a program to its end; return its exit code, output and errors.

    Raises OSError if it cannot be started, TimeoutError if it takes longer, and Cancelled if a signal stops the gate
    meanwhile; the program and its group are then killed. A program started after the signal is for cleaning up and may
    run.
    """
    pipe, deadline, is_cleaning = subprocess.PIPE, monotonic() + seconds, STOPPING.is_set
    process = None
    try:
        with STOPPING.postponed():
            process = launch(argv, environment=environment, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe)
        given: bytes | None = stdin
        while True:
            try:
                left = max(0.0, deadline - monotonic())
                output, errors = process.communicate(given, timeout=min(LOOK_SECONDS, left))
                break
            except subprocess.TimeoutExpired:
                given = None  # communicate() keeps writing the rest of the input
            if not is_cleaning:
                STOPPING.check()
            if monotonic() >= deadline:
                raise TimeoutError
    except BaseException:
        if process is not None:
            with process:
                signal_group(process.pid, signal.SIGKILL)
                process.communicate()
        raise
    return process.returncode, output, errors


def module_command(
    module: str, *arguments: str, environment: Mapping[str, str], path: Sequence[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Return the command and the environment that run a module of the gate in a separate process.

    The module is imported from this process's path (``path``, by default `sys.path`). Neither the working directory nor
    PYTHONPATH comes first, since the user's modules there may have the same names.
    """
    kept = {name: environment[name] for name in _STEERING if name in environment}
    others = {name: value for name, value in environment.items() if name not in _STEERING}
    flags = ["-P", "-s"] if sys.flags.no_user_site else ["-P"]
    begin = json.dumps([_OURS, list(sys.path if path is None else path), kept])
    return [sys.executable, *flags, "-c", _BEGIN, module, begin, *arguments], others


def script_command(script: Path, *arguments: str) -> list[str]:
    """Return the command that runs a script of the gate with only the standard library, which starts quickly."""
    return [sys.executable, "-I", "-S", str(script), *arguments]


# --- end ------------------------------------------------------------------------------------------


def exit_reason(code: int | None) -> str:
    """Return how a process ended, in words; ``code`` is None if it has not, negative for a signal."""
    if code is None:
        return "is still running"
    if code >= 0:
        return f"exited with status {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process and its whole group; do nothing if no process is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def new_mark() -> str:
    """Return a value for MARK that no other run has."""
    return uuid4().hex


class Descendants:
    """All processes that a child starts, directly or indirectly; none of them outlives the gate.

    ``end`` ends them. A guardian does the same if the gate is killed.
    """

    def __init__(self) -> None:
        self._mark = new_mark()
        self._user = 0
        self._guardian: subprocess.Popen[bytes] | None = None

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment for a process, with the mark added."""
        return {**environment, MARK: self._mark}

    def watch(self, user: int = 0) -> None:
        """Start the guardian, before the first process; without one, a killed gate leaves its processes behind.

        ``user``: the id of the agent's separate user, if any; all processes of this user are ended, too.
        """
        self._user = user
        with STOPPING.postponed(), suppress(OSError):
            command = script_command(Path(guardian.__file__), self._mark, str(self._user))
            self._guardian = launch(command, environment={}, cwd="/", stdin=subprocess.PIPE)

    def end(self) -> None:
        """Kill every process that is left, in any group or session."""
        sweep(self._mark, self._user)
        if self._guardian is not None:
            self._guardian.kill()
            self._guardian.wait()
            assert self._guardian.stdin is not None
            self._guardian.stdin.close()
            self._guardian = None


# --- ask ------------------------------------------------------------------------------------------


class LostError(Exception):
    """A child gave no answer; the message says why, without naming the child."""


class Dialogue(Generic[T]):
    """A child that takes one request at a time on its standard input and answers on its standard output."""

    def __init__(
        self,
        argv: Sequence[str],
        reading: Reading[T],
        *,
        environment: Mapping[str, str],
        cwd: Path | str | None = None,
        stderr: int | None = subprocess.DEVNULL,
    ) -> None:
        """Start the child. Raises LostError if it cannot be started."""
        pipe = subprocess.PIPE
        with STOPPING.postponed():
            try:
                process = launch(argv, environment=environment, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr)
            except OSError as error:
                raise LostError(f"cannot be started: {error.strerror}") from None
            self._process, self._reading = process, reading
            self._end = finalize(self, _end, process)

    def ask(self, request: bytes, seconds: float | None = None) -> T:
        """Send a request and return the next message; ``seconds`` limits the wait, None waits until the child ends.

        Raises LostError, after which no more requests are possible, and Cancelled if a signal stops the gate meanwhile.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(request)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise LostError(self._exit_reason()) from None
        return self._next(None if seconds is None else monotonic() + seconds, seconds)

    def _next(self, deadline: float | None, seconds: float | None) -> T:
        assert self._process.stdout is not None
        output = self._process.stdout.fileno()
        while True:
            if not _readable(output, deadline):
                raise LostError(f"gave no answer within {seconds:g} s")
            data = os.read(output, 65_536)
            if not data:
                raise LostError(self._exit_reason())
            try:
                for message in self._reading.take(data):
                    return message
            except GarbledError as error:
                raise LostError(f"wrote {error} into the pipe between it and the gate") from None

    def _exit_reason(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return exit_reason(self._process.wait(LEAVE_SECONDS))
        return "closed the pipe between it and the gate"

    def end(self, patience: float = 0.0) -> None:
        """Wait ``patience`` seconds for the child to exit, then kill it and its group."""
        self._end(patience)


def _readable(output: int, deadline: float | None) -> bool:
    """True if there is something to read, or the end of the pipe, before the deadline. Raises Cancelled after a
    signal."""
    waiting = select.poll()
    waiting.register(output, select.POLLIN)
    while True:
        STOPPING.check()
        left = LOOK_SECONDS if deadline is None else min(LOOK_SECONDS, deadline - monotonic())
        if waiting.poll(max(0.0, left) * 1_000):
            return True
        if deadline is not None and monotonic() >= deadline:
            return False


def _end(process: subprocess.Popen[Any], patience: float = LEAVE_SECONDS) -> None:
    assert process.stdin is not None and process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(patience)
    signal_group(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
