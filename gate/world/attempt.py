"""One attempt at a trial: the requests answered from the recording or from outside, and the first difference.

A trial is coupled with one recorded trial of its case and answered only from it: the n-th of several equal requests
gets the n-th recorded answer. So repeated trials stay different, and a trial shares answers with only one trial of the
baseline.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import cached_property
from time import perf_counter
from typing import Any

from gate.model import Side
from gate.security.limits import shorten
from gate.world.cassette import Cassette, RecordedExchange, RecordedTape, as_replayed
from gate.world.differences import MOST_CHARS, first_difference
from gate.world.mcp import listed, tool_changes
from gate.world.options import Mode
from gate.world.outbound import Addressed, OutboundRequest, content, ids_in
from gate.world.volatile import Volatile

MOST_TOOLS = 50
"""Most lists of tools, and most changes of tools, reported for one trial."""


def name_of(upstream: str) -> str:
    """Return a server's configured name; servers on standard input and output are recorded with a prefix."""
    return upstream.removeprefix("stdio:")


class Coupling:
    """The recorded trial with which a trial is coupled."""

    def __init__(self, source: str, tape: RecordedTape, cassette: Cassette) -> None:
        self.source, self.tape, self.cassette = source, tape, cassette


class Attempt:
    """The requests made so far in one attempt at a trial."""

    def __init__(
        self, name: str, case_id: str, trial: int, side: Side, coupling: Coupling | None, given: str = ""
    ) -> None:
        self.given = given
        """The texts of the case: ids in them count as content."""
        self.name, self.case_id, self.trial, self.side, self.coupling = name, case_id, trial, side, coupling
        self.exchanges: list[RecordedExchange] = []
        self.whole = True
        """True if every request is among the exchanges."""
        self.asked = self.replayed = self.live = 0
        self.difference = ""
        self.missing = ""
        """The request without a recorded answer, if that ends the trial."""
        self.closed = False
        self.calls: dict[asyncio.Future[None], asyncio.Task[None]] = {}
        """Requests being answered from outside: a future that is done once the exchange is stored, and the task."""
        self.whole_unless_told: set[str] = set()
        """Numbers of unanswered calls to servers on standard input and output."""
        self.listening: set[asyncio.Task[None]] = set()
        """Open streams on which a server may send messages at any time."""
        self.tools: dict[str, None] = {}
        """The lists of tools of MCP servers: the name of the server and a digest."""
        self.tools_changed: dict[str, None] = {}
        """The differences of those lists from the recording, one per tool."""
        self._renamed: dict[str, str] = {}
        """For each recorded id, the present one."""
        self._began: float | None = None
        self._spared: list[tuple[float, float]] = []
        self._left: dict[str, deque[RecordedExchange]] = {}
        for exchange in () if coupling is None else coupling.tape.exchanges:
            self._left.setdefault(exchange.key, deque()).append(exchange)

    @property
    def now(self) -> float:
        """Seconds since the first turn began."""
        if self._began is None:
            self._began = perf_counter()
        return perf_counter() - self._began

    def recorded(self, asked: Addressed) -> RecordedExchange | None:
        """Return the next unused recorded answer to this request, preferably with the same ids, and mark it as used."""
        left = self._left.get(asked.key, deque())
        found = next((one for one in left if one.ids == asked.ids), None)
        found = found or next((one for one in left if self._is_renamed(one.ids, asked.ids)), None)
        if found is not None:
            left.remove(found)
            self._renamed |= dict(zip(found.ids, asked.ids, strict=True))
        return found

    def _is_renamed(self, before: tuple[str, ...], now: tuple[str, ...]) -> bool:
        """True if ids differ only where both sides generated them: an id from the case, the code or an answer is
        content, and each recorded id must always correspond to the same present id."""
        if len(before) != len(now):
            return False
        known, back = self._renamed, {new: old for old, new in self._renamed.items()}
        pairs = [(old, new) for old, new in zip(before, now, strict=True) if old != new]
        return not any(
            known.get(old, new) != new or back.get(new, old) != old or {old, new} & self._content_ids
            for old, new in pairs
        )

    @cached_property
    def _content_ids(self) -> frozenset[str]:
        if self.coupling is None:
            return frozenset()
        cassette = self.coupling.cassette
        return cassette.shared_ids | cassette.answered_ids(self.coupling.tape) | {*ids_in(self.given)}

    def replay(self, exchange: RecordedExchange, number: int) -> None:
        """Count an exchange that was answered from the recording."""
        self.replayed += 1
        self._spared.append((exchange.start, exchange.start + exchange.seconds))
        self.exchanges.append(as_replayed(exchange, number))
        self._told_tools(exchange)

    def offered(self, exchange: RecordedExchange, tools: list[Any]) -> None:
        """Store the tools that a server lists now, and their differences from the recorded lists."""
        number = sum(one.startswith(f"{name_of(exchange.upstream)} ") for one in self.tools)
        self._told_tools(exchange)
        tape = () if self.coupling is None else self.coupling.tape.exchanges
        lists = [one for one in tape if one.upstream == exchange.upstream and one.tools]
        if self.coupling is None or not lists or exchange.tools in [one.tools for one in lists]:
            return
        body = self.coupling.cassette.body(lists[min(number, len(lists) - 1)].response)
        before = listed(body or b"")
        for what in tool_changes(before, tools) if before is not None else ():
            if len(self.tools_changed) < MOST_TOOLS:
                self.tools_changed[shorten(f"{name_of(exchange.upstream)}: {what}", MOST_CHARS)] = None

    def _told_tools(self, exchange: RecordedExchange) -> None:
        if exchange.tools and len(self.tools) < MOST_TOOLS:
            self.tools[f"{name_of(exchange.upstream)} {exchange.tools}"] = None

    def spared(self) -> float:
        """Return the seconds that the turn's recorded answers originally took; simultaneous ones count once."""
        total = end = 0.0
        for start, stop in sorted(self._spared):
            total += max(0.0, stop - max(start, end))
            end = max(end, stop)
        self._spared.clear()
        return total

    def differs(self, asked: OutboundRequest, number: int, volatile: Volatile, sent: tuple[str, ...]) -> None:
        """Store how the first request without a recorded answer differs from the recording."""
        if not self.difference and self.coupling is not None:
            self.difference = shorten(self._explained(asked, number, volatile, sent), MOST_CHARS)

    def _explained(self, asked: OutboundRequest, number: int, volatile: Volatile, sent: tuple[str, ...]) -> str:
        assert self.coupling is not None
        rest = sorted((one for left in self._left.values() for one in left), key=lambda one: one.number)
        alike = [one for one in rest if (one.upstream, one.method) == (asked.upstream, asked.method)]
        near = next((one for one in alike if one.path == asked.path), None)
        if near is None:
            count = len(self.coupling.tape.exchanges)
            if alike:
                return f"request {number} differs in path: {alike[0].path} → {asked.path}"
            if rest:
                return f"request {number} goes to {asked.upstream}, where {rest[0].upstream} was asked"
            return f"request {number} is one more than the {count} that were recorded"
        kept = self.coupling.cassette.body(near.request)
        before = OutboundRequest(asked.upstream, asked.kind, asked.method, near.path, {}, kept or b"", asked.at)
        old, new = (volatile.plain(content(one), asked.at) for one in (before, asked))
        place = first_difference(old, new) or _other(near.sent, sent)
        place = place or first_difference(content(before), content(asked))  # an id differs
        return f"request {number} differs in {place}" if place else f"request {number} differs from what was recorded"

    def ended(self) -> None:
        """Complete the attempt after the trial: a recorded request that was not made is also a difference."""
        rest = [one for left in self._left.values() for one in left]
        if rest and not self.difference:
            first = min(rest, key=lambda one: one.number)
            self.difference = f"request {first.number} of the recording was not asked ({first.method} {first.path})"


def _other(before: tuple[str, ...], now: tuple[str, ...]) -> str:
    """Return the name of the first difference outside the body: values may be secrets and are not stored."""
    names = sorted({one.rpartition(" ")[0] for one in {*before} ^ {*now}})
    return names[0] if names else ""


class Answering:
    """The decision how to answer a request: from the recording, from outside, or not at all."""

    def __init__(self, mode: Mode, exchange: RecordedExchange | None, body: bytes | None) -> None:
        self.exchange = exchange if body is not None else None
        self.body = body
        self.goes_out_anyway = mode == "replay-then-live"
        """True if a server is asked for its tools even if they are recorded, because a change may affect them."""
        self.goes_out = self.exchange is None and mode in ("live", "replay-then-live")
        self.ends_trial = self.exchange is None and mode == "fail"
