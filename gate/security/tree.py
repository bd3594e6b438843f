"""The state of a folder at one moment, to notice what somebody else writes into it later."""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from pathlib import Path, PurePosixPath

from gate.security import files

_GIT = ".git"
_BYTECODE = "__pycache__"
_LOADED = (".pyc", ".so", ".pyd", ".pth")
"""Endings of files that Python loads instead of the source next to them, or at startup."""
_NAMES = frozenset({*sys.stdlib_module_names, "sitecustomize", "usercustomize"})
"""Modules that every program imports, from wherever they are found first."""
_PIECE = 1 << 16
_State = tuple[int, int, int, int]


class KnownTree:
    """The files of a folder, by name, kind and content, at the time when this object is made.

    Every run makes one of the gate's own package, some hundred files. Paths are plain strings, since path objects took
    half of the time of a short run.
    """

    def __init__(self, root: Path, *, but: str = _GIT, keep: bool = False) -> None:
        """``but``: a name of files and folders to ignore at any depth. ``keep``: keep the content of files instead of a
        digest, which is quicker but takes more memory."""
        self.root, self._but, self._keep = root, but, keep
        self._known: dict[str, tuple[_State | None, bytes]] = {}
        for name in _names(root, but):
            path = f"{root}/{name}"
            state = _state(path)
            self._known[name] = state, _content(path, state, keep=keep)

    def difference(self) -> str:
        """Return the name of a file that has changed, or of a new one that Python would load; empty if there is none.

        Other new files are ignored: running a program in the folder may leave them.
        """
        for name, (known, content) in self._known.items():
            path = f"{self.root}/{name}"
            state = _state(path)
            if state != known and _content(path, state, keep=self._keep) != content:
                return name
        for name in _names(self.root, self._but):
            if name not in self._known and _is_loaded(name):
                return name
        return ""


class OwnPackage:
    """A copy of the gate's own package, made before an agent starts that may write to it."""

    def __init__(self, root: Path) -> None:
        self._root, self._sources = root, KnownTree(root, but=_BYTECODE, keep=True)
        self._bytecode = {path: _state(path) for path in self._compiled()}

    def _compiled(self) -> list[str]:
        found: list[str] = []
        for folder, folders, names in os.walk(self._root):
            if folder.endswith(f"/{_BYTECODE}"):
                found += [f"{folder}/{name}" for name in (*folders, *names)]
            elif _BYTECODE in folders and os.path.islink(f"{folder}/{_BYTECODE}"):  # noqa: PTH114
                found.append(f"{folder}/{_BYTECODE}")  # Python follows the link
        return found

    def difference(self) -> str:
        """Return the name of a source file that has changed; empty if there is none."""
        return self._sources.difference()

    def drop_new_bytecode(self) -> str:
        """Remove bytecode that was compiled since: Python would run it instead of the source, whatever it contains.

        Returns the name of a file that could not be removed; empty if there is none.
        """
        left = ""
        for path in self._compiled():
            if self._bytecode.get(path) != _state(path):
                try:
                    files.remove(Path(path))
                except FileNotFoundError:
                    continue  # another run that ended at the same time has removed it
                except OSError:
                    left = str(Path(path).relative_to(self._root))
        return left


def _is_loaded(name: str) -> bool:
    path = PurePosixPath(name)
    return path.suffix in _LOADED or (path.suffix == ".py" and path.stem in _NAMES)


def _names(root: Path, but: str) -> list[str]:
    found: list[str] = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != but]
        linked = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        inside = Path(folder).relative_to(root).as_posix()
        begin = "" if inside == "." else f"{inside}/"
        found += [f"{begin}{name}" for name in (*names, *linked) if name != but]
    return sorted(found)


def _state(path: str) -> _State | None:
    """Return the state of a file, which every change of the file changes: the time of the last one cannot be set."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_ino, found.st_mode, found.st_size, found.st_ctime_ns


def _content(path: str, state: _State | None, *, keep: bool) -> bytes:
    if state is None:
        return b""
    _, mode, size, _ = state
    try:
        if stat.S_ISLNK(mode):
            return b"link " + os.fsencode(Path(path).readlink())
        if not stat.S_ISREG(mode):
            return b"special"
        kind = b"program " if mode & stat.S_IXUSR else b"file "
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if keep:
                return kind + os.read(file, size + 1)
            digest = hashlib.sha256()
            while piece := os.read(file, _PIECE):  # hashlib.file_digest would first fill 256 KiB with zeros, each time
                digest.update(piece)
            return kind + digest.digest()
        finally:
            os.close(file)
    except OSError:
        return b""
