"""Hides the environment of this process from the processes that it starts.

The environment that a process was started with stays readable in ``/proc`` for every process of its user: the system
shows the memory in which the variables were passed. So before the gate starts anything, that memory is emptied; all
variables keep their values, in copies that ``/proc`` does not show.

Linux only; other systems have no such view, or no way to close it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock

_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Fields of ``stat`` after the program's name, which comes second and may contain anything."""
_lock = Lock()
_state = {"concealed": 0, "alone": 0}
"""Ids of the process whose environment is concealed, and of the one that belongs to the gate alone."""


def is_alone() -> None:
    """Mark this process as the gate's own, not a caller's, so that its memory may be protected, too."""
    _state["alone"] = os.getpid()


def conceal() -> None:
    """Empty the memory that ``/proc`` shows as this process's environment; once per process.

    A forked process shows a copy of that memory, so it must empty its own.
    """
    if _state["concealed"] == os.getpid():
        return
    with _lock:
        if _state["concealed"] != os.getpid():
            _state["concealed"] = os.getpid()
            _empty()
            if _state["alone"] == os.getpid():
                close_memory()


def _empty() -> None:
    with suppress(ImportError, OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_text(encoding="ascii", errors="replace").rpartition(") ")[2].split()
        start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
        if not start < end:
            return
        from ctypes import memset  # weight, and not in every Python

        for name, value in os.environb.items():
            os.putenv(name, value)  # the C library's list then points to copies
        memset(start, 0, end - start)


def close_memory() -> None:
    """Keep others out of this process's memory, even root if it may not trace, as by default in containers."""
    with suppress(ImportError, OSError, AttributeError):
        from ctypes import CDLL  # weight, and not in every Python

        CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
