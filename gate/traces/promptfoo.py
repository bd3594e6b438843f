"""Reads the traces in promptfoo's results: spans with plain attributes, and times in milliseconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gate.traces.span import NOTHING, Span
from gate.traces.values import hex_id, whole

FAILED = (2, "error")
"""The status values that mark a span as failed."""


def spans(trace: Mapping[str, Any]) -> Iterator[Span]:
    """Yield the spans of a trace; one without an id is left out."""
    listed = trace.get("spans")
    for raw in listed if isinstance(listed, list) else []:
        span_id = hex_id(raw.get("spanId"), 8) if isinstance(raw, dict) else ""
        if not span_id:
            continue
        attributes, status = raw.get("attributes"), raw.get("status")
        code = status.get("code") if isinstance(status, dict) else raw.get("statusCode")
        message = status.get("message") if isinstance(status, dict) else raw.get("statusMessage")
        start = whole(raw.get("startTime")) * 1_000_000
        yield Span(
            hex_id(trace.get("traceId"), 16) or "trace",
            span_id,
            hex_id(raw.get("parentSpanId"), 8),
            str(raw.get("name") or ""),
            start,
            whole(raw.get("endTime")) * 1_000_000 or start,
            attributes if isinstance(attributes, dict) else NOTHING,
            failed=code in FAILED,
            message=message if isinstance(message, str) else "",
        )
