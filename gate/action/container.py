"""Handles the action's container: its own localhost, its own Python, and a workspace that belongs to another user.

The composite variant runs on the runner itself, so only the part about the agent's Python applies to it.
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
"""The path at which the runner mounts the workspace in a container."""
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
CONNECT_SECONDS = 2.0
BOOT_SECONDS = 30.0
"""Seconds to wait for a server to listen: one started in the background by ``setup`` may still be loading."""
PAUSE_SECONDS = 0.2
"""Seconds between checks for a listening server or the end of the command."""
LEFT_BYTES = 1_000_000
"""Maximum number of bytes shown of a command's remaining output: its background processes may print without end."""


# --- localhost ------------------------------------------------------------------------------------


def runner_address(workspace: Path) -> str | None:
    """Return the runner's address as seen from the container; None outside a container or without a network."""
    if workspace != MOUNTED_WORKSPACE:
        return None
    return gateway_of(ROUTES.read_text(encoding="ascii"))


def gateway_of(routes: str) -> str | None:
    """Return the address of the host machine: the container's default route, from Linux's routing table."""
    for line in routes.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 2 and fields[1] == "00000000" and fields[2] != "00000000":
            return socket.inet_ntoa(int(fields[2], 16).to_bytes(4, "little"))
    return None


def answers(host: str, port: int) -> bool:
    """True if something accepts connections at this address."""
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
    """Return the URL that reaches, from inside the container, an agent on ``localhost``.

    An agent started by ``setup`` listens inside the container and keeps its URL; one that an earlier step started on
    the runner is reached through the gateway, if any. Waits up to `BOOT_SECONDS` for the first to listen.

    Raises:
        ConfigError: neither listens; the hint states what to change.
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
    """Run the user's ``setup`` in a separate virtual environment below ``cache``; return the agent's environment.

    If the workflow caches that folder, later jobs reuse the virtual environment and the downloads, which makes
    installing quick. uv reads the Python version that the project requires. The command sees every variable except the
    action's.

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
        # Background processes of the command hold the pipe, and a full or closed one would stop them. A daemon thread
        # drains it silently: the runner would obey workflow commands printed after the step's last line.
        Thread(target=_drain, args=(process.stdout,), daemon=True).start()
    if process.returncode:
        raise ConfigError(f"the command failed with exit code {process.returncode}", where=where)


def _follow(process: Popen[bytes], output: int, lines: _Lines) -> None:
    """Forward the output until the process ends, then the rest in the pipe, even if other processes hold it open."""
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
    """True if there is something to read, or the end of the stream, within that time."""
    waiting = select.poll()
    waiting.register(descriptor, select.POLLIN)
    return bool(waiting.poll(seconds * 1_000))


def _drain(pipe: IO[bytes]) -> None:
    with pipe, suppress(OSError):
        while os.read(pipe.fileno(), 65_536):  # unbuffered: no lock is held when the interpreter exits
            pass


class _Lines:
    """Joins pieces of output into whole lines."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say, self._rest = say, ""
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def take(self, piece: bytes) -> bool:
        """Print the completed lines; return False for the empty piece that ends the output."""
        *lines, self._rest = (self._rest + self._decoder.decode(piece)).split("\n")
        for line in lines:
            self._say(line)
        return bool(piece)

    def end(self) -> None:
        if self._rest:
            self._say(self._rest)


# --- the end --------------------------------------------------------------------------------------


def end_all_others() -> None:
    """End every other process in the container, so that none can write after the gate; outside one, do nothing.

    In a container, the gate is the first process, and all others belong to the change. A single call reaches all of
    them: the system starts no process for one that is about to be killed.
    """
    if os.getpid() == 1:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)


# --- file ownership -------------------------------------------------------------------------------


def give_back(workspace: Path) -> int:
    """Give every file in the workspace that root owns to the workspace's owner, so that later steps can change it.

    Returns the number of files. Links are not followed; files that disappear in the meantime are ignored.
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
    """Change a file's owner by its open folder: a remaining process could replace part of the path by a link."""
    try:
        if os.stat(name, dir_fd=folder, follow_symlinks=False).st_uid != 0:
            return 0
        os.chown(name, owner.st_uid, owner.st_gid, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0
    return 1
