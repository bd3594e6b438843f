"""Reads untrusted JSON with bounds: duplicate keys, NaN, infinities and deep nesting are refused, with their line.

Lone surrogates become U+FFFD, so that every accepted text can be written again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from msgspec.json import Encoder

from gate.errors import ConfigError
from gate.formats.positions import Key, RefusedTextError, TextMark, at_line
from gate.formats.reading import Fields
from gate.security.limits import MAX_NESTING, shorten


def parse_json(text: str, where: str, *, first_line: int = 1, allow_nan: bool = False, marked: bool = False) -> Any:
    """Return the value of a JSON text, within the bounds of this module.

    ``first_line`` is the text's first line in its source. With ``allow_nan``, a NaN written by Python becomes null.
    With ``marked``, every object is a `Fields`.

    Raises `json.JSONDecodeError` if the text is not JSON, so that the caller can explain it, and `ConfigError` if it is
    JSON that is refused.
    """
    decoder = _STRICT
    if allow_nan:
        decoder = _WITH_NAN
    if marked:
        decoder = _MARKED
    try:
        value = decoder.decode(text)
        if text.count("[") + text.count("{") > MAX_NESTING:
            _check_nesting(value)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError):
        _name_refused(text, where, first_line)
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        return _without_surrogates(value)
    return value


def bounded_json(value: Any) -> Any:
    """Return a JSON value from another source, checked against the bounds of this module.

    Lone surrogates are replaced. Raises `ValueError` if the value nests too deeply.
    """
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError):  # not a JSON value, or text that cannot be encoded
        _check_nesting(value)
        return _without_surrogates(value)
    if text.count(b"[") + text.count(b"{") > MAX_NESTING:
        _check_nesting(value)
    return value


_ENCODER = Encoder()


# --- what is refused ------------------------------------------------------------------------------


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise RefusedTextError("duplicate key")
    return value


def _unique_marked(pairs: list[tuple[str, Any]]) -> Fields:
    value = Fields(pairs)
    if len(value) != len(pairs):
        raise RefusedTextError("duplicate key")
    return value


def _refuse(word: str) -> NoReturn:
    raise RefusedTextError(f"{word} is not a JSON number")


NAN = "NaN is not a JSON number"


def _refuse_but_nan(word: str) -> None:
    if word != "NaN":
        _refuse(word)


def finite(digits: str) -> float:
    """Return the number spelled by these digits. Raises `RefusedTextError` if no float can hold it."""
    value = float(digits)
    if math.isinf(value):
        raise RefusedTextError(f"number out of range: {shorten(digits, 40)}")
    return value


_STRICT = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse, parse_float=finite)
_MARKED = json.JSONDecoder(object_pairs_hook=_unique_marked, parse_constant=_refuse, parse_float=finite)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_but_nan, parse_float=finite)


def is_too_deep(value: Any) -> bool:
    """True if lists and objects are nested beyond `MAX_NESTING`."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(MAX_NESTING + 1):
        inner: list[Any] = []
        for item in level:
            held = dict.values(item) if isinstance(item, dict) else item
            inner += [child for child in held if isinstance(child, (dict, list))]
        level = inner
        if not level:
            return False
    return True


def _check_nesting(value: Any) -> None:
    if is_too_deep(value):
        raise RefusedTextError(f"nested more than {MAX_NESTING} deep")


def _name_refused(text: str, where: str, first_line: int) -> NoReturn:
    """Parse a refused text again, slowly, to find the faulty line."""
    try:
        json_marks(text, strict=True)
    except RefusedTextError as error:
        raise ConfigError(error.what, where=at_line(where, error.line + first_line - 1)) from error
    raise ConfigError("cannot be read as JSON", where=where)


# --- positions ------------------------------------------------------------------------------------

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\],:"]+', re.DOTALL)


class _JsonMarks:
    """Builds the marks of a JSON text token by token; iterative, so that nesting uses no stack."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.root: TextMark | None = None
        self.open: list[TextMark] = []
        self.keys: list[tuple[Key, int] | None] = []
        """In each open container, the key that still lacks its value, with its line."""
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
        self.open.append(TextMark(line, {}))
        self.keys.append(None)
        self.arrays.append(array)
        if self.strict and len(self.open) > MAX_NESTING + 1:
            raise RefusedTextError(f"nested more than {MAX_NESTING} deep", line)

    def _close(self) -> TextMark:
        self.keys.pop()
        self.arrays.pop()
        return self.open.pop()

    def _key(self, token: str, line: int) -> None:
        key = json.loads(token)
        if self.strict and key in (self.open[-1].children or {}):
            raise RefusedTextError(f"duplicate key {shorten(repr(key), 80)}", line)
        self.keys[-1] = (key, line)

    def _scalar(self, token: str, line: int) -> None:
        if self.strict and token[0] != '"':
            _check_number(token, line)
        self._place(TextMark(line))

    def _place(self, mark: TextMark) -> None:
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
        json.loads(token, parse_constant=_refuse, parse_float=finite)
    except RefusedTextError as error:
        raise RefusedTextError(error.what, line) from error
    except json.JSONDecodeError:
        return
    except ValueError as error:
        raise RefusedTextError(f"number out of range: {shorten(token, 40)}", line) from error


def json_marks(text: str, *, strict: bool = False) -> TextMark:
    """Return the marks of a JSON text. ``strict``: raise `RefusedTextError` at the first refused value."""
    builder = _JsonMarks(strict)
    line, position = 1, 0
    for match in _JSON_TOKEN.finditer(text):
        start = match.start()
        line += text.count("\n", position, start)
        position = start
        builder.take(match.group(), line)
    return builder.root or TextMark(1)


_BETWEEN = re.compile(r"[\s,:]*")
_PLAIN = json.JSONDecoder()


def item_lines(text: str, keys: tuple[Key, ...]) -> list[int]:
    """Return the lines of the items of the list at ``keys`` in a JSON text; empty if there is no list.

    Other parts are skipped without being decoded.
    """
    start = _skip_blanks(text, 0)
    for key in keys:
        start = next((place for name, place in _entries(text, start) if name == key), len(text))
    lines: list[int] = []
    line, counted = 1, 0
    if not text.startswith("[", start):
        return lines
    for _, place in _entries(text, start):
        line += text.count("\n", counted, place)
        counted = place
        lines.append(line)
    return lines


def _entries(text: str, start: int) -> Iterator[tuple[Key, int]]:
    """Yield each key or index of the container that starts at ``start``, and the offset of its value."""
    opening = text[start : start + 1]
    if opening not in ("{", "["):
        return
    position, index = _skip_blanks(text, start + 1), 0
    while text[position] not in "}]":
        key: Key = index
        if opening == "{":
            key, position = _PLAIN.raw_decode(text, position)
            position = _skip_blanks(text, position)
        yield key, position
        position = _skip_blanks(text, _PLAIN.raw_decode(text, position)[1])
        index += 1


def _skip_blanks(text: str, position: int) -> int:
    """Return the offset after the blanks and separators at ``position``."""
    found = _BETWEEN.match(text, position)
    if not found:
        return position
    return found.end()


# --- surrogates -----------------------------------------------------------------------------------

_SURROGATE = re.compile("[\ud800-\udfff]")


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        pairs = [(_without_surrogates(key), _without_surrogates(item)) for key, item in dict.items(value)]
        return type(value)(pairs)
    return value
