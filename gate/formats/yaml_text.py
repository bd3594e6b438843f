"""Reads untrusted YAML from libyaml's events, with the line of every value.

It follows the core schema of YAML 1.2: only ``true`` and ``false`` are booleans (``yes``, ``no``, ``on`` and ``off``
are text), dates and times are text, and keys are text as in JSON. Merge keys (``<<``) work. Duplicate keys, NaN,
infinities, unknown tags, deep nesting and unbounded growth through aliases are refused.
"""

from __future__ import annotations

import re
from typing import Any

import yaml
from msgspec import Struct

from gate.errors import ConfigError
from gate.formats.json_text import finite
from gate.formats.positions import RefusedTextError, TextMark, at_line
from gate.security.limits import MAX_NESTING, shorten

EMPTY = "is empty"
"""The message for a text without a value."""

MAX_ALIAS_GROWTH = 100_000
"""Most values that the aliases of a YAML document may add to the written ones."""

CHARS_PER_VALUE = 100
"""Characters of text that count as one value in that sum."""

_YAML_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = re.compile(r"(?:~|null|Null|NULL|)\Z")
_BOOL = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_INT = re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_TAG = "tag:yaml.org,2002:"


_TEXT_TAGS = {_TAG + "str", "!"}
_COLLECTIONS = {_TAG + "map", _TAG + "seq", "!", None}


def _resolve(text: str) -> Any:
    """Return the value of a plain scalar under YAML 1.2's core schema."""
    if _NULL.match(text):
        return None
    if _BOOL.match(text):
        return text.lower() == "true"
    if _INT.match(text):
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    if _FLOAT.match(text):
        return finite(text)
    if _NOT_FINITE.match(text):
        raise RefusedTextError(f"{text} is not a usable number")
    return text


def _scalar_value(event: Any, line: int) -> Any:
    if event.tag is not None and event.tag not in _TEXT_TAGS:
        raise RefusedTextError(f"unknown tag {shorten(event.tag, 80)}", line)
    if event.tag is not None or not event.implicit[0]:
        return event.value
    try:
        return _resolve(event.value)
    except RefusedTextError as error:
        raise RefusedTextError(error.what, line) from error
    except ValueError as error:
        raise RefusedTextError(f"not a value of its type: {shorten(event.value, 40)!r}", line) from error


class _Frame(Struct):
    """A container that is still being read."""

    value: dict[str, Any] | list[Any]
    mark: TextMark
    anchor: str | None
    key: str | None = None
    key_line: int = 0
    merged: list[tuple[dict[str, Any], TextMark]] | None = None


class _YamlBuilder:
    """Builds a value and its marks from YAML events; iterative, so that nesting uses no stack."""

    def __init__(self) -> None:
        self.done: tuple[Any, TextMark] | None = None
        self.frames: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, TextMark]] = {}
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
                raise RefusedTextError("more than one YAML document in a file", line)

    def _awaits_key(self) -> bool:
        """True if the next value is a key of the mapping that is being read."""
        return bool(self.frames) and isinstance(self.frames[-1].value, dict) and self.frames[-1].key is None

    def _scalar(self, event: Any, line: int) -> None:
        if self._awaits_key():
            self._key(self.frames[-1], event, line)
            return
        value, mark = _scalar_value(event, line), TextMark(line, size=1 + len(event.value) // CHARS_PER_VALUE)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, mark)
        self._place(value, mark, line)

    def _key(self, frame: _Frame, event: Any, line: int) -> None:
        key: str = event.value
        if key in frame.value or (key == "<<" and frame.merged is not None):
            raise RefusedTextError(f"duplicate key {shorten(repr(key), 80)}", line)
        if event.anchor is not None:
            self.anchors[event.anchor] = (key, TextMark(line))
        frame.key, frame.key_line = key, line
        if key == "<<" and event.implicit[0]:
            frame.merged = []

    def _start(self, event: Any, line: int) -> None:
        if self._awaits_key():
            raise RefusedTextError("a key must be plain text", line)
        if event.tag not in _COLLECTIONS:
            raise RefusedTextError(f"unknown tag {shorten(event.tag, 80)}", line)
        if len(self.frames) > MAX_NESTING:
            raise RefusedTextError(f"nested more than {MAX_NESTING} deep", line)
        if event.anchor is not None:
            self.anchors.pop(event.anchor, None)
            self.open_anchors.add(event.anchor)
        value: Any = []
        if isinstance(event, yaml.MappingStartEvent):
            value = {}
        self.frames.append(_Frame(value, TextMark(line, {}), event.anchor))

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
            raise RefusedTextError(f"alias *{shorten(anchor, 80)} contains itself", line)
        if anchor not in self.anchors:
            raise RefusedTextError(f"unknown alias *{shorten(anchor, 80)}", line)
        value, mark = self.anchors[anchor]
        if self._awaits_key():
            raise RefusedTextError("a key must be plain text", line)
        self._grow(mark, line)
        self._place(value, mark, line)

    def _grow(self, mark: TextMark, line: int) -> None:
        self.grown += mark.size
        if self.grown > MAX_ALIAS_GROWTH:
            raise RefusedTextError(f"aliases expand to more than {MAX_ALIAS_GROWTH:,} values", line)
        if len(self.frames) + mark.depth > MAX_NESTING:
            raise RefusedTextError(f"nested more than {MAX_NESTING} deep through an alias", line)

    def _place(self, value: Any, mark: TextMark, line: int) -> None:
        if not self.frames:
            self.done = (value, mark)
            return
        frame = self.frames[-1]
        if isinstance(frame.value, list):
            frame.mark.add_child(len(frame.value), line, mark)
            frame.value.append(value)
            return
        assert frame.key is not None
        if frame.key == "<<" and frame.merged is not None:
            frame.merged.extend(_mappings(value, mark, line))
        else:
            frame.mark.add_child(frame.key, frame.key_line, mark)
            frame.value[frame.key] = value
        frame.key = None

    def _merge(self, frame: _Frame, value: dict[str, Any], mark: TextMark) -> None:
        """Add the keys of a merged mapping that do not exist yet; written keys win, then earlier mappings."""
        assert isinstance(frame.value, dict)
        for key, item in value.items():
            if key not in frame.value:
                child = (mark.children or {})[key]
                self._grow(child, child.line)
                frame.value[key] = item
                frame.mark.add_child(key, child.line, child)


def _mappings(value: Any, mark: TextMark, line: int) -> list[tuple[dict[str, Any], TextMark]]:
    if isinstance(value, dict):
        return [(value, mark)]
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return [(item, (mark.children or {})[index]) for index, item in enumerate(value)]
    raise RefusedTextError("<< takes a mapping or a list of mappings", line)


_CONFLICT = re.compile(r"^<{7} ", re.MULTILINE)
_HINTS = (
    (r"\n *\t", "indent with spaces, not with tabs"),
    ("mapping values are not allowed", "put the text in quotes, or begin a new line after the key"),
    (
        "expected '-' indicator|expected <block end>|could not find expected ':'|did not find expected key",
        "indent it like the lines above",
    ),
    ("cannot start any token|unknown alias", "put the text in quotes"),
    ("unexpected end of stream", "close the quotes"),
)
"""Patterns for an error and its line, each with a hint."""


def _hint(error: str) -> str:
    """Return the hint for an error, which its line may follow; empty if there is none."""
    for sign, hint in _HINTS:
        if re.search(sign, error):
            return hint
    return ""


def parse_yaml(text: str, where: str) -> tuple[Any, TextMark]:
    """Return the value of a YAML text and the marks of its values.

    Raises:
        ConfigError: the text is not YAML, has no document or several, or is refused; with the line.
    """
    builder = _YamlBuilder()
    try:
        for event in yaml.parse(text, Loader=_YAML_LOADER):
            builder.take(event)
    except RefusedTextError as error:
        raise ConfigError(error.what, where=at_line(where, error.line), hint=_hint(error.what)) from error
    except yaml.MarkedYAMLError as error:
        conflict = _CONFLICT.search(text)
        if conflict:
            begins = text.count("\n", 0, conflict.start()) + 1
            hint = "keep one side, and delete the lines <<<<<<<, ======= and >>>>>>>"
            raise ConfigError("an unresolved merge conflict", where=at_line(where, begins), hint=hint) from error
        mark = error.problem_mark or error.context_mark
        what = error.problem or error.context or "unreadable"
        number = 0
        if mark:
            number = mark.line + 1
        line = next(iter(text.splitlines()[max(0, number - 1) : number]), "")
        hint = _hint(f"{what}\n{line}")
        raise ConfigError(f"not YAML: {what}", where=at_line(where, number), hint=hint) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise ConfigError(f"not YAML: {shorten(str(error), 200)}".replace("\n", " "), where=where) from error
    if builder.done is None:
        raise ConfigError(EMPTY, where=where)
    return builder.done
