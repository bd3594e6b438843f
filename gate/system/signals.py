"""Runs a coroutine that a signal may stop: it first releases its resources, and the exit code names the signal."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from time import monotonic
from types import FrameType
from typing import Any, TypeVar

from gate.errors import Cancelled, MeasureError
from gate.stopping import SIGNALS, STOPPING, is_heeded

T = TypeVar("T")

PATIENCE = 2.0
"""Seconds after the first signal from which another one ends the process at once. Programs such as `timeout` send the
same signal twice in a row."""


def run(work: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result. SIGHUP stays ignored if it is, as under `nohup`.

    Raises Cancelled after SIGINT, SIGTERM or SIGHUP, once the coroutine has released everything, and MeasureError if
    something in it raises SystemExit. The handlers are Python's, not the event loop's, so that they run even if the
    loop is busy.
    """

    async def main() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        caught: list[tuple[int, float]] = []

        def cancel(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
            if caught and monotonic() >= caught[0][1] + PATIENCE:
                signal.signal(number, signal.SIG_DFL)  # nothing is lost: trials are already recorded
                signal.raise_signal(number)  # the guardian ends the agent's processes
            caught.append((number, monotonic()))
            STOPPING.set(number)
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)

        if STOPPING.is_set:
            work.close()
            STOPPING.check()
        before = {number: signal.signal(number, cancel) for number in SIGNALS if is_heeded(number)}
        try:
            return await work
        except asyncio.CancelledError:
            raise Cancelled(caught[0][0] if caught else signal.SIGTERM) from None
        finally:
            STOPPING.set(0)
            for number, handler in before.items():
                signal.signal(number, handler)

    try:
        return in_loop(main())
    except SystemExit as error:  # from a plugin, which must not choose the exit code
        raise MeasureError(f"code of a plugin asked to end the process: SystemExit: {error}") from error


def in_loop(work: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result, from a new event loop.

    The loop's task does not return it: when asyncio restores the handler of SIGINT, it takes the task's `repr` twice,
    which writes out the whole result before shortening it.
    """
    found: list[T] = []

    async def main() -> None:
        found.append(await work)

    asyncio.run(main())
    return found[0]
