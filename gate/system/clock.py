"""The clock."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time in UTC; the only place that reads the clock, so that a test can stop it."""
    return datetime.now(UTC)
