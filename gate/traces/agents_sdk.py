"""Converts spans exported by the OpenAI Agents SDK's trace processors to the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gate.formats.shapes import as_text
from gate.traces.dialects import handoff_name
from gate.traces.span import Span
from gate.traces.values import hex_id, mapping, nanoseconds, present

_OPERATIONS = {
    "agent": "invoke_agent",
    "function": "execute_tool",
    "handoff": "execute_tool",
    "generation": "chat",
    "response": "chat",
    "task": "invoke_workflow",
    "turn": "chat",
}
"""The operation for each type of span. A turn holds the usage of its model call, whose own span holds only an id."""


def is_agents_sdk(value: Mapping[str, Any]) -> bool:
    """True if an object is a span or a trace of the SDK."""
    return value.get("object") in ("trace.span", "trace")


def span(raw: Mapping[str, Any]) -> Span | None:
    """Return one span; None if it has no ids. A trace object becomes a span without times that holds the group's id."""
    trace_id, error = hex_id(raw.get("trace_id", raw.get("id")), 16), mapping(raw.get("error"))
    if not trace_id:
        return None
    if raw.get("object") == "trace":
        group = raw.get("group_id")
        if not isinstance(group, str):
            return Span(trace_id, f"{trace_id}.trace")
        return Span(trace_id, f"{trace_id}.trace", attributes={"session.id": group})
    span_id, data = hex_id(raw.get("id"), 8), mapping(raw.get("span_data"))
    if not span_id:
        return None
    return Span(
        trace_id,
        span_id,
        hex_id(raw.get("parent_id"), 8),
        str(data.get("name") or data.get("type") or ""),
        nanoseconds(raw.get("started_at")),
        nanoseconds(raw.get("ended_at")),
        _attributes(data),
        failed=bool(error),
        message=as_text(error.get("message")),
        scope="openai-agents",
    )


def _attributes(data: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = mapping(data.get("data"))
    kind = inner.get("sdk_span_type") if data.get("type") == "custom" else data.get("type")
    operation = _OPERATIONS.get(as_text(kind))
    if operation is None:
        return {}
    usage = mapping(inner.get("usage", data.get("usage")))
    found = {
        "gen_ai.operation.name": operation,
        "gen_ai.usage.input_tokens": usage.get("input_tokens", usage.get("prompt_tokens")),
        "gen_ai.usage.output_tokens": usage.get("output_tokens", usage.get("completion_tokens")),
        "gen_ai.request.model": data.get("model"),
    }
    if operation == "invoke_agent":
        found["gen_ai.agent.name"] = data.get("name")
    elif kind == "handoff":
        receiver = as_text(data.get("to_agent"))
        if receiver:
            found["gen_ai.tool.name"] = handoff_name(receiver)
    elif operation == "execute_tool":
        found["gen_ai.tool.name"] = data.get("name")
        found["gen_ai.tool.call.arguments"] = data.get("input")
        found["gen_ai.tool.call.result"] = data.get("output")
    elif kind == "generation":
        found["gen_ai.input.messages"] = data.get("input")
        found["gen_ai.output.messages"] = data.get("output")
    return present(found)
