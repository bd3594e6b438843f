"""The A2A connector against a loopback server that does what real ones do rarely; real ones are in tests/connectors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gate.agents.a2a import interface_of
from gate.agents.base import parse_options
from gate.errors import ConfigError
from gate.formats.messages import FormatError
from gate.model import ErrorKind, Trial
from tests.integration.agents.driving import case, drive, read_request, response, serving

Answer = Callable[[str, dict[str, Any]], Any]


def task(state: str, *texts: str, **more: Any) -> dict[str, Any]:
    artifacts = [{"artifactId": "a", "parts": [{"text": text} for text in texts]}]
    return {"task": {"id": "t/1", "contextId": "c", "status": {"state": state}, "artifacts": artifacts, **more}}


def asked_of(
    answer: Answer, *turns: str, card: dict[str, Any] | None = None, **options: Any
) -> tuple[Trial, list[tuple[str, dict[str, str], Any]]]:
    """The trial, and what was asked. ``answer`` gives a result, bytes of a whole response, or an error."""
    asked: list[tuple[str, dict[str, str], Any]] = []

    async def main() -> list[Trial]:
        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                line, headers, raw = await read_request(reader)
                path = line.split()[1]
                body = json.loads(raw) if raw else {}
                asked.append((path, headers, body))
                if path.endswith("card.json"):
                    told: Any = {"supportedInterfaces": [rpc(f"http://localhost:{port}/rpc")], **(card or {})}
                else:
                    told = answer(str(body.get("method") or path), body.get("params") or body)
                    told = {"jsonrpc": "2.0", "id": body.get("id"), "result": told} if "method" in body else told
                if isinstance(told, dict) and isinstance(told.get("result"), bytes):
                    writer.write(told["result"])
                    writer.close()
                    return
                writer.write(response(json.dumps(told).encode()))
                await writer.drain()

        async with serving(handler) as port:
            limits = {"retries": 0, "timeout": options.pop("timeout", "60s")}
            agent = {"a2a": {"url": f"http://127.0.0.1:{port}", **options}, **limits}
            return await drive(agent, [case("a", *turns, state={"plan": "gold"})], Path(), environment={})

    (trial,) = asyncio.run(main())
    return trial, asked


def rpc(url: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}


def test_a_task_that_goes_on_is_asked_for() -> None:
    states = ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING", "TASK_STATE_COMPLETED"]

    def answer(method: str, params: dict[str, Any]) -> Any:
        told = task(states.pop(0), "Done.")
        return told if method == "SendMessage" else told["task"]

    trial, asked = asked_of(answer, "go", metadata={"plan": "{{state.plan}}"})
    assert trial.error is None
    assert trial.invocations[0].text == "Done."
    assert [body.get("method") for _, _, body in asked] == [None, "SendMessage", "GetTask", "GetTask"]
    assert asked[1][1]["a2a-version"] == "1.0"
    assert asked[1][2]["params"]["metadata"] == {"plan": "gold"}
    assert asked[2][2]["params"] == {"id": "t/1"}


def test_what_a_task_did_before_it_could_not_be_asked_for_is_kept() -> None:
    def answer(method: str, params: dict[str, Any]) -> Any:
        if method != "SendMessage":
            return b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
        return task("TASK_STATE_WORKING", "Dropping it.", metadata={"calls": [{"name": "drop", "arguments": {}}]})

    trial, _ = asked_of(answer, "go", tool_calls="metadata.calls")
    assert trial.error is not None
    assert not trial.failed
    assert [[call.name for call in turn.tool_calls] for turn in trial.invocations] == [["drop"]]


def test_a_task_over_http_is_asked_for_at_its_own_address() -> None:
    def answer(path: str, body: dict[str, Any]) -> Any:
        return task("TASK_STATE_WORKING") if path.endswith(":send") else task("TASK_STATE_COMPLETED", "Done.")["task"]

    interface = {"url": "/rest", "protocolBinding": "HTTP+JSON", "tenant": "me"}
    trial, asked = asked_of(answer, "go", card={"supportedInterfaces": [interface]})
    assert trial.error is None
    assert [path for path, *_ in asked][1:] == ["/rest/me/message:send", "/rest/me/tasks/t%2F1"]


def test_a_server_that_names_no_context_cannot_go_on() -> None:
    def answer(method: str, params: dict[str, Any]) -> Any:
        return {"message": {"role": "ROLE_AGENT", "parts": [{"text": params["message"].get("contextId", "none")}]}}

    trial, _ = asked_of(answer, "one", "two")
    assert trial.error is not None
    assert "agent.a2a.context: gate names one from the start" in trial.error.message
    trial, _ = asked_of(answer, "one", "two", context="gate")
    assert trial.error is None
    assert trial.invocations[0].text == trial.invocations[1].text != "none"


EVENT = json.dumps({"jsonrpc": "2.0", "id": "ID", "result": task("TASK_STATE_WORKING", "It is")})


@pytest.mark.parametrize("end", ["", "data: {", "data: not json\n\n"])
def test_half_a_stream_is_no_answer(end: str) -> None:
    def answer(method: str, params: dict[str, Any]) -> bytes:
        text = f"data: {EVENT.replace('ID', params['message']['messageId'])}\n\n{end}"
        return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{text}".encode()

    trial, asked = asked_of(answer, "go", card={"capabilities": {"streaming": True}})
    assert asked[1][2]["method"] == "SendStreamingMessage"
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.PROTOCOL
    assert trial.failed


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (task("TASK_STATE_DREAMING"), "a state that is not known: dreaming"),
        ({"task": {"id": "t"}}, "a result has no status"),
        ({"other": 1}, "neither a message nor a task: it has other"),
    ],
)
def test_answers_that_are_none(told: Any, message: str) -> None:
    trial, _ = asked_of(lambda method, params: told, "go")
    assert trial.error is not None
    assert message in trial.error.message


REPLY = {"message": {"contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": "Hi."}]}}
UPDATE = {"taskId": "t/1", "contextId": "c", "status": {"state": "TASK_STATE_FAILED"}}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([task("TASK_STATE_WORKING"), {"statusUpdate": {**UPDATE, "taskId": "t/2"}}], "different taskId"),
        ([task("TASK_STATE_WORKING"), {"message": {**REPLY["message"], "contextId": "d"}}], "different contextId"),
        ([REPLY, {"statusUpdate": UPDATE}], "the task failed"),
        ([task("TASK_STATE_WORKING"), REPLY], "the task is still working"),
    ],
)
def test_what_does_not_add_up_to_an_answer(results: list[Any], message: str) -> None:
    def answer(method: str, params: dict[str, Any]) -> bytes:
        told = [{"jsonrpc": "2.0", "id": params["message"]["messageId"], "result": result} for result in results]
        text = "".join(f"data: {json.dumps(one)}\n\n" for one in told)
        return f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{text}".encode()

    trial, _ = asked_of(answer, "go", card={"capabilities": {"streaming": True}})
    assert trial.error is not None
    assert message in trial.error.message


def test_a_later_answer_is_of_the_same_conversation_and_a_task_that_is_asked_for_the_same() -> None:
    def other_context(method: str, params: dict[str, Any]) -> Any:
        return {"message": {**REPLY["message"], "contextId": params["message"].get("contextId", "c") + "c"}}

    trial, _ = asked_of(other_context, "one", "two")
    assert trial.error is not None
    assert "different contextId" in trial.error.message

    def other_task(method: str, params: dict[str, Any]) -> Any:
        return (
            task("TASK_STATE_WORKING") if "message" in params else {**task("TASK_STATE_COMPLETED")["task"], "id": "u"}
        )

    trial, _ = asked_of(other_task, "one")
    assert trial.error is not None
    assert "different taskId" in trial.error.message


def test_keys_go_to_no_other_server_than_the_configured_one() -> None:
    """Whoever writes the card would else be sent the headers."""
    others = ("http://127.0.0.1:1/rpc", "https://localhost/rpc", "http://agents.example.org/rpc")
    for url in (*others, "//127.0.0.1:1/rpc", "/\t/agents.example.org/rpc", " //agents.example.org/rpc"):
        trial, asked = asked_of(lambda method, params: None, "go", card={"supportedInterfaces": [rpc(url)]})
        assert len(asked) == 1
        assert trial.error is not None
        assert "is another server than agent.a2a.url" in trial.error.message


def test_the_interface_of_a_card() -> None:
    old = {"protocolVersion": "0.3.0", "url": "/old", "preferredTransport": "JSONRPC"}
    assert interface_of(old).is_old
    newer = {
        **old,
        "additionalInterfaces": [{"url": "/grpc", "transport": "GRPC"}],
        "supportedInterfaces": [rpc("/new")],
    }
    assert interface_of(newer) == ("/new", True, False, "", False)
    for card in (None, [], {}, {"url": "/x", "preferredTransport": "GRPC"}, {"supportedInterfaces": 7}):
        with pytest.raises(FormatError):
            interface_of(card)


@pytest.mark.parametrize("endpoint", ["rpc", "http://127.0.0.1/rpc", "//other/rpc"])
def test_an_endpoint_is_a_path_on_the_server(endpoint: str) -> None:
    with pytest.raises(ConfigError, match="write a path"):
        parse_options({"a2a": {"url": "http://127.0.0.1", "endpoint": endpoint}})


def test_a_task_that_never_ends_is_a_time_out() -> None:
    def answer(method: str, params: dict[str, Any]) -> Any:
        told = task("TASK_STATE_WORKING")
        return told if method == "SendMessage" else told["task"]

    trial, asked = asked_of(answer, "go", timeout="500ms")
    assert trial.error is not None
    assert trial.error.kind is ErrorKind.TIMEOUT
    assert [body.get("method") for _, _, body in asked].count("SendMessage") == 1
