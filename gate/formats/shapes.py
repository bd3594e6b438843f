"""Converts values from others' files to the expected type; anything else counts as empty."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping unchanged, anything else as an empty mapping."""
    if isinstance(value, (dict, Mapping)):  # `dict` comes first because checking for `Mapping` is slow
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Return a list unchanged, anything else as an empty list."""
    if isinstance(value, list):
        return value
    return []


def text_or_json(value: Any) -> str:
    """Return a text unchanged, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def from_json(text: str) -> Any:
    """Return the value of a JSON text; any other text unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def in_list(value: Any) -> Sequence[Any]:
    """Return a list unchanged, anything else in a list of one."""
    if isinstance(value, list | tuple):
        return value
    return [value]


def mappings_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings in a list; none if it is not a list."""
    return [item for item in as_list(value) if isinstance(item, Mapping)]


def as_text(value: Any) -> str:
    """Return a text unchanged, anything else as an empty text."""
    if isinstance(value, str):
        return value
    return ""
