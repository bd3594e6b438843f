"""Reading the usual spelling at once: never another result than the patient reader's, whatever a line holds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.traces import Span, TraceReader, otlp, typed
from tests.properties import examples
from tests.unit.traces.spans import agent, asks, chat, request, said, text, tool

SPANS = (
    agent(1, **{"session.id": "s"}),
    chat(2, read=[said("user", text("Hello"))], wrote=[said("assistant", asks("lookup", {"n": 1}))]),
    tool(3, arguments={"n": 1}, result={"ok": True}, error="no", events=[("exception", {"count": 2, "all": ["a"]})]),
)


def _values() -> st.SearchStrategy[Any]:
    plain = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, width=32)
    scalars = plain | st.text(max_size=8) | st.sampled_from(["2", "0" * 32, "a" * 32, "A" * 32, "q" * 24, "12", ""])
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    )


KEYS = [
    *("resourceSpans", "scopeSpans", "scope_spans", "spans", "resource", "scope", "attributes", "traceId", "trace_id"),
    *("spanId", "parentSpanId", "name", "events", "status", "code", "message", "key", "value", "stringValue"),
    *("intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue", "kvlistValue", "values", "context", "kind"),
    *("startTimeUnixNano", "endTimeUnixNano", "timeUnixNano", "flags", "links", "resourceLogs", "messages", "unknown"),
]


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(600, quick=50))
def test_what_is_read_at_once_is_what_the_patient_reader_finds(data: st.DataObject) -> None:
    """A request in which anything was replaced, removed or added."""
    document = json.loads(json.dumps(request(*SPANS)))
    for _ in range(data.draw(st.integers(0, 3))):
        holder, key = data.draw(st.sampled_from([*_places({"": document})]))
        if isinstance(holder, dict) and data.draw(st.booleans()):
            holder[data.draw(st.sampled_from(KEYS))] = data.draw(_values())
        elif isinstance(holder, dict) and data.draw(st.booleans()):
            holder.pop(key, None)
        else:
            holder[key] = data.draw(_values())
    line = json.dumps(document).encode()
    found = typed.spans(line)
    if found is not None:
        patient = TraceReader()
        assert [repr(one) for one in found] == [repr(one) for one in patient.document(line)]
        assert not patient.refused


def _places(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(items):
        yield value, key
        yield from _places(inner)


def _line(**changed: Any) -> bytes:
    span = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "s", **changed}
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def _with(value: dict[str, Any]) -> bytes:
    return _line(attributes=[{"key": "k", "value": value}])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (_with({"stringValue": "a"}), "a"),
        (_with({"intValue": "12"}), 12),
        (_with({"intValue": 12}), 12),
        (_with({"boolValue": False}), False),
        (_with({"doubleValue": 0.5}), 0.5),
        (_with({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}), ["a", 1]),
        (_with({"kvlistValue": {"values": [{"key": "x", "value": {"stringValue": "y"}}]}}), {"x": "y"}),
        (_with({"stringValue": "a", "intValue": 1}), "a"),
        (_with({}), None),
    ],
)
def test_values_of_attributes(line: bytes, expected: Any) -> None:
    found = typed.spans(line)
    assert found is not None
    assert found[0].attributes == {"k": expected}


@pytest.mark.parametrize("code", [2, "2", "STATUS_CODE_ERROR"])
def test_enums_are_names_or_numbers(code: Any) -> None:
    (span,) = typed.spans(_line(status={"code": code, "message": "no"}, kind="SPAN_KIND_CLIENT")) or ()
    assert (span.failed, span.message) == (True, "no")


def test_ids_in_base64_become_hexadecimal() -> None:
    (span,) = typed.spans(_line(traceId="q6urq6urq6urq6urq6urqw==", spanId="zc3Nzc3Nzc0=")) or ()
    assert (span.trace_id, span.span_id) == ("ab" * 16, "cd" * 8)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"resourceSpans":[]}',
        b'{"resourceSpans":[',
        b'{"resourceSpans":' + b"[" * 100_000,
        b'{"resource_spans":[]}',
        _line(trace_id="ab" * 16),
        _line(spanId=""),
        _line(traceId="0" * 32),
        _line(parentSpanId=None),
        _line(attributes={"k": "v"}),
        _with({"intValue": 1, "boolValue": True}),
        _with({"unknownValue": 1}),
        _with({"stringValue": None}),
        b'{"resourceSpans":[],"resourceLogs":[]}',
        b'{"resourceSpans":[],"messages":[]}',
    ],
)
def test_what_is_not_as_usual_is_left_to_the_patient_reader(line: bytes) -> None:
    assert typed.spans(line) is None


def test_a_line_as_exporters_write_it_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or nothing would be won: the patient reader is not asked."""
    monkeypatch.setattr(otlp, "pieces", None)
    found = TraceReader().line(json.dumps(request(*SPANS)).encode())
    assert [type(one) for one in found] == [Span] * 3
