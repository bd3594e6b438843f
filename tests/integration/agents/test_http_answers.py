"""HTTP agents with answers of their own form: calls by paths, streams, sessions by cookie, by id, by requests."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import parse_options
from gate.errors import ConfigError
from gate.model import ErrorKind, Trial
from tests.integration.agents.driving import case, drive, read_request, response, serving
from tests.integration.agents.test_http import ok, says, served


def test_calls_under_names_of_their_own() -> None:
    """The steps of an answer, of which some are calls; their parts have the names that the server gives them."""
    steps = [
        {"type": "thought", "text": "hm"},
        {
            "type": "tool",
            "tool": "search",
            "parameters": {"q": 1},
            "output": "found",
            "took": {"s": 0.5},
            "ref": "7",
        },
        {"type": "tool", "tool": "pay", "parameters": '{"sum": 2}', "failure": "declined"},
    ]
    answer, _ = says(ok({"text": "hi", "steps": steps}))
    calls = {
        "path": "steps[type=tool]",
        "name": "tool",
        "args": "parameters",
        "result": "output",
        "error": "failure",
        "id": "ref",
        "duration": "took.s",
    }
    trial = served(answer, [case("a")], {"response": {"output": "text", "tool_calls": calls}})["a"]
    found = [(c.name, c.args, c.result, c.error, c.id, c.duration) for c in trial.invocations[0].tool_calls]
    assert found == [
        ("search", {"q": 1}, "found", None, "7", 0.5),
        ("pay", {"sum": 2}, None, "declined", None, None),
    ]


@pytest.mark.parametrize("status", ["200 OK", "503 Service Unavailable"])
def test_calls_under_names_of_their_own_are_read_from_an_answer_with_an_error(status: str) -> None:
    told = {"error": "429 rate limit", "steps": [{"tool": "pay"}]}
    answer, _ = says(response(json.dumps(told).encode(), status))
    paths = {"output": "text", "tool_calls": {"path": "steps", "name": "tool"}}
    trial = served(answer, [case("a")], {"response": paths}, retries=0)["a"]
    assert trial.error is not None
    assert not trial.failed
    assert [[call.name for call in turn.tool_calls] for turn in trial.invocations] == [["pay"]]


@pytest.mark.parametrize(
    ("told", "body", "message"),
    [
        (
            {"output": "txt"},
            {"text": "hi"},
            "nothing at 'txt' (output); write txt? if it may be left out; did you mean 'text'?",
        ),
        ({"output": "a.text"}, {"a": [{"text": "hi"}]}, "a list of 1 is there, so write [0] or [-1]"),
        (
            {"output": "text", "tool_calls": {"path": "steps", "name": "tools"}},
            {"text": "hi", "steps": [{"tool": "x"}]},
            "nothing at 'tools' (tool_calls.name); write tools? if it may be left out; did you mean 'tool'?",
        ),
        ({"output": "text"}, [], "an empty list is there"),
    ],
)
def test_a_path_that_leads_nowhere_names_what_is_there(told: dict[str, Any], body: Any, message: str) -> None:
    answer, _ = says(ok(body))
    error = served(answer, [case("a")], {"response": told})["a"].error
    assert error is not None
    assert message in error.message


def sse(*events: Any) -> bytes:
    text = "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events)
    return response(text.encode(), kind="text/event-stream")


def test_a_stream_of_a_known_dialect_needs_no_configuration() -> None:
    answer, _ = says(
        sse(
            {"type": "RUN_STARTED"},
            {"type": "TOOL_CALL_START", "toolCallId": "1", "toolCallName": "search"},
            {"type": "TOOL_CALL_RESULT", "toolCallId": "1", "content": "found"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hello"},
            {"type": "RUN_FINISHED"},
        )
    )
    invocation = served(answer, [case("a")])["a"].invocations[0]
    assert (invocation.text, [c.result for c in invocation.tool_calls]) == ("hello", ["found"])


def test_a_stream_that_breaks_off_is_a_failure() -> None:
    answer, _ = says(sse({"type": "RUN_STARTED"}, {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "hel"}))
    error = served(answer, [case("a")])["a"].error
    assert error is not None
    assert error.kind is ErrorKind.PROTOCOL
    assert "the stream broke off" in error.message


def test_events_of_a_dialect_of_its_own() -> None:
    events = {
        "output": "d.text",
        "tool_calls": {"path": "d.steps", "name": "tool"},
        "usage": "u",
        "error": "e",
        "done": "end",
    }
    http = {"response": {"events": events}}
    whole = [
        {"d": {"text": "hel"}},
        {"d": {"steps": [{"tool": "t"}]}},
        {"d": {"text": "lo"}},
        {"u": {"input_tokens": 3}},
        "end",
    ]
    answer, _ = says(sse(*whole), sse(*whole[:-1]), sse({"e": "no model"}), sse("end"))
    trials = [served(answer, [case("a")], http)["a"] for _ in range(4)]
    invocation = trials[0].invocations[0]
    assert (invocation.text, invocation.tool_calls[0].name) == ("hello", "t")
    assert invocation.usage is not None
    assert invocation.usage.input_tokens == 3
    errors = [trial.error.message if trial.error else "" for trial in trials[1:]]
    assert "the stream broke off: 'end' is missing" in errors[0]
    assert "reports an error: no model" in errors[1]
    assert "no event of the stream has anything at 'd.text'" in errors[2]


def test_the_last_event_may_be_known_by_what_is_at_its_paths() -> None:
    """Its other data may differ from answer to answer; 1 is not true, and a text is no number."""
    http = {"response": {"events": {"output": "t", "done": {"kind": "end", "ok": True}}}}
    ends = [{"kind": "end", "ok": True, "n": 7}, {"kind": "end", "ok": 1}, {"kind": "end"}, {"ok": True}]
    answer, _ = says(*(sse({"t": "hello"}, end) for end in ends))
    whole, *broken = [served(answer, [case("a")], http)["a"] for _ in ends]
    assert whole.invocations[0].text == "hello"
    for trial in broken:
        assert trial.error is not None
        assert "the stream broke off: " in trial.error.message


def test_lines_of_json_and_chunks_of_a_chat() -> None:
    lines = [
        {"choices": [{"delta": {"content": "hel"}}]},
        {"choices": [{"delta": {"content": "lo"}, "finish_reason": "stop"}]},
    ]
    raw = "\n".join(map(json.dumps, lines)).encode()
    answer, _ = says(response(raw, kind="application/x-ndjson"))
    assert served(answer, [case("a")])["a"].invocations[0].text == "hello"


# --- sessions ---


def test_cookies_belong_to_one_trial_and_no_other() -> None:
    """64 conversations at once: each gets back the cookie that it was given, whatever connection it comes over."""
    given = Counter[str]()
    wrong: list[Any] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, headers, body = await read_request(reader)
            asked = json.loads(body)
            session, cookie = asked["session_id"], headers.get("cookie")
            given[session] += 1
            expected = None if asked["turn"] == 0 else f"sid={session}; lang=en"
            if cookie != expected:
                wrong.append((cookie, expected))
            await asyncio.sleep(0.001)
            extra = f"Set-Cookie: sid={session}; Path=/; HttpOnly\r\nSet-Cookie: lang=en\r\n"
            extra += "Set-Cookie: other=1; Domain=example.com\r\nSet-Cookie: tls=1; Secure\r\n"
            writer.write(response(json.dumps({"output": session}).encode(), extra=extra))

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            options = {"http": f"http://127.0.0.1:{port}/ask", "concurrency": 64}
            return await drive(options, [case(f"c{n}", "a", "b", "c") for n in range(128)], Path(), environment={})

    trials = asyncio.run(main())
    assert not wrong
    assert len(given) == 128
    assert all(trial.error is None and len(trial.invocations) == 3 for trial in trials)


def test_a_session_by_the_id_that_an_answer_gives() -> None:
    answer, asked = says(ok({"text": "a", "meta": {"thread": "T-9"}}))
    http = {
        "request": {"q": "{{message}}", "thread": "{{session_id}}"},
        "response": {"output": "text", "session_id": "meta.thread"},
    }
    served(answer, [case("c", "one", "two")], http)
    assert asked[1]["body"] == {"q": "two", "thread": "T-9"}
    assert asked[0]["body"]["thread"] != "T-9"


def test_requests_before_the_first_turn_and_after_the_last() -> None:
    answer, asked = says(ok({"id": "s/1"}), ok({"output": "hi"}), ok({"output": "ho"}), response(b"", "500 Oh"))
    http = {
        "setup": {"url": "/sessions", "request": {"user": "{{metadata.user}}"}, "response": {"session_id": "id"}},
        "teardown": {"url": "/sessions/{{session_id}}", "method": "DELETE"},
    }
    trial = served(answer, [case("c", "one", "two", metadata={"user": "eve"})], http)["c"]
    assert trial.error is None, "what ends a session decides nothing"
    assert [call["line"].rpartition(" ")[0] for call in asked] == [
        "POST /sessions",
        "POST /ask",
        "POST /ask",
        "DELETE /sessions/s%2F1",
    ]
    assert asked[0]["body"] == {"user": "eve"}
    assert asked[2]["body"]["session_id"] == "s/1"


def test_a_setup_that_fails_is_the_trial_s_failure_and_one_line() -> None:
    answer, _ = says(ok({"name": "x"}))
    http = {"setup": {"url": "/sessions", "response": {"session_id": "id"}}}
    error = served(answer, [case("c")], http)["c"].error
    assert error is not None
    assert "nothing at 'id' (session_id)" in error.message
    assert "known: name" in error.message


@pytest.mark.parametrize("given", ["x" * 5_000, 10**2_000, "..", ".", "", True, None, ["a"]])
def test_a_session_id_that_is_none_is_the_trial_s_failure(given: Any) -> None:
    """It would go into addresses: ``..`` would lead the request that ends the session elsewhere."""
    answer, asked = says(ok({"id": given}), ok({"output": "hi"}), ok({}))
    http = {
        "setup": {"url": "/sessions", "response": {"session_id": "id"}},
        "teardown": {"url": "/sessions/{{session_id}}", "method": "DELETE"},
    }
    error = served(answer, [case("c")], http)["c"].error
    assert error is not None
    assert "session id" in error.message or "number out of range" in error.message, error.message
    assert len(error.message) < 300
    assert not any("DELETE / " in call["line"] or "/sessions/.." in call["line"] for call in asked)


def test_a_missing_key_is_named() -> None:
    answer, _ = says(response(b"no", "401 Unauthorized"))
    error = served(answer, [case("c")])["c"].error
    assert error is not None
    assert "is its key set? headers: {Authorization: Bearer ${NAME}}" in error.message


@pytest.mark.parametrize(
    ("http", "message"),
    [
        ({"setup": {"url": "/s", "request": "{{sesion_id}}"}}, "unknown field {{sesion_id}}"),
        ({"response": {"output": "a", "tool_calls": {"path": "x[", "name": "n"}}}, "is not a path"),
        ({"response": {"tool_calls": "x"}}, "name the path of either output or messages"),
        ({"response": {"events": {"text": "a"}}}, "output"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(http: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("{", r"\{").replace("}", r"\}")):
        parse_options({"http": {"url": "http://127.0.0.1:1/", **http}})


HEAD = "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{framing}\r\n"
EVENTS = 'data: {"d": "hel"}\n\ndata: {"d": "lo"}\n\n'
PIECES = ({"delta": {"content": "hel"}}, {"delta": {"content": "lo"}, "finish_reason": "stop"})
CHAT = "".join(f"data: {json.dumps({'choices': [piece]})}\n\n" for piece in PIECES)


def closing(
    kind: str, body: str, framing: str = "", http: dict[str, Any] | None = None, *, proxy: bool = False
) -> Trial:
    """The trial whose answer is ended by closing the connection."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write((HEAD.format(kind=kind, framing=framing) + body).encode())
        await writer.drain()
        writer.close()

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            url = "http://agent.invalid/" if proxy else f"http://127.0.0.1:{port}/"
            environment = {"HTTP_PROXY": f"http://127.0.0.1:{port}"} if proxy else {}
            agent = {"http": {"url": url, **(http or {})}, "retries": 0}
            return await drive(agent, [case("a")], Path(), environment=environment)

    (trial,) = asyncio.run(main())
    return trial


def chunks(text: str, end: str = "0\r\n\r\n") -> str:
    return f"{len(text):x}\r\n{text}\r\n{end}"


D = {"response": {"events": {"output": "d"}}}
DONE = {"response": {"events": {"output": "d", "done": "[DONE]"}}}
SSE, TEXT = "text/event-stream", "text/plain"
CHUNKED = "Transfer-Encoding: chunked\r\n"


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize(
    ("kind", "body", "framing", "http"),
    [
        (SSE, chunks(EVENTS), CHUNKED, D),
        (SSE, EVENTS, f"Content-Length: {len(EVENTS)}\r\n", D),
        (SSE, EVENTS + "data: [DONE]\n\n", "", DONE),
        (SSE, CHAT, "", {}),
        ("application/json", '{"output": "hello"}', "", {}),
    ],
    ids=["chunks", "length", "done", "dialect", "json"],
)
def test_answers_that_say_where_they_end(
    kind: str, body: str, framing: str, http: dict[str, Any], *, proxy: bool
) -> None:
    trial = closing(kind, body, framing, http, proxy=proxy)
    assert trial.error is None, trial.error
    assert trial.invocations[0].text == "hello"


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize(
    ("kind", "body", "framing", "http"),
    [
        (SSE, chunks(EVENTS, ""), CHUNKED, D),
        (SSE, EVENTS, f"Content-Length: {len(EVENTS) + 1}\r\n", D),
        (SSE, EVENTS, "", D),
        (SSE, "data: hel\n\n", "", {}),
        (SSE, 'event: values\ndata: {"output": "hel"}\n\n', "", {}),
        (SSE, 'data: {"author": "a", "content": {"parts": [{"text": "hel"}]}}\n\n', "", {}),
        (TEXT, "hel", "", {}),
    ],
    ids=["chunks", "length", "events", "plain events", "values", "adk", "text"],
)
def test_half_an_answer_is_none(kind: str, body: str, framing: str, http: dict[str, Any], *, proxy: bool) -> None:
    """What only the closing of the connection ends may be half of it, whatever the reason: nobody can tell."""
    trial = closing(kind, body, framing, http, proxy=proxy)
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.PROTOCOL
    if not framing:
        assert "name the last event under http.response.events.done" in trial.error.message


@pytest.mark.parametrize(
    "last",
    [
        'data: {"error": "boom"}',
        'event: error\ndata: {"message": "boom"}',
        "event: error\ndata: boom",
        "event: failed\ndata: boom",
        'data: {"type": "run_exception", "message": "boom"}',
    ],
)
def test_an_error_in_events_of_a_dialect_of_its_own_needs_no_path(last: str) -> None:
    """Text before the error is kept, for a forbidden call, but is no answer."""
    before = 'data: {"text": "Half", "call": {"name": "wipe", "args": {}}}'
    answer, _ = says(response(f"{before}\n\n{last}\n\n".encode(), kind="text/event-stream"))
    paths = {"events": {"output": "text", "tool_calls": "call"}}
    trial = served(answer, [case("a")], {"response": paths}, retries=0)["a"]
    assert trial.error is not None
    assert (trial.error.kind, trial.error.message) == (ErrorKind.CRASH, "the agent reports an error: boom")
    assert [call.name for call in trial.invocations[0].tool_calls] == ["wipe"]


@pytest.mark.parametrize(
    "page",
    [
        "<!-- login --><!DOCTYPE html><html></html>",
        '<?xml version="1.0"?>\n<html></html>',
        "<html></html>",
        "\ufeff<html></html>",
    ],
)
def test_a_web_page_is_no_answer_whatever_its_server_calls_it(page: str) -> None:
    answer, _ = says(response(page.encode(), kind="text/plain"))
    error = served(answer, [case("a")])["a"].error
    assert error is not None
    assert "a web page" in error.message


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/event-stream", "data: Half\n\nevent: exception\ndata: boom\n\n"),
        ("text/event-stream", 'data: Half\n\ndata: {"error": "boom"}\n\n'),
        ("application/x-ndjson", '"Half"\n{"error": "boom"}\n'),
        ("text/plain", 'Half\n{"error": "boom"}\n'),
        ("text/plain", 'Half{"error": "boom"}'),
    ],
)
def test_a_text_that_ends_with_an_error_is_no_answer(kind: str, body: str) -> None:
    answer, _ = says(response(body.encode(), kind=kind))
    error = served(answer, [case("a")], retries=0)["a"].error
    assert error is not None
    assert (error.kind, error.message) == (ErrorKind.CRASH, "the agent reports an error: boom")


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("text/event-stream", "data: Grüße\n\n".encode("latin-1"), "is not UTF-8"),
        ("text/plain", "hello".encode("utf-16-le"), "it has null characters, as UTF-16 does"),
        ("text/plain", b'<meta http-equiv="refresh" content="0; url=/login">', "is a web page"),
        ("application/json", b'{"output": "hi"} bye', "answer with the JSON alone"),
    ],
)
def test_bytes_of_another_form_are_no_answer(kind: str, body: bytes, said: str) -> None:
    answer, _ = says(response(body, kind=kind))
    error = served(answer, [case("a")], retries=0)["a"].error
    assert error is not None
    assert error.kind is ErrorKind.PROTOCOL
    assert said in error.message
