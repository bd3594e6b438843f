"""Limits on judging: concurrent calls, calls per minute, dollars. Makes no calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct, field


class Budget(Struct):
    """The most that may be spent, checked before spending; one object for the whole run."""

    max_calls: int | None = None
    usd: float | None = None
    calls: int = 0
    """Attempts made, retries included."""
    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    """Estimated price of the calls in flight."""
    agent_usd: float = 0.0
    """Dollars spent by the tested agent from the same budget."""

    _in_flight: int = 0
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    async def reserve(self, estimate: float | None) -> str | None:
        """Take one call from the budget, or return the reason why it cannot. ``estimate`` None: the price is unknown.

        If only the calls in flight prevent it, wait until one of them is settled at its actual cost.
        """
        while True:
            refusal = self._refusal(estimate)
            if refusal is not None:
                return refusal
            if self.usd is None or self._used_usd + self.reserved_usd + (estimate or 0.0) <= self.usd:
                break
            await self._settled.wait()
        self.calls += 1
        self._in_flight += 1
        self.reserved_usd += estimate or 0.0
        return None

    @property
    def _used_usd(self) -> float:
        return self.spent_usd + self.agent_usd

    def _refusal(self, estimate: float | None) -> str | None:
        if self.max_calls is not None and self.calls >= self.max_calls:
            return f"judge budget spent: {self.calls:,} of {self.max_calls:,} calls"
        if self.usd is None:
            return None
        if estimate is None:
            return "judge not asked: its price is unknown and the budget is in dollars"
        if self._used_usd + estimate > self.usd:
            spent = f"{self._used_usd:.4f} of {self.usd:.4f} US dollars"
            return f"budget spent: {spent}, and the next call could exceed it"
        return None

    def settle(self, estimate: float | None, cost: float | None) -> None:
        """Replace a reservation by the call's cost; an answer without a price keeps its estimate."""
        self._in_flight -= 1
        self.reserved_usd = (
            self.reserved_usd - (estimate or 0.0) if self._in_flight else 0.0
        )  # leave no rounding errors behind
        self.spent_usd += cost if cost is not None else estimate or 0.0
        self._settled.set()
        self._settled = asyncio.Event()


class Limiter:
    """Limits concurrent calls, and makes none while the server has asked to wait."""

    def __init__(self, concurrency: int) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._next = 0.0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Hold one slot, waiting for it if necessary."""
        clock = asyncio.get_running_loop().time
        async with self._slots:
            while (wait := self._next - clock()) > 0:
                await asyncio.sleep(wait)
            yield

    def pause(self, seconds: float) -> None:
        """Delay every call by this many seconds: a 429 concerns all of them."""
        self._next = max(self._next, asyncio.get_running_loop().time() + seconds)
