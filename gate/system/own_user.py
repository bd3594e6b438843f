"""A separate user for the agent: its processes cannot write to the gate's files, read the suite, or signal the gate.

Only root can start processes as another user. The user has a number and no name. During the run it owns the files of
the agent's folder, except those withheld from it; afterwards everything belongs to its previous owner again. A separate
process, which survives if the gate is killed, sees to that.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from random import SystemRandom
from typing import Any

from gate.errors import MeasureError
from gate.system import restore
from gate.system.child import launch, script_command

_NUMBERS = range(61_184, 65_520)
"""Numbers that systems reserve for temporary users."""
_NAME = "agent"
_TEMPORARY = "temporary"
_OTHERS = 0o077
_ADD_ONLY = 0o1070
"""Mode bits that let a folder's group, which is only this user, create files and remove only its own."""


def can_switch() -> bool:
    """True if this process may start others as another user."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def open_to_others(folder: Path) -> None:
    """Let others enter a temporary folder, but not list it, if the agent may run as another user."""
    if can_switch():
        folder.chmod(0o711)


class OwnUser:
    """One user, from `make` to `end`; whoever starts its processes must end them first."""

    def __init__(self, number: int, home: Path) -> None:
        """Start the process that gives everything back. Raises OSError if it cannot be started."""
        self.number, self.home = number, home
        command = script_command(Path(restore.__file__), str(number), str(home))
        self._restorer = launch(command, environment={}, cwd="/", stdin=subprocess.PIPE)

    @classmethod
    def make(cls, home: str | None) -> OwnUser:
        """Return a user with a new home, in which everything that anybody may read in ``home`` is linked."""
        for number in SystemRandom().sample(_NUMBERS, len(_NUMBERS)):
            own = Path(tempfile.gettempdir(), f"gate-agent-{number}")
            if _is_known(number):
                continue
            with suppress(FileExistsError):
                own.mkdir(mode=0o700)  # also a lock: another gate takes another number
                user = cls(number, own)
                user._furnish(Path(home) if home else None)
                return user
        raise MeasureError("no user id is free for the agent", where="agent.user")

    def _furnish(self, home: Path | None) -> None:
        for name in (".cache", _TEMPORARY):
            self.home.joinpath(name).mkdir()
        if home is not None and not self.unreachable([home / "any"]):
            for source, target in ((home, self.home), (home / ".cache", self.home / ".cache")):
                for entry in os.scandir(source) if source.is_dir() else ():
                    if not (target / entry.name).exists():
                        target.joinpath(entry.name).symlink_to(entry.path)
        for path in (self.home, *self.home.rglob("*")):
            os.chown(path, self.number, self.number, follow_symlinks=False)

    @property
    def start(self) -> dict[str, Any]:
        """Arguments that start a process as this user."""
        return {"user": self.number, "group": self.number, "extra_groups": []}

    def environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return the environment with this user's home and name."""
        own = {"HOME": str(self.home), "TMPDIR": str(self.home / _TEMPORARY), "USER": _NAME, "LOGNAME": _NAME}
        return {**environment, **own}

    @staticmethod
    def unreachable(paths: Iterable[Path]) -> str:
        """Return a folder on the way to one of these paths that only its owner may enter; empty if there is none."""
        for path in paths:
            with suppress(OSError):
                for folder in {*path.absolute().parents, *path.resolve().parents}:
                    if not folder.stat().st_mode & stat.S_IXOTH:
                        return str(folder)
        return ""

    def give(self, folder: Path, *, top: Path, hidden: Iterable[Path], kept: Iterable[Path] = ()) -> None:
        """Give the user the files of a folder; it cannot read those in ``hidden`` or write those in ``kept``.

        Hidden paths outside ``top`` are not changed: a link may lead anywhere. Virtual environments are kept, and so is
        every file with a second name, which may be outside the folder.
        """
        folder = folder.resolve()
        top = top.resolve()
        closed = _outermost({path for path in _resolved(hidden) if path.is_relative_to(top)})
        for path in closed:
            self._mode(path, path.stat().st_mode & ~_OTHERS)
        withheld = _outermost(closed | _resolved(kept))
        on_the_way = {folder}
        for path in withheld:
            on_the_way.update(parent for parent in path.parents if folder in parent.parents)
        owner = folder.stat()
        self._tell([(restore.FOLDER, str(folder), owner.st_uid, owner.st_gid)])
        for inside, folders, names, descriptor in os.fwalk(folder):
            if "pyvenv.cfg" in names:
                folders.clear()
                continue
            taken = dict[str, os.stat_result]()
            for name in [*folders, *names]:
                path = Path(inside, name)
                if path in withheld:
                    if name in folders:
                        folders.remove(name)
                elif path not in on_the_way and (found := _to_take(str(path), name, descriptor)) is not None:
                    taken[name] = found
            self._tell(
                (restore.OWNER, f"{inside}/{name}", found.st_uid, found.st_gid)
                for name, found in taken.items()
                if found.st_uid not in _NUMBERS  # left by a gate that was killed together with its container
            )
            for name in taken:
                with suppress(FileNotFoundError):
                    os.chown(name, self.number, self.number, dir_fd=descriptor, follow_symlinks=False)
        for path in on_the_way:
            self._mode(path, path.stat().st_mode | _ADD_ONLY, group=self.number)

    def _mode(self, path: Path, mode: int, *, group: int = -1) -> None:
        before = path.stat()
        self._tell([(restore.MODE, str(path), before.st_gid, stat.S_IMODE(before.st_mode))])
        os.chown(path, -1, group)
        path.chmod(stat.S_IMODE(mode))

    def _tell(self, lines: Iterable[tuple[str, str, int, int]]) -> None:
        """Announce changes, before they are made, to the process that gives everything back."""
        assert self._restorer.stdin is not None
        self._restorer.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        self._restorer.stdin.flush()

    def end(self) -> None:
        """Give everything back, and remove the home. New files belong to the owner of the agent's folder."""
        assert self._restorer.stdin is not None
        self._restorer.stdin.close()
        if self._restorer.wait():
            what = "not all files of the agent's folder could be given back to their owners"
            raise MeasureError(what, where="agent.user", hint=f"look for files of user {self.number}")


def _to_take(path: str, name: str, descriptor: int) -> os.stat_result | None:
    """Return a file's status; None if it is gone, or stays with its owner."""
    try:
        found = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
        return None
    if stat.S_ISDIR(found.st_mode) and os.path.exists(f"{path}/pyvenv.cfg"):  # noqa: PTH110 - of each folder
        return None
    return found


def _resolved(paths: Iterable[Path]) -> set[Path]:
    """Return the paths that exist, with links resolved."""
    return {path.resolve() for path in paths if path.exists()}


def _outermost(paths: set[Path]) -> set[Path]:
    """Return the paths that are in none of the others: the way into a closed folder need not be opened."""
    return {path for path in paths if paths.isdisjoint(path.parents)}


def _is_known(number: int) -> bool:
    import pwd  # not on every system

    try:
        pwd.getpwuid(number)
    except KeyError:
        return False
    return True
