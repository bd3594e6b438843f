"""Runs computations off the event loop, one at a time: the loop times the agent, and must not wait for us."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _thread() -> ThreadPoolExecutor:
    """Return a pool of one thread, as metrics hold processes that answer one question at a time."""
    return ThreadPoolExecutor(1, "scoring")


async def off_loop(work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the function's result. If the task is cancelled, a call that has begun is still awaited."""
    running = asyncio.get_running_loop().run_in_executor(_thread(), partial(work, *args, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        with suppress(Exception, asyncio.CancelledError):
            await running
        raise
