"""What the proxy knows of MCP: which messages only ask what there is, and how an answer is matched with its call."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from gate.world.outbound import OutboundRequest

_MENU = frozenset(
    {
        *("initialize", "ping", "logging/setLevel", "server/discover"),
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
    }
)
_DATA = re.compile(rb"(?m)^data: ?(.*)$")


def call_in(asked: OutboundRequest) -> dict[str, Any] | None:
    """The message that a request carries; None where it is no message of MCP."""
    value = asked.value if asked.kind == "mcp" else None
    return value if isinstance(value, dict) and "jsonrpc" in value else None


def asks_what_there_is(asked: OutboundRequest) -> bool:
    """Whether a message changes nothing outside: it opens the session, or lists what the server offers."""
    method = (call_in(asked) or {}).get("method")
    return isinstance(method, str) and (method in _MENU or method.startswith("notifications/"))


def numbered(body: bytes, asked: OutboundRequest) -> bytes:
    """A recorded answer, whole or as a stream, under the number of the call that it answers now."""
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
    """What an answer says, without the numbers of the calls."""
    messages = [body] if body.lstrip().startswith(b"{") else [match[1].rstrip(b"\r") for match in _DATA.finditer(body)]
    found = []
    for message in messages:
        try:
            value = msgspec.json.decode(message)
        except msgspec.DecodeError:
            continue
        if isinstance(value, dict) and value.keys() & {"result", "error"}:
            found.append({name: held for name, held in value.items() if name in ("result", "error")})
    return found


def refusal(asked: OutboundRequest, message: str) -> bytes | None:
    """An error that answers a call, which the agent's client raises; None where nobody waits for an answer."""
    call = call_in(asked)
    if call is None or "id" not in call:
        return None
    error = {"code": -32000, "message": f"gate: {message}"}
    return msgspec.json.encode({"jsonrpc": "2.0", "id": call["id"], "error": error})
