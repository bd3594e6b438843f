"""Durations in a user's notation: the only reader of ``500ms``, ``60s``, ``2m`` and ``1h``."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

_UNITS = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}


def seconds(value: Any) -> Any:
    """Return the seconds in a text; any other value is returned unchanged."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*", value, re.ASCII)
    if match is None:
        raise ValueError("write a duration as 500ms, 60s, 2m or 1h")
    return float(match[1]) * _UNITS[match[2]]


DURATION_SCHEMA = WithJsonSchema({"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]})
Seconds = Annotated[float, BeforeValidator(seconds), Field(gt=0, allow_inf_nan=False), DURATION_SCHEMA]
"""More than 0 seconds."""
