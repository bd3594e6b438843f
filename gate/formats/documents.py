"""Reads untrusted YAML, JSON and JSON Lines, bounded and with line numbers; does not know what they mean.

YAML follows the core schema of YAML 1.2: only ``true`` and ``false`` are booleans (``yes``, ``no``, ``on`` and ``off``
are text), dates and times are text, and keys are text as in JSON. Merge keys (``<<``) work. Neither language may hold a
key twice, NaN or an infinity, nest deeper than `MAX_NESTING`, or grow without bound through aliases. Lone surrogates
become U+FFFD, so that everything that was read can be written again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import yaml
from msgspec import Struct
from msgspec.json import Encoder

from gate.errors import ConfigError
from gate.security.limits import MAX_DOCUMENT_BYTES, MAX_LINE_BYTES, MAX_NESTING, shorten

MAX_ALIAS_GROWTH = 100_000
"""The most values that the aliases of a YAML document may add to those written."""

CHARS_PER_VALUE = 100
"""How much text counts as one value in that sum."""

Key = str | int


class _Mark(Struct):
    """Where a value was written, and how large and deep it is with its aliases expanded."""

    line: int
    children: dict[Key, _Mark] | None = None
    size: int = 1
    depth: int = 0

    def adopt(self, key: Key, line: int, child: _Mark) -> None:
        """Takes a finished child in, at the line of its key."""
        assert self.children is not None
        self.children[key] = child if child.line == line else _Mark(line, child.children, child.size, child.depth)
        self.size += child.size
        self.depth = max(self.depth, child.depth + 1)


class LineNumbers:
    """Line numbers of a document's values, found when first asked for."""

    def __init__(self, marks: Callable[[], _Mark], items: Callable[[tuple[Key, ...]], list[int]] | None = None) -> None:
        self._marks = marks
        self._items = items
        self._root: _Mark | None = None
        self._list: tuple[tuple[Key, ...], list[int]] | None = None
        """The first list that was asked about, and the lines of its items."""

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


def read_document(path: Path, *, where: str | None = None) -> Any:
    """The content of a YAML or JSON file.

    ``where`` is the file's name in messages, by default its path. Raises `ConfigError`.
    """
    return read_document_with_lines(path, where=where)[0]


def read_document_with_lines(path: Path, *, where: str | None = None) -> tuple[Any, LineNumbers]:
    """The content of a YAML or JSON file, and the lines of its values. Raises `ConfigError`."""
    where = where or path.as_posix()
    return parse_document_with_lines(read_text(path, where), where)


def parse_document(text: str, where: str) -> Any:
    """The value of a YAML or JSON text; ``where`` names its source in messages. Raises `ConfigError`."""
    return parse_document_with_lines(text, where)[0]


def parse_document_with_lines(text: str, where: str) -> tuple[Any, LineNumbers]:
    """As `parse_document`, with the lines of the values.

    A source named ``*.json`` is JSON. Any other is JSON if it opens with a brace or a bracket and reads as JSON, else
    YAML.
    """
    if not text.strip():
        raise ConfigError("is empty", where=where)
    named_json = where.endswith(".json")
    if named_json or text.lstrip()[0] in "{[":
        try:
            return parse_json(text, where), LineNumbers(lambda: _json_marks(text), lambda keys: _item_lines(text, keys))
        except json.JSONDecodeError as error:
            if named_json:
                raise ConfigError(f"not JSON: {error.msg}", where=f"{where}:{error.lineno}") from error
    value, marks = _parse_yaml(text, where)
    return value, LineNumbers(lambda: marks)


def read_json_lines(path: Path, *, where: str | None = None) -> Iterator[tuple[int, Any]]:
    """The values of a JSON Lines file with their line numbers, from 1.

    Raises `ConfigError` if a line is truncated or blank.
    """
    where = where or path.as_posix()
    with _open(path, where) as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            yield number, _parse_line(raw, where, number)


def parse_json(text: str, where: str, *, first_line: int = 1) -> Any:
    """The value of a JSON text, under the bounds of this module; ``first_line`` is the text's first line in its source.

    Raises `json.JSONDecodeError` if the text is not JSON, for callers to say what that means, and `ConfigError` if it
    is JSON that we refuse.
    """
    try:
        value = _STRICT.decode(text)
        if text.count("[") + text.count("{") > MAX_NESTING:
            _check_nesting(value)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        _name_refused(text, where, first_line)
    return _without_surrogates(value) if "\\u" in text and ("\\ud" in text or "\\uD" in text) else value


def tame(value: Any) -> Any:
    """A JSON value that came another way than through this module, under its bounds.

    Lone surrogates are replaced. Raises `ValueError` if the value nests too deeply.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):  # no JSON value, or text that no encoding knows
        _check_nesting(value)
        return _without_surrogates(value)
    if text.count(b"[") + text.count(b"{") > MAX_NESTING:
        _check_nesting(value)
    return value


_ENCODER = Encoder()


# --- files ----------------------------------------------------------------------------------------


def _open(path: Path, where: str) -> Any:
    try:
        if path.exists() and not path.is_file():
            raise ConfigError("not a regular file", where=where)
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(f"cannot be read: {reason}", where=where) from error


def read_text(path: Path, where: str) -> str:
    """The text of a file. Raises `ConfigError` if it cannot be read, is too large, or not UTF-8."""
    with _open(path, where) as file:
        try:
            raw: bytes = file.read(MAX_DOCUMENT_BYTES + 1)
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", where=where) from error
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise ConfigError(f"larger than {MAX_DOCUMENT_BYTES:,} bytes", where=where, hint="split the file")
    return _decode(raw, where)


def _decode(raw: bytes, where: str, first_line: int = 1) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        raise ConfigError("not UTF-8", where=_at(where, line), hint="save the file as UTF-8") from error


def _parse_line(raw: bytes, where: str, number: int) -> Any:
    place = _at(where, number)
    if len(raw) > MAX_LINE_BYTES:
        raise ConfigError(f"line longer than {MAX_LINE_BYTES:,} bytes", where=place)
    text = _decode(raw, where, number)
    if not text.strip():
        raise ConfigError("blank line", where=place, hint="a JSON LineNumbers file has one JSON value on each line")
    try:
        return parse_json(text, where, first_line=number)
    except json.JSONDecodeError as error:
        truncated = "" if raw.endswith(b"\n") else "; the file ends in the middle of a line"
        raise ConfigError(f"not JSON: {error.msg}{truncated}", where=place) from error


# --- JSON -----------------------------------------------------------------------------------------


class _RefusedError(ValueError):
    """The document holds something that we do not take; `line` says where."""

    def __init__(self, what: str, line: int = 0) -> None:
        super().__init__(what)
        self.what = what
        self.line = line


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _RefusedError("duplicate key")
    return value


def _refuse(word: str) -> NoReturn:
    raise _RefusedError(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _RefusedError(f"number out of range: {shorten(digits, 40)}")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=_finite)


def _check_nesting(value: Any) -> None:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_NESTING + 1):
        if not level:
            return
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
    if level:
        raise _RefusedError(f"nested more than {MAX_NESTING} deep")


def _name_refused(text: str, where: str, first_line: int) -> NoReturn:
    """Reads a refused text again, slowly, to say which line is to blame."""
    try:
        _json_marks(text, strict=True)
    except _RefusedError as error:
        raise ConfigError(error.what, where=_at(where, error.line + first_line - 1)) from error
    raise ConfigError("cannot be read as JSON", where=where)


_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+', re.DOTALL)


class _JsonMarks:
    """Builds the marks of a JSON text token by token; iterative, so that depth costs no stack."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.root: _Mark | None = None
        self.open: list[_Mark] = []
        self.keys: list[tuple[Key, int] | None] = []
        """Of each open container: the key that waits for its value, with its line."""
        self.arrays: list[bool] = []

    def take(self, token: str, line: int) -> None:
        first = token[0]
        if first in "}]":
            if self.open:
                self._place(self._close())
        elif first in "{[":
            self._open(first == "[", line)
        elif self.open and not self.arrays[-1] and self.keys[-1] is None:
            self._key(token, line)
        else:
            self._scalar(token, line)

    def _open(self, array: bool, line: int) -> None:
        self.open.append(_Mark(line, {}))
        self.keys.append(None)
        self.arrays.append(array)
        if self.strict and len(self.open) > MAX_NESTING + 1:
            raise _RefusedError(f"nested more than {MAX_NESTING} deep", line)

    def _close(self) -> _Mark:
        self.keys.pop()
        self.arrays.pop()
        return self.open.pop()

    def _key(self, token: str, line: int) -> None:
        key = json.loads(token)
        if self.strict and key in (self.open[-1].children or {}):
            raise _RefusedError(f"duplicate key {shorten(repr(key), 80)}", line)
        self.keys[-1] = (key, line)

    def _scalar(self, token: str, line: int) -> None:
        if self.strict and token[0] != '"':
            _check_number(token, line)
        self._place(_Mark(line))

    def _place(self, mark: _Mark) -> None:
        if not self.open:
            self.root = mark
            return
        parent = self.open[-1]
        assert parent.children is not None
        if self.arrays[-1]:
            parent.children[len(parent.children)] = mark
        elif self.keys[-1] is not None:
            key, line = self.keys[-1]
            mark.line = line
            parent.children[key] = mark
            self.keys[-1] = None


def _check_number(token: str, line: int) -> None:
    try:
        json.loads(token, parse_constant=_refuse, parse_float=_finite)
    except _RefusedError as error:
        raise _RefusedError(error.what, line) from error
    except json.JSONDecodeError:
        return
    except ValueError as error:
        raise _RefusedError(f"number out of range: {shorten(token, 40)}", line) from error


def _json_marks(text: str, *, strict: bool = False) -> _Mark:
    builder = _JsonMarks(strict)
    line, position = 1, 0
    for match in _JSON_TOKEN.finditer(text):
        start = match.start()
        line += text.count("\n", position, start)
        position = start
        builder.take(match.group(), line)
    return builder.root or _Mark(1)


_BETWEEN = re.compile(r"[\s,:]*")
_PLAIN = json.JSONDecoder()


def _item_lines(text: str, keys: tuple[Key, ...]) -> list[int]:
    """The lines of the items of the list at ``keys`` in a JSON text; empty if there is no list.

    The decoder skips what is not asked for.
    """
    start = _after(text, 0)
    for key in keys:
        start = next((place for name, place in _entries(text, start) if name == key), len(text))
    lines: list[int] = []
    line, counted = 1, 0
    for _, place in _entries(text, start) if text.startswith("[", start) else ():
        line += text.count("\n", counted, place)
        counted = place
        lines.append(line)
    return lines


def _entries(text: str, start: int) -> Iterator[tuple[Key, int]]:
    """Each key or index of the container that opens at ``start``, and where its value begins."""
    opening = text[start : start + 1]
    if opening not in ("{", "["):
        return
    position, index = _after(text, start + 1), 0
    while text[position] not in "}]":
        key: Key = index
        if opening == "{":
            key, position = _PLAIN.raw_decode(text, position)
            position = _after(text, position)
        yield key, position
        position = _after(text, _PLAIN.raw_decode(text, position)[1])
        index += 1


def _after(text: str, position: int) -> int:
    """Behind the blanks and separators at ``position``."""
    found = _BETWEEN.match(text, position)
    return found.end() if found else position


_SURROGATE = re.compile("[\ud800-\udfff]")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


# --- YAML -----------------------------------------------------------------------------------------

_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_TAG = "tag:yaml.org,2002:"


def _to_null(text: str) -> None:
    if not _NULL.match(text):
        raise ValueError(text)


def _to_bool(text: str) -> bool:
    if not _BOOL.match(text):
        raise ValueError(text)
    return text.lower() == "true"


def _to_int(text: str) -> int:
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text, base)


_EXPLICIT: dict[str, Callable[[str], Any]] = {
    _TAG + "str": str,
    _TAG + "null": _to_null,
    _TAG + "bool": _to_bool,
    _TAG + "int": _to_int,
    _TAG + "float": _finite,
    "!": str,
}
_COLLECTIONS = {_TAG + "map", _TAG + "seq", "!", None}


def _resolve(text: str) -> Any:
    """The value of a plain scalar under YAML 1.2's core schema."""
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return _to_bool(text)
    if _INT.match(text):
        return _to_int(text)
    if _FLOAT.match(text):
        return _finite(text)
    if _NOT_FINITE.match(text):
        raise _RefusedError(f"{text} is not a number that can be used")
    return text


def _scalar_value(event: Any, line: int) -> Any:
    try:
        if event.tag is not None:
            return _EXPLICIT[event.tag](event.value)
        return _resolve(event.value) if event.implicit[0] else event.value
    except KeyError as error:
        raise _RefusedError(f"unknown tag {shorten(event.tag, 80)}", line) from error
    except _RefusedError as error:
        raise _RefusedError(error.what, line) from error
    except ValueError as error:
        raise _RefusedError(f"not a value of its type: {shorten(event.value, 40)!r}", line) from error


class _Frame(Struct):
    """A container that is still being read."""

    value: dict[str, Any] | list[Any]
    mark: _Mark
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    merged: list[tuple[dict[str, Any], _Mark]] | None = None


class _YamlBuilder:
    """Builds a value and its marks from YAML events; iterative, so that depth costs no stack."""

    def __init__(self) -> None:
        self.done: tuple[Any, _Mark] | None = None
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, _Mark]] = {}
        self.open_anchors: set[str] = set()
        self.documents = 0
        self.grown = 0

    def take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._start(event, line)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._end()
        elif isinstance(event, yaml.AliasEvent):
            self._alias(str(event.anchor), line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise _RefusedError("more than one YAML document in a file", line)

    def _scalar(self, event: Any, line: int) -> None:
        frame = self.frames[-1] if self.frames else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            self._key(frame, event, line)
            return
        value, mark = _scalar_value(event, line), _Mark(line, size=1 + len(event.value) // CHARS_PER_VALUE)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, mark)
        self._place(value, mark, line)

    def _key(self, frame: _Frame, event: Any, line: int) -> None:
        key: str = event.value
        if key in frame.value or (key == "<<" and frame.merged is not None):
            raise _RefusedError(f"duplicate key {shorten(repr(key), 80)}", line)
        if event.anchor is not None:
            self.anchors[event.anchor] = (key, _Mark(line))
        frame.key, frame.key_line = key, line
        if key == "<<" and event.implicit[0]:
            frame.merged = []

    def _start(self, event: Any, line: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        if self.frames and isinstance(self.frames[-1].value, dict) and self.frames[-1].key is None:
            raise _RefusedError("a key must be plain text", line)
        if event.tag not in _COLLECTIONS:
            raise _RefusedError(f"unknown tag {shorten(event.tag, 80)}", line)
        if len(self.frames) > MAX_NESTING:
            raise _RefusedError(f"nested more than {MAX_NESTING} deep", line)
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)
            self.open_anchors.add(event.anchor)
        self.frames.append(_Frame({} if mapping else [], _Mark(line, {}), event.anchor))

    def _end(self) -> None:
        frame = self.frames.pop()
        for value, mark in frame.merged or ():
            self._merge(frame, value, mark)
        if frame.anchor is not None:
            self.open_anchors.discard(frame.anchor)
            self.anchors[frame.anchor] = (frame.value, frame.mark)
        self._place(frame.value, frame.mark, frame.mark.line)

    def _alias(self, anchor: str, line: int) -> None:
        if anchor in self.open_anchors:
            raise _RefusedError(f"alias *{shorten(anchor, 80)} contains itself", line)
        if anchor not in self.anchors:
            raise _RefusedError(f"unknown alias *{shorten(anchor, 80)}", line)
        value, mark = self.anchors[anchor]
        frame = self.frames[-1] if self.frames else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            raise _RefusedError("a key must be plain text", line)
        self._grow(mark, line)
        self._place(value, mark, line)

    def _grow(self, mark: _Mark, line: int) -> None:
        self.grown += mark.size
        if self.grown > MAX_ALIAS_GROWTH:
            raise _RefusedError(f"aliases expand to more than {MAX_ALIAS_GROWTH:,} values", line)
        if len(self.frames) + mark.depth > MAX_NESTING:
            raise _RefusedError(f"nested more than {MAX_NESTING} deep through an alias", line)

    def _place(self, value: Any, mark: _Mark, line: int) -> None:
        if not self.frames:
            self.done = (value, mark)
            return
        frame = self.frames[-1]
        if isinstance(frame.value, list):
            frame.mark.adopt(len(frame.value), line, mark)
            frame.value.append(value)
            return
        assert frame.key is not None
        if frame.key == "<<" and frame.merged is not None:
            frame.merged.extend(_mappings(value, mark, line))
        else:
            frame.mark.adopt(frame.key, frame.key_line, mark)
            frame.value[frame.key] = value
        frame.key = None

    def _merge(self, frame: _Frame, value: dict[str, Any], mark: _Mark) -> None:
        """Adds the keys of a merged mapping that are not there yet; written keys win, then earlier mappings."""
        assert isinstance(frame.value, dict)
        for key, item in value.items():
            if key not in frame.value:
                child = (mark.children or {})[key]
                self._grow(child, child.line)
                frame.value[key] = item
                frame.mark.adopt(key, child.line, child)


def _mappings(value: Any, mark: _Mark, line: int) -> list[tuple[dict[str, Any], _Mark]]:
    if isinstance(value, dict):
        return [(value, mark)]
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return [(item, (mark.children or {})[index]) for index, item in enumerate(value)]
    raise _RefusedError("<< takes a mapping or a list of mappings", line)


def _parse_yaml(text: str, where: str) -> tuple[Any, _Mark]:
    builder = _YamlBuilder()
    try:
        for event in yaml.parse(text, Loader=_YAML_LOADER):
            builder.take(event)
    except _RefusedError as error:
        raise ConfigError(error.what, where=_at(where, error.line)) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "unreadable"
        raise ConfigError(f"not YAML: {what}", where=_at(where, mark.line + 1 if mark else 0)) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(f"not YAML: {shorten(str(error), 200)}".replace("\n", " "), where=where) from error
    if builder.done is None:
        raise ConfigError("is empty", where=where)
    return builder.done


def _at(where: str, line: int) -> str:
    return f"{where}:{line}" if line else where
