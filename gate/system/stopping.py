"""Whether a signal has asked the gate to stop: for work that waits in the main thread, where no event loop looks."""

from __future__ import annotations

from gate.errors import Cancelled

LOOK_SECONDS = 0.1
"""How often such work looks; Python runs signal handlers between two waits alone."""


class Stopping:
    """Set by the handlers of `gate.system.signals`."""

    def __init__(self) -> None:
        self._number = 0

    def set(self, number: int) -> None:
        """Remembers a signal; 0 forgets it."""
        self._number = number

    def check(self) -> None:
        """Raises Cancelled if the gate is to stop."""
        if self._number:
            raise Cancelled(self._number)


STOPPING = Stopping()
