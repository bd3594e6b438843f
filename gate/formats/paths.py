"""Paths into JSON: ``choices[0].message.content``, ``steps[type=tool]``, ``rows.0.id``, ``attributes["a.b"]``.

All paths in configurations have this grammar.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from gate.errors import nearest
from gate.formats.positions import Key
from gate.formats.shapes import text_or_json
from gate.security.limits import shorten

_STEP = re.compile(r'\.?([^.\[\]]+)|\[(-?\d+)\]|\["([^"]+)"\]|\[([^\[\]="]+)=([^\[\]]*)\]')
MOST_SHOWN = 300
"""Most characters of the keys listed in an error."""
EXAMPLES = """choices[0].message.content or steps[type=tool]; a key with dots or brackets is written ["a.b"]"""


class WhereEqual(NamedTuple):
    """A filter for the objects of a list whose ``key`` equals ``value`` as text."""

    key: str
    value: str


Step = str | int | WhereEqual


class PathError(LookupError):
    """A path leads to no value."""

    def __init__(self, path: str, step: Step, value: Any) -> None:
        super().__init__(f"nothing at {path!r}")
        self.step = str(step)
        if isinstance(step, WhereEqual):
            self.step = f"{step.key}={step.value}"
        """The step without a value, as text."""
        self.hint = _hint(step, value)
        """The existing keys: the nearest, or all of them. Empty if the value has no keys."""


def _hint(step: Step, value: Any) -> str:
    if isinstance(value, Mapping) and value and isinstance(step, str):
        return shorten(nearest(step, [str(key) for key in value]), MOST_SHOWN)
    if value == [] and not isinstance(step, WhereEqual):
        return "an empty list is there"
    if isinstance(value, list) and not isinstance(step, WhereEqual):
        return f"a list of {len(value)} is there, so write [0] or [-1]"
    return ""


@lru_cache(maxsize=1000)
def steps_of(path: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises `ValueError` if the text is not a path."""
    steps: list[Step] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (at == 0 and path[0] == "."):
            raise ValueError(f"{shorten(repr(path), MOST_SHOWN)} is not a path such as {EXAMPLES}")
        key, index, quoted, name, wanted = match.groups()
        if name is not None:
            steps.append(WhereEqual(name.strip(), wanted.strip()))
        elif index is not None:
            steps.append(int(index))
        elif quoted is not None:
            steps.append(quoted)
        else:
            steps.append(key)
        at = match.end()
    return tuple(steps)


def checked(path: str) -> str:
    """Return a path that has at least one step. Raises `ValueError` for any other text."""
    if not steps_of(path):
        raise ValueError("a path must not be empty")
    return path


def keys_of(value: Any, path: str) -> tuple[Key, ...] | None:
    """Return the keys and indexes of the value at a path; None if the path has a filter and so no single place."""
    keys: list[Key] = []
    for step in steps_of(path):
        if isinstance(step, WhereEqual):
            return None
        inner = _step(value, step, path)
        if isinstance(value, Mapping):
            keys.append(str(step))
        else:
            keys.append(int(step) % len(value))
        value = inner
    return tuple(keys)


def find(value: Any, path: str) -> Any:
    """Return the value at a path.

    A key leads into an object, a number into a list, also from its end (``[-1]``), and a filter keeps the matching
    objects of a list. ``["…"]`` is a key with dots or brackets. Raises `PathError` if a step has no value.
    """
    for step in steps_of(path):
        value = _step(value, step, path)
    return value


def _step(value: Any, step: Step, path: str) -> Any:
    if isinstance(value, dict) and type(step) is str and step in value:  # a shortcut for by far the most frequent case
        return value[step]
    if isinstance(step, WhereEqual):
        if not isinstance(value, list):
            raise PathError(path, step, value)
        return [item for item in value if isinstance(item, Mapping) and text_or_json(item.get(step.key)) == step.value]
    try:
        if isinstance(value, Mapping) and str(step) in value:
            return value[str(step)]
        if isinstance(value, Mapping | list):
            return value[int(step)]  # YAML allows numbers as keys
    except (LookupError, ValueError):
        pass
    raise PathError(path, step, value)


def parent_of(path: str) -> str:
    """Return the path without its last step."""
    return path[: list(_STEP.finditer(path))[-1].start()]
