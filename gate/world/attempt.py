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
from gate.world.cassette import RecordedExchange, RecordedTape, as_replayed
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


class Attempt:
    """The requests made so far in one attempt at a trial."""

    def __init__(
        self, name: str, case_id: str, trial: int, side: Side, tape: RecordedTape | None, given: str = ""
    ) -> None:
        self.given = given
        """The texts of the case: ids in them count as content."""
        self.name, self.case_id, self.trial, self.side, self.tape = name, case_id, trial, side, tape
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
        if tape is not None:
            for exchange in tape.exchanges:
                self._left.setdefault(exchange.key, deque()).append(exchange)

    @property
    def now(self) -> float:
        """Seconds since the first turn began."""
        if self._began is None:
            self._began = perf_counter()
        return perf_counter() - self._began

    def recorded(self, asked: Addressed) -> RecordedExchange | None:
        """Return the next unused recorded answer to this request, preferably with the same ids, and mark it as used."""
        found = self._unused(asked)
        if found is not None:
            self._left[asked.key].remove(found)
            self._renamed |= dict(zip(found.ids, asked.ids, strict=True))
        return found

    def _unused(self, asked: Addressed) -> RecordedExchange | None:
        left = self._left.get(asked.key, deque())
        for one in left:
            if one.ids == asked.ids:
                return one
        for one in left:
            if self._is_renamed(one.ids, asked.ids):
                return one
        return None

    def _is_renamed(self, before: tuple[str, ...], now: tuple[str, ...]) -> bool:
        """True if ids differ only where both sides generated them: an id from the case, the code or an answer is
        content, and each recorded id must always correspond to the same present id."""
        if len(before) != len(now):
            return False
        new_of = self._renamed
        old_of = {new: old for old, new in self._renamed.items()}
        for old, new in zip(before, now, strict=True):
            if old == new:
                continue
            if new_of.get(old, new) != new or old_of.get(new, old) != old:
                return False
            if old in self._content_ids or new in self._content_ids:
                return False
        return True

    @cached_property
    def _content_ids(self) -> frozenset[str]:
        if self.tape is None:
            return frozenset()
        return self.tape.cassette.shared_ids | self.tape.answered_ids | {*ids_in(self.given)}

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
        if self.tape is None:
            return
        lists = []
        for one in self.tape.exchanges:
            if one.upstream == exchange.upstream and one.tools:
                lists.append(one)
                if one.tools == exchange.tools:
                    return
        if not lists:
            return
        body = self.tape.cassette.body(lists[min(number, len(lists) - 1)].response)
        before = listed(body or b"")
        if before is None:
            return
        for what in tool_changes(before, tools):
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
        if not self.difference and self.tape is not None:
            self.difference = shorten(self._explained(asked, number, volatile, sent), MOST_CHARS)

    def _explained(self, asked: OutboundRequest, number: int, volatile: Volatile, sent: tuple[str, ...]) -> str:
        assert self.tape is not None
        rest = self._not_asked()
        alike = [one for one in rest if (one.upstream, one.method) == (asked.upstream, asked.method)]
        near = [one for one in alike if one.path == asked.path]
        if not near:
            count = len(self.tape.exchanges)
            if alike:
                return f"request {number} differs in path: {alike[0].path} → {asked.path}"
            if rest:
                return f"request {number} goes to {asked.upstream}, where {rest[0].upstream} was asked"
            return f"request {number} is one more than the {count} that were recorded"
        kept = self.tape.cassette.body(near[0].request)
        before = OutboundRequest(asked.upstream, asked.kind, asked.method, asked.path, {}, kept or b"", asked.at)
        old = volatile.plain(content(before), asked.at)
        new = volatile.plain(content(asked), asked.at)
        beside = [one.rpartition(" ")[0] for one in {*near[0].sent} ^ {*sent}]  # values may be secrets
        place = first_difference(old, new) or min(beside, default="")
        place = place or first_difference(content(before), content(asked))  # an id differs
        if not place:
            return f"request {number} differs from what was recorded"
        return f"request {number} differs in {place}"

    def _not_asked(self) -> list[RecordedExchange]:
        """Return the unused exchanges of the recording, in their order."""
        rest = [one for left in self._left.values() for one in left]
        return sorted(rest, key=lambda one: one.number)

    def ended(self) -> None:
        """Complete the attempt after the trial: a recorded request that was not made is also a difference."""
        rest = self._not_asked()
        if rest and not self.difference:
            first = rest[0]
            self.difference = f"request {first.number} of the recording was not asked ({first.method} {first.path})"


class Answering:
    """The decision how to answer a request: from the recording, from outside, or not at all."""

    def __init__(
        self, mode: Mode, exchange: RecordedExchange | None, body: bytes | None, *, is_menu: bool = False
    ) -> None:
        """``is_menu``: the request asks what a server offers, which a change may affect: it goes out even if its answer
        is recorded."""
        self.exchange = None
        if body is not None:
            self.exchange = exchange
        self.body = body
        self.goes_out = mode == "live" or (mode == "replay-then-live" and (is_menu or self.exchange is None))
        self.ends_trial = mode == "fail" and self.exchange is None
