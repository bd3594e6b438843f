"""Standard streams that never stop the work, even if one is closed, full or no longer read."""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO, cast


class Output:
    """Standard output or error, which ignores write errors. The stream itself handles everything else."""

    def __init__(self, stream: TextIO, *, lost: str = "") -> None:
        self._stream = stream
        self._lost = lost
        """The reason why nothing more can be written, until it is reported, which happens at the next write."""
        self._ended = False
        self.was_lost = False
        """True if output that somebody waits for could not be written."""

    def write(self, text: str) -> int:
        if self._lost and text:
            self._say()
        if self._ended and isinstance(text, str):  # click recognises a text stream by what it refuses
            return len(text)
        try:
            return self._stream.write(text)
        except OSError as problem:
            self._end(problem)
            return len(text)

    def flush(self) -> None:
        try:
            if not self._ended:
                self._stream.flush()
        except OSError as problem:
            self._end(problem)

    def _end(self, problem: OSError) -> None:
        self._ended = True
        if not isinstance(problem, BrokenPipeError):  # a reader that stops early has what it wanted
            self._lost, self.was_lost = problem.strerror or type(problem).__name__, True
            self._say()

    def _say(self) -> None:
        lost, self._lost = self._lost, ""
        if sys.stderr is not self:
            sys.stderr.write(f"gate: the output could not be written: {lost}\n")
            sys.stderr.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def keep_open() -> None:
    """Make sure that the standard streams always exist.

    The descriptors of closed ones are filled first: otherwise a record could get one of them, and a child's output
    would end up in it.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    there: tuple[TextIO | None, ...] = (sys.stdin, sys.stdout, sys.stderr)  # a closed one is None
    if there[0] is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115, PTH123
    sys.stderr = _output(there[2])
    sys.stdout = _output(there[1], "standard output is closed")


def _output(stream: TextIO | None, closed: str = "") -> TextIO:
    if stream is None:
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
        return cast("TextIO", Output(nowhere, lost=closed))
    return cast("TextIO", Output(stream))
