"""Reads the traces in promptfoo's results: spans with plain attributes, and times in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gate.formats.shapes import as_mapping, as_text, mappings_in
from gate.traces.span import Span
from gate.traces.values import hex_id, whole

FAILED = (2, "error")
"""The status values that mark a span as failed."""


def spans(trace: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the spans of a trace; one without an id is left out."""
    for raw in mappings_in(trace.get("spans")):
        span_id = hex_id(raw.get("spanId"), 8)
        if not span_id:
            continue
        status = raw.get("status")
        if isinstance(status, dict):
            code, message = status.get("code"), status.get("message")
        else:
            code, message = raw.get("statusCode"), raw.get("statusMessage")
        start = whole(raw.get("startTime")) * 1_000_000
        yield Span(
            hex_id(trace.get("traceId"), 16) or "trace",
            span_id,
            hex_id(raw.get("parentSpanId"), 8),
            str(raw.get("name") or ""),
            start,
            whole(raw.get("endTime")) * 1_000_000 or start,
            as_mapping(raw.get("attributes")),
            failed=code in FAILED,
            message=as_text(message),
        )
