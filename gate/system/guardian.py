"""Ends everything that a run started: all processes with the run's mark, and their descendants.

Started as a script, it waits until the gate has ended, however that happens, and then does the same. Standard library
only: it must be running a few milliseconds after an agent's first process.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress

MARK = "AGENT_GATE_RUN"
"""Set in every child's environment, so that descendants that left their group or session can be found."""
ROUNDS = 100
"""The most rounds of searching: processes may fork in the meantime."""


def sweep(mark: str, user: int = 0) -> None:
    """Kill every process that has the mark or runs as ``user``, if given, and its descendants.

    Linux only; other systems rely on process groups.

    All are stopped first, so that none can fork or lose its parent during the search. A process that cleared its
    environment and whose parents had all ended cannot be found.
    """
    stopped: set[int] = set()
    for _ in range(ROUNDS):
        new = _family(f"{MARK}={mark}".encode(), user) - stopped
        if not new:
            break
        _signal(new, signal.SIGSTOP)
        stopped |= new
    _signal(stopped, signal.SIGKILL)


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _family(needle: bytes, user: int) -> set[int]:
    """Return the living processes with this entry in their environment or of this user, and their descendants, without
    this one."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []  # noqa: PTH112, PTH208
    found = {pid for pid in pids if needle in _read(pid, "environ").split(b"\0") or (user and _user_of(pid) == user)}
    if not found:
        return found
    children: dict[int, list[int]] = {}
    for pid in pids:
        fields = _read(pid, "stat").rpartition(b")")[2].split()  # state, parent, …
        if fields and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(pid)
    pending = list(found)
    while pending:
        new = [pid for pid in children.get(pending.pop(), ()) if pid not in found]
        found.update(new)
        pending += new
    return found - {os.getpid()}


def _user_of(pid: int) -> int:
    """Return the real user id of a process; 0 if it is gone. Without the right to trace, even root cannot read its
    environment."""
    fields = _read(pid, "status").partition(b"\nUid:")[2].split(None, 1)
    return int(fields[0]) if fields else 0


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123 - pathlib takes longer to import than all this
            return file.read()
    except OSError:
        return b""


if __name__ == "__main__":
    sys.stdin.buffer.read()  # returns when the gate has ended
    sweep(sys.argv[1], int(sys.argv[2]))
