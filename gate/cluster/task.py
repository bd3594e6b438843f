"""The functions that run on the nodes of a cluster. Sent by name: the gate is installed there."""

from __future__ import annotations

from functools import lru_cache

from gate import __version__
from gate.scoring.batch import ScoringSetup, score_packed
from gate.system.serialize import unpack


def score(setup: bytes, data: bytes) -> bytes:
    """Return the packed answer to a packed batch."""
    return score_packed(_setup(setup), data)


@lru_cache(maxsize=4)
def _setup(data: bytes) -> ScoringSetup:
    setup: ScoringSetup = unpack(data)
    return setup


def version() -> str:
    """Return the version of the gate that is installed there."""
    return __version__
