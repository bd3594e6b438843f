"""The file, and the keys in it, under which something is written; for errors."""

from __future__ import annotations

from msgspec import Struct

from gate.formats.positions import Key, LineNumbers


class FilePlace(Struct, frozen=True):
    """A file with its lines."""

    file: str
    lines: LineNumbers | None = None
    """None if it was not read from a file."""
    keys: tuple[str, ...] = ()

    def at(self, *keys: Key) -> str:
        """Return ``file:line`` of the value under these keys below this place."""
        path = (*self.keys, *keys)
        if self.lines is None or not path:
            return self.file
        return f"{self.file}:{self.lines.line(*path)}"
