"""The clock."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time in UTC; in one place, so that a test can fix it."""
    return datetime.now(UTC)
