"""Traces of OpenTelemetry as the monitor takes them: pieces of a line, and what a trace's pieces tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from gate.monitor.model import WatchedTrace
from gate.suites.traces import unseen_in
from gate.traces import Captured, Piece, Span, TraceReader, conversation_of, typed

PARTS = {"input": "user", "output": "response", "calls": "calls"}
"""What a score needs → the part of a turn that shows it."""


class TelemetryTraces:
    """The formats of traces that the gate reads."""

    def __init__(self) -> None:
        self._reader = TraceReader()

    def at_once(self, line: bytes) -> Sequence[Piece] | None:
        """The spans of a line in the usual spelling; None: ask `pieces`."""
        return typed.spans(line)

    def pieces(self, value: Any) -> Sequence[Piece]:
        """The spans and log records in a line's value; empty if it holds none."""
        return self._reader.value(value)

    def last(self, pieces: Sequence[Any], until: float = math.inf) -> float | None:
        """When the last of some pieces ended, in Unix time, but for those after ``until``; None if none says when."""
        most = until * 1e9
        ends = [at for one in pieces if 0 < (at := one.end if type(one) is Span else one.time) <= most]
        return max(ends) / 1e9 if ends else None

    def conversation(self, trace: str, pieces: Sequence[Any]) -> WatchedTrace | None:
        """What the pieces of a trace tell; None if there is no agent in it."""
        found = conversation_of(pieces, trace)
        if not found.turns:
            return None
        return WatchedTrace(
            trace,
            tuple([replace(turn.invocation, unseen=unseen_in(turn)) for turn in found.turns]),
            found.error,
            self.last(pieces),
            _missing([turn.captured for turn in found.turns]),
        )


def _missing(captured: Sequence[Captured]) -> frozenset[str]:
    return frozenset(name for name, part in PARTS.items() if not all(getattr(one, part) for one in captured))
