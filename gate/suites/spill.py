"""Keeps recorded conversations on disk instead of in memory: written once to a nameless file, read one at a time."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from tempfile import TemporaryFile
from typing import overload

from gate.model import Invocation
from gate.system.serialize import pack_invocations, unpack_invocations

IN_MEMORY = 4_000_000
"""Bytes that are buffered in memory before they are written."""


class InvocationFile:
    """Invocations in the order of arrival; the file is deleted with the last reference to them."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self._written = 0
        self._file: int | None = None

    def keep(self, invocation: Invocation) -> StoredInvocation:
        """Write an invocation; return an object that reads it."""
        data = pack_invocations((invocation,))
        offset = self._written + len(self._tail)
        self._tail += data
        if len(self._tail) >= IN_MEMORY:
            self._write()
        return StoredInvocation(self, offset, len(data))

    def read(self, offset: int, length: int) -> bytes:
        """Return stored bytes."""
        if self._file is None or offset >= self._written:
            start = offset - self._written
            return bytes(self._tail[start : start + length])
        return os.pread(self._file, length, offset)

    def _write(self) -> None:
        if self._file is None:
            self._file, close = _nameless()
            weakref.finalize(self, close)
        view = memoryview(self._tail)
        while view:
            view = view[os.write(self._file, view) :]
        self._written += len(self._tail)
        self._tail = bytearray()


def _nameless() -> tuple[int, Callable[[], None]]:
    file = TemporaryFile(buffering=0)  # noqa: SIM115 - closed by the finalizer
    return file.fileno(), file.close


class StoredInvocation(Sequence[Invocation]):
    """One invocation that is read from disk at each access."""

    __slots__ = ("_length", "_offset", "_spill")

    def __init__(self, spill: InvocationFile, offset: int, length: int) -> None:
        self._spill, self._offset, self._length = spill, offset, length

    @property
    def packed(self) -> bytes:
        """The invocations as a packed tuple."""
        return self._spill.read(self._offset, self._length)

    def __len__(self) -> int:
        return 1

    @overload
    def __getitem__(self, index: int) -> Invocation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Invocation]: ...
    def __getitem__(self, index: int | slice) -> Invocation | Sequence[Invocation]:
        return unpack_invocations(self.packed)[index]

    def __iter__(self) -> Iterator[Invocation]:
        return iter(unpack_invocations(self.packed))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]
