"""Waiting for what happens elsewhere, clocks that tests move, work that is counted: no machine is too slow to pass."""

from __future__ import annotations

import asyncio
import selectors
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

CEILING = 300.0
"""Seconds after which what is waited for will not come: a defect, on whatever machine."""


def eventually(condition: Callable[[], object], *, pause: float = 0.02) -> bool:
    """Whether the condition comes true, asked every ``pause`` seconds."""
    end = time.monotonic() + CEILING
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(pause)
    return True


async def until(condition: Callable[[], object]) -> None:
    """Returns once the condition is true. Raises TimeoutError where it does not come true."""
    end = time.monotonic() + CEILING
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not come")
        await asyncio.sleep(0.01)


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python, calls and returns included, some work takes: as many on every machine."""
    count = 0

    def trace(frame: object, event: str, argument: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward, so that a timeout of a minute takes no time."""

    _ahead = 0.0

    def time(self) -> float:
        return super().time() + self._ahead

    def skip(self, seconds: float) -> None:
        self._ahead += seconds


class IdleLoop(asyncio.SelectorEventLoop):
    """An event loop in whose time nothing takes long but sleeping. For code without sockets, processes and threads."""

    def __init__(self) -> None:
        self._idle = _Idle()
        super().__init__(self._idle)

    def time(self) -> float:
        return self._idle.now


class _Idle(selectors.DefaultSelector):
    """Where the loop would wait, the time is over."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(None if timeout is None else 0)
        self.now += 0.0 if ready else timeout or 0.0
        return ready


def skipping(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, with a `SkippingLoop`."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        return runner.run(main)


def idling(main: Coroutine[Any, Any, T]) -> T:
    """As asyncio.run, with an `IdleLoop`."""
    with asyncio.Runner(loop_factory=IdleLoop) as runner:
        return runner.run(main)


def skip(seconds: float) -> None:
    """Puts the running `SkippingLoop` forward."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippingLoop)
    loop.skip(seconds)
