"""The comparison as JSON: every pair in every row, and the judge's votes with their reasons.

Version 1: first. Keys may be added within a version; none is removed or changes its meaning.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from gate.model.lineup import Lineup

VERSION = 1


def render(lineup: Lineup) -> str:
    """Indented JSON in ASCII; neither NaN nor an infinity is ever written."""
    plain = msgspec.to_builtins(lineup)
    return json.dumps({"version": VERSION, **_encodable(plain)}, indent=1, allow_nan=False) + "\n"


def _encodable(value: Any) -> Any:
    """Lone surrogates are no Unicode text, and readers of other languages refuse them."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {key: _encodable(held) for key, held in value.items()}
    return [_encodable(item) for item in value] if isinstance(value, list | tuple) else value
