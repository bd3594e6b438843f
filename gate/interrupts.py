"""Runs a coroutine that a signal may stop: what it holds open is closed first, and the exit code says which signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

from gate.errors import Cancelled

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """The coroutine's result. Raises Cancelled after SIGINT or SIGTERM, once the coroutine has let go of everything."""

    async def main() -> T:
        task = asyncio.current_task()
        caught: list[signal.Signals] = []

        def cancel(number: signal.Signals) -> None:
            caught.append(number)
            if task is not None:
                task.cancel()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, cancel, number)
        try:
            return await work
        except asyncio.CancelledError:
            raise Cancelled(caught[0] if caught else signal.SIGTERM) from None

    return asyncio.run(main())
