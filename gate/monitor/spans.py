"""Reads OpenTelemetry traces for the monitor: the pieces in a line, and the conversation in a trace's pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from gate.monitor.model import NO_AGENT, WatchedTrace
from gate.suites.traces import IGNORED
from gate.traces import Piece, Span, TraceReader, conversation_of, failure_of

MOST_SERVICES = 1_000
"""Most services that are remembered as those of agents."""


class TelemetryTraces:
    """Reader of the trace formats that the gate knows."""

    def __init__(self) -> None:
        self._reader = TraceReader(IGNORED)
        self._services: set[str] = set()
        """The services seen in traces of agents."""

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of times that each kind of key was not read, except keys that are ignored on purpose."""
        return self._reader.unread

    def pieces(self, value: Any) -> Sequence[Piece]:
        """Return the spans and log records in a line's value; empty if it holds none."""
        return self._reader.value(value)

    def last(self, pieces: Sequence[Any], until: float = math.inf) -> float | None:
        """Return the Unix time at which the last piece ended, up to ``until``; None if no piece has a time."""
        most = until * 1e9
        last = 0
        for one in pieces:
            at = one.end if type(one) is Span else one.time
            if at <= most:
                last = max(last, at)
        return last / 1e9 if last else None

    def conversation(self, trace: str, pieces: Sequence[Any]) -> WatchedTrace | None:
        """Return the conversation in the pieces of a trace; None if they show no agent.

        A trace without an agent that ended in an error is returned as unmeasured, unless agents were seen before and
        all of them in other services.
        """
        found = conversation_of(pieces, trace)
        services = {str(piece.resource.get("service.name", "")) for piece in pieces}
        if not found.turns:
            if self._services and not services & self._services:
                return None
            error = failure_of(pieces)
            if not error:
                return None
            return WatchedTrace(trace, at=self.last(pieces), unmeasured=f"{NO_AGENT}: {error}")
        if len(self._services) < MOST_SERVICES:
            self._services |= services
        turns = tuple([turn.invocation for turn in found.turns])
        lacks_question = not all(turn.user for turn in turns)
        return WatchedTrace(trace, turns, found.error, self.last(pieces), lacks_question)
