"""The criterion for which a judge is asked at the moment, so that its answers can be attributed."""

from __future__ import annotations

from contextvars import ContextVar

scored_criterion: ContextVar[str] = ContextVar("scored_criterion", default="")
"""Its name; empty if no criterion is being scored."""
