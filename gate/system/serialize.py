"""Values as bytes and back, only for this program: a spill file, a worker's pipe. Not a format to keep."""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec.msgpack import Decoder, Encoder

from gate.model import Invocation

_ENCODER = Encoder()
_PICKLED = 0x80
"""The first byte of a pickle; a MessagePack list, which takes a fraction of the time, never begins with it."""


def pack(value: Any) -> bytes:
    """Return the value as bytes."""
    import pickle  # weight

    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Any:
    """Return the packed value. Only for bytes that this program packed."""
    import pickle  # weight

    return pickle.loads(data)  # noqa: S301 - see above


def pack_invocations(invocations: tuple[Invocation, ...]) -> bytes:
    """Return the invocations as bytes."""
    try:
        return _ENCODER.encode(invocations)
    except (TypeError, ValueError, OverflowError):  # a number or a text that MessagePack cannot represent
        return pack(invocations)


def unpack_invocations(data: bytes) -> tuple[Invocation, ...]:
    """Return the invocations that `pack_invocations` packed."""
    if data[0] == _PICKLED:
        found: tuple[Invocation, ...] = unpack(data)
        return found
    return _decoder().decode(data)


@cache
def _decoder() -> Decoder[tuple[Invocation, ...]]:
    return Decoder(tuple[Invocation, ...])
