"""The time is that of the world, with its zone."""

from __future__ import annotations

import time
from datetime import UTC

from gate.system.clock import now


def test_it_is_now_in_utc() -> None:
    before = time.time()
    found = now()
    assert found.tzinfo is UTC
    assert before <= found.timestamp() <= time.time()
