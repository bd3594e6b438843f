"""The answers of the agent's worker before they are sent."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from gate.guest.worker import Worker
from gate.security.limits import MAX_ANSWER_BYTES

PIECE = "x" * 1_000


@pytest.mark.parametrize(
    "answer",
    [
        [PIECE] * 200_000,
        {"output": [PIECE] * 200_000},
        {str(number): PIECE for number in range(20_000)},
        [[]] * 11_000_000,
    ],
    ids=["a list", "within an answer", "by its keys and values", "of nothing"],
)
def test_an_answer_beyond_the_bound_is_refused_before_it_is_copied(answer: Any) -> None:
    """The worker copies nothing of an answer of 200 MB, which the agent itself holds once."""
    worker = Worker.__new__(Worker)
    worker.limit = MAX_ANSWER_BYTES
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="more than 10,000,000 bytes"):
            worker.encode(answer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MAX_ANSWER_BYTES
