"""Tells work that waits in the main thread, without an event loop, that a signal has asked the gate to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from gate.errors import Cancelled

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.1
"""Seconds between checks; Python runs signal handlers only between waits."""


class Stopping:
    """Set by the handlers of this module and of `gate.system.signals`."""

    def __init__(self) -> None:
        self._number = 0
        self._sections = 0
        """Number of `postponed` sections that the main thread is in."""
        self._is_late = False
        """True if a signal came within them."""

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

    @contextmanager
    def postponed(self) -> Iterator[None]:
        """Let a signal raise Cancelled only at the end of this section, in which a resource is made or released.

        Otherwise the exception could arise after a process was started or a folder made, but before anything knows of
        it. Signals are handled in the main thread, so elsewhere this does nothing. A section must not wait.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._sections += 1
        try:
            yield
        finally:
            self._sections -= 1
            if self._is_late and not self._sections:
                self._is_late = False
                self.check()

    def cancel(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - the signal module's signature
        """Handle a signal: raise Cancelled, now or at the end of a `postponed` section."""
        self.set(number)  # the exception may get lost, for example during an import
        if self._sections:
            self._is_late = True
        else:
            raise Cancelled(number)


STOPPING = Stopping()


def heed() -> None:
    """Let SIGINT, SIGTERM and SIGHUP raise Cancelled in the main thread wherever it waits.

    So commands release their resources and leave no process or temporary folder, even without an event loop. SIGINT
    and SIGHUP stay ignored if they are.
    """
    for number in SIGNALS:
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, STOPPING.cancel)


def heed_no_more() -> None:
    """Let the signals end the process at once, without a traceback, now that its work is done."""
    for number in SIGNALS:
        if signal.getsignal(number) == STOPPING.cancel:
            signal.signal(number, signal.SIG_DFL)


def is_heeded(number: signal.Signals) -> bool:
    """False for SIGHUP if it is ignored, as under `nohup`."""
    return number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN
