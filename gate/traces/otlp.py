"""Reads OTLP: requests of traces and logs as JSON, with ids and enums in any spelling, and as protobuf."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gate.errors import ConfigError
from gate.formats.names import first_value
from gate.formats.reading import known_value
from gate.formats.shapes import as_mapping, as_text, mappings_in
from gate.security.limits import MAX_NESTING
from gate.traces.span import Event, Piece, Span
from gate.traces.values import MAX_ATTRIBUTES, NOTHING, hex_id, nanoseconds, whole

SPANS = ("resourceSpans", "resource_spans", "batches")
LOGS = ("resourceLogs", "resource_logs")
FAILED: tuple[str | int, ...] = (2, "2", "STATUS_CODE_ERROR", "ERROR", "error", "StatusCode.ERROR")
"""The status values that mark a span as failed."""
_FINE: tuple[str | int, ...] = (
    *(0, "0", "STATUS_CODE_UNSET", "UNSET", "StatusCode.UNSET"),
    *(1, "1", "STATUS_CODE_OK", "OK", "StatusCode.OK"),
)
_CODES = frozenset((*FAILED, *_FINE))
INSTALL = "pip install 'agent-gate[traces]'"


def is_otlp(value: Mapping[str, Any]) -> bool:
    """True if an object is a request to export traces or logs."""
    return any(key in value for key in (*SPANS, *LOGS))


def is_span(value: Any) -> bool:
    """True if an object is a single span."""
    return isinstance(value, dict) and any(key in value for key in ("spanId", "span_id", "context"))


def pieces(request: Mapping[str, Any]) -> Iterator[Piece | None]:
    """Yield the spans and log records of a request; None for each without ids."""
    for of_resource in _objects(request, *SPANS):
        resource = attributes(_object(of_resource, "resource").get("attributes"))
        for of_scope in _objects(of_resource, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            scope = as_text(_object(of_scope, "scope", "instrumentationLibrary").get("name"))
            for raw in _objects(of_scope, "spans"):
                yield span(raw, scope, resource)
    for of_resource in _objects(request, *LOGS):
        resource = attributes(_object(of_resource, "resource").get("attributes"))
        for of_scope in _objects(of_resource, "scopeLogs", "scope_logs"):
            for raw in _objects(of_scope, "logRecords", "log_records"):
                yield log_record(raw, resource)


def span(raw: Mapping[str, Any], scope: str = "", resource: Mapping[str, Any] = NOTHING) -> Span | None:
    """Return one span, from a request or printed by the SDK (``context``); None if it has no ids."""
    ids = raw.get("context")
    if not isinstance(ids, dict):
        ids = raw
    trace_id = hex_id(first_value(ids, "traceId", "trace_id"), 16)
    span_id = hex_id(first_value(ids, "spanId", "span_id"), 8)
    if not trace_id or not span_id:
        return None
    status = as_mapping(raw.get("status"))
    return Span(
        trace_id,
        span_id,
        hex_id(first_value(raw, "parentSpanId", "parent_span_id", "parent_id"), 8),
        as_text(raw.get("name")),
        nanoseconds(first_value(raw, "startTimeUnixNano", "start_time_unix_nano", "start_time")),
        nanoseconds(first_value(raw, "endTimeUnixNano", "end_time_unix_nano", "end_time")),
        attributes(raw.get("attributes")),
        tuple(map(_event, _objects(raw, "events"))),
        _failed(status),
        as_text(status.get("message", status.get("description"))),
        scope,
        resource or attributes(_object(raw, "resource").get("attributes")),
    )


def _failed(status: Mapping[str, Any]) -> bool:
    """True if a status is an error; an unknown status stays unread."""
    codes = {known_value(status, "code", _CODES), known_value(status, "status_code", _CODES)}
    return not codes.isdisjoint(FAILED)


def log_record(raw: Mapping[str, Any], resource: Mapping[str, Any] = NOTHING) -> Event | None:
    """Return one log record; None if it belongs to no trace."""
    trace_id = hex_id(first_value(raw, "traceId", "trace_id"), 16)
    if not trace_id:
        return None
    said, body = attributes(raw.get("attributes")), raw.get("body")
    if isinstance(body, dict):
        body = any_value(body)
    name = first_value(raw, "eventName", "event_name") or said.get("event.name") or said.get("otel.event.name")
    return Event(
        as_text(name),
        said,
        nanoseconds(first_value(raw, "timeUnixNano", "time_unix_nano", "observedTimeUnixNano")),
        body,
        trace_id,
        hex_id(first_value(raw, "spanId", "span_id"), 8),
        resource,
    )


def _event(raw: Mapping[str, Any]) -> Event:
    time = nanoseconds(first_value(raw, "timeUnixNano", "time_unix_nano", "timestamp"))
    return Event(as_text(raw.get("name")), attributes(raw.get("attributes")), time)


# --- values ---------------------------------------------------------------------------------------


def attributes(raw: Any) -> Mapping[str, Any]:
    """Return attributes as a mapping, from OTLP's list of keys and values or from an object, bounded in number."""
    if isinstance(raw, dict):
        return dict(list(raw.items())[:MAX_ATTRIBUTES])
    if not raw or not isinstance(raw, list):
        return NOTHING
    found = {}
    for item in raw[:MAX_ATTRIBUTES]:
        try:
            key, value = item["key"], item["value"]
        except (KeyError, TypeError, IndexError):
            continue
        if isinstance(key, str) and isinstance(value, dict):
            text = value.get("stringValue")
            found[key] = text if isinstance(text, str) else any_value(value)
    return found


def any_value(raw: Any, depth: int = 0) -> Any:
    """Return OTLP's AnyValue as a plain value; None if it has none or nests too deeply."""
    if not isinstance(raw, dict) or depth > MAX_NESTING:
        return None
    for key, value in raw.items():
        kind = _KINDS.get(key)
        if kind == "list":
            return [any_value(item, depth + 1) for item in _objects(value, "values")]
        if kind == "map":
            entries = _objects(value, "values")
            return {str(entry.get("key")): any_value(entry.get("value"), depth + 1) for entry in entries}
        if kind == "int":
            return whole(value)
        if kind == "plain":
            return value
    return None


_KINDS = {
    **dict.fromkeys(("stringValue", "string_value", "boolValue", "bool_value"), "plain"),
    **dict.fromkeys(("doubleValue", "double_value", "bytesValue", "bytes_value"), "plain"),
    **dict.fromkeys(("intValue", "int_value"), "int"),
    **dict.fromkeys(("arrayValue", "array_value"), "list"),
    **dict.fromkeys(("kvlistValue", "kvlist_value"), "map"),
}


def _object(raw: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    return as_mapping(first_value(raw, *keys))


def _objects(raw: Any, *keys: str) -> Iterable[Mapping[str, Any]]:
    return mappings_in(first_value(as_mapping(raw), *keys))


# --- protobuf -------------------------------------------------------------------------------------


def from_protobuf(body: bytes, *, logs: bool = False) -> Mapping[str, Any]:
    """Return a protobuf request as the JSON that `pieces` reads.

    Raises:
        ConfigError: the library with the message types is not installed.
        ValueError: the bytes are not such a message.
    """
    try:
        from google.protobuf.json_format import MessageToDict  # slow to import: only when protobuf arrives
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise ConfigError("traces in protobuf need opentelemetry-proto", where="agent.traces", hint=INSTALL) from error
    request = ExportTraceServiceRequest()
    if logs:
        request = ExportLogsServiceRequest()
    try:
        request.ParseFromString(body)
        found: Mapping[str, Any] = MessageToDict(request)
    except (DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError("not an OTLP request in protobuf") from error
    return found
