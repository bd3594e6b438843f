"""Protects the runner's files from untrusted code: the event, and the files that control later steps.

The runner names them by path and reads them after the step. Code that runs in between could replace one by a link, a
pipe or a folder, or write to it. So their folders are held open, and the event is read, before any code of the change
runs; afterwards each file is created again in the same folder, without following links.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

COMMANDS = ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
"""Variables that name the files that a step writes for the runner: empty when the step begins."""
EVENT = "GITHUB_EVENT_PATH"
_MADE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_SEEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class _File(Struct, frozen=True):
    path: Path
    folder: int
    """Descriptor of the file's folder."""
    about: os.stat_result | None
    """The file's status when it was held; None if it did not exist."""
    content: bytes


class HeldFiles:
    """The runner's files, as they are at construction."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._files: list[_File] = []
        for name in (*COMMANDS, EVENT):
            path = Path(environment.get(name) or os.curdir)
            with suppress(OSError):  # a missing file cannot be held, and whatever needs it reports that
                if path.name:
                    self._files.append(_held(path, has_content=name == EVENT))

    def restore(self) -> list[str]:
        """Recreate the files: the event with its content, the others empty. Return the failures, in words."""
        problems = []
        for file in self._files:
            try:
                if file.content and _read(file) == file.content:
                    continue
                _remove(file)
                if file.about is not None:
                    _make(file, file.about)
                if not os.path.samestat(os.fstat(file.folder), file.path.parent.stat()):
                    raise OSError(0, "something else replaced its folder")
            except OSError as error:
                problems.append(f"{file.path}, which the runner reads, cannot be made anew: {error.strerror}")
        return problems

    def close(self) -> None:
        """Close the folders."""
        for file in self._files:
            os.close(file.folder)
        self._files = []


def _held(path: Path, *, has_content: bool) -> _File:
    folder = os.open(path.parent, _FOLDER)
    try:
        about = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        about = None
    return _File(path, folder, about, path.read_bytes() if has_content and about is not None else b"")


def _read(file: _File) -> bytes | None:
    """Return the current content; None if it is no longer a regular file with a single link."""
    try:
        descriptor = os.open(file.path.name, _SEEN, dir_fd=file.folder)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
        is_alone = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        return os.read(descriptor, len(file.content) + 1) if is_alone else None
    finally:
        os.close(descriptor)


def _remove(file: _File) -> None:
    with suppress(FileNotFoundError):
        try:
            os.unlink(file.path.name, dir_fd=file.folder)
        except (IsADirectoryError, PermissionError):
            shutil.rmtree(file.path.name, dir_fd=file.folder)


def _make(file: _File, about: os.stat_result) -> None:
    """Create the file again with its owner and mode: in a container, the runner is another user."""
    descriptor = os.open(file.path.name, _MADE, 0o600, dir_fd=file.folder)
    with open(descriptor, "wb") as made:  # noqa: PTH123
        with suppress(PermissionError):
            os.fchown(made.fileno(), about.st_uid, about.st_gid)
        os.fchmod(made.fileno(), stat.S_IMODE(about.st_mode))
        made.write(file.content)
