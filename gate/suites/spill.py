"""Keeps recorded conversations out of memory: written once to a file without a name, read again one at a time."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Sequence
from tempfile import SpooledTemporaryFile
from typing import overload

from gate.model import Invocation

IN_MEMORY = 8_000_000
"""Bytes that are kept in memory before a file is made."""


class Spill:
    """Invocations in the order they came; the file goes with the last of them."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed by the finalizer
        self._end = 0
        weakref.finalize(self, self._file.close)

    def keep(self, invocation: Invocation) -> Spilled:
        """Writes an invocation; what is returned reads it."""
        data = pickle.dumps(invocation, pickle.HIGHEST_PROTOCOL)
        self._file.seek(self._end)
        self._file.write(data)
        kept = Spilled(self, self._end, len(data))
        self._end += len(data)
        return kept

    def read(self, offset: int, length: int) -> Invocation:
        self._file.seek(offset)
        invocation: Invocation = pickle.loads(self._file.read(length))  # noqa: S301 - what `keep` wrote, and nobody else
        return invocation


class Spilled(Sequence[Invocation]):
    """One invocation, read whenever it is asked for."""

    __slots__ = ("_length", "_offset", "_spill")

    def __init__(self, spill: Spill, offset: int, length: int) -> None:
        self._spill, self._offset, self._length = spill, offset, length

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> Invocation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Invocation]: ...
    def __getitem__(self, index: int | slice) -> Invocation | Sequence[Invocation]:
        return (self._spill.read(self._offset, self._length),)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]
