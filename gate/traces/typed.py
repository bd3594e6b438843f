"""OTLP JSON as its specification spells it → spans, decoded straight into structs: several times faster than objects.

It knows one spelling. Whatever else a line holds (another spelling, log records, a key that it does not know, a type or
an id that is not as it should be) makes it give up on the whole line, and `gate.traces.otlp` reads that as it reads
everything: the two never differ in what they find.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, MsgspecError, Struct, UnsetType
from msgspec.json import Decoder

from gate.traces import otlp
from gate.traces.span import NOTHING, Event, Span
from gate.traces.values import MAX_ATTRIBUTES, hex_id, nanoseconds, whole

BEGINNING = b'{"resourceSpans"'
"""How a request of spans begins, as the Collector and the SDKs write it; others are not tried."""


class _Value(Struct, rename="camel", forbid_unknown_fields=True):
    string_value: str | UnsetType = UNSET
    int_value: Any = UNSET
    bool_value: Any = UNSET
    double_value: Any = UNSET
    bytes_value: Any = UNSET
    array_value: Any = UNSET
    kvlist_value: Any = UNSET


class _KeyValue(Struct, forbid_unknown_fields=True):
    key: str
    value: _Value


class _Event(Struct, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    time_unix_nano: str | int = 0
    attributes: list[_KeyValue] = []
    dropped_attributes_count: Any = None


class _Status(Struct, forbid_unknown_fields=True):
    code: str | int = 0
    message: str = ""


class _Span(Struct, rename="camel", forbid_unknown_fields=True):
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: str | int = 0
    end_time_unix_nano: str | int = 0
    attributes: list[_KeyValue] = []
    events: list[_Event] = []
    status: _Status | None = None
    kind: Any = None
    flags: Any = None
    links: Any = None
    trace_state: Any = None
    dropped_attributes_count: Any = None
    dropped_events_count: Any = None
    dropped_links_count: Any = None


class _Scope(Struct, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    version: Any = None
    attributes: Any = None
    dropped_attributes_count: Any = None


class _OfScope(Struct, rename="camel", forbid_unknown_fields=True):
    scope: _Scope | None = None
    spans: list[_Span] = []
    schema_url: Any = None


class _Resource(Struct, rename="camel", forbid_unknown_fields=True):
    attributes: list[_KeyValue] = []
    dropped_attributes_count: Any = None
    entity_refs: Any = None


class _OfResource(Struct, rename="camel", forbid_unknown_fields=True):
    resource: _Resource | None = None
    scope_spans: list[_OfScope] = []
    schema_url: Any = None


class _Request(Struct, rename="camel", forbid_unknown_fields=True):
    resource_spans: list[_OfResource]


class _UnusualError(Exception):
    """A value that only the patient reader can tell."""


_DECODER = Decoder(_Request)


def spans(line: bytes) -> Sequence[Span] | None:
    """The spans of a line; None if it is to be read in the other way, as one without any is."""
    if not line.startswith(BEGINNING):
        return None
    try:
        request = _DECODER.decode(line)
        found: list[Span] = []
        traces: dict[str, str] = {}  # most often one, of all the spans
        for of_resource in request.resource_spans:
            held = of_resource.resource
            resource = NOTHING if held is None else _attributes(held.attributes)
            for of_scope in of_resource.scope_spans:
                scope = "" if of_scope.scope is None else of_scope.scope.name
                found += [_span(raw, scope, resource, traces) for raw in of_scope.spans]
    except (MsgspecError, RecursionError, UnicodeError, _UnusualError):
        return None
    return found or None


def _span(raw: _Span, scope: str, resource: Any, traces: dict[str, str]) -> Span:
    """``traces`` has the ids of traces that were read before."""
    trace_id = traces.get(raw.trace_id)
    if trace_id is None:
        trace_id = traces[raw.trace_id] = hex_id(raw.trace_id, 16)
    span_id, parent, status = hex_id(raw.span_id, 8), raw.parent_span_id, raw.status
    if not trace_id or not span_id:
        raise _UnusualError
    return Span(
        trace_id,
        span_id,
        hex_id(parent, 8) if parent else "",
        raw.name,
        nanoseconds(raw.start_time_unix_nano),
        nanoseconds(raw.end_time_unix_nano),
        _attributes(raw.attributes),
        tuple([_event(event) for event in raw.events]) if raw.events else (),
        status is not None and status.code in otlp.FAILED,
        "" if status is None else status.message,
        scope,
        resource,
    )


def _event(raw: _Event) -> Event:
    return Event(raw.name, _attributes(raw.attributes), nanoseconds(raw.time_unix_nano))


def _attributes(raw: list[_KeyValue]) -> Any:
    if not raw:
        return NOTHING
    found: dict[str, Any] = {}
    for item in raw if len(raw) <= MAX_ATTRIBUTES else raw[:MAX_ATTRIBUTES]:
        value = item.value
        text = value.string_value
        found[item.key] = _other(value) if text is UNSET else text
    return found


def _other(value: _Value) -> Any:
    """A value that is no text. Of several in one, the order would count, which is lost here."""
    number = value.int_value
    if number is not UNSET and value == _Value(int_value=number):
        return whole(number)
    held = [(name, one) for name in _OTHERS if (one := getattr(value, name)) is not UNSET]
    if len(held) > 1:
        raise _UnusualError
    return otlp.any_value({_OTHERS[name]: found for name, found in held})


_OTHERS = {
    "int_value": "intValue",
    "bool_value": "boolValue",
    "double_value": "doubleValue",
    "bytes_value": "bytesValue",
    "array_value": "arrayValue",
    "kvlist_value": "kvlistValue",
}
