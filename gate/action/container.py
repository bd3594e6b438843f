"""Life inside the container of the action: its own localhost, its own Python, a workspace that belongs to others.

The composite variant runs on the machine itself: of this, only the part about the agent's own Python applies to it.
"""

from __future__ import annotations

import os
import select
import signal
import socket
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from threading import Thread
from time import monotonic, sleep
from typing import IO
from urllib.parse import urlsplit, urlunsplit

from gate.errors import ConfigError
from gate.security import files
from gate.security.environment import handed_on
from gate.system.child import launch

ROUTES = Path("/proc/net/route")
MOUNTED_WORKSPACE = Path("/github/workspace")
"""The runner's mount point of the workspace in a container."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
CONNECT_SECONDS = 2.0
BOOT_SECONDS = 30.0
"""Seconds for a server to listen: one that ``setup`` starts in the background is still loading."""
PAUSE_SECONDS = 0.2
"""Seconds between checks whether the server listens or the command has ended."""
LEFT_BYTES = 1_000_000
"""At most as much of what a command left in its pipe is shown: what it started may print without end."""


# --- localhost ------------------------------------------------------------------------------------


def runner_address(workspace: Path) -> str | None:
    """Return the runner's address as the container sees it; None outside a container, or without a network."""
    if workspace != MOUNTED_WORKSPACE:
        return None
    return gateway_of(ROUTES.read_text(encoding="ascii"))


def gateway_of(routes: str) -> str | None:
    """The address of the machine that the container runs on: its default route, from Linux's table of routes."""
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(int(fields[2], 16).to_bytes(4, "little"))
    return None


def answers(host: str, port: int) -> bool:
    """True if something accepts connections there."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return True
    except OSError:
        return False


def reachable(
    url: str,
    gateway: str | None,
    *,
    answers: Callable[[str, int], bool] = answers,
    clock: Callable[[], float] = monotonic,
    pause: Callable[[float], None] = sleep,
) -> str:
    """The URL by which an agent on ``localhost`` is reached from inside the container.

    An agent that listens in here, started by ``setup``, is reached as it is; one that an earlier step started on the
    runner, through the gateway (None: there is none). Waits up to `BOOT_SECONDS` for the first of them to listen.

    Raises:
        ConfigError: neither; says what to change.
    """
    parts = urlsplit(url)
    if parts.hostname not in LOCAL_NAMES:
        return url
    port = parts.port or (443 if parts.scheme == "https" else 80)
    started = clock()
    while True:
        if answers(parts.hostname, port):
            return url
        if gateway is not None and answers(gateway, port):
            return urlunsplit(parts._replace(netloc=f"{gateway}:{port}"))
        waited = clock() - started
        if waited >= BOOT_SECONDS:
            break
        pause(PAUSE_SECONDS)
    if gateway is None:
        raise ConfigError(
            f"nothing answers at {url}, waited {waited:.0f} s",
            where="agent",
            hint="start the agent in `setup`; outside a container, an earlier step can start it, too",
        )
    raise ConfigError(
        f"nothing answers at {url}: here, {parts.hostname} is the action's container",
        where="agent",
        hint=f"let the agent listen on 0.0.0.0:{port}, reached here at {gateway}, or start it in `setup`",
    )


# --- the agent's own Python -----------------------------------------------------------------------


def prepare(
    command: str, *, root: Path, cache: Path, environment: Mapping[str, str], say: Callable[[str], None]
) -> dict[str, str]:
    """Runs the user's ``setup`` in a virtual environment of its own below ``cache``; returns the agent's environment.

    The virtual environment and the downloads survive the job where the workflow caches that folder; installing again
    into a filled one is what makes it quick. uv reads the Python that the project asks for. The command sees every
    variable but the action's own.

    Raises:
        ConfigError: the environment cannot be made, or the command fails.
    """
    venv = cache / "venv"
    try:
        files.write_text(cache / ".gitignore", "*\n")  # or the work tree would count as changed
        for name in ("venv", "uv", "pip"):
            files.check(cache / name)
    except OSError as error:
        raise ConfigError(f"the setup cannot be stored: {error.strerror}", where=str(cache)) from None
    downloads = {"UV_CACHE_DIR": str(cache / "uv"), "PIP_CACHE_DIR": str(cache / "pip"), "UV_LINK_MODE": "copy"}
    before = {**handed_on(environment, ("*",)), **downloads}
    _run(["uv", "venv", "--quiet", "--seed", "--allow-existing", str(venv)], root, before, say, "setup")
    path = f"{venv / 'bin'}{os.pathsep}{environment.get('PATH', os.defpath)}"
    inside = {**before, "VIRTUAL_ENV": str(venv), "UV_PROJECT_ENVIRONMENT": str(venv), "PATH": path}
    _run(["sh", "-euc", command], root, inside, say, "setup")
    return {**environment, "VIRTUAL_ENV": str(venv), "PATH": path}


def _run(
    command: list[str], root: Path, environment: Mapping[str, str], say: Callable[[str], None], where: str
) -> None:
    try:
        process = launch(command, environment=environment, cwd=root, stdout=PIPE, stderr=STDOUT)
    except OSError as error:
        raise ConfigError(f"{command[0]} cannot be run: {error.strerror}", where=where) from error
    assert process.stdout is not None
    lines = _Lines(say)
    try:
        _follow(process, process.stdout.fileno(), lines)
    finally:
        lines.end()
        # What the command started in the background holds the pipe, and would be stopped by a full or a closed one. A
        # daemon thread keeps it empty and says nothing: after the step's last line the runner obeys what is printed.
        Thread(target=_drain, args=(process.stdout,), daemon=True).start()
    if process.returncode:
        raise ConfigError(f"the command failed with exit code {process.returncode}", where=where)


def _follow(process: Popen[bytes], output: int, lines: _Lines) -> None:
    """Forwards the output until the process itself ends, then what is left in the pipe, even if others hold it open."""
    ended = False
    while process.poll() is None:
        if ended:
            process.wait()
        elif _readable(output, PAUSE_SECONDS):
            ended = not lines.take(os.read(output, 65_536))
    left = LEFT_BYTES
    while not ended and left > 0 and _readable(output, 0):
        piece = os.read(output, 65_536)
        ended, left = not lines.take(piece), left - len(piece)


def _readable(descriptor: int, seconds: float) -> bool:
    """True if there is something to read, or the end, within that time."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1_000))


def _drain(pipe: IO[bytes]) -> None:
    with pipe, suppress(OSError):
        while os.read(pipe.fileno(), 65_536):  # unbuffered: nothing is locked when the interpreter leaves
            pass


class _Lines:
    """Whole lines out of pieces of output."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._rest = say, ""
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def take(self, piece: bytes) -> bool:
        """Says the lines that are complete; False for the empty piece that ends the output."""
        *lines, self._rest = (self._rest + self._decoder.decode(piece)).split("\n")
        for line in lines:
            self._say(line)
        return bool(piece)

    def end(self) -> None:
        if self._rest:
            self._say(self._rest)


# --- the end --------------------------------------------------------------------------------------


def end_all_others() -> None:
    """Ends every other process of the container, so that none writes after the gate has; nothing outside of one.

    In a container the gate is the first process, and all others are the change's. They are stopped before they are
    killed, or one could start another meanwhile.
    """
    if os.getpid() != 1:
        return
    for number in (signal.SIGSTOP, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.kill(-1, number)


# --- whose files ----------------------------------------------------------------------------------


def give_back(workspace: Path) -> int:
    """Gives every file of root's in the workspace to the workspace's owner, so that later steps can change it.

    Returns how many. Links are not followed, and what disappears meanwhile is no error.
    """
    owner = workspace.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return 0
    given = 0
    for _, folders, names, folder in os.fwalk(workspace):
        for name in [*folders, *names]:
            given += _give(name, folder, owner)
    return given


def _give(name: str, folder: int, owner: os.stat_result) -> int:
    """Give a file by the open folder: a process that is left behind could put a link in the place of its path."""
    try:
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid != 0:
            return 0
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    return 1
