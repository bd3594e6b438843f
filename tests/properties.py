"""How many examples a property is tried with: all of them in `make slow`, a quarter before each commit."""

from __future__ import annotations

from hypothesis import settings

THOROUGH = 100
"""Examples of a property that states no number of its own, in the profile of `make slow`."""
QUICK = 25


def examples(thorough: int, *, quick: int = 0) -> int:
    """The number for the profile in use: ``thorough`` in `make slow`; else ``quick``, or a quarter, ten at least."""
    if quick and settings.default.max_examples < THOROUGH:
        return quick
    return min(thorough, max(10, thorough * settings.default.max_examples // THOROUGH))
