"""Gives back the files of the agent's own user once the gate closes the pipe or has ended, however that happens.

Started as a script. It is told of every change before the change is made, so that it can undo all of them. Standard
library only: like the guardian, it must start at once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress

FOLDER, OWNER, MODE = "folder", "owner", "mode"
"""The kinds of lines: a folder with the owner for new files in it; a file with its owner; a path with its group and
mode."""


def give_back(user: int, home: str, lines: Iterable[bytes]) -> bool:
    """End all processes of the user, return its files to their previous owners, and remove its home.

    Returns False if files cannot be reached, for example because they are nested too deeply.
    """
    told: dict[str, dict[str, tuple[int, int]]] = {FOLDER: {}, OWNER: {}, MODE: {}}
    for line in lines:
        if line.endswith(b"\n"):  # the change announced by an incomplete line was not made
            kind, path, first, second = json.loads(line)
            told[kind].setdefault(path, (first, second))
    _end_processes(user)
    for path, (group, mode) in told[MODE].items():
        with suppress(FileNotFoundError):
            os.chown(path, -1, group, follow_symlinks=False)
            if not stat.S_ISLNK(os.lstat(path).st_mode):
                os.chmod(path, mode)  # noqa: PTH101 - pathlib takes longer to import than all this
    is_whole = True
    for folder, owner in told[FOLDER].items():
        try:
            _give_back_folder(folder, user, owner, told[OWNER])
        except (OSError, RecursionError):
            is_whole = False
    with suppress(RecursionError):
        shutil.rmtree(home, ignore_errors=True)
    return is_whole


def _give_back_folder(folder: str, user: int, owner: tuple[int, int], owners: dict[str, tuple[int, int]]) -> None:
    for inside, folders, names, descriptor in os.fwalk(folder):  # outer folders come before inner ones
        for name in [*folders, *names]:
            with suppress(FileNotFoundError):
                if os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_uid == user:
                    to = owners.get(f"{inside}/{name}", owner)
                    os.chown(name, *to, dir_fd=descriptor, follow_symlinks=False)


def _end_processes(user: int) -> None:
    """Kill all processes of a user in one call, so that none of them gets away."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            if os.getuid() != 0:
                os.kill(-1, signal.SIGKILL)  # all processes that this user may signal
        except ProcessLookupError:
            pass
        finally:
            os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    sys.exit(not give_back(int(sys.argv[1]), sys.argv[2], sys.stdin.buffer))
