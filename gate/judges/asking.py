"""The score for which a judge is asked at the moment, so that its answers can be attributed."""

from __future__ import annotations

from contextvars import ContextVar

answered_for_score: ContextVar[set[tuple[str, str]] | None] = ContextVar("answered_for_score", default=None)
"""The models asked for it so far, each with a name by which it answered; None if nothing is being scored."""
