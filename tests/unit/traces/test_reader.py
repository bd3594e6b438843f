"""Every form in which traces come is read alike; what is broken is counted, and nothing raises."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.traces import Conversation, Piece, Span, TraceReader, conversation_of, conversations_of, read_file
from gate.traces import reader as reading
from tests.properties import examples
from tests.unit.traces.spans import TRACE, agent, asks, chat, log, request, said, text, tool

SPANS = [
    agent(1, **{"session.id": "s"}),
    chat(2, read=[said("user", text("Hello"))], wrote=[said("assistant", asks("lookup", {"n": 1}))]),
    tool(3, arguments={"n": 1}, result={"ok": True}),
    chat(4, wrote=[said("assistant", text("Done."))]),
]


def expected() -> Conversation:
    return conversation_of(TraceReader().value(request(*SPANS)))


def of_file(tmp_path: Path, content: str | bytes) -> tuple[Conversation, dict[str, int]]:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    reader = TraceReader()
    return conversation_of(read_file(path, reader)), dict(reader.refused)


def as_message_to_dict(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """What a plain conversion of protobuf writes: ids in base64, enums by name."""

    def changed(one: dict[str, Any]) -> dict[str, Any]:
        ids = {
            key: base64.b64encode(bytes.fromhex(one[key])).decode()
            for key in ("traceId", "spanId", "parentSpanId")
            if one[key]
        }
        return {**one, "parentSpanId": "", **ids, "kind": "SPAN_KIND_CLIENT", "status": {"code": "STATUS_CODE_OK"}}

    return request(*map(changed, spans))


def as_snake_case(spans: list[dict[str, Any]]) -> dict[str, Any]:
    names = {
        **{"traceId": "trace_id", "spanId": "span_id", "parentSpanId": "parent_span_id"},
        **{"startTimeUnixNano": "start_time_unix_nano", "endTimeUnixNano": "end_time_unix_nano"},
    }
    renamed = [{names.get(key, key): value for key, value in one.items()} for one in spans]
    return {"resource_spans": [{"scope_spans": [{"scope": {"name": "test"}, "spans": renamed}]}]}


def as_console(one: dict[str, Any]) -> dict[str, Any]:
    """What the SDK's console exporter prints."""
    return {
        "name": one["name"],
        "context": {"trace_id": f"0x{one['traceId']}", "span_id": f"0x{one['spanId']}"},
        "parent_id": f"0x{one['parentSpanId']}" if one["parentSpanId"] else None,
        "start_time": int(one["startTimeUnixNano"]),
        "end_time": int(one["endTimeUnixNano"]),
        "status": {"status_code": "UNSET"},
        "attributes": {item["key"]: next(iter(item["value"].values())) for item in one["attributes"]},
    }


FORMS = {
    "one request": json.dumps(request(*SPANS)),
    "pretty request": json.dumps(request(*SPANS), indent=2),
    "a request a line": "\n".join(json.dumps(request(one)) for one in reversed(SPANS)),
    "a list of requests": json.dumps([request(one) for one in SPANS], indent=1),
    "a bare list of spans": json.dumps(SPANS),
    "a span a line": "\n".join(map(json.dumps, SPANS)),
    "a wrapper": json.dumps({"spans": SPANS}),
    "base64 ids and names of enums": json.dumps(as_message_to_dict(SPANS)),
    "snake case": json.dumps(as_snake_case(SPANS)),
    "ids in capitals": json.dumps(request(*SPANS)).replace(TRACE, TRACE.upper()),
    "blank lines": "\n\n" + "\n\n".join(json.dumps(request(one)) for one in SPANS) + "\n\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_one_trace_are_read_alike(form: str, tmp_path: Path) -> None:
    assert of_file(tmp_path, FORMS[form]) == (expected(), {})


def test_what_the_sdk_prints_is_read(tmp_path: Path) -> None:
    found, _ = of_file(tmp_path, json.dumps([as_console(one) for one in SPANS]))
    assert [turn.invocation.text for turn in found.turns] == ["Done."]


def test_jaeger_is_read(tmp_path: Path) -> None:
    spans = [
        {
            "traceID": TRACE,
            "spanID": one["spanId"],
            "operationName": one["name"],
            "references": [{"refType": "CHILD_OF", "spanID": one["parentSpanId"]}] if one["parentSpanId"] else [],
            "startTime": int(one["startTimeUnixNano"]) // 1000,
            "duration": 500_000,
            "tags": [{"key": i["key"], "value": next(iter(i["value"].values()))} for i in one["attributes"]],
            "processID": "p1",
        }
        for one in SPANS
    ]
    document = {"data": [{"traceID": TRACE, "spans": spans, "processes": {"p1": {"serviceName": "a", "tags": []}}}]}
    found, refused = of_file(tmp_path, json.dumps(document))
    assert refused == {}
    assert found.session == "s"
    wanted = expected().turns[0].invocation
    assert found.turns[0].invocation.tool_calls == wanted.tool_calls
    assert found.turns[0].invocation.text == wanted.text


def test_protobuf_is_read() -> None:
    """The messages are the library's own, as an exporter sends them."""
    pytest.importorskip("opentelemetry.proto")
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    body = ParseDict(as_message_to_dict(SPANS), ExportTraceServiceRequest()).SerializeToString()
    reader = TraceReader()
    assert conversation_of(reader.protobuf(body)) == expected()
    record = log(2, "gen_ai.choice", body={"content": "x"})
    record["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0].update(
        traceId=base64.b64encode(bytes.fromhex(TRACE)).decode(), spanId=base64.b64encode(bytes(7) + b"\2").decode()
    )
    logs = ParseDict(record, ExportLogsServiceRequest()).SerializeToString()
    (piece,) = reader.protobuf(logs, logs=True)
    assert (piece.trace_id, piece.span_id, piece.name) == (TRACE, f"{2:016x}", "gen_ai.choice")
    assert reader.protobuf(b"\xff\xff\xff") == []
    assert reader.refused == {reading.NO_TRACE: 1}


def test_protobuf_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opentelemetry.proto.collector.trace.v1.trace_service_pb2", None)
    with pytest.raises(ConfigError, match=r"opentelemetry-proto") as raised:
        TraceReader().protobuf(b"x")
    assert "agent-gate[traces]" in str(raised.value.hint)


def test_the_agents_sdk_is_read() -> None:
    trace = {"object": "trace", "id": "trace_1", "group_id": "chat-7"}
    spans = [
        _sdk("a", None, 1, 9, {"type": "agent", "name": "support"}),
        _sdk("t", "a", 2, 8, {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "usage": USED}}),
        _sdk("f", "t", 3, 4, {"type": "function", "name": "lookup", "input": '{"n": 1}', "output": "ok"}),
        _sdk("g", "t", 5, 6, {"type": "function", "name": "broken", "input": "{}"}, error={"message": "no"}),
        _sdk("r", "t", 2.5, 2.6, {"type": "response", "response_id": "resp_1"}),
    ]
    (found,) = conversations_of(TraceReader().value({"spans": [*spans, trace]}))
    (turn,) = found.turns
    assert found.session == "chat-7"
    assert [(c.name, c.args, c.result, c.error) for c in turn.invocation.tool_calls] == [
        ("lookup", {"n": 1}, "ok", None),
        ("broken", {}, None, "no"),
    ]
    assert turn.invocation.usage is not None
    assert (turn.invocation.usage.input_tokens, turn.invocation.usage.model_calls) == (7, 1)
    assert "response" in turn.invocation.unseen


def test_a_handoff_of_the_agents_sdk_is_a_call() -> None:
    """Or a forbidden one would pass unseen beside a call of a tool."""
    spans = [
        _sdk("a", None, 1, 9, {"type": "agent", "name": "support"}),
        _sdk("f", "a", 2, 3, {"type": "function", "name": "lookup", "input": "{}", "output": "ok"}),
        _sdk("h", "a", 4, 5, {"type": "handoff", "from_agent": "support", "to_agent": "Billing Agent"}),
    ]
    (found,) = conversations_of(TraceReader().value({"spans": spans}))
    assert [call.name for call in found.turns[0].invocation.tool_calls] == ["lookup", "transfer_to_billing_agent"]


USED = {"input_tokens": 7, "output_tokens": 3}


def _sdk(name: str, parent: str | None, start: float, end: float, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "object": "trace.span",
        "id": name,
        "trace_id": "trace_1",
        "parent_id": parent,
        "started_at": f"2026-11-22T08:34:{start:09.6f}+00:00",
        "ended_at": f"2026-11-22T08:34:{end:09.6f}+00:00",
        "span_data": data,
        "error": None,
        **more,
    }


# --- what is broken -------------------------------------------------------------------------------


def test_broken_lines_are_counted_and_the_others_read(tmp_path: Path) -> None:
    good = json.dumps(request(*SPANS))
    lines = ["{", good, "nonsense", "17", '{"a": 1}', json.dumps(request({"name": "no ids"}))]
    found, refused = of_file(tmp_path, "\n".join(lines))
    assert found == expected()
    assert refused == {reading.NO_JSON: 2, reading.NO_TRACE: 2, reading.NO_IDS: 1}


@pytest.mark.parametrize("depth", [200, 5_000, 200_000])
def test_deep_values_are_survived(depth: int) -> None:
    nested = '{"kvlistValue":{"values":[{"key":"k","value":' * depth + '{"intValue":"1"}' + "}]}}" * depth
    line = json.dumps(request(*SPANS)).replace(
        '"attributes": [', '"attributes": [{"key":"deep","value":' + nested + "},", 1
    )
    reader = TraceReader()
    reader.line(line.encode())
    assert sum(reader.refused.values()) <= 1
    deep = json.dumps("[" * depth + "]" * depth)
    chat_line = json.dumps(request(agent(), chat(2, wrote=[]))).replace(json.dumps("[]"), deep)
    assert len(conversation_of(reader.line(chat_line.encode())).turns) == 1


def test_a_line_beyond_the_bound_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 100)
    reader = TraceReader()
    assert reader.line(json.dumps(request(*SPANS)).encode()) == []
    assert reader.refused == {reading.TOO_LONG: 1}


def test_a_document_beyond_the_bound_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_DOCUMENT_BYTES", 100)
    with pytest.raises(ConfigError, match="larger than"):
        of_file(tmp_path, json.dumps(request(*SPANS), indent=1))


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        list(read_file(tmp_path / "none.jsonl", TraceReader()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
KEYS = [
    *("resourceSpans", "scopeSpans", "spans", "resource", "attributes", "traceId", "spanId", "parentSpanId", "name"),
    *("events", "status", "key", "value", "stringValue", "kvlistValue", "values", "data", "object", "span_data"),
    *("startTimeUnixNano", "endTimeUnixNano", "body", "resourceLogs", "scopeLogs", "logRecords", "context"),
]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(400, quick=25))
def test_values_of_any_shape_are_survived(data: st.DataObject) -> None:
    """A trace in which anything was replaced by anything."""
    document = json.loads(json.dumps(request(*SPANS)))
    places = list(_places(document))
    for _ in range(data.draw(st.integers(1, 4))):
        holder, key = data.draw(st.sampled_from(places))
        holder[key] = data.draw(JSON | st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4))
    pieces = TraceReader().value(document)
    conversations_of(pieces)


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


ATTRIBUTES = [
    *("gen_ai.operation.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.tool.name", "input.value"),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.usage.input_tokens", "output.value"),
    *("openinference.span.kind", "traceloop.span.kind", "ai.operationId", "llm.output_messages.0.message.content"),
    *("llm.output_messages.0.message.tool_calls.0.tool_call.function.name", "gen_ai.completion.0.content"),
    *("gen_ai.completion.0.tool_calls.0.name", "ai.response.toolCalls", "ai.prompt.messages", "session.id", "tag.tags"),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response", "gcp.vertex.agent.invocation_id", "error.type"),
    *("gen_ai.response.finish_reasons", "gen_ai.agent.name", "mcp.method.name", "llm.cost.total"),
]
MARKS = ["chat", "invoke_agent", "execute_tool", "LLM", "TOOL", "AGENT", "tool", "agent", "ai.toolCall", "tools/call"]
NAMES = [
    "gen_ai.choice",
    "gen_ai.tool.message",
    "gen_ai.user.message",
    "exception",
    "gen_ai.client.inference.operation.details",
]


@st.composite
def any_span(draw: st.DrawFn) -> Piece:
    said = st.dictionaries(
        st.sampled_from(ATTRIBUTES), st.sampled_from(MARKS) | JSON | JSON.map(json.dumps), max_size=6
    )
    events = draw(st.lists(st.tuples(st.sampled_from(NAMES), said), max_size=2))
    raw = {
        "traceId": TRACE,
        "spanId": draw(st.sampled_from("abcdef")) * 16,
        "parentSpanId": draw(st.sampled_from("abcdef")) * 16,
        "startTimeUnixNano": draw(st.integers(-5, 5)),
        "endTimeUnixNano": draw(st.integers(-5, 2**70)),
        "attributes": draw(said),
        "events": [{"name": name, "attributes": attributes} for name, attributes in events],
    }
    (piece,) = TraceReader().value(raw)
    assert isinstance(piece, Span)
    return piece


@pytest.mark.slow
@given(st.lists(any_span(), max_size=8))
@settings(max_examples=examples(200, quick=25))
def test_attributes_of_any_value_are_survived(pieces: list[Piece]) -> None:
    found = conversations_of(pieces)
    assert found == conversations_of(reversed(pieces))
