"""Mappings that record which of their keys were read, so that unread keys can be listed instead of ignored."""

from __future__ import annotations

from collections.abc import Collection, ItemsView, Iterator, Mapping, ValuesView
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.formats.names import camel
from gate.formats.positions import Key, RefusedTextError


class Fields(dict[Any, Any]):
    """A mapping from a file that records which of its keys were read. Listing the keys does not count as reading.

    Its methods call `dict` directly: `super()` takes three times as long, and a file may have millions of mappings.
    """

    __slots__ = ("read",)

    def __init__(self, held: Mapping[Any, Any] | list[tuple[Any, Any]]) -> None:
        """Raises `RefusedTextError` if two of the given pairs have the same key."""
        dict.__init__(self, held)
        if len(self) != len(held):
            raise RefusedTextError("duplicate key")
        self.read: set[Any] = set()

    def __getitem__(self, key: Any) -> Any:
        self.read.add(key)
        return dict.__getitem__(self, key)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__()  # overridden, so that copying this mapping reads its keys

    def get(self, key: Any, default: Any = None) -> Any:
        self.read.add(key)
        return dict.get(self, key, default)

    def items(self) -> ItemsView[Any, Any]:  # type: ignore[override]
        self.read.update(dict.keys(self))
        return dict.items(self)

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self.read.update(dict.keys(self))
        return dict.values(self)


def changed(body: Mapping[str, Any], **values: Any) -> Mapping[str, Any]:
    """Return a mapping with some values changed; reads from it also count as reads of the original."""
    if isinstance(body, Fields):
        other = Fields({**_bare(body), **values})
        other.read = body.read
        return other
    return {**body, **values}


def _bare(body: Fields) -> Mapping[Any, Any]:
    """Return the mapping with the same keys and values, without recording any read."""
    return dict(dict.items(body))


def known_value(body: Mapping[str, Any], key: str, known: Collection[str | int]) -> str | int | None:
    """Return the value of a key if it is one of the known values; any other stays unread, and so is listed."""
    if key not in body:
        return None
    held = dict.get(body, key) if isinstance(body, Fields) else body.get(key)
    if not isinstance(held, (str, int)) or held not in known:
        return None
    if isinstance(body, Fields):
        body.read.add(key)
    return held


def replaced(body: Mapping[str, Any], key: str, value: Any, ignored: Ignored) -> Any:
    """Return the parsed value, stored in place of the text that contained it; its unread keys are listed."""
    if isinstance(body, Fields):
        value = _marked(value, (key,), ignored)
        dict.__setitem__(body, key, value)
    return value


def leave_unread(body: Mapping[str, Any], *keys: str) -> None:
    """Mark keys as unread, so that they are listed: their values could not be used."""
    if isinstance(body, Fields):
        body.read.difference_update(keys)


def plain_copy(value: Any) -> Any:
    """Return a copy of a value without recording any read."""
    if isinstance(value, Fields):
        return {key: plain_copy(held) for key, held in dict.items(value)}
    if isinstance(value, list):
        return list(map(plain_copy, value))
    return value


_ALL = object()
"""Stands in `Fields.read` for every key, at any depth."""


def carried(value: Any) -> Any:
    """Return the value without any `Fields`; everything inside counts as read because it is kept."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is Fields:
        value.read.add(_ALL)
    if kind in _MAPPINGS:
        return {key: carried(held) for key, held in dict.items(value)}
    if kind is list or kind is tuple:
        return kind(map(carried, value))
    if isinstance(value, Struct):
        return replace(value, **{name: carried(getattr(value, name)) for name in value.__struct_fields__})
    return value


_MAPPINGS = frozenset({Fields, dict})
_PLAIN = frozenset({str, int, float, bool, type(None), frozenset})
"""Types of values that contain no mapping."""


class Ignored:
    """The keys of a format that are ignored on purpose, each with the reason.

    A key matches at any depth; a path such as ``samples.events`` matches only below that key, and ``$.name`` only at
    the top. ``*`` matches any one key; list items have no key.
    """

    def __init__(
        self, keys: Mapping[str, str], *, either_spelling: bool = False, further: Ignored | None = None
    ) -> None:
        """``keys``: reason → paths, separated by spaces. ``either_spelling``: also in camel case.

        ``further``: keys that are ignored as well.
        """
        self.reasons: dict[str, str] = dict(further.reasons) if further else {}
        """Path → reason."""
        for reason, paths in keys.items():
            for path in paths.split():
                self.reasons[path] = reason
                if either_spelling:
                    self.reasons[".".join(map(camel, path.split(".")))] = reason
        self._known: dict[tuple[str, ...], bool] = {}
        self._by_last: dict[str, list[tuple[str, ...]]] = {}
        for path in self.reasons:
            parts = tuple(path.split("."))
            self._by_last.setdefault(parts[-1], []).append(parts)

    def __contains__(self, path: tuple[str, ...]) -> bool:
        """True if the key at a path is ignored."""
        found = self._known.get(path)
        if found is None:
            candidates = [*self._by_last.get(path[-1], ()), *self._by_last.get("*", ())]
            found = any(_ends(path, one) for one in candidates)
            if len(self._known) < _MOST_KNOWN:  # a file has few kinds of positions, whatever its size
                self._known[path] = found
        return found


_MOST_KNOWN = 10_000


def _ends(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if pattern[0] == "$":
        path = ("$", *path)
        if len(path) != len(pattern):
            return False
    end = path[len(path) - len(pattern) :]
    return len(end) == len(pattern) and all(wanted in ("*", key) for wanted, key in zip(pattern, end, strict=True))


def with_read_marks(value: Any, ignored: Ignored) -> Any:
    """Return a copy of a file's value with every mapping as `Fields`, except ignored ones.

    `parse_json` with ``marked`` makes them while it parses, the ignored ones included.
    """
    return _marked(value, (), ignored)


def _marked(value: Any, path: tuple[str, ...], ignored: Ignored) -> Any:
    if isinstance(value, list):
        return [_marked(item, path, ignored) if isinstance(item, _CONTAINERS) else item for item in value]
    if not isinstance(value, dict):
        return value
    marked = Fields(value)
    for key, held in value.items():
        if isinstance(held, _CONTAINERS):
            below = (*path, str(key))
            if below not in ignored:
                dict.__setitem__(marked, key, _marked(held, below, ignored))
    return marked


_CONTAINERS = (dict, list)
_MARKED = frozenset({Fields, list})


class UnreadKey(Struct, frozen=True):
    """A key that nobody read, at all its positions in a file."""

    path: str
    """Such as ``samples.choices``; list items have no part in it."""
    first: tuple[Key, ...]
    """The position of the first of them."""
    count: int


def unread(value: Any, ignored: Ignored) -> list[UnreadKey]:
    """Return the keys that nobody read and that are not empty, once per kind, in the order of the file."""
    found: dict[str, tuple[tuple[Key, ...], int]] = {}
    if type(value) in _MARKED:
        _add_unread(value, (), ignored, (), found)
    return [UnreadKey(path, first, count) for path, (first, count) in found.items()]


def kind_of(path: str, known: Collection[str]) -> str:
    """Return the kind of an unread key; all kinds beyond a limit count as one."""
    if path not in known and len(known) >= MAX_KINDS:
        return MORE_KINDS
    return path


MAX_KINDS = 1_000
"""Most kinds of unread keys that are distinguished; a file may have another in every row."""
MORE_KINDS = "keys of further kinds"


def _add_unread(
    value: Any,
    path: tuple[str, ...],
    ignored: Ignored,
    keys: tuple[Key, ...],
    found: dict[str, tuple[tuple[Key, ...], int]],
) -> None:
    """Add the unread keys in a mapping or a list to ``found``: path → first position and count.

    ``keys`` is the value's position; ``path`` the same without indexes.
    """
    if type(value) is list:
        for index, item in enumerate(value):
            if type(item) in _MARKED:
                _add_unread(item, path, ignored, (*keys, index), found)
        return
    read = value.read
    if _ALL in read:
        return
    for key, held in dict.items(value):
        if key in read and type(held) not in _MARKED:
            continue
        name = str(key)
        below = (*path, name)
        if below in ignored:
            continue
        if key in read:
            _add_unread(held, below, ignored, (*keys, name), found)
        elif says_something(held):
            kind = kind_of(".".join(below), found)
            first, count = found.get(kind, ((*keys, name), 0))
            found[kind] = (first, count + 1)


def says_something(value: Any) -> bool:
    """True unless a value is null or empty, or contains only such values."""
    if isinstance(value, dict):
        return any(map(says_something, dict.values(value)))
    if isinstance(value, list):
        return any(map(says_something, value))
    return value is not None and value != ""
