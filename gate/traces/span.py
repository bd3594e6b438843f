"""A span and a log record as every format of traces yields them: ids in hex, times in nanoseconds, plain attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

NOTHING: Mapping[str, Any] = {}


class Event(Struct, frozen=True, gc=False):
    """Something that a span says happened while it ran."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    time: int = 0


class Span(Struct, frozen=True, gc=False):
    """One timed operation of a trace."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    """Empty for a root; it may name a span that is not in the trace."""
    name: str = ""
    start: int = 0
    """Nanoseconds since 1970."""
    end: int = 0
    attributes: Mapping[str, Any] = NOTHING
    events: tuple[Event, ...] = ()
    failed: bool = False
    """True if its status is an error."""
    message: str = ""
    """The message of its status."""
    scope: str = ""
    """The instrumentation that made it."""
    resource: Mapping[str, Any] = NOTHING

    @property
    def order(self) -> tuple[int, int, str]:
        """By start, the longer first: a parent that starts with its child comes before it."""
        return (self.start, -self.end, self.span_id)


class LogRecord(Struct, frozen=True, gc=False):
    """An event that was sent as a log record, and belongs to a span by its ids."""

    trace_id: str
    span_id: str
    name: str = ""
    attributes: Mapping[str, Any] = NOTHING
    body: Any = None
    time: int = 0
    resource: Mapping[str, Any] = NOTHING


Piece = Span | LogRecord
"""The parts of a trace, which may arrive in any order."""
