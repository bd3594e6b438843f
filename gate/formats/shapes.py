"""Values of files that others wrote, taken as the shape that is needed; anything else counts as empty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, anything else as an empty one."""
    if isinstance(value, Mapping):
        return value
    return {}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, anything else as an empty one."""
    if isinstance(value, list):
        return value
    return []


def mappings_in(value: Any) -> list[Mapping[str, Any]]:
    """Return the mappings of a list; none of anything else."""
    return [item for item in as_list(value) if isinstance(item, Mapping)]


def as_text(value: Any) -> str:
    """Return a text as it is, anything else as an empty one."""
    if isinstance(value, str):
        return value
    return ""
