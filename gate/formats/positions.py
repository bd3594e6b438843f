"""The positions of a document's values, and the error for refused content; independent of the language."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

Key = str | int


class TextMark(Struct):
    """The line of a value, and its size and depth with aliases expanded."""

    line: int
    children: dict[Key, TextMark] | None = None
    size: int = 1
    depth: int = 0

    def add_child(self, key: Key, line: int, child: TextMark) -> None:
        """Add a finished child, at the line of its key."""
        assert self.children is not None
        if child.line != line:
            child = TextMark(line, child.children, child.size, child.depth)
        self.children[key] = child
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)


class LineNumbers:
    """Line numbers of a document's values, computed on first use."""

    def __init__(
        self, marks: Callable[[], TextMark], items: Callable[[tuple[Key, ...]], list[int]] | None = None
    ) -> None:
        self._marks = marks
        self._items = items
        self._root: TextMark | None = None
        self._list: tuple[tuple[Key, ...], list[int]] | None = None
        """The first requested list, and the lines of its items."""

    def line(self, *keys: Key) -> int | None:
        """Return the line, from 1, of the value at ``keys``, or of its nearest existing ancestor.

        A value in a mapping is at the line of its key.
        """
        if keys and self._root is None:
            item = self._item(keys[:-1], keys[-1])
            if item is not None:
                return item
        if self._root is None:
            self._root = self._marks()
        mark = self._root
        for key in keys:
            child = (mark.children or {}).get(key)
            if child is None:
                break
            mark = child
        return mark.line

    def _item(self, parent: tuple[Key, ...], index: Key) -> int | None:
        """Return the line of an item of the first requested list, without computing all lines."""
        if self._items is None or not isinstance(index, int):
            return None
        if self._list is None:
            self._list = (parent, self._items(parent))
        listed, lines = self._list
        if parent != listed or not 0 <= index < len(lines):
            return None
        return lines[index]


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
