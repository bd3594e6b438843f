"""Reads growing files: the lines appended since the last look, across rotation, truncation and restarts.

Knows positions and lines, not their meaning. A file is identified by device and inode, so reading a renamed file
continues where it stopped; and by the bytes before that position, so a file that was overwritten, cut and refilled, or
created with the same inode is read from the start. So is a file in doubt: the caller recognizes repeated traces by
their ids.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Set
from glob import escape
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct
from msgspec.json import Decoder

from gate.security.limits import MAX_LINE_BYTES

CHUNK = 1 << 20
"""Bytes read in one go."""
MARK_BYTES = 16_384
"""Bytes before the read position that identify a file among those with the same inode."""
MOST_FILES = 10_000
"""Most files of one folder that are read; the rest are counted."""
SUFFIXES = (".jsonl", ".ndjson", ".json", ".log")
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")
_DECODER = Decoder()


class Position(Struct, frozen=True):
    """The position up to which a file was read."""

    identity: str
    """Device and inode."""
    path: str
    offset: int = 0
    """Everything before it was read and counted."""
    safe: int = 0
    """Everything before it is final: a restart reads from here, and counts from `offset`."""
    read: int = 0
    """The offset up to which everything was read, including an incomplete line."""
    mark: bytes = b""
    """Digest of the `MARK_BYTES` before ``read``, or of fewer if there are fewer."""
    changed: int = 0
    """When the file was last changed, in ns, if ``read`` is its end; else 0."""


class Line(Struct, frozen=True):
    """A whole line with its first and last offset. ``data`` is None if it was too long."""

    data: bytes | None
    start: int
    end: int


class GrowingFile:
    """One file, read from the stored position."""

    def __init__(self, path: Path, position: Position) -> None:
        self.path, self.identity = path, position.identity
        self.counted = position.offset
        """An earlier process counted the lines that end before it."""
        self.offset = position.safe
        self._marked, self._mark, self._changed = position.read, position.mark, position.changed
        self._rest = b""
        """The beginning of an incomplete line; it ends at the read position."""
        self._skipping = False
        self._truncated = 0
        self.clock = 0.0
        """The newest time found in its lines."""

    @property
    def read_to(self) -> int:
        """The offset of the first unread byte; the line before it may be incomplete."""
        return self.offset + len(self._rest)

    def is_done(self) -> bool:
        """True if everything was read, except a line that is still being written."""
        try:
            found = self.path.stat()
        except OSError:
            return True
        return found.st_size == self.read_to and (found.st_mtime_ns == self._changed or not found.st_size)

    def position(self, safe: int) -> Position:
        """Return the position; ``safe`` is the offset where a restart must begin."""
        counted = max(self.offset, self.counted)
        safe = min(safe, self.offset)
        return Position(self.identity, str(self.path), counted, safe, self._marked, self._mark, self._changed)

    def read(self) -> list[Line]:
        """Return the next lines, about `CHUNK` bytes at most. Raises `OSError`."""
        with self.path.open("rb") as file:
            found = os.fstat(file.fileno())
            if identity_of(found) != self.identity:
                return []  # it was just rotated: the next look finds both files
            if self._marked and self._is_another(file, found):
                self._begin_anew()
            file.seek(self.read_to)
            lines = self._split(file.read(CHUNK))
            self._marked, self._mark = self.read_to, _before(file, self.read_to)
            found = os.fstat(file.fileno())
            self._changed = found.st_mtime_ns if found.st_size == self._marked else 0
            return lines

    def last_line(self) -> Line | None:
        """Return the last line if it lacks a line break but is a complete JSON value."""
        rest = self._rest.strip()
        if self._skipping or not (rest.startswith((b"{", b"[")) and rest.endswith((b"}", b"]"))):
            return None
        try:
            _DECODER.decode(rest)
        except ValueError:
            return None
        start, end = self.offset, self.read_to
        self.offset, self._rest = end, b""
        return Line(rest, start, end)

    def take_truncated(self) -> int:
        """Return how often the file has started over since the last call."""
        found, self._truncated = self._truncated, 0
        return found

    def _begin_anew(self) -> None:
        self._truncated += 1
        self.offset = self.counted = self._marked = 0
        self._rest, self._skipping = b"", False

    def _is_another(self, file: BinaryIO, found: os.stat_result) -> bool:
        """True if the file is not the one that was read before with nothing but new data appended."""
        was_changed_within = found.st_size == self._marked and found.st_mtime_ns != self._changed
        return was_changed_within or _before(file, self._marked) != self._mark

    def _split(self, data: bytes) -> list[Line]:
        whole, newline, rest = (self._rest + data).rpartition(b"\n")
        found: list[Line] = []
        if newline:
            start = self.offset
            for text in whole.split(b"\n"):
                end = start + len(text) + 1
                found.append(Line(None if self._skipping else text, start, end))
                self._skipping = False
                start = end
            self.offset = start
        self._rest = rest
        if self._skipping or len(rest) > MAX_LINE_BYTES:
            self.offset, self._rest, self._skipping = self.offset + len(rest), b"", True
        return found


class Files:
    """The watched files and folders, with the stored position of each file."""

    def __init__(self, places: Iterable[Path], known: Iterable[Position]) -> None:
        self._places = tuple(places)
        self._known = {position.identity: position for position in known}
        self.open: dict[str, GrowingFile] = {}
        self._broken: set[str] = set()
        self.not_read = 0
        """Files that were left out: compressed, too many, or impossible to open."""

    def look(self, *, again: bool = False) -> None:
        """Find new and renamed files, and forget those that are gone.

        ``again``: this look follows shortly after the last; do not retry files that could not be read then.
        """
        if not again:
            self._broken.clear()
        self.not_read = len(self._broken)
        found = {identity: path for identity, path in self._find() if identity not in self._broken}
        for identity, path in found.items():
            if identity in self.open:
                self.open[identity].path = path
            else:
                position = self._known.get(identity) or Position(identity, str(path))
                self.open[identity] = GrowingFile(path, position)
        for identity in self.open.keys() - found.keys():
            del self.open[identity]

    def remember(self, positions: Iterable[Position]) -> None:
        """Remember positions, for a file that is renamed out of the watched folder and comes back."""
        self._known.update((position.identity, position) for position in positions)

    def forget(self, file: GrowingFile) -> None:
        """Stop reading a file that cannot be read."""
        self.open.pop(file.identity, None)
        self._broken.add(file.identity)
        self.not_read += 1

    def _find(self) -> Iterator[tuple[str, Path]]:
        for place in self._places:
            candidates = sorted(self._in_folder(place) if place.is_dir() else self._with_rotated(place))
            self.not_read += max(0, len(candidates) - MOST_FILES)
            for path in candidates[:MOST_FILES]:
                try:
                    found = path.stat()
                except OSError:
                    continue
                if stat.S_ISREG(found.st_mode):
                    yield identity_of(found), path

    def _in_folder(self, folder: Path) -> list[Path]:
        found = []
        for path in folder.rglob("*"):
            if path.name.startswith("."):
                continue
            if path.name.endswith(_PACKED):
                self.not_read += 1
            elif any(suffix in path.suffixes for suffix in SUFFIXES) and path.is_file():
                found.append(path)
        return found

    def _with_rotated(self, path: Path) -> list[Path]:
        """Return the file and its rotated predecessors that still have unread lines."""
        known = {*self._known, *self.open}
        found = []
        if path.exists():
            found.append(path)
        for other in path.parent.glob(f"{escape(path.name)}[.-]*"):
            if _is_known(other, known):
                found.append(other)
        return found


def identity_of(found: os.stat_result) -> str:
    """Return the identity of a file among all files that exist at the same time."""
    return f"{found.st_dev}:{found.st_ino}"


def _is_known(path: Path, known: Set[str]) -> bool:
    try:
        return identity_of(path.stat()) in known
    except OSError:
        return False


def _before(file: BinaryIO, place: int) -> bytes:
    """Return the digest of the bytes before an offset."""
    start = max(0, place - MARK_BYTES)
    file.seek(start)
    return blake2b(file.read(place - start), digest_size=16).digest()
