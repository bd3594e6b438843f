"""The receiver over real connections: what it takes, what it refuses, and how long it waits."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from gate.errors import MeasureError
from gate.traces import conversation_of, receiver
from gate.traces.receiver import Receiver
from tests.unit.traces.spans import agent, chat, log, request, said, text

WROTE = [said("assistant", text("Done."))]
JSON = {"Content-Type": "application/json"}


def post(
    url: str, body: bytes, headers: dict[str, str] = JSON, method: str = "POST", path: str = "/v1/traces"
) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    try:
        connection.request(method, parts.path + path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


async def sent(*args: Any, **named: Any) -> tuple[int, bytes]:
    return await asyncio.to_thread(post, *args, **named)


def received(work: Callable[[Receiver], Awaitable[None]], port: int = 0) -> None:
    async def run() -> None:
        async with Receiver(port) as opened:
            await work(opened)

    asyncio.run(run())


def spans(trace: str, parent: str = "") -> dict[str, Any]:
    root = agent(1, trace=trace)
    root["parentSpanId"] = parent
    return request(root, chat(2, wrote=WROTE, trace=trace))


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_spans_of_an_expected_turn_are_kept(encoding: str) -> None:
    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        assert turn.traceparent == f"00-{turn.trace_id}-{turn.parent_id}-01"
        body = json.dumps(spans(turn.trace_id, turn.parent_id)).encode()
        if encoding == "gzip":
            body = gzip.compress(body)
        assert await sent(opened.endpoint, body, JSON | {"Content-Encoding": encoding}) == (200, b"{}")
        conversation = conversation_of(await opened.collect(turn, 30))
        assert conversation.turns[0].invocation.text == "Done."
        assert (opened.seen, opened.late, opened.unknown) == (1, 0, 0)

    received(work)


def test_protobuf_is_taken() -> None:
    import base64

    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        document = spans(turn.trace_id)
        for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for key in ("traceId", "spanId", "parentSpanId"):
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
        body = ParseDict(document, ExportTraceServiceRequest()).SerializeToString()
        assert await sent(opened.endpoint, body, {"Content-Type": "application/x-protobuf"}) == (200, b"")
        assert len(await opened.collect(turn, 30)) == 2

    received(work)


def test_what_is_sent_to_a_turns_own_endpoint_is_of_that_turn() -> None:
    """A program that does not continue the trace is known by the address that it was given."""

    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        assert (await sent(opened.endpoint_of(turn), json.dumps(spans("ab" * 16)).encode()))[0] == 200
        assert len(await opened.collect(turn, 30)) == 2
        assert opened.unknown == 0

    received(work)


def test_log_records_are_joined() -> None:
    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        body = json.dumps(log(2, "gen_ai.choice", trace=turn.trace_id, body={"content": "From a log."})).encode()
        assert (await sent(opened.endpoint, body, path="/v1/logs"))[0] == 200
        bare = request(agent(1, trace=turn.trace_id), chat(2, trace=turn.trace_id))
        await sent(opened.endpoint, json.dumps(bare).encode())
        conversation = conversation_of(await opened.collect(turn, 30))
        assert conversation.turns[0].invocation.text == "From a log."

    received(work)


def test_spans_of_other_traces_are_counted_and_dropped() -> None:
    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        await sent(opened.endpoint, json.dumps(spans("ab" * 16)).encode())
        assert await opened.collect(turn, 0.01) == []
        assert (opened.unknown, opened.late, opened.seen) == (2, 1, 0)

    received(work)


def test_late_spans_are_waited_for() -> None:
    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        waiting = asyncio.create_task(opened.collect(turn, 30))
        children = request(chat(2, wrote=WROTE, trace=turn.trace_id))
        await sent(opened.endpoint, json.dumps(children).encode())
        assert not waiting.done()
        await sent(opened.endpoint, json.dumps(request(agent(1, trace=turn.trace_id))).encode())
        assert len(await waiting) == 2

    received(work)


@pytest.mark.parametrize(
    ("body", "headers", "method", "path", "status"),
    [
        (b"{}", JSON, "POST", "/v1/other", 404),
        (b"", {}, "GET", "/v1/traces", 405),
        (b"{}", {"Content-Type": "text/plain"}, "POST", "/v1/traces", 415),
        (b"no gzip", JSON | {"Content-Encoding": "gzip"}, "POST", "/v1/traces", 400),
        (b"{}", JSON | {"Content-Encoding": "br"}, "POST", "/v1/traces", 400),
        (b"{}", JSON, "POST", "/v1/metrics", 200),
        (b"no json", JSON, "POST", "/v1/traces", 200),
    ],
)
def test_other_requests_are_answered(body: bytes, headers: dict[str, str], method: str, path: str, status: int) -> None:
    async def work(opened: Receiver) -> None:
        assert (await sent(opened.endpoint, body, headers, method, path))[0] == status

    received(work)


def test_the_address_cannot_be_guessed() -> None:
    async def work(opened: Receiver) -> None:
        parts = urlsplit(opened.endpoint)
        assert parts.hostname == "127.0.0.1"
        assert (await sent(f"http://127.0.0.1:{parts.port}", b"{}"))[0] == 404

    received(work)


def test_bodies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "MAX_BODY_BYTES", 1_000)

    async def work(opened: Receiver) -> None:
        assert (await sent(opened.endpoint, b" " * 1_001))[0] == 413
        bomb = gzip.compress(b" " * 1_000_000)
        assert (await sent(opened.endpoint, bomb, JSON | {"Content-Encoding": "gzip"}))[0] in (400, 413)

    received(work)


def test_what_is_kept_of_a_turn_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "MAX_TURN_BYTES", 100)

    async def work(opened: Receiver) -> None:
        turn = opened.expect()
        for _ in range(3):
            await sent(opened.endpoint, json.dumps(spans(turn.trace_id)).encode())
        assert len(await opened.collect(turn, 30)) == 2
        assert opened.left_out == 4

    received(work)


def test_what_is_not_http_is_hung_up_on() -> None:
    def talk(port: int) -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(b"\x16\x03\x01 nonsense\r\n\r\n" + b"x" * 100_000)
            try:
                return connection.recv(100)
            except OSError:
                return b""

    async def work(opened: Receiver) -> None:
        port = urlsplit(opened.endpoint).port
        assert port is not None
        assert await asyncio.to_thread(talk, port) == b""
        assert (await sent(opened.endpoint, b"{}"))[0] == 200

    received(work)


def test_a_port_that_is_taken_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(MeasureError, match="cannot be opened"):
        received(lambda _: asyncio.sleep(0), port=taken.getsockname()[1])


@pytest.mark.slow
def test_a_call_that_stands_alone_is_not_taken_for_the_whole_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an agent's span nothing says which call was the last: what comes shortly after is still of the turn."""
    monkeypatch.setattr(receiver, "QUIET_SECONDS", 3.0)  # a busy machine may deliver late

    async def work(opened: Receiver) -> None:
        turn = opened.expect()

        async def deliver() -> None:
            await sent(
                opened.endpoint, json.dumps(request(chat(2, parent=0, wrote=WROTE, trace=turn.trace_id))).encode()
            )
            await asyncio.sleep(0.1)
            later = chat(3, parent=0, wrote=WROTE, trace=turn.trace_id)
            await sent(opened.endpoint, json.dumps(request(later)).encode())

        delivery = asyncio.create_task(deliver())
        assert len(await opened.collect(turn, 30)) == 2
        await delivery
        assert opened.late == 0

    received(work)
