"""The models that answer for one measurement, so that a name that leads to another model later is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Answered = set[tuple[str, str]]
"""The models that were asked, each with a name by which it answered."""

_answered: ContextVar[Answered | None] = ContextVar("answered", default=None)
"""None if nothing is being measured."""


@contextmanager
def noting_models() -> Iterator[Answered]:
    """Collect the models that are asked meanwhile: for a score, or to play the user of a conversation."""
    answered: Answered = set()
    before = _answered.set(answered)
    try:
        yield answered
    finally:
        _answered.reset(before)


def note_model(asked: str, name: str) -> None:
    """Note the name by which a model answered, for what is measured at the moment."""
    answered = _answered.get()
    if answered is not None:
        answered.add((asked, name))
