"""Takes the environment of this process out of the reach of those that it starts.

What a process was started with stays readable in ``/proc`` for every process of its user, for as long as it lives: the
system keeps no list of variables, it shows the memory in which they once were handed over. So before the gate starts
anything, that memory is emptied; all variables stay what they are, in copies that ``/proc`` does not show.

Knows Linux; elsewhere other processes cannot be kept from looking, or have no such view.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock

_PR_SET_DUMPABLE = 4
_ENV_START, _ENV_END = 47, 48
"""Fields of ``stat`` behind the name of the program, which is the second and may hold anything."""
_lock = Lock()
_state = {"concealed": 0, "alone": 0}
"""Numbers of the process whose environment is concealed, and of the one that is the gate's alone."""


def is_alone() -> None:
    """Marks this process as the gate's own, not a caller's, so that its memory may be protected, too."""
    _state["alone"] = os.getpid()


def conceal() -> None:
    """Empties the memory that ``/proc`` shows as this process's environment; once for each process.

    A process that was forked from another shows a copy of that one's memory, which is its own to empty.
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
            os.putenv(name, value)  # the C library's own list then points to copies
        memset(start, 0, end - start)


def close_memory() -> None:
    """Keeps others out of this process's memory, root too where it may not trace, as in containers by default."""
    with suppress(ImportError, OSError, AttributeError):
        from ctypes import CDLL  # weight, and not in every Python

        CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
