"""Which operation of a description is the agent, and how its request and answer are mapped."""

from __future__ import annotations

from typing import Any

import pytest

from gate.agents.base import parse_options
from gate.commands.setup.openapi import agent_of

TEXT = {"type": "string"}


def body(*names: str, required: tuple[str, ...] = (), **schemas: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": {**dict.fromkeys(names, TEXT), **schemas}, "required": list(required)}
    return {"content": {"application/json": {"schema": schema}}}


def post(asked: Any, answer: Any = None, **more: Any) -> dict[str, Any]:
    return {"post": {"requestBody": asked, "responses": {"200": answer or body("reply")}, **more}}


def proposed(paths: dict[str, Any], **document: Any) -> dict[str, Any]:
    found = agent_of({"openapi": "3.1.0", "paths": paths, **document})
    assert found is not None
    parse_options(found.agent)  # what is proposed can be read
    return found.agent


def test_the_operation_that_talks_is_taken() -> None:
    paths = {
        "/feedback": post(body("message")),
        "/search": post(body("query")),
        "/v2/{tenant}/chat": post(body("message")),
        "/old/chat": post(body("message"), deprecated=True),
        "/v1/chat": post(body("question")),
    }
    assert proposed(paths)["http"]["request"] == {"question": "{{message}}"}


@pytest.mark.parametrize(
    ("asked", "request_of_it"),
    [
        (body("message", "conversation_id"), {"message": "{{message}}", "conversation_id": "{{session_id}}"}),
        (body(messages={"type": "array"}, stream={"type": "boolean"}), {"messages": "{{messages}}", "stream": False}),
        (body(message=body("role", "content")["content"]["application/json"]["schema"]),
         {"message": {"role": "user", "content": "{{message}}"}}),
        (body("prompt", "lang", "n", required=("prompt", "lang", "n"), n={"type": "integer", "default": 3}),
         {"prompt": "{{message}}", "lang": "gate", "n": 3}),
        (body("prompt", required=("x",), x={"example": "{{message}} ${HOME}"}), {"prompt": "{{message}}", "x": "gate"}),
    ],
    ids=["session", "messages", "object", "required", "fields"],
)  # fmt: skip
def test_requests(asked: Any, request_of_it: Any) -> None:
    assert proposed({"/chat": post(asked)})["http"]["request"] == request_of_it


STEPS = {"type": "array", "items": {"properties": {"tool": TEXT, "parameters": {}, "output": TEXT}}}


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (body("reply"), {"output": "reply"}),
        (body("usage", message={"properties": {"content": TEXT}}), {"output": "message.content", "usage": "usage?"}),
        (body("answer", required=("steps",), steps=STEPS),
         {"output": "answer",
          "tool_calls": {"path": "steps", "name": "tool", "args": "parameters", "result": "output"}}),
        (body("answer", steps={"anyOf": [STEPS, {"type": "null"}]}),
         {"output": "answer",
          "tool_calls": {"path": "steps?", "name": "tool", "args": "parameters", "result": "output"}}),
        (body("answer", "tool_calls"), {"output": "answer", "tool_calls": "tool_calls?"}),
        (body("messages"), {"messages": "messages"}),
        ({"content": {"text/event-stream": {}}}, None),
        (body("x"), None),
    ],
    ids=["text", "object", "calls", "optional", "plain", "messages", "stream", "unknown"],
)  # fmt: skip
def test_answers(answer: Any, response: Any) -> None:
    assert proposed({"/chat": post(body("message"), answer)})["http"].get("response") == response


def test_keys_are_taken_from_a_variable() -> None:
    schemes = {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "no": {"type": "apiKey", "name": "a b"}}
    paths = {"/chat": post(body("message"), security=[{"key": []}])}
    document = {"components": {"securitySchemes": schemes}}
    assert proposed(paths, **document)["http"]["headers"] == {"X-Key": "${AGENT_API_KEY}"}
    open_ones = {"/chat": post(body("message"), security=[{"no": []}])}
    assert "headers" not in proposed(open_ones, **document)["http"]


def test_a_schema_may_refer_to_itself() -> None:
    asked = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ask"}}}}
    schemas = {"Ask": {"allOf": [{"properties": {"message": TEXT}}, {"$ref": "#/components/schemas/Ask"}]}}
    about = {"servers": [{"url": "http://shop:8080/api"}], "components": {"schemas": schemas}}
    options = {"request": {"message": "{{message}}"}, "response": {"output": "answer"}}
    agent = proposed({"/ask": post(asked, body("answer"))}, **about)
    assert agent == {"http": {"url": "http://shop:8080/api/ask", **options}}


@pytest.mark.parametrize(
    ("paths", "kind"),
    [
        ({"/run": {}, "/list-apps": {}}, "adk"),
        ({"/threads/{thread_id}/runs/wait": {}}, "langgraph"),
        ({"/v1/chat/completions": {}, "/chat": post(body("message"))}, "openai"),
        ({"/chat": post(body("message")), "/copilot": post(body("threadId", "runId", "messages"))}, "agui"),
    ],
)
def test_servers_of_frameworks_are_asked_by_their_protocol(paths: dict[str, Any], kind: str) -> None:
    assert set(proposed(paths)) == {kind}


@pytest.mark.parametrize(
    ("servers", "url"),
    [
        ([{"url": "/api/v1"}], "http://here:1/api/v1/chat"),
        ([{"url": "https://elsewhere.example/api/"}], "http://here:1/api/chat"),
        ([{"url": "https://user:secret@elsewhere.example"}], "http://here:1/chat"),
        ([{"url": "http://[broken"}], "http://here:1/chat"),
        ([{"url": "http://${OPENAI_API_KEY}"}], "http://here:1/chat"),
        (None, "http://here:1/chat"),
    ],
)
def test_a_server_is_asked_where_it_was_reached(servers: Any, url: str) -> None:
    found = agent_of({"paths": {"/chat": post(body("message"))}, "servers": servers}, origin="http://here:1")
    assert found is not None
    assert found.agent["http"]["url"] == url


@pytest.mark.parametrize("document", [None, [], {"paths": []}, {"paths": {}}, {"paths": {"/x": {"get": {}}}}])
def test_what_describes_no_agent(document: Any) -> None:
    assert agent_of(document) is None


def test_references_that_go_round_end() -> None:
    looped = {"$ref": "#/components/schemas/A"}
    paths = {"/chat": post({"content": {"application/json": {"schema": looped}}})}
    assert agent_of({"paths": paths, "components": {"schemas": {"A": looped}}}) is None
