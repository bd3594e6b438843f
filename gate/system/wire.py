"""Messages between the gate and its own child processes over pipes: frames, and how each end reads them.

A frame is a kind, a number and bytes. Programs that cannot import the gate (`gate.guest`) use lines instead.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from threading import Lock, Thread
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

SETUP, REQUEST, READY, DONE, FAILED = range(5)
"""The gate sends a setup and requests; the child sends ready, answers and failures."""
MAX_FRAME_BYTES = 1 << 40
"""No limit: for children that only run the gate's code."""
_HEAD = struct.Struct(">BQQ")

T_co = TypeVar("T_co", covariant=True)


class Frame(NamedTuple):
    """One message."""

    kind: int
    number: int
    """Matches an answer to its request."""
    data: bytes


class GarbledError(ValueError):
    """The bytes are not a message: something else wrote into the pipe, or a message is too large."""


class Reading(Protocol[T_co]):
    """Turns bytes that arrive in pieces into messages."""

    def take(self, data: bytes) -> Iterator[T_co]:
        """Yield the messages that these bytes complete. Raises GarbledError."""


def frame(kind: int, number: int, data: bytes) -> bytes:
    """Return a frame as bytes."""
    return _HEAD.pack(kind, number, len(data)) + data


class Frames:
    """Reads frames of at most ``limit`` bytes."""

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._held = bytearray()

    def take(self, data: bytes) -> Iterator[Frame]:
        self._held += data
        while len(self._held) >= _HEAD.size:
            kind, number, length = _HEAD.unpack_from(self._held)
            if kind > FAILED:
                raise GarbledError("invalid data")
            if length > self._limit:
                raise GarbledError(f"an answer of more than {self._limit:,} bytes")
            end = _HEAD.size + length
            if len(self._held) < end:
                return
            message = bytes(memoryview(self._held)[_HEAD.size : end])
            del self._held[:end]
            yield Frame(kind, number, message)


class LineReader:
    """Reads lines of at most ``limit`` bytes, and yields each without its newline."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        self._held += data
        while (end := self._held.find(b"\n")) >= 0:
            line = bytes(self._held[:end])
            del self._held[: end + 1]
            yield line
        if len(self._held) > self._limit:
            raise GarbledError(f"an answer of more than {self._limit:,} bytes")


class ParentPipes:
    """The child's end of its pipes to the gate. Output of users' code goes to standard error instead."""

    def __init__(self) -> None:
        self._in: BinaryIO = os.fdopen(os.dup(0), "rb")
        self._out: BinaryIO = os.fdopen(os.dup(1), "wb")
        self._lock = Lock()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)

    def receive(self) -> Frame | None:
        """Return the next frame; None at the end of the pipe, even inside a frame."""
        head = self._in.read(_HEAD.size)
        if len(head) < _HEAD.size:
            return None
        kind, number, length = _HEAD.unpack(head)
        data = self._in.read(length)
        return Frame(kind, number, data) if len(data) == length else None

    def send(self, kind: int, number: int, data: bytes) -> None:
        """Send a frame. Raises BrokenPipeError if the gate is gone."""
        with self._lock:
            self._out.write(frame(kind, number, data))
            self._out.flush()

    def listen(self, take: Callable[[Frame], None], leave: Callable[[], None]) -> None:
        """Pass on every frame in a separate thread, so that the end of the pipe is noticed during any work."""

        def work() -> None:
            while (message := self.receive()) is not None:
                take(message)
            leave()

        Thread(target=work, daemon=True).start()
