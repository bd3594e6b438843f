"""The positions of a document's values, and the error for refused content; independent of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

Key = str | int


class TextMark(Struct):
    """The line of a value, and its size and depth with aliases expanded."""

    line: int
    children: dict[Key, TextMark] | None = None
    size: int = 1
    depth: int = 0

    def below(self, keys: tuple[Key, ...]) -> Mapping[Key, int]:
        """Return the lines of the values in the container at existing keys."""
        mark = self
        for key in keys:
            mark = (mark.children or {})[key]
        return {key: child.line for key, child in (mark.children or {}).items()}

    def add_child(self, key: Key, line: int, child: TextMark) -> None:
        """Add a finished child, at the line of its key."""
        assert self.children is not None
        if child.line != line:
            child = TextMark(line, child.children, child.size, child.depth)
        self.children[key] = child
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)


class LineNumbers:
    """Line numbers of a document's values, found when they are asked for."""

    def __init__(self, line: int, below: Callable[[tuple[Key, ...]], Mapping[Key, int]]) -> None:
        """``line``: that of the whole; ``below`` returns those of the values in the container at some keys."""
        self._line, self._below = line, below
        self._known: dict[tuple[Key, ...], Mapping[Key, int]] = {}

    def line(self, *keys: Key) -> int:
        """Return the line, from 1, of the value at ``keys``, or of its nearest existing ancestor.

        A value in a mapping is at the line of its key.
        """
        line = self._line
        for place, key in enumerate(keys):
            above = keys[:place]
            if above not in self._known:
                self._known[above] = self._below(above)
            if key not in self._known[above]:
                break
            line = self._known[above][key]
        return line


class RefusedTextError(ValueError):
    """The document has content that is refused; `line` is its line."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def at_line(where: str, line: int) -> str:
    """Return ``where:line``, or ``where`` if the line (from 1) is unknown (0)."""
    if not line:
        return where
    return f"{where}:{line}"
