"""Bounds of numbers from outside; a record is refused if it exceeds them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

MAX_COUNT = 2**53
"""An upper bound on counts, seeds and line numbers: no honest one is larger, and beyond it a float cannot represent
every integer."""
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Ordinal = Annotated[int, Meta(ge=1, le=MAX_COUNT)]
Amount = Annotated[float, Meta(ge=0)]
"""A duration, a time, a cost."""
