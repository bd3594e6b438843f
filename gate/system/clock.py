"""The clock."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The current time in UTC; one place, so that a test can stand still."""
    return datetime.now(UTC)
