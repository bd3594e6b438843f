"""The places of a document's values, and the error for what is refused; knows no language."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

Key = str | int


class TextMark(Struct):
    """The place of a value, and how large and deep it is with its aliases expanded."""

    line: int
    children: dict[Key, TextMark] | None = None
    size: int = 1
    depth: int = 0

    def add_child(self, key: Key, line: int, child: TextMark) -> None:
        """Takes a finished child in, at the line of its key."""
        assert self.children is not None
        self.children[key] = child if child.line == line else TextMark(line, child.children, child.size, child.depth)
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)


class LineNumbers:
    """Line numbers of a document's values, found when first asked for."""

    def __init__(
        self, marks: Callable[[], TextMark], items: Callable[[tuple[Key, ...]], list[int]] | None = None
    ) -> None:
        self._marks = marks
        self._items = items
        self._root: TextMark | None = None
        self._list: tuple[tuple[Key, ...], list[int]] | None = None
        """The first requested list, and the lines of its items."""

    def line(self, *keys: Key) -> int | None:
        """The line, from 1, of the value at ``keys``, or of its nearest ancestor that is there.

        A value in a mapping is at the line of its key.
        """
        item = self._item(keys[:-1], keys[-1]) if keys and self._root is None else None
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
        """The line of an item of a list, which takes a fraction of the time that all lines take; of one list only."""
        if self._items is None or not isinstance(index, int):
            return None
        if self._list is None:
            self._list = (parent, self._items(parent))
        listed, lines = self._list
        return lines[index] if parent == listed and 0 <= index < len(lines) else None


class RefusedTextError(ValueError):
    """The document holds something that we do not take; `line` says where."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def at_line(where: str, line: int) -> str:
    """``where:line``, or ``where`` if the line, from 1, is not known (0)."""
    return f"{where}:{line}" if line else where
