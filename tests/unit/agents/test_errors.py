"""The errors that an answer states: what counts as one, and what an innocent agent may say."""

from __future__ import annotations

import json
from time import monotonic
from typing import Any

import pytest

from gate.agents.answer_paths import EventPaths
from gate.agents.base import AgentFailure, Stream, is_web_page, read_answer, refuse_error

DONE_CHOICE = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}


@pytest.mark.parametrize(
    "answer",
    [
        {"output": [{"text": "hi"}], "status": {"code": 200}},
        {"output": [{"text": "hi"}], "status": "in_progress"},
        {"output": "hi", "type": {"a": 1}},
        {"output": "hi", "type": ["error"]},
        {"output": "hi", "type": "abort"},
        {"output": "hi", "type": "error"},
        {"output": "hi", "finishReason": "error"},
        {"output": "hi", "error": {"code": 0, "message": ""}},
        {"output": "hi", "error": {"code": None, "message": None}, "errors": []},
        {"choices": [DONE_CHOICE], "errors": ["one tool was slow"]},
        {"output": "hi", 1: "a key that is no text", None: "another"},
    ],
)
def test_an_answer_without_an_error(answer: dict[Any, Any]) -> None:
    refuse_error(answer)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"output": "hi", "error": {"code": 502, "message": ""}}, "502"),
        ({"output": "hi", "errors": ["down"]}, "down"),
        ({"object": "response", "output": [], "status": "failed"}, "the response is failed"),
        ({"object": "response", "output": [], "status": "failed", "error": {"code": "x"}}, "x"),
        ({"type": "result", "is_error": True}, "an error"),
        ({"choices": [DONE_CHOICE], "error": {"code": 429}}, "429"),
        ({"messages": [], "__interrupt__": ["sure?"]}, "__interrupt__"),
    ],
)
def test_an_answer_with_an_error(answer: dict[str, Any], error: str) -> None:
    with pytest.raises(AgentFailure, match=error):
        refuse_error(answer)


def stream(*events: Any) -> Stream:
    return Stream("".join(f"data: {json.dumps(event)}\n\n" for event in events))


PATHS = EventPaths.model_validate({"output": "delta", "error": "failure"})


@pytest.mark.parametrize(
    "event",
    [
        {"type": {"a": 1}, "status": "failed", "output": []},
        {"step": 1, "error": "a tool was asked again"},
        {"error": {"code": 0, "message": ""}},
        {"type": "error", "message": "a tool failed"},
    ],
)
def test_events_that_end_no_stream_with_paths_of_its_own(event: Any) -> None:
    found = PATHS.read(stream({"delta": "It is "}, event, {"delta": "done."}))
    assert found["output"] == "It is done."


@pytest.mark.parametrize(
    "events",
    [
        [{"delta": "It is "}, {"failure": "down"}, {"delta": "done."}],
        [{"delta": "It is "}, {"error": "down"}],
        [{"delta": "It is "}, {"type": "error", "message": "down"}, {"type": "end"}],
        [{"delta": "It is "}, {"type": "error", "delta": "It is", "message": "down"}],
        [{"delta": "It is "}, {"done": True, "error": "down"}, {"delta": "\n"}],
        [{"delta": "It is ", "error": "down"}, {"id": 1, "choices": [{"delta": {}, "finish_reason": "stop"}]}],
        [{"delta": "It is "}, {"id": 1, "choices": [{"error": "down", "finish_reason": "error"}]}],
    ],
)
def test_events_that_end_a_stream_with_paths_of_its_own(events: Any) -> None:
    with pytest.raises(AgentFailure, match="down"):
        PATHS.read(stream(*events))


def test_an_error_of_a_tool_from_which_a_plain_stream_recovers() -> None:
    text = "event: word\ndata: It is \n\nevent: error\ndata: a tool failed\n\n"
    assert read_answer(Stream(f"{text}data: done.\n\n"), user="").text == "It is done."
    assert read_answer(Stream(f"{text}event: word\ndata: done.\n\n"), user="").text == "It is done."
    for end in ("", "data: [DONE]\n\n", "event: end\ndata: null\n\n"):
        with pytest.raises(AgentFailure, match="a tool failed"):
            read_answer(Stream(text + end), user="")


STATE = 'event: values\ndata: {"messages": [{"type": "ai", "content": "It is"}]}\n\n'


@pytest.mark.parametrize(
    "text",
    [
        STATE + 'event: error\ndata: {"error": "down"}\n\nevent: end\ndata: null\n\n',
        STATE + "event: error\ndata: down\n\nevent: end\ndata: null\n\n",
        stream(
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "It is"},
            {"type": "RUN_ERROR", "message": "down"},
            {"type": "MESSAGES_SNAPSHOT", "messages": [{"role": "assistant", "content": "It is"}]},
            {"type": "RUN_FINISHED"},
        ),
        stream(
            {"author": "bot", "content": {"parts": [{"text": "It is"}]}},
            {"error": "down"},
            {"author": "user", "content": {"parts": [{"text": "What is it?"}]}},
        ),
    ],
)
def test_no_event_that_adds_nothing_lets_an_answer_go_on_after_an_error(text: str) -> None:
    with pytest.raises(AgentFailure, match="down"):
        read_answer(Stream(text), user="")


@pytest.mark.parametrize(
    ("body", "is_page"),
    [
        (b'<?xml version="1.0"?>\n<!-- a -->\n<!-- b --><!DOCTYPE html>', True),
        (b"<!-- a --> Some prose --> <html", False),
        (b"<!-- an arrow without end <html", False),
        (b"<!--a-->\n" * 100_000 + b"hi there", False),
        (b"<!--" * 100_000, False),
    ],
)
def test_the_beginning_of_a_web_page(body: bytes, is_page: bool) -> None:
    start = monotonic()
    assert is_web_page(body) == is_page
    assert monotonic() - start < 5
