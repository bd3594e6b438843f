"""What an answer that cannot be read looks like; the frameworks themselves are met in tests/connectors."""

from __future__ import annotations

from typing import Any

import pytest

from gate.agents.base import AgentFailure, Stream, read_answer
from gate.agents.hints import EXPECTED, refused_by

MESSAGE = {"content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "ai"}
MISSING = b'{"detail":[{"type":"missing","loc":["body","%s"],"msg":"Field required"}]}'


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        ({"choices": [], "object": "chat.completion"}, "this looks like Chat Completions: use openai:"),
        (
            {"object": "response", "output": [{"type": "message"}]},
            "OpenAI's Responses: use openai: with api: responses",
        ),
        ({"result": 1, "jsonrpc": "2.0"}, "A2A"),
        ({"error": {"code": -32601}, "jsonrpc": "2.0"}, "use a2a: or mcp:"),
        ({"candidates": []}, "this looks like Gemini"),
        ({"role": "assistant", "content": [], "stop_reason": "end_turn"}, "content[type=text][0].text"),
        ({"thread_id": "t", "created_at": "today", "status": "idle"}, "use langgraph:"),
        ({"history": [MESSAGE]}, 'return {"messages": state["history"]}'),
        ([{"agent": {"messages": [MESSAGE]}}], "the updates of a LangGraph graph"),
        ([{"messages": [MESSAGE]}], "the stream of a LangGraph graph"),
        ([[MESSAGE, {"langgraph_step": 1}]], "the stream of a LangGraph graph"),
        ({"stop_reason": "end_turn", "message": {}, "metrics": {}}, "this looks like Strands"),
        (Stream('data: {"run_id": "r", "attempt": 1}\n\n'), "this looks like a LangGraph server's stream"),
        ({"some": "thing"}, ""),
        ({"some": {"messages": 3}}, ""),
        ([[]], ""),
        ([[{"content": 1}]], ""),
    ],
)
def test_an_answer_of_a_known_framework_names_what_reads_it(answer: Any, remedy: str) -> None:
    with pytest.raises(AgentFailure) as failure:
        read_answer(answer, user="", mapping="http.response")
    assert remedy in failure.value.message
    assert ("looks like" in failure.value.message) == bool(remedy)
    assert "\n" not in failure.value.message


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"reply": "hello", "id": 7}, "; return 'reply' as output, or set http.response.output: reply"),
        ({"a": "1", "b": "2", "c": "3", "d": "4"}, "; return 'a', 'b', 'c' as output"),
        ({"a.b": "1", "\n": "2", "x" * 60: "3", "empty": "", "none": None}, ""),
        ({"reply": {"text": "hello"}}, ""),
    ],
)
def test_an_answer_of_nobody_says_where_its_text_is(answer: Any, told: str) -> None:
    with pytest.raises(AgentFailure) as failure:
        read_answer(answer, user="", mapping="http.response")
    assert told in failure.value.message
    assert ("as output, or set" in failure.value.message) == bool(told)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"reply": "hello"}, "; return 'reply' as output"),
        ({"choices": [], "object": "chat.completion"}, 'return {"messages": [choices[0].message], "usage": usage}'),
        ({"object": "response", "output": [{"type": "message"}]}, 'return {"messages": output, "usage": usage}'),
        ({"role": "assistant", "content": [], "stop_reason": "end_turn"}, 'return {"messages": [message], "usage"'),
        ({"history": [MESSAGE]}, 'return {"messages": state["history"]}'),
    ],
)
def test_a_function_is_told_what_to_return_and_no_key_of_a_server(answer: Any, told: str) -> None:
    with pytest.raises(AgentFailure) as failure:
        read_answer(answer, user="")
    assert told in failure.value.message
    assert "response" not in failure.value.message.partition(";")[2]


@pytest.mark.parametrize(
    ("body", "kind", "hint"),
    [
        (MISSING % b"threadId", "http", "this looks like AG-UI: use agui:"),
        (MISSING % b"threadId", "agui", ""),
        (MISSING % b"userId", "http", "this looks like an ADK server: use adk:"),
        (MISSING % b"assistant_id", "a2a", "this looks like a LangGraph server: use langgraph:"),
        (b'{"jsonrpc": "2.0", "error": {}}', "http", "this looks like an MCP server: use mcp:"),
        (MISSING % b"question", "http", 'send it: agent.http.request: {question: "{{message}}"}'),
        (MISSING % b"question", "a2a", ""),
        (b"\xff", "http", ""),
    ],
)
def test_what_a_server_misses_tells_whose_it_is(body: bytes, kind: str, hint: str) -> None:
    assert refused_by(422, body, kind).removeprefix("; ") == hint


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("body", [b"", b"Not Found", b'{"detail":"Not Found"}', b"<!DOCTYPE html><p>no\n"])
def test_a_path_that_is_not_there_names_what_the_address_must_be(kind: str, body: bytes) -> None:
    assert refused_by(404, body, kind) == f"; {EXPECTED[kind]}"


@pytest.mark.parametrize(
    ("status", "body"),
    [(404, b'{"detail":"no such app"}'), (404, b'{"error": {"message": "no such model"}}'), (500, b"Not Found")],
)
def test_a_server_that_says_what_is_wrong_is_not_talked_over(status: int, body: bytes) -> None:
    assert refused_by(status, body, "http") == ""


def test_a_kind_without_a_word_says_nothing() -> None:
    assert refused_by(404, b"", "a2a") == ""
