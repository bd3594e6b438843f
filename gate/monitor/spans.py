"""Reads OpenTelemetry traces for the monitor: the pieces in a line, and the conversation in a trace's pieces."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gate.monitor.model import NO_AGENT, WatchedTrace
from gate.suites.traces import IGNORED, unseen_in
from gate.traces import Captured, Piece, Span, TraceReader, conversation_of, failure_of

PARTS = {"input": "user", "output": "response", "calls": "calls"}
"""For each part that a score may need, the part of a turn that provides it."""
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
        ends = [at for one in pieces if 0 < (at := one.end if type(one) is Span else one.time) <= most]
        return max(ends) / 1e9 if ends else None

    def conversation(self, trace: str, pieces: Sequence[Any]) -> WatchedTrace | None:
        """Return the conversation in the pieces of a trace; None if they show no agent.

        A trace without an agent that ended in an error is returned as unmeasured, unless agents were seen before and
        all of them in other services.
        """
        found = conversation_of(pieces, trace)
        services = {str(piece.resource.get("service.name", "")) for piece in pieces}
        if not found.turns:
            error = failure_of(pieces) if not self._services or services & self._services else ""
            why = f"{NO_AGENT}: {error}"
            return WatchedTrace(trace, at=self.last(pieces), unmeasured=why) if error else None
        if len(self._services) < MOST_SERVICES:
            self._services |= services
        return WatchedTrace(
            trace,
            tuple([replace(turn.invocation, unseen=unseen_in(turn)) for turn in found.turns]),
            found.error,
            self.last(pieces),
            _missing([turn.captured for turn in found.turns]),
        )


def _missing(captured: Sequence[Captured]) -> frozenset[str]:
    return frozenset(name for name, part in PARTS.items() if not all(getattr(one, part) for one in captured))
