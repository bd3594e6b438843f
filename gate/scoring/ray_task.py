"""What runs on the nodes of a cluster. Sent by name: the gate is installed there."""

from __future__ import annotations

from functools import lru_cache

from gate import __version__
from gate.scoring.batch import Kit, score_packed
from gate.system.serialize import unpack


def score(kit: bytes, data: bytes) -> bytes:
    """The packed answer to a packed batch."""
    return score_packed(_kit(kit), data)


@lru_cache(maxsize=4)
def _kit(data: bytes) -> Kit:
    kit: Kit = unpack(data)
    return kit


def version() -> str:
    """The version of the gate that is installed there."""
    return __version__
