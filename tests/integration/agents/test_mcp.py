"""The MCP connector against servers that do what real ones do rarely; real ones are in tests/connectors."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gate.agents.base import AgentFailure, parse_options
from gate.agents.mcp import arguments_for, body_of, text_of
from gate.errors import ConfigError
from gate.model import ErrorKind, Trial
from tests.integration.agents.driving import case, drive, gone, read_request, response, serving

GREETING = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
SCHEMA = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
TOOLS = {"tools": [{"name": "ask", "inputSchema": SCHEMA}]}


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


def over_http(
    answers: dict[str, Any], *turns: str, reply: Callable[[Any], bytes] | None = None, **options: Any
) -> tuple[Trial, list[tuple[str, dict[str, str], Any]]]:
    """The trial, and the messages that the server got; ``reply`` writes the answer to a call in its own way."""
    asked: list[tuple[str, dict[str, str], Any]] = []
    told = {"initialize": GREETING, "tools/list": TOOLS, **answers}

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers, raw = await read_request(reader)
            body = json.loads(raw) if raw else {}
            asked.append((line.split()[0], headers, body))
            method = body.get("method")
            if "id" not in body:
                writer.write(response(b"", "202 Accepted"))
            elif method == "tools/call" and reply is not None:
                writer.write(reply(body))
                writer.close()
                return
            else:
                found = told[method]
                found = found.pop(0) if isinstance(found, list) else found
                answer = found if "error" in found else {"result": found}
                data = json.dumps({"jsonrpc": "2.0", "id": body["id"], **answer}).encode()
                head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\n"
                writer.write(head + b"Content-Length: %d\r\n\r\n%b" % (len(data), data))

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            agent = {"mcp": {"url": f"http://127.0.0.1:{port}/mcp", "tool": "ask", **options}, "retries": 0}
            return await drive(agent, [case("a", *turns)], Path(), environment={})

    (trial,) = asyncio.run(main())
    return trial, asked


def test_a_session_over_http() -> None:
    answers = {"tools/call": [result("One."), result("Two.")]}
    trial, asked = over_http(answers, "one", "two")
    assert trial.error is None
    assert [invocation.text for invocation in trial.invocations] == ["One.", "Two."]
    methods = [body.get("method", method) for method, _, body in asked]
    assert methods == ["initialize", "notifications/initialized", "tools/list", "tools/call", "tools/call", "DELETE"]
    assert "mcp-session-id" not in asked[0][1]
    assert {headers["mcp-session-id"] for _, headers, _ in asked[1:]} == {"s1"}
    assert {headers["mcp-protocol-version"] for _, headers, _ in asked[1:]} == {"2025-06-18"}
    assert asked[3][2]["params"] == {"name": "ask", "arguments": {"question": "one"}}


NO_GREETING = {"error": {"code": -32_022, "message": "Unsupported protocol version"}}
VERSIONS = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}


def test_a_server_that_refuses_a_session_is_asked_without_one() -> None:
    """Each message then says itself what it speaks, in its envelope and in its headers."""
    schema = {"properties": {"question": {}}}
    tools = {"tools": [{"name": "größe", "inputSchema": schema}]}
    calls = [result("One.", resultType="complete"), result("Two.")]
    answers = {"initialize": NO_GREETING, "server/discover": VERSIONS, "tools/list": tools, "tools/call": calls}
    trial, asked = over_http(answers, "one", "two", tool="größe")
    assert trial.error is None
    methods = [body.get("method", method) for method, _, body in asked]
    assert methods == ["initialize", "server/discover", "tools/list", "tools/call", "tools/call"]
    for _, headers, body in asked[1:]:
        meta = body["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == headers["mcp-protocol-version"] == "2026-07-28"
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {}
        assert (headers["mcp-method"], "mcp-session-id" in headers) == (body["method"], False)
    assert asked[3][1]["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="


@pytest.mark.parametrize(
    ("answers", "options", "message"),
    [
        ({"initialize": NO_GREETING, "server/discover": NO_GREETING}, {}, "Unsupported protocol version (-32022)"),
        ({"initialize": NO_GREETING, "server/discover": {"supportedVersions": ["2027-01-01"]}}, {},
         "Unsupported protocol version (-32022)"),
        ({"initialize": NO_GREETING, "server/discover": VERSIONS, "tools/call": {"resultType": "input_required"}}, {},
         "the call is not complete (input_required): nobody gives what it asks for"),
    ],
    ids=["unknown", "newer", "asks"],
)  # fmt: skip
def test_what_a_server_without_sessions_may_say(answers: dict[str, Any], options: Any, message: str) -> None:
    trial, _ = over_http(answers, "one", **options)
    assert trial.error is not None
    assert trial.error.message.endswith(message)


def test_the_tool_names_the_conversation() -> None:
    answers = {"tools/call": [result("x", structuredContent={"text": f"{n}.", "thread": "t7"}) for n in (1, 2)]}
    arguments = {"question": "{{message}}", "thread": "{{session_id}}"}
    trial, asked = over_http(
        answers, "one", "two", arguments=arguments, response={"output": "text", "session_id": "thread"}
    )
    assert trial.error is None
    calls = [body["params"]["arguments"] for _, _, body in asked if body.get("method") == "tools/call"]
    assert calls[0]["thread"] not in ("", "t7")
    assert calls[1] == {"question": "two", "thread": "t7"}


@pytest.mark.parametrize(
    "body", ["", 'data: {"jsonrpc": "2.0", "method": "notifications/progress"}\n\n', 'data: {"jsonrpc"']
)
def test_a_stream_without_the_result_is_no_answer(body: str) -> None:
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    trial, asked = over_http({}, "one", reply=lambda _: f"{head}{body}".encode())
    assert trial.error is not None
    assert "the stream broke off" in trial.error.message
    assert [body.get("method") for _, _, body in asked].count("tools/call") == 1, "nothing is sent again"


def said(*messages: dict[str, Any]) -> bytes:
    """Messages as events of a stream; one alone as JSON."""
    if len(messages) == 1:
        return response(json.dumps(messages[0]).encode())
    text = "".join(f"data: {json.dumps(one)}\n\n" for one in messages)
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + text.encode()


@pytest.mark.parametrize("asked", ["tools/call-0", None, 1])
def test_a_response_to_another_request_is_no_answer(asked: Any) -> None:
    trial, _ = over_http({}, "one", reply=lambda _: said({"jsonrpc": "2.0", "id": asked, "result": result("Hi.")}))
    assert trial.error is not None
    assert trial.error.message == "the response answers another request"


def test_where_a_redirect_leads_is_told_without_what_signs_in_there() -> None:
    place = b"Location: http://elsewhere.example/x?sig=hidden\r\n"
    head = b"HTTP/1.1 307 Temporary Redirect\r\n" + place + b"Content-Length: 0\r\n\r\n"
    trial, asked = over_http({}, "one", reply=lambda _: head)
    assert trial.error is not None
    assert "redirects are not followed (to http://elsewhere.example/x)" in trial.error.message
    assert [body.get("method") for _, _, body in asked].count("tools/call") == 1


def test_a_result_that_is_told_twice_is_one_and_two_results_are_none() -> None:
    def reply(body: Any, *texts: str) -> bytes:
        return said(*({"jsonrpc": "2.0", "id": body["id"], "result": result(text)} for text in texts))

    trial, _ = over_http({}, "one", reply=lambda body: reply(body, "Hi.", "Hi."))
    assert trial.error is None
    trial, _ = over_http({}, "one", reply=lambda body: reply(body, "Hi.", "Hello."))
    assert trial.error is not None
    assert "several results of the call, which differ" in trial.error.message


@pytest.mark.parametrize(
    ("answers", "kind", "message"),
    [
        (
            {"initialize": {**GREETING, "protocolVersion": "2031-01-01"}},
            ErrorKind.PROTOCOL,
            "speaks version 2031-01-01",
        ),
        ({"tools/list": {"tools": []}}, ErrorKind.PROTOCOL, "the server has no tool 'ask': it has none"),
        ({"tools/list": {"tools": [{"name": "asks"}]}}, ErrorKind.PROTOCOL, "did you mean 'asks'?"),
        ({"tools/call": result("no stock", isError=True)}, ErrorKind.CRASH, "the tool reports an error: no stock"),
        ({"tools/call": {"error": {"code": -32603, "message": "boom"}}}, ErrorKind.CRASH, "boom (-32603)"),
        ({"tools/call": {"error": {"code": -32602, "message": "bad"}}}, ErrorKind.PROTOCOL, "bad (-32602)"),
        ({"tools/call": result("Error 429: rate limit", isError=True)}, ErrorKind.LIMIT, "rate limit"),
        ({"tools/call": result("")}, ErrorKind.PROTOCOL, "the answer is empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_errors(answers: dict[str, Any], kind: ErrorKind, message: str) -> None:
    trial, _ = over_http(answers, "one")
    assert trial.error is not None
    assert message in trial.error.message
    assert trial.error.kind is kind


def test_calls_of_a_tool_that_failed_are_read_by_their_paths() -> None:
    failed = result("rate limit", isError=True, structuredContent={"steps": [{"tool": "drop"}]})
    paths = {"output": "text", "tool_calls": {"path": "steps", "name": "tool"}}
    trial, _ = over_http({"tools/call": failed}, "one", response=paths)
    assert trial.error is not None
    assert [[call.name for call in turn.tool_calls] for turn in trial.invocations] == [["drop"]]


def test_tools_are_looked_up_page_by_page_and_once() -> None:
    pages = [{"tools": [{"name": "other"}], "nextCursor": "2"}, TOOLS]
    trial, asked = over_http({"tools/list": pages, "tools/call": result("Hi.")}, "one")
    assert trial.error is None
    assert [body["params"] for _, _, body in asked if body.get("method") == "tools/list"] == [{}, {"cursor": "2"}]


SERVER = """
import json, os, sys
print("starting up")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    method = message["method"]
    if method == "initialize":
        told = GREETING
    elif method == "tools/list":
        told = TOOLS
    else:
        said = message["params"]["arguments"]["question"]
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}), flush=True)
        print(json.dumps({"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage"}), flush=True)
        refused = json.loads(sys.stdin.readline())["error"]["code"]
        if said == "die":
            os._exit(7)
        told = {"content": [{"type": "text", "text": f"{said} {refused} {os.getpid()}"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told}), flush=True)
"""


def test_a_process_that_answers_twice_answers_no_later_session(tmp_path: Path) -> None:
    written = 'print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": told}), flush=True)'
    trials = over_stdio(tmp_path, "one", "two", reuse=True, server=SERVER.replace(written, f"{written}\n    {written}"))
    texts = {name: [turn.text.split()[0] for turn in trial.invocations] for name, trial in trials.items()}
    assert texts == {"one": ["one", "again"], "two": ["two", "again"]}


def over_stdio(root: Path, *names: str, server: str = SERVER, **options: Any) -> dict[str, Trial]:
    (root / "server.py").write_text(server.replace("GREETING", repr(GREETING)).replace("TOOLS", repr(TOOLS)))
    mcp = {"command": [sys.executable, "server.py"], "tool": "ask", **options}
    cases = [case(name, name, "again") for name in names]
    trials = asyncio.run(drive({"mcp": mcp, "retries": 0, "concurrency": 1}, cases, root, environment={}))
    return {trial.case_id: trial for trial in trials}


@pytest.mark.parametrize("reuse", [False, True])
def test_a_process_per_trial_or_for_many(tmp_path: Path, *, reuse: bool) -> None:
    """Banners on its output are skipped, and what it asks its client is refused, not left unanswered."""
    trials = over_stdio(tmp_path, "one", "two", reuse=reuse)
    said = [[turn.text.split() for turn in trials[name].invocations] for name in ("one", "two")]
    assert [[words[:2] for words in turns] for turns in said] == [
        [["one", "-32601"], ["again", "-32601"]],
        [["two", "-32601"], ["again", "-32601"]],
    ]
    assert len({words[2] for words in said[0]}) == 1, "a session stays with its process"
    assert (said[0][0][2] == said[1][0][2]) is reuse


def test_a_process_that_ends_fails_its_trial_alone(tmp_path: Path) -> None:
    trials = over_stdio(tmp_path, "one", "die", "two", reuse=True)
    assert trials["die"].error is not None
    assert trials["die"].error.message == "the server exited with status 7: it wrote no error"
    assert trials["one"].error is None
    assert trials["two"].error is None


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        (SCHEMA, {"question": "{{message}}"}),
        ({"properties": {"message": {}, "session_id": {}}}, {"message": "{{message}}", "session_id": "{{session_id}}"}),
        ({"properties": {"text": {}}}, {"text": "{{message}}"}),
        (
            {"properties": {"q": {}, "state": {}, "depth": {}}, "required": ["q"]},
            {"q": "{{message}}", "state": "{{state}}"},
        ),
    ],
)
def test_arguments_by_the_schema(schema: dict[str, Any], arguments: dict[str, str]) -> None:
    assert arguments_for(schema) == arguments


@pytest.mark.parametrize(
    "schema", [None, {}, {"properties": {"a": {}, "b": {}}}, {"properties": {"a": {}}, "required": ["a", "b"]}]
)
def test_arguments_that_are_not_clear(schema: Any) -> None:
    with pytest.raises(AgentFailure, match=r"agent\.mcp\.arguments"):
        arguments_for(schema)


@pytest.mark.parametrize(
    ("told", "body"),
    [
        (result("Hi.", structuredContent={"result": "Hi."}), "Hi."),
        (result('{"output": "x"}', structuredContent={"result": {"output": "x"}}), {"output": "x"}),
        (result('{"output": "x"}'), {"output": "x"}),
        (result("x", structuredContent={"output": "y", "tool_calls": []}), {"output": "y", "tool_calls": []}),
        ({"structuredContent": {"k": 1}}, {"k": 1}),
    ],
)
def test_what_a_tool_returned(told: dict[str, Any], body: Any) -> None:
    assert body_of(told) == body


def test_blocks_as_text() -> None:
    blocks = [
        {"type": "text", "text": "a"},
        {"type": "resource", "resource": {"text": "b"}},
        {"type": "image", "mimeType": "i/p"},
        7,
    ]
    assert text_of(blocks) == "a\nb\n[image i/p]"


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"tool": "ask"}, "set either the server's url or a command"),
        ({"tool": "ask", "url": "http://x", "command": "x"}, "set either the server's url"),
        ({"tool": "ask", "command": "x", "headers": {"A": "b"}}, "pass variables to a process with agent.env"),
        ({"tool": "ask", "url": "http://x", "arguments": {"q": "{{mesage}}"}}, "unknown field {{mesage}}"),
        ({"tool": "ask", "url": "http://x", "response": {"events": {"output": "x"}}}, "unknown key 'events'"),
    ],
)
def test_options_that_cannot_work(told: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("{", r"\{")):
        parse_options({"mcp": told})


def test_a_tool_that_hangs_ends_with_its_process(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        SERVER.replace("GREETING", repr(GREETING))
        .replace("TOOLS", repr(TOOLS))
        .replace("os._exit(7)", "import time; time.sleep(999)")
    )
    mcp = {"command": [sys.executable, str(tmp_path / "server.py")], "tool": "ask"}
    options = {"mcp": mcp, "retries": 0, "timeout": "300ms"}
    (trial,) = asyncio.run(drive(options, [case("a", "die")], tmp_path, environment={}))
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert gone(str(tmp_path / "server.py"))


def test_an_agent_over_stdio_is_of_the_commit_that_is_checked_out() -> None:
    _, started = parse_options({"mcp": {"tool": "ask", "command": "python server.py"}})
    _, served = parse_options({"mcp": {"tool": "ask", "url": "http://127.0.0.1"}})
    assert (started.is_local, served.is_local) == (True, False)
