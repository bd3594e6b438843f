"""The span and the event that every trace format yields: ids in hex, times in nanoseconds, plain attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from gate.traces.values import NOTHING


class Event(Struct, frozen=True, gc=False):
    """An event: within a span, or sent as a log record, whose ids assign it to a span."""

    name: str
    attributes: Mapping[str, Any] = NOTHING
    time: int = 0
    body: Any = None
    trace_id: str = ""
    """Empty for an event within a span, like the other two."""
    span_id: str = ""
    resource: Mapping[str, Any] = NOTHING


class Span(Struct, frozen=True, gc=False):
    """One timed operation of a trace."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    """Empty for a root; it may name a span that is missing from the trace."""
    name: str = ""
    start: int = 0
    """Nanoseconds since 1970."""
    end: int = 0
    attributes: Mapping[str, Any] = NOTHING
    events: tuple[Event, ...] = ()
    failed: bool = False
    """True if its status is an error."""
    message: str = ""
    """The message of the status."""
    scope: str = ""
    """The instrumentation that created the span."""
    resource: Mapping[str, Any] = NOTHING

    @property
    def order(self) -> tuple[int, int, str]:
        """By start, longer spans first: a parent that starts at the same time as its child precedes it."""
        return (self.start, -self.end, self.span_id)


Piece = Span | Event
"""The parts of a trace, which may arrive in any order."""
