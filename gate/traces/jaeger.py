"""Reads Jaeger's JSON: traces with tags, logs and references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gate.formats.shapes import as_mapping, as_text, mappings_in
from gate.traces.span import Event, Span
from gate.traces.values import MAX_ATTRIBUTES, NOTHING, hex_id, whole


def is_jaeger(value: Mapping[str, Any]) -> bool:
    """True if an object is a response of Jaeger's API, or one trace of it."""
    data = value.get("data")
    return _is_trace(value) or (isinstance(data, list) and any(map(_is_trace, data)))


def _is_trace(value: Any) -> bool:
    return isinstance(value, dict) and "traceID" in value and isinstance(value.get("spans"), list)


def pieces(document: Mapping[str, Any]) -> Iterator[Span | None]:
    """Yield the spans of a document; None for each without ids."""
    for trace in [document] if _is_trace(document) else document["data"]:
        if not _is_trace(trace):
            yield None
            continue
        resources = _Resources(as_mapping(trace.get("processes")))
        for raw in trace["spans"]:
            yield _span(as_mapping(raw), trace["traceID"], resources)


class _Resources(dict[str, Mapping[str, Any]]):
    """The tags of processes by name, parsed when a span first names one."""

    def __init__(self, processes: Mapping[str, Any]) -> None:
        super().__init__()
        self._processes = processes

    def __missing__(self, name: str) -> Mapping[str, Any]:
        process = as_mapping(self._processes.get(name))
        self[name] = _tags(process.get("tags"))
        return self[name]


def _span(raw: Mapping[str, Any], trace: Any, resources: _Resources) -> Span | None:
    trace_id, span_id = hex_id(raw.get("traceID", trace), 16), hex_id(raw.get("spanID"), 8)
    if not trace_id or not span_id:
        return None
    tags, process = _tags(raw.get("tags")), raw.get("processID")
    start = whole(raw.get("startTime")) * 1_000
    return Span(
        trace_id,
        span_id,
        _parent(raw),
        as_text(raw.get("operationName")),
        start,
        start + whole(raw.get("duration")) * 1_000,
        tags,
        tuple(map(_event, mappings_in(raw.get("logs")))),
        tags.get("otel.status_code") == "ERROR" or tags.get("error") in (True, "true"),
        as_text(tags.get("otel.status_description")),
        as_text(tags.get("otel.scope.name", tags.get("otel.library.name"))),
        resources[process] if isinstance(process, str) else NOTHING,
    )


def _parent(raw: Mapping[str, Any]) -> str:
    for reference in mappings_in(raw.get("references")):
        if reference.get("refType", "CHILD_OF") == "CHILD_OF":
            return hex_id(reference.get("spanID"), 8)
    return hex_id(raw.get("parentSpanID"), 8)


def _event(log: Mapping[str, Any]) -> Event:
    fields = _tags(log.get("fields"))
    name = fields.get("event", fields.get("name", ""))
    return Event(str(name), fields, whole(log.get("timestamp")) * 1_000)


def _tags(raw: Any) -> Mapping[str, Any]:
    found = {}
    for tag in mappings_in(raw)[:MAX_ATTRIBUTES]:
        key = tag.get("key")
        if isinstance(key, str):
            found[key] = tag.get("value")
    return found
