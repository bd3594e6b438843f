"""The only module that writes files: no link can redirect what the gate creates, replaces or removes.

A change controls its work tree, and may put a link where a report, a record or a cache goes. So below the working
directory, and below the top of any repository, each step of a path is opened with ``O_NOFOLLOW`` from the folder before
it; elsewhere, where links are usual (``/tmp``, ``/dev/stdout``), paths are resolved normally. Every function may raise
`OSError`; `LinkError` is a refused link.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import BinaryIO

from gate.stopping import STOPPING

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_STEP = _FOLDER | os.O_NOFOLLOW
OWN_FOLDER = ".gate"
"""The folder next to a configuration that only the gate writes."""


class LinkError(OSError):
    """The path leads through a link that a change may have put there, or to something that is not a file."""

    def __init__(self, path: Path, what: str = "a link, which is not followed") -> None:
        super().__init__(errno.ELOOP, f"{path} is {what}: remove it", str(path))


def make_folder(path: Path) -> None:
    """Create a folder and its parents."""
    with _opened_folder(path, make=True):
        pass


def check(path: Path) -> None:
    """Raise `LinkError` if any existing part of the path is a link. Creates nothing."""
    with suppress(FileNotFoundError), _opened_folder(path.parent, make=False) as (folder, is_guarded):
        _check_leaf(Path(os.path.abspath(path)), folder, is_guarded)  # noqa: PTH100 - links must not be resolved


def write_text(path: Path, text: str) -> None:
    """Replace a file by this text, atomically; creates its folders."""
    write_parts(path, [text.encode("utf-8", "replace")])


def write_parts(path: Path, parts: Iterable[bytes]) -> None:
    """Replace a file by these bytes, atomically and on disk when this returns; creates its folders."""

    def write(file: BinaryIO) -> None:
        for part in parts:
            file.write(part)

    _replace(path, write)


def copy(source: Path, path: Path) -> None:
    """Replace a file by the content of another, which must not be a link, either."""
    with _opened_file(source, os.O_RDONLY) as descriptor, open(descriptor, "rb", closefd=False) as content:
        _replace(path, lambda file: shutil.copyfileobj(content, file))


def open_to_append(path: Path) -> FileIO:
    """Open a file for reading and appending, creating it and its folders if missing. Refuses hard links."""
    make_folder(path.parent)
    with _opened_file(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, close=False) as descriptor:
        return FileIO(descriptor, "a+")


def create(path: Path, *, mode: int = 0o666) -> None:
    """Create an empty file and its folders. Raises `FileExistsError` if it exists."""
    with _opened_folder(path.parent, make=True) as (folder, _):
        os.close(os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode, dir_fd=folder))


def remove(path: Path) -> None:
    """Remove a file, or an empty folder."""
    with _opened_folder(path.parent, make=False) as (folder, _):
        is_folder = stat.S_ISDIR(os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode)
        (os.rmdir if is_folder else os.unlink)(path.name, dir_fd=folder)


# --- paths ----------------------------------------------------------------------------------------


def plain(paths: Iterable[Path]) -> list[Path]:
    """Return the paths of regular files, without links, pipes and devices that somebody may have put next to them."""
    return [path for path in paths if path.is_file() and not path.is_symlink()]


@contextmanager
def _opened_folder(path: Path, *, make: bool) -> Iterator[tuple[int, bool]]:
    """Yield a descriptor of the folder, and True if a change may control its content."""
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - links must not be resolved
    trusted, steps, is_guarded = _guarded(absolute)
    if make and not steps:
        trusted.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(trusted, _FOLDER)
    try:
        for number, name in enumerate(steps, 1):
            made = make and _make_step(name, descriptor)
            try:
                below = os.open(name, _STEP, dir_fd=descriptor)
            except OSError as problem:
                if problem.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _refusal(trusted.joinpath(*steps[:number]), name, descriptor) from None
                raise
            os.close(descriptor)
            descriptor = below
            if made and name == OWN_FOLDER:
                _leave_out_of_git(descriptor)
        yield descriptor, is_guarded
    finally:
        os.close(descriptor)


def _make_step(name: str, folder: int) -> bool:
    """Return True if the folder was created; False if it existed."""
    try:
        os.mkdir(name, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _leave_out_of_git(folder: int) -> None:
    """Make the gate's folder ignore itself: `git add -A` must not commit records, which a later run would refuse."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    descriptor = os.open(".gitignore", flags, 0o666, dir_fd=folder)
    try:
        os.write(descriptor, b"*\n")
    finally:
        os.close(descriptor)


def _refusal(path: Path, name: str, folder: int) -> OSError:
    is_link = stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    return LinkError(path) if is_link else NotADirectoryError(errno.ENOTDIR, f"{path} is not a folder", str(path))


def _guarded(path: Path) -> tuple[Path, tuple[str, ...], bool]:
    """Return the trusted part of a folder's path, the steps below it, and True if a change may control those."""
    for above in reversed((path, *path.parents)):
        if above == Path.cwd() or os.path.lexists(above / ".git"):  # the working directory, or a repository's top
            return above, path.relative_to(above).parts, True
    return path, (), False


@contextmanager
def _opened_file(path: Path, flags: int, *, close: bool = True) -> Iterator[int]:
    with _opened_folder(path.parent, make=False) as (folder, is_guarded):
        _check_leaf(path, folder, is_guarded, alone=bool(flags & os.O_CREAT))
        guard = os.O_NOFOLLOW if is_guarded else 0
        descriptor = os.open(path.name, flags | os.O_CLOEXEC | guard, 0o666, dir_fd=folder)
    try:
        yield descriptor
    finally:
        if close:
            os.close(descriptor)


def _check_leaf(path: Path, folder: int, is_guarded: bool, *, alone: bool = False) -> None:
    """Raise `LinkError` if a change put anything other than a file there. ``alone``: the file must have no other
    name."""
    if not is_guarded:
        return
    try:
        found = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        raise LinkError(path)
    if alone and not stat.S_ISREG(found.st_mode):
        raise LinkError(path, "not a regular file")
    if alone and found.st_nlink > 1:
        raise LinkError(path, "a hard link to another file, which the gate does not write to")


def _replace(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Write a new file next to the old one, then put it in its place."""
    with _opened_folder(path.parent, make=True) as (folder, is_guarded):
        _check_leaf(path, folder, is_guarded)
        if not is_guarded and _is_special(path.name, folder):
            with open(path, "wb") as file:  # noqa: PTH123
                write(file)
            return
        new = f".{path.name[:100]}.{secrets.token_hex(8)}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = None
        try:
            with STOPPING.postponed():
                descriptor = os.open(new, flags, 0o666, dir_fd=folder)
            with suppress(FileNotFoundError):
                os.fchmod(descriptor, os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode & 0o777)
            with open(descriptor, "wb") as file:  # noqa: PTH123
                write(file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            if descriptor is not None:
                with suppress(OSError):
                    os.unlink(new, dir_fd=folder)
            raise


def _is_special(name: str, folder: int) -> bool:
    """True for the user's own link, a pipe or a terminal, which is written to instead of replaced."""
    try:
        return not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
