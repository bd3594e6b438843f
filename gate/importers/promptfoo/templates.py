"""Inserts variables into Nunjucks templates, as far as prompts need it. Anything that computes is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

MAX_CHARS = 1_000_000
"""Most characters of a text with its variables inserted."""
MAX_INTEGER = 1e21
"""From here on, JavaScript writes a number with an exponent."""
_PLACE = re.compile(r"\{\{-?[ \t\n]*([A-Za-z_]\w*(?:\.\w+)*)[ \t\n]*-?\}\}")
_ANY = re.compile(r"\{\{|\{%|\{#")


class TemplateError(Exception):
    """A template that does more than insert variables."""


def rendered(template: str, variables: Mapping[str, Any]) -> str:
    """Return the template with its variables inserted; a missing variable is empty, as in Nunjucks.

    Raises:
        TemplateError: the template has a filter, a block or a call, or the text is too long.
    """
    if _ANY.search(_PLACE.sub("", template)):
        raise TemplateError("its template contains more than variables")
    text = _PLACE.sub(lambda found: _text(_at(variables, found[1].split("."))), template)
    if len(text) > MAX_CHARS:
        raise TemplateError(f"it is longer than {MAX_CHARS:,} characters")
    return text


def filled(value: Any, variables: Mapping[str, Any]) -> Any:
    """Return a value with the variables inserted into all of its texts. Raises as `rendered`."""
    if isinstance(value, str):
        return rendered(value, variables)
    if isinstance(value, Mapping):
        return {key: filled(held, variables) for key, held in value.items()}
    if isinstance(value, list):
        return [filled(held, variables) for held in value]
    return value


def _at(value: Any, path: list[str]) -> Any:
    for name in path:
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return number_text(value)
    return str(value)


def number_text(value: float) -> str:
    """Return a number as JavaScript writes it: 1 for 1.0."""
    if isinstance(value, float) and value.is_integer() and abs(value) < MAX_INTEGER:
        return str(int(value))
    return str(value)
