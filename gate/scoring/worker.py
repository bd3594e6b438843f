"""A worker process: scores the batches that arrive on its standard input until that ends.

    python -m gate.scoring.worker

It knows no secrets, and ends when the process that started it ends, in whatever way.
"""

from __future__ import annotations

import sys
from queue import SimpleQueue

from gate.errors import GateError
from gate.scoring.batch import ScoringSetup, score_packed
from gate.system import wire
from gate.system.child import leave_after_request
from gate.system.serialize import pack, unpack
from gate.system.wire import ParentPipes


def fail(pipes: ParentPipes, number: int, error: Exception) -> None:
    """Report an error with a batch, or with everything if the number is 0: its kind, text, place and hint."""
    told = ("MeasureError", f"{type(error).__name__}: {error}"[:2000], "", "")
    if isinstance(error, GateError):
        told = (type(error).__name__, error.what, error.where, error.hint)
    pipes.send(wire.FAILED, number, pack(told))


def main() -> None:
    pipes, messages = ParentPipes(), SimpleQueue[wire.Frame | None]()
    pipes.listen(messages.put, lambda: leave_after_request(messages))
    setup: ScoringSetup | None = None
    try:
        while (message := messages.get()) is not None:
            kind, number, data = message
            try:
                if kind == wire.SETUP:
                    setup = unpack(data)
                    pipes.send(wire.READY, 0, pack(1))
                else:
                    assert setup is not None
                    pipes.send(wire.DONE, number, score_packed(setup, data))
            except BrokenPipeError:
                raise
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything when imported
                fail(pipes, number, error)
    except BrokenPipeError:
        sys.exit(0)


if __name__ == "__main__":
    main()
