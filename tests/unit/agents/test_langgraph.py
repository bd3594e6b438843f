"""The messages of a LangGraph turn, told apart from those of earlier turns."""

from __future__ import annotations

from typing import Any

import pytest

from gate.agents.langgraph import _later

BYE = {"type": "ai", "content": "Bye"}
EDITED = {"type": "ai", "content": "Edited", "id": "a"}
ASK, ANSWER = {"type": "human", "content": "Hi"}, {"type": "ai", "content": "Hello"}


def named(*ids: str) -> list[Any]:
    return [{"type": "ai", "content": "Hello", "id": one} for one in ids]


@pytest.mark.parametrize(
    ("before", "now", "new"),
    [
        ([], [ASK, ANSWER], [ASK, ANSWER]),
        ([ASK, ANSWER], [ASK, ANSWER, ASK, ANSWER], [ASK, ANSWER]),
        ([ASK, ANSWER], [ASK, ANSWER], [ASK, ANSWER]),  # a graph that replaces its state answers the same again
        ([ASK, ANSWER], [ANSWER], [ANSWER]),
        (
            [ASK, ANSWER],
            [ASK, {"type": "ai", "content": "Bye"}, ANSWER],
            [ASK, {"type": "ai", "content": "Bye"}, ANSWER],
        ),
        (named("a", "b"), named("a", "b", "c"), named("c")),
        (named("a", "b"), named("b", "c"), named("c")),  # a shortened history
        (named("a", "b"), named("a", "b"), []),  # nothing was added
        (named("a", "b"), named("c"), named("c")),
        (
            named("a"),
            [{"type": "ai", "content": "Edited", "id": "a"}],
            [{"type": "ai", "content": "Edited", "id": "a"}],
        ),
    ],
)
def test_the_messages_that_a_turn_added(before: list[Any], now: list[Any], new: list[Any]) -> None:
    assert _later(now, before) == new
