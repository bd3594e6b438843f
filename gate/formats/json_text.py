"""Reads untrusted JSON with bounds: duplicate keys, NaN, infinities and deep nesting are refused, with their line.

Lone surrogates become U+FFFD, so that every accepted text can be written again.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from msgspec.json import Encoder

from gate.errors import ConfigError
from gate.formats.positions import Key, LineNumbers, RefusedTextError, at_line
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


def json_or_text(text: str) -> Any:
    """Return the value of a JSON text, within the bounds of this module; any other text unchanged."""
    try:
        return parse_json(text, "")
    except (ValueError, ConfigError):
        return text


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
_MARKED = json.JSONDecoder(object_pairs_hook=Fields, parse_constant=_refuse, parse_float=finite)
_WITH_NAN = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_refuse_but_nan, parse_float=finite)


def is_too_deep(value: Any, most: int = MAX_NESTING + 1) -> bool:
    """True if lists and objects are nested in more than ``most`` levels."""
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(most):
        inner: list[Any] = []
        for item in level:
            held = dict.values(item) if isinstance(item, dict) else item
            inner += [child for child in held if isinstance(child, (dict, list))]
        level = inner
        if not level:
            return False
    return bool(level)


def _check_nesting(value: Any) -> None:
    if is_too_deep(value):
        raise RefusedTextError(f"nested more than {MAX_NESTING} deep")


def _name_refused(text: str, where: str, first_line: int) -> NoReturn:
    """Look for the fault of a refused text, and raise `ConfigError` with its line."""
    refused = _refused_in(text, _skip_blanks(text, 0), MAX_NESTING + 1)
    if refused is None:
        raise ConfigError("cannot be read as JSON", where=where)
    what, place = refused
    raise ConfigError(what, where=at_line(where, first_line + text.count("\n", 0, place)))


def _refused_in(text: str, start: int, most: int) -> tuple[str, int] | None:
    """Return the first refused part of the value at ``start``, and its offset; None if there is none.

    ``most``: the levels to which it may be nested.
    """
    is_container = text.startswith(("{", "["), start)
    if is_container and not most:
        return f"nested more than {MAX_NESTING} deep", start
    try:
        if not is_too_deep(_STRICT.raw_decode(text, start)[0], most):
            return None
    except (ValueError, RecursionError) as error:
        if not is_container:
            shown = shorten(_SCALAR.match(text, start)[0], 40)  # type: ignore[index]  # matches any text
            return getattr(error, "what", f"number out of range: {shown}"), start
    known = set[Key]()
    for key, place, value in _entries(text, start):
        if key in known:
            return f"duplicate key {shorten(repr(key), 80)}", place
        known.add(key)
        found = _refused_in(text, value, most - 1)
        if found is not None:
            return found
    return None


# --- positions ------------------------------------------------------------------------------------

_BETWEEN = re.compile(r"[\s,:]*")
_SCALAR = re.compile(r"[^\s,\]}]*")
_PLAIN = json.JSONDecoder()


def json_lines(text: str) -> LineNumbers:
    """Return the lines of the values of a JSON text. Each container is decoded when a value in it is asked for."""
    start = _skip_blanks(text, 0)
    starts: dict[tuple[Key, ...], tuple[int, int]] = {(): (start, 1 + text.count("\n", 0, start))}

    def below(keys: tuple[Key, ...]) -> Mapping[Key, int]:
        found, (start, line) = dict[Key, int](), starts[keys]
        counted = start
        for key, place, value in _entries(text, start):
            line += text.count("\n", counted, place)
            counted = place
            found[key] = line
            starts[(*keys, key)] = value, line + text.count("\n", place, value)
        return found

    return LineNumbers(starts[()][1], below)


def _entries(text: str, start: int) -> Iterator[tuple[Key, int, int]]:
    """Yield each key or index of the container at ``start``, with its offset and that of its value."""
    opening = text[start : start + 1]
    if opening not in ("{", "["):
        return
    position, index = _skip_blanks(text, start + 1), 0
    while text[position] not in "}]":
        key: Key = index
        place = position
        if opening == "{":
            key, position = _PLAIN.raw_decode(text, position)
            position = _skip_blanks(text, position)
        yield key, place, position
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
        return type(value)(dict(pairs))
    return value
