"""The nouns as bytes and back, for this program's own eyes: a spill file, a worker's pipe. No format that is kept.

`pickle` asks a frozen dataclass for its fields one by one; told how they are made, it takes a third of the time.
"""

from __future__ import annotations

import copyreg
import pickle
from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter
from typing import Any

from gate.model import Case, Invocation, Location, Part, Rubric, Score, ToolCall, Turn, Usage

_PACKED = (Case, Invocation, Location, Part, Rubric, Score, ToolCall, Turn, Usage)


def pack(value: Any) -> bytes:
    """The value as bytes."""
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Any:
    """The value that was packed. Only for bytes that this program packed itself."""
    return pickle.loads(data)  # noqa: S301 - see above


def _maker(noun: type[Any]) -> Callable[[Any], tuple[type[Any], tuple[Any, ...]]]:
    values = attrgetter(*[field.name for field in fields(noun)])
    return lambda made: (noun, values(made))


for _noun in _PACKED:
    copyreg.pickle(_noun, _maker(_noun))
