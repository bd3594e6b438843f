"""A request to a server, and the key by which an equal request is recognized: its content."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from gate.world.options import Kind
from gate.world.volatile import Volatile, find_ids

_CARRIED = re.compile(
    r"accept-encoding|cache-control|connection|content-length|date|dnt|expect|forwarded|from|host|keep-alive"
    r"|last-event-id|mcp-session-id|origin|pragma|priority|proxy-.*|referer|te|trailer|transfer-encoding|upgrade"
    r"|user-agent|via|sec-.*|x-forwarded-.*|x-gate-.*|x-real-ip"
    r"|x-stainless-.*|x-goog-api-client|x-amz-date|x-amz-user-agent|x-amz-content-sha256"
    r"|.*(?:trace|request-id|correlation-id|invocation-id|retry).*|b3|x-b3-.*|baggage|x-datadog-.*|newrelic"
)
"""Headers about transport, the client's release and tracing, which vary without a change of content."""
_SIGNS_IN = re.compile(r"(?:x-|x-goog-)?api-key|.*(?:auth|secret|cookie|signature|password|credential).*")
_MAY_SIGN_IN = re.compile(r".*(?:key|token).*")
"""Headers that may authenticate the client. Their presence is content, their value is not."""
SECRET_CHARS = 16
"""Least length of such a header's value from which it counts as authentication."""
SECRET_QUERY = frozenset({"key", "api_key", "api-key", "apikey", "access_token", "token"})
DIGEST_CHARS = 40
SHORT_CHARS = 12
_ENCODER = msgspec.json.Encoder(order="deterministic")


class OutboundRequest(Struct, frozen=True):
    """One request to a server."""

    upstream: str
    kind: Kind
    method: str
    path: str
    """With its query, without keys."""
    headers: Mapping[str, str]
    """Further parts of the request by name, mostly headers."""
    body: bytes
    at: float
    """Unix time."""

    @property
    def value(self) -> Any:
        """The body as a JSON value; None if it is not JSON."""
        try:
            return msgspec.json.decode(self.body) if self.body else None
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None


def digest(data: bytes) -> str:
    """Return the digest under which a body is stored."""
    return hashlib.sha256(data).hexdigest()[:DIGEST_CHARS]


def digest_of(value: Any) -> str:
    """Return a short digest of a JSON value; the order of keys makes no difference."""
    return digest(_ENCODER.encode(value))[:SHORT_CHARS]


class Addressed(Struct, frozen=True):
    """The key by which an equal request is recognized."""

    key: str
    """Equal only for requests with the same content to the same server, apart from varying parts."""
    ids: tuple[str, ...] = ()
    """Digests of the ids in it, in the order of their numbers."""
    sent: tuple[str, ...] = ()
    """Further parts of the request, each with a digest of its value."""


def address(asked: OutboundRequest, volatile: Volatile) -> Addressed:
    """Return the key under which a request is stored; ids in it are replaced by numbers and listed separately."""
    value = content(asked)
    body = _text(asked) if value is None else value
    plain, ids = volatile.marked([asked.path, sorted(asked.headers.items()), body], asked.at)
    key = digest(_ENCODER.encode((asked.upstream, asked.method, *plain, value is None)))
    sent = tuple(f"{name} {_short(held)}" for name, held in plain[1])
    return Addressed(key, tuple(map(_short, ids)), sent)


def _short(text: str) -> str:
    return digest(text.encode("utf-8", "surrogatepass"))[:SHORT_CHARS]


def ids_in(text: str) -> list[str]:
    """Return the ids in a text, as digests like those of `Addressed`."""
    return [_short(one) for one in find_ids(text)]


def content(asked: OutboundRequest) -> Any:
    """Return the request as JSON, without the number of an MCP call, which only matches the answer."""
    value = asked.value
    if asked.kind == "mcp" and isinstance(value, dict) and "jsonrpc" in value:
        parameters = value.get("params")
        if isinstance(parameters, dict):
            parameters.pop("_meta", None)
        value.pop("id", None)
    return value


def _text(asked: OutboundRequest) -> str:
    try:
        return asked.body.decode()
    except UnicodeDecodeError:
        return digest(asked.body)


def path_without_keys(target: str) -> str:
    """Return a request's target without secrets in the query."""
    path, mark, query = target.partition("?")
    kept = [part for part in query.split("&") if part and part.partition("=")[0].lower() not in SECRET_QUERY]
    return path + (mark + "&".join(kept) if kept else "")


def meant(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return the headers that define the request: none about transport, and credentials without their value."""
    found: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1").lower()
        if _SIGNS_IN.fullmatch(name) or (_MAY_SIGN_IN.fullmatch(name) and len(value) >= SECRET_CHARS):
            found[f"header {name}"] = ""
        elif name == "content-type":  # the boundary is random
            found[f"header {name}"] = value.decode("latin-1").partition(";")[0].strip().lower()
        elif not _CARRIED.fullmatch(name):
            found[f"header {name}"] = ", ".join(filter(None, (found.get(f"header {name}"), value.decode("latin-1"))))
    return found


def signed_query(target: str) -> dict[str, str]:
    """Return a digest of the query parts that `path_without_keys` leaves out, for tools: there ``token=`` may be a page
    and ``key=`` a name."""
    parts = [part for part in target.partition("?")[2].split("&") if part.partition("=")[0].lower() in SECRET_QUERY]
    if not parts:
        return {}
    return {"its query": digest("&".join(parts).encode("utf-8", "replace"))}


def whereabouts(url: str) -> dict[str, str]:
    """Return the server's address for comparison, without the port on loopback, which often changes."""
    parts = urlsplit(url)
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    host = parts.hostname if local else parts.netloc.rpartition("@")[2]
    return {"its server's address": f"{parts.scheme}://{host}{parts.path}"}
