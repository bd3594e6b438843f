"""MCP messages in the proxy: recognizes lists of offers, and matches answers with calls."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gate.world.differences import by_name, first_difference
from gate.world.outbound import OutboundRequest

_MENU = frozenset(
    {
        *("initialize", "ping", "logging/setLevel", "server/discover"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    }
)
_DATA = re.compile(rb"(?m)^data: ?(.*)$")


def call_in(asked: OutboundRequest) -> dict[str, Any] | None:
    """Return the MCP message in a request; None if there is none."""
    value = asked.value if asked.kind == "mcp" else None
    return value if isinstance(value, dict) and "jsonrpc" in value else None


def asks_what_there_is(asked: OutboundRequest) -> bool:
    """True if a message changes nothing outside: it opens the session or lists what the server offers."""
    method = (call_in(asked) or {}).get("method")
    return isinstance(method, str) and (method in _MENU or method.startswith("notifications/"))


def numbered(body: bytes, asked: OutboundRequest) -> bytes:
    """Return a recorded answer, whole or as a stream, with the number of the present call."""
    call = call_in(asked)
    if call is None or "id" not in call:
        return body
    if body.lstrip().startswith(b"{"):
        return _numbered(body, call["id"])
    return _DATA.sub(lambda match: b"data: " + _numbered(match[1].rstrip(b"\r"), call["id"]), body)


def _numbered(message: bytes, number: Any) -> bytes:
    try:
        value = msgspec.json.decode(message)
    except msgspec.DecodeError:
        return message
    if not isinstance(value, dict) or not value.keys() & {"result", "error"} or value.get("id") == number:
        return message
    return msgspec.json.encode({**value, "id": number})


def results_in(body: bytes) -> list[Any]:
    """Return the results in an answer, without the numbers of the calls."""
    found = []
    for message in _messages(body):
        try:
            value = msgspec.json.decode(message)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict) and value.keys() & {"result", "error"}:
            found.append({name: held for name, held in value.items() if name in ("result", "error")})
    return found


def _messages(body: bytes) -> list[bytes]:
    """Return the messages of an answer, which is a single one or a stream."""
    if body.lstrip().startswith(b"{"):
        return [body]
    return [match[1].rstrip(b"\r") for match in _DATA.finditer(body)]


def tools_in(asked: OutboundRequest, body: bytes) -> list[Any] | None:
    """Return the tools listed in an answer; None if the request was for something else or there are none."""
    call = call_in(asked)
    if call is None or call.get("method") != "tools/list":
        return None
    return listed(body)


def listed(body: bytes) -> list[Any] | None:
    """Return the tools in an answer to ``tools/list``; None if there are none."""
    for said in results_in(body):
        result = said.get("result")
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            tools: list[Any] = result["tools"]
            return tools
    return None


def tool_changes(before: list[Any], now: list[Any]) -> list[str]:
    """Return the differences between two lists of tools, each with the name of the tool."""
    old, new = by_name(before), by_name(now)
    if old is None or new is None:
        place = first_difference(before, now, "tools")
        return [place] if place else []
    found = []
    for name in old | new:
        if name not in new:
            found.append(f"{name} is no longer offered")
        elif name not in old:
            found.append(f"{name} is new")
        elif old[name] != new[name]:
            found += [f"{name}: {place}" for place in _parts_that_differ(old[name], new[name])]
    if not found and [*old] != [*new]:
        found.append("they are listed in another order")
    return found


def _parts_that_differ(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = []
    for name in before | now:
        place = first_difference(_only(before, name), _only(now, name))
        if place:
            found.append(place)
    return found


def _only(value: dict[str, Any], name: str) -> dict[str, Any]:
    return {name: value[name]} if name in value else {}


def refusal(asked: OutboundRequest, message: str) -> bytes | None:
    """Return an error as the answer to a call; None if the message expects no answer."""
    call = call_in(asked)
    if call is None or "id" not in call:
        return None
    error = {"code": -32000, "message": f"gate: {message}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": call["id"], "error": error})
