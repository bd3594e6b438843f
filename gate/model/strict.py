"""The base of everything that is validated on reading: unknown keys are errors, never ignored."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints, WithJsonSchema


class StrictModel(BaseModel):
    """A part of a file in which every key is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


def one_or_more(value: Any) -> Any:
    """Return a text as a list of one, any other value unchanged."""
    if isinstance(value, str):
        return [value]
    return value


def short_for(*keys: str) -> BeforeValidator:
    """Return a validator that takes a text as an object with this value at each of ``keys``."""

    def whole(value: Any) -> Any:
        if isinstance(value, str):
            return dict.fromkeys(keys, value)
        return value

    return BeforeValidator(whole)


WORDS_SCHEMA = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})
Words = Annotated[tuple[str, ...], BeforeValidator(one_or_more), WORDS_SCHEMA]
"""One text, or several in a list."""
NonBlank = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
"""A text of more than spaces, without those around it."""


def _below(path: str) -> str:
    parts = PurePath(path)
    if not path or parts.is_absolute() or ".." in parts.parts:
        raise ValueError(f"{path!r} is not a file below the configuration's folder")
    return path


FileBelow = Annotated[str, AfterValidator(_below)]
"""The path of a file below the configuration's folder, relative to it."""
