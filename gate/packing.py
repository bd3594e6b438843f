"""The nouns as bytes and back, for this program's own eyes: a spill file, a worker's pipe. No format that is kept."""

from __future__ import annotations

from typing import Any


def pack(value: Any) -> bytes:
    """The value as bytes."""
    import pickle  # weight

    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Any:
    """The value that was packed. Only for bytes that this program packed itself."""
    import pickle  # weight

    return pickle.loads(data)  # noqa: S301 - see above
