"""What this process and a worker say to one another: a kind, a number and bytes, over pipes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import BinaryIO

KIT, BATCH, READY, DONE, FAILED = range(5)
"""A setup and batches go to a worker; that it is ready, answers and what went wrong come back."""
_HEAD = struct.Struct(">BQQ")


def frame(kind: int, number: int, data: bytes) -> bytes:
    """One message. ``number`` joins an answer to its batch."""
    return _HEAD.pack(kind, number, len(data)) + data


def read(pipe: BinaryIO) -> tuple[int, int, bytes] | None:
    """The next message of a pipe; None at its end, and where it ends inside a message."""
    head = pipe.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    kind, number, length = _HEAD.unpack(head)
    data = pipe.read(length)
    return (kind, number, data) if len(data) == length else None


class Reading:
    """Messages of bytes that arrive in pieces."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """The messages that are whole with these bytes."""
        self._held += data
        while len(self._held) >= _HEAD.size:
            kind, number, length = _HEAD.unpack_from(self._held)
            end = _HEAD.size + length
            if len(self._held) < end:
                return
            message = bytes(memoryview(self._held)[_HEAD.size : end])
            del self._held[:end]
            yield kind, number, message
