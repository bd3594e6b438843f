"""A worker process: scores the batches that come over its standard input until that ends.

    python -m gate.scoring.worker

It knows no secret and outlives nobody: when the process that started it is gone, however that ended, it is gone too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import BinaryIO

from gate.errors import GateError
from gate.scoring import wire as frames
from gate.scoring.batch import ScoringSetup, score_packed
from gate.system.serialize import pack, unpack

Message = tuple[int, int, bytes]


class Line:
    """The pipes to the process that asks. What users' code prints goes to standard error instead."""

    def __init__(self) -> None:
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb")
        self._lock = Lock()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)

    def receive(self) -> Message | None:
        return frames.read(self._in)

    def send(self, kind: int, number: int, data: bytes) -> None:
        with self._lock:
            self._out.write(frames.frame(kind, number, data))
            self._out.flush()

    def fail(self, number: int, error: Exception) -> None:
        """Says what went wrong with a batch, or with everything where the number is 0."""
        self.send(frames.FAILED, number, said(error))


def said(error: Exception) -> bytes:
    """An error as the other side reads it: its kind, what, where and hint."""
    if isinstance(error, GateError):
        return pack((type(error).__name__, error.what, error.where, error.hint))
    return pack(("MeasureError", f"{type(error).__name__}: {error}"[:2000], "", ""))


def listen(line: Line, take: Callable[[Message], None], leave: Callable[[], None]) -> None:
    """Hands on every message, in a thread of its own, so that the end of the line is noticed whatever else goes on."""

    def work() -> None:
        while (message := line.receive()) is not None:
            take(message)
        leave()

    Thread(target=work, daemon=True).start()


def main() -> None:
    line, messages = Line(), SimpleQueue[Message]()
    listen(line, messages.put, lambda: os._exit(0))
    setup: ScoringSetup | None = None
    try:
        while True:
            kind, number, data = messages.get()
            try:
                if kind == frames.KIT:
                    setup = unpack(data)
                    line.send(frames.READY, 0, pack(1))
                else:
                    assert setup is not None
                    line.send(frames.DONE, number, score_packed(setup, data))
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything as it is imported
                line.fail(number, error)
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
