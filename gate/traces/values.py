"""Parses values in spans: ids, times, JSON text, placeholders. Bounded, and never raises for the content of a file."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from datetime import datetime
from json import JSONDecodeError
from typing import Any

from msgspec import UNSET, MsgspecError
from msgspec.json import Decoder

from gate.errors import ConfigError
from gate.formats.json_text import is_too_deep, parse_json
from gate.formats.shapes import as_mapping
from gate.security.limits import MAX_ID_CHARS, MAX_NESTING, cut

MAX_ATTRIBUTES = 5_000
"""Most attributes of one span; indexed dialects write several for each message."""
_JSON = Decoder()
_PLACEHOLDERS = frozenset({"", "<REDACTED>", "__REDACTED__", "<elided>", "<not specified>", "N/A"})
"""The texts that instrumentation writes in place of unrecorded content."""
_BEGINNINGS = frozenset({one[:1] for one in _PLACEHOLDERS} | {chr(n) for n in range(0x3001) if chr(n).isspace()})
_LONGEST = max(map(len, _PLACEHOLDERS))
_DIGITS = "0123456789abcdef"
NOTHING: Mapping[str, Any] = {}


def is_placeholder(value: Any) -> bool:
    """True if a value says that its content was left out."""
    if isinstance(value, str):
        if value[:1] not in _BEGINNINGS:
            return False  # nearly every text
        text = value.strip()
        return len(text) <= _LONGEST and text in _PLACEHOLDERS  # avoids hashing a long text
    return value is None or value is UNSET


def hex_id(raw: Any, size: int) -> str:
    """Return an id of ``size`` bytes in hex, from hex or base64; other texts are unchanged. Empty if there is none."""
    if isinstance(raw, str) and len(raw) == 2 * size and not raw.strip(_DIGITS):  # the usual form
        return raw if raw.strip("0") else ""
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = f"{abs(raw):0{2 * size}x}"
    if not isinstance(raw, str) or not raw:
        return ""
    text = raw.strip()
    lowered = text.lower().removeprefix("0x")
    if len(lowered) == 2 * size and lowered.isalnum():
        try:
            return lowered if int(lowered, 16) else ""
        except ValueError:
            pass
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        decoded = b""
    if len(decoded) == size:
        return decoded.hex() if any(decoded) else ""
    return cut(text, MAX_ID_CHARS)


def whole(raw: Any) -> int:
    """Return an integer, also from a text; 0 for anything else."""
    try:
        if isinstance(raw, str):
            return int(raw) if len(raw) < 20 else 0
        return int(raw) if isinstance(raw, int | float) and abs(raw) < 2**63 else 0
    except (ValueError, OverflowError):
        return 0


def nanoseconds(raw: Any) -> int:
    """Return a time in nanoseconds, from a number, a text or an ISO 8601 date; 0 if it is none of them."""
    if isinstance(raw, str) and "-" in raw[1:]:
        try:
            return int(datetime.fromisoformat(raw.replace("Z", "+00:00")).timestamp() * 1_000_000) * 1_000
        except (ValueError, OverflowError):
            return 0
    return max(0, whole(raw))


def parsed(value: Any) -> Any:
    """Return the value of a JSON text; any other value or text is returned unchanged."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    if not text or text[0] not in '{["0123456789-tfn':
        return value
    try:
        found = _JSON.decode(text)
    except (MsgspecError, RecursionError, UnicodeError):
        return _slowly(text, value)
    is_suspect = len(text) > MAX_NESTING and text.count("[") + text.count("{") > MAX_NESTING
    return value if is_suspect and is_too_deep(found) else found


def _slowly(text: str, value: str) -> Any:
    """Parse a text with lone surrogates, which the fast decoder refuses; the slow one has the same bounds."""
    if "\\ud" not in text.lower():
        return value
    try:
        return parse_json(text, "a span")
    except (JSONDecodeError, ConfigError):
        return value


def mapping(value: Any) -> Mapping[str, Any]:
    """Return an object, also from JSON text; an empty one for any other value."""
    return as_mapping(parsed(value))


def present(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keys that have a value: some dialects write every possible key, with null."""
    if None not in raw.values():
        return raw
    return {key: value for key, value in raw.items() if value is not None}


def listed(value: Any) -> list[Any]:
    """Return a list, also from JSON text; an object becomes a list of one, any other value an empty list."""
    value = parsed(value)
    if isinstance(value, dict):
        return [value]
    return value if isinstance(value, list) else []


def text_in(attributes: Mapping[str, Any], *keys: str) -> str:
    """Return the first of these attributes with a text that is no placeholder, bounded like a name; else empty."""
    for key in keys:
        value = attributes.get(key)
        if isinstance(value, str) and not is_placeholder(value):
            return cut(value, MAX_ID_CHARS)
    return ""


def first(texts: Iterable[str]) -> str:
    """Return the first text that is not empty; empty if there is none."""
    return next(filter(None, texts), "")


def first_recorded(values: Iterable[Any]) -> Any:
    """Return the first recorded value; UNSET if there is none."""
    for value in values:
        if value is not UNSET:
            return value
    return UNSET
