"""What was asked of the outside world, and the address by which the same request is found again: its content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from gate.world.options import Kind
from gate.world.volatile import Volatile

MEANT = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers that say what is asked; any other says who asks, or how it is carried."""
SECRET_QUERY = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "token"})
DIGEST_CHARS = 40
_ENCODER = msgspec.json.Encoder(order="deterministic")


class OutboundRequest(Struct, frozen=True):
    """One request to a server."""

    upstream: str
    kind: Kind
    method: str
    path: str
    """With its query, and without keys."""
    headers: Mapping[str, str]
    """Those that say what is asked."""
    body: bytes
    at: float
    """Unix time."""

    @property
    def value(self) -> Any:
        """The body as a JSON value; None if it is none."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None


def digest(data: bytes) -> str:
    """By which bodies are kept."""
    return hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]


def address(asked: OutboundRequest, volatile: Volatile) -> str:
    """Equal for two requests only if they ask the same of the same server, but for what varies by itself."""
    value = content(asked)
    body = _plain_text(asked, volatile) if value is None else _ENCODER.encode(volatile.plain(value, asked.at))
    head = (asked.upstream, asked.method, volatile.plain(asked.path, asked.at), sorted(asked.headers.items()))
    return digest(_ENCODER.encode(head) + b"\n" + body)


def content(asked: OutboundRequest) -> Any:
    """What is asked, as JSON; the number of a call of MCP is how the answer is found, and no part of it."""
    value = asked.value
    if asked.kind == "mcp" and isinstance(value, dict) and "jsonrpc" in value:
        parameters = value.get("params")
        if isinstance(parameters, dict) and "_meta" in parameters:
            value = {**value, "params": {name: held for name, held in parameters.items() if name != "_meta"}}
        return {name: held for name, held in value.items() if name != "id"}
    return value


def _plain_text(asked: OutboundRequest, volatile: Volatile) -> bytes:
    try:
        return str(volatile.plain(asked.body.decode(), asked.at)).encode()
    except UnicodeDecodeError:
        return asked.body


def path_without_keys(target: str) -> str:
    """A request's target without what signs in."""
    path, mark, query = target.partition("?")
    kept = [part for part in query.split("&") if part and part.partition("=")[0].lower() not in SECRET_QUERY]
    return path + (mark + "&".join(kept) if kept else "")


def meant(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Those headers that say what is asked."""
    pairs = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers)
    return {name: value for name, value in pairs if name in MEANT}
