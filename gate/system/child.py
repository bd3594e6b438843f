"""Child processes: the one way to start one, to ask it, to end it with its descendants, and to say how it ended.

Everything here waits in the calling thread; `gate.system.processes` does the same on an event loop.
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

from gate.system import guardian
from gate.system.concealed import conceal
from gate.system.guardian import MARK, sweep
from gate.system.stopping import LOOK_SECONDS, STOPPING
from gate.system.wire import GarbledError, Reading

__all__ = [
    "MARK",
    "Descendants",
    "Dialogue",
    "LostError",
    "exit_reason",
    "launch",
    "leave_after_request",
    "module_command",
    "new_mark",
    "run",
    "script_command",
    "signal_group",
    "sweep",
]

LEAVE_SECONDS = 1.0
"""For a process to leave by itself once nothing more is asked."""
_BEGIN = (
    "import json, os, runpy, sys; ours, path, kept = json.loads(sys.argv.pop(2)); "
    "sys.path.insert(0, ours); import gate; sys.path[:] = path; os.environ.update(kept); "
    "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"
)
_OURS = str(Path(__file__).parents[2])
"""The package's folder, searched first, because a user's folder may have the same name."""
_STEERING = ("PYTHONPATH",)
"""Variables that would put other modules before the gate's; set again once the child knows where ours are."""

T = TypeVar("T")


def leave_after_request(requests: SimpleQueue[Any]) -> None:
    """End this process after its current request, which ``None`` in the queue asks for, and soon even if that hangs."""
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
    """A process in a session of its own: no terminal to prompt on, and `signal_group` reaches what it starts.

    ``environment`` is all that it sees, in `/proc` too. Raises OSError if the program cannot be started.
    """
    conceal()
    return subprocess.Popen(  # noqa: S603 - a list, and no shell
        argv, cwd=cwd, env=dict(environment), stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True
    )


def run(
    argv: Sequence[str], *, environment: Mapping[str, str], cwd: Path, stdin: bytes = b"", seconds: float
) -> tuple[int, bytes, bytes]:
    """Runs a program to its end; its exit code, its output and its errors.

    Raises OSError if it cannot be started, TimeoutError if it takes longer, and Cancelled if a signal stops the gate
    meanwhile; it is killed with its group then. What is started after the signal cleans up, and may.
    """
    pipe, deadline, is_cleaning = subprocess.PIPE, monotonic() + seconds, STOPPING.is_set
    with launch(argv, environment=environment, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            given: bytes | None = stdin
            while True:
                try:
                    left = max(0.0, deadline - monotonic())
                    output, errors = process.communicate(given, timeout=min(LOOK_SECONDS, left))
                    break
                except subprocess.TimeoutExpired:
                    given = None  # what it was given goes on being written
                if not is_cleaning:
                    STOPPING.check()
                if monotonic() >= deadline:
                    raise TimeoutError
        except BaseException:
            signal_group(process.pid, signal.SIGKILL)
            process.communicate()
            raise
    return process.returncode, output, errors


def module_command(
    module: str, *arguments: str, environment: Mapping[str, str], path: Sequence[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """The command and the environment that run a module of the gate's in a process of its own.

    It is imported from where this process imports (``path``, by default `sys.path`): neither the folder that the gate
    is called in nor PYTHONPATH, which may hold the user's modules of the same names, comes before.
    """
    kept = {name: environment[name] for name in _STEERING if name in environment}
    others = {name: value for name, value in environment.items() if name not in _STEERING}
    flags = ["-P", "-s"] if sys.flags.no_user_site else ["-P"]
    begin = json.dumps([_OURS, list(sys.path if path is None else path), kept])
    return [sys.executable, *flags, "-c", _BEGIN, module, begin, *arguments], others


def script_command(script: Path, *arguments: str) -> list[str]:
    """The command that runs a file of the gate's with this interpreter and the standard library alone: it is quick."""
    return [sys.executable, "-I", "-S", str(script), *arguments]


# --- end ------------------------------------------------------------------------------------------


def exit_reason(code: int | None) -> str:
    """Return in words how a process ended; ``code`` is None while it has not, negative for a signal."""
    if code is None:
        return "is still running"
    if code >= 0:
        return f"exited with status {code}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def signal_group(pid: int, number: signal.Signals) -> None:
    """Sends a signal to a process and its whole group; does nothing if no process is left."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def new_mark() -> str:
    """A value for MARK that no other run has."""
    return uuid4().hex


class Descendants:
    """Everything that a child process comes to start; nothing of it outlives the gate.

    ``end`` is called when the child is left. A guardian does the same if the gate is killed and can do nothing itself.
    """

    def __init__(self) -> None:
        self._mark = new_mark()
        self._user = 0
        self._guardian: subprocess.Popen[bytes] | None = None

    def marked(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment for a process that is started."""
        return {**environment, MARK: self._mark}

    def watch(self, user: int = 0) -> None:
        """Starts the guardian, before the first process; without one, a killed gate leaves its processes behind.

        ``user``: the number of a user of their own; all processes that are this user's are ended with them.
        """
        self._user = user
        with suppress(OSError):
            command = script_command(Path(guardian.__file__), self._mark, str(self._user))
            self._guardian = launch(command, environment={}, cwd="/", stdin=subprocess.PIPE)

    def end(self) -> None:
        """Kills every process that is left, in any group or session."""
        sweep(self._mark, self._user)
        if self._guardian is not None:
            self._guardian.kill()
            self._guardian.wait()
            assert self._guardian.stdin is not None
            self._guardian.stdin.close()
            self._guardian = None


# --- ask ------------------------------------------------------------------------------------------


class LostError(Exception):
    """A child gave no answer; the message says why, with the child as its subject left out."""


class Dialogue(Generic[T]):
    """A child that is asked one thing at a time over its standard input and answers on its standard output."""

    def __init__(
        self,
        argv: Sequence[str],
        reading: Reading[T],
        *,
        environment: Mapping[str, str],
        cwd: Path | str | None = None,
        stderr: int | None = subprocess.DEVNULL,
    ) -> None:
        """Start it. Raises LostError if it cannot be started."""
        pipe = subprocess.PIPE
        try:
            process = launch(argv, environment=environment, cwd=cwd, stdin=pipe, stdout=pipe, stderr=stderr)
        except OSError as error:
            raise LostError(f"cannot be started: {error.strerror}") from None
        self._process, self._reading = process, reading
        self._end = finalize(self, _end, process)

    def ask(self, request: bytes, seconds: float | None = None) -> T:
        """The next message after a request; ``seconds`` is how long it may take, None for as long as it lives.

        Raises LostError, after which nothing more can be asked, and Cancelled if a signal stops the gate meanwhile.
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
    """True if there is something to read, or the end, before the deadline. Raises Cancelled once a signal came."""
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
