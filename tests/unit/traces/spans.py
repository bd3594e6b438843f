"""Spans for tests, in OTLP's JSON: short to write, and complete."""

from __future__ import annotations

import json
from typing import Any

from gate.traces import Conversation, TraceReader, conversations_of

TRACE = "0af7651916cd43dd8448eb211c80319c"


def value(raw: Any) -> dict[str, Any]:
    if isinstance(raw, bool):
        return {"boolValue": raw}
    if isinstance(raw, int):
        return {"intValue": str(raw)}
    if isinstance(raw, float):
        return {"doubleValue": raw}
    if isinstance(raw, list):
        return {"arrayValue": {"values": [value(item) for item in raw]}}
    if isinstance(raw, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": value(item)} for key, item in raw.items()]}}
    return {"stringValue": raw}


def keyed(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(item)} for key, item in attributes.items()]


def span(
    place: int,
    parent: int = 0,
    name: str = "span",
    *,
    trace: str = TRACE,
    error: str = "",
    events: list[tuple[str, dict[str, Any]]] = [],  # noqa: B006 - never changed
    seconds: tuple[float, float] | None = None,
    **attributes: Any,
) -> dict[str, Any]:
    """Span number ``place`` (from 1), which starts at second ``place``; attributes are written with ``_`` for dots
    where they are given by keyword, and as they are through ``**{…}``."""
    start, end = seconds or (place, place + 0.5)
    return {
        "traceId": trace,
        "spanId": f"{place:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": name,
        "startTimeUnixNano": str(int(start * 1e9) + 10**18),
        "endTimeUnixNano": str(int(end * 1e9) + 10**18),
        "attributes": keyed(attributes),
        "events": [{"name": named, "attributes": keyed(said)} for named, said in events],
        "status": {"code": 2, "message": error} if error else {},
    }


def request(*spans: dict[str, Any], resource: dict[str, Any] | None = None, scope: str = "test") -> dict[str, Any]:
    of_scope = {"scope": {"name": scope}, "spans": list(spans)}
    return {"resourceSpans": [{"resource": {"attributes": keyed(resource or {})}, "scopeSpans": [of_scope]}]}


def log(place: int, name: str, *, trace: str = TRACE, body: Any = None, **attributes: Any) -> dict[str, Any]:
    """A request with one log record of span number ``place``."""
    record = {"traceId": trace, "spanId": f"{place:016x}", "eventName": name, "attributes": keyed(attributes)}
    if body is not None:
        record["body"] = value(body)
    return {"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}


def agent(place: int = 1, parent: int = 0, name: str = "support", **more: Any) -> dict[str, Any]:
    return span(
        place,
        parent,
        f"invoke_agent {name}",
        **{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name},
        **more,
    )


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "content": said}


def asks(name: str, arguments: Any, call: str = "c1") -> dict[str, Any]:
    return {"type": "tool_call", "id": call, "name": name, "arguments": arguments}


def gave(response: Any, call: str = "c1") -> dict[str, Any]:
    return {"type": "tool_call_response", "id": call, "response": response}


def said(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def chat(
    place: int,
    parent: int = 1,
    read: list[dict[str, Any]] | None = None,
    wrote: list[dict[str, Any]] | None = None,
    tokens: tuple[int, int] | None = (10, 5),
    **more: Any,
) -> dict[str, Any]:
    attributes: dict[str, Any] = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    if read is not None:
        attributes["gen_ai.input.messages"] = json.dumps(read)
    if wrote is not None:
        attributes["gen_ai.output.messages"] = json.dumps(wrote)
    if tokens is not None:
        attributes |= {"gen_ai.usage.input_tokens": tokens[0], "gen_ai.usage.output_tokens": tokens[1]}
    return span(place, parent, "chat m", **{**attributes, **more})


def tool(
    place: int, parent: int = 1, name: str = "lookup", arguments: Any = None, result: Any = None, **more: Any
) -> dict[str, Any]:
    attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
    if arguments is not None:
        attributes["gen_ai.tool.call.arguments"] = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if result is not None:
        attributes["gen_ai.tool.call.result"] = result if isinstance(result, str) else json.dumps(result)
    return span(place, parent, f"execute_tool {name}", **{**attributes, **more})


def read(*requests: Any, refused: dict[str, int] | None = None) -> list[Conversation]:
    """The conversations of these requests, each a line; ``refused`` is what the reader must have refused."""
    reader = TraceReader()
    pieces = [piece for one in requests for piece in reader.line(json.dumps(one).encode())]
    assert dict(reader.refused) == (refused or {})
    return conversations_of(pieces)


def only(*spans: dict[str, Any], **options: Any) -> Conversation:
    """The one conversation of some spans."""
    (conversation,) = read(request(*spans, **options))
    return conversation
