"""Tells work that waits in the main thread, without an event loop, that a signal has asked the gate to stop."""

from __future__ import annotations

import signal
from types import FrameType

from gate.errors import Cancelled

LOOK_SECONDS = 0.1
"""Seconds between checks; Python runs signal handlers only between waits."""


class Stopping:
    """Set by the handlers of `gate.system.signals`."""

    def __init__(self) -> None:
        self._number = 0

    def set(self, number: int) -> None:
        """Remember a signal; 0 forgets it."""
        self._number = number

    @property
    def is_set(self) -> bool:
        """True if the gate should stop."""
        return self._number != 0

    @property
    def number(self) -> int:
        """The signal's number; 0 if there was none."""
        return self._number

    def check(self) -> None:
        """Raise Cancelled if the gate should stop."""
        if self._number:
            raise Cancelled(self._number)


STOPPING = Stopping()


def heed() -> None:
    """Let SIGTERM and SIGHUP raise Cancelled in the main thread wherever it waits, as Ctrl-C raises its own exception.

    So commands release their resources and leave no process or temporary folder, even without an event loop. SIGHUP
    stays ignored if it is.
    """

    def cancel(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - the signal module's signature
        STOPPING.set(number)  # the exception may get lost, for example during an import
        raise Cancelled(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if is_heeded(number):
            signal.signal(number, cancel)


def is_heeded(number: signal.Signals) -> bool:
    """False for SIGHUP if it is ignored, as under `nohup`."""
    return number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
