"""What exporters send over HTTP is on disk before it is answered, and read from there like any file."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from gate.monitor import receive
from gate.monitor.receive import Inbox
from gate.monitor.sampling import is_sampled
from gate.system.http import Client

JSON = {"Content-Type": "application/json"}


def body(*traces: str) -> bytes:
    spans = [{"traceId": trace, "spanId": "1" * 16, "name": "a\nb"} for trace in traces]
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}, indent=1).encode()


def post(inbox: Inbox, *requests: tuple[str, bytes, Mapping[str, str]]) -> list[int]:
    async def all_of_them() -> list[int]:
        async with inbox.receiver(0) as receiver, Client() as client:
            return [
                (await client.request("POST", f"{receiver.endpoint}/{path}", body=data, headers=headers)).status
                for path, data, headers in requests
            ]

    return asyncio.run(all_of_them())


def traces_in(path: Path) -> list[str]:
    lines = path.read_bytes().splitlines()
    return [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] for line in lines]


def test_what_is_received_is_a_line_of_the_sample(tmp_path: Path) -> None:
    names = [f"{number:032x}" for number in range(1, 40)]
    with Inbox(tmp_path / "in.jsonl", 0.3) as inbox:
        zipped = ("v1/traces", gzip.compress(body("a" * 32)), {**JSON, "Content-Encoding": "gzip"})
        answers = post(inbox, zipped, *(("v1/traces", body(name), JSON) for name in names))
        assert set(answers) == {200}
        assert post(inbox, ("v1/metrics", b"{}", JSON), ("v1/other", b"{}", JSON)) == [200, 404]
    wanted = [name for name in ("a" * 32, *names) if is_sampled(name, 0.3)]
    assert traces_in(inbox.path) == wanted


def test_only_who_can_read_its_file_knows_the_address(tmp_path: Path) -> None:
    with Inbox(tmp_path / "m.sqlite.received.jsonl", 1.0) as inbox:
        inbox.receiver(4318)
        first = inbox.endpoint_file.read_text().strip()
        assert inbox.endpoint_file == tmp_path / "m.sqlite.endpoint"
        assert stat.S_IMODE(inbox.endpoint_file.stat().st_mode) == 0o600
        assert re.fullmatch(r"http://127\.0\.0\.1:4318/[0-9a-f]{32}", first)
        inbox.receiver(4319)
        assert inbox.endpoint_file.read_text().strip() == first.replace("4318", "4319"), "exporters know it by heart"

        async def without_token() -> list[int]:
            async with inbox.receiver(0) as receiver, Client() as client:
                base = receiver.endpoint.rpartition("/")[0]
                asked = [f"{base}/v1/traces", f"{base}/{'0' * 32}/v1/traces", f"{base}//v1/traces"]
                return [(await client.request("POST", url, body=body("a" * 32), headers=JSON)).status for url in asked]

        assert asyncio.run(without_token()) == [404, 404, 404]
    assert not inbox.path.read_bytes()


def test_protobuf_is_kept_as_json(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

    span = Span(trace_id=b"\x01" * 16, span_id=b"\x02" * 8, name="agent")
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[span])])])
    kind = {"Content-Type": "application/x-protobuf"}
    with Inbox(tmp_path / "in.jsonl", 1.0) as inbox:
        sent = request.SerializeToString()
        assert post(inbox, ("v1/traces", sent, kind), ("v1/traces", b"\xff\xff garbage", kind)) == [200, 200]
        assert inbox.refused == 1
    (line,) = inbox.path.read_bytes().splitlines()
    assert b"agent" in line


def test_a_line_that_a_killed_process_left_open_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"resourceSp')
    with Inbox(path, 1.0) as inbox:
        post(inbox, ("v1/traces", body("a" * 32), JSON))
    first, second = path.read_bytes().splitlines()
    assert first == b'{"resourceSp'
    assert json.loads(second)


def test_the_file_is_emptied_once_all_of_it_is_settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receive, "ENOUGH_BYTES", 10)
    with Inbox(tmp_path / "in.jsonl", 1.0) as inbox:
        inbox.take(body("a" * 32), "traces", "application/json")
        size = inbox.path.stat().st_size
        inbox.empty(size - 1)
        assert inbox.path.stat().st_size == size
        inbox.empty(size)
        assert inbox.path.stat().st_size == 0
        inbox.take(body("b" * 32), "traces", "application/json")
    assert traces_in(inbox.path) == ["b" * 32]
