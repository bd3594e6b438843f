"""The HTTP proxy: receives an agent's requests on loopback, and answers them from the recording or from their server.

Only configured servers are reachable. Credentials are passed on.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from time import perf_counter, time

import httpx
from msgspec import Struct
from msgspec.structs import replace

from gate.security.limits import MAX_ANSWER_BYTES, shorten
from gate.system.serving import Bounds, Incoming, LoopbackServer, Outgoing
from gate.world.attempt import Answering, Attempt
from gate.world.cassette import RecordedExchange
from gate.world.differences import MOST_CHARS, first_difference
from gate.world.mcp import asks_what_there_is, call_in, numbered, refusal, results_in, tools_in
from gate.world.options import Upstream
from gate.world.outbound import (
    Addressed,
    OutboundRequest,
    address,
    digest_of,
    meant,
    path_without_keys,
    signed_query,
    whereabouts,
)
from gate.world.world import World

BOUNDS = Bounds(body_bytes=MAX_ANSWER_BYTES, head_bytes=65_536, connections=1024, idle_seconds=600.0)
"""Clients keep connections open between the turns of a conversation, hence the long idle time."""
CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
TRIAL_HEADER = b"x-gate-trial"
"""Holds the trial's session id in requests of an agent that the gate did not start."""
_OWN = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "accept-encoding", "expect", "x-gate-trial"),
    }
)
"""Headers of a single connection, and the proxy's own."""
KEPT = frozenset({"content-type", "content-encoding", "mcp-session-id", "location"})
"""Headers of an answer that are recorded."""
PASSING = frozenset({401, 403, 407, 408, 409, 425, 429})
"""Statuses that are temporary or depend on the client: never recorded, like all 5xx."""
_FAILED = re.compile(rb'(?m)^(?:event: ?(?:error|response\.failed)\b|data: ?\{ ?"error" ?:(?! ?null))')
"""A stream that ended in an error; servers of models report errors this way after status 200."""
LATER = 503
REFUSED = 422
"""A status that clients do not retry."""


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[World]:
    """Enter the world for a run and serve its requests."""
    proxy = Proxy(world)
    server = LoopbackServer(proxy.handle, port=world.port, bounds=BOUNDS, where="world.port")
    async with world, aclosing(proxy), server:
        world.port = server.port
        yield world


class Proxy:
    """Answers requests for a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pending: dict[tuple[str, str], tuple[_Call, Answering, float, float]] = {}
        """Calls that the agent's side sends to a server on standard input and output itself, by attempt and number."""
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=256),
        )

    async def aclose(self) -> None:
        await self._client.aclose()

    async def handle(self, request: Incoming, out: Outgoing) -> None:
        """Answer one request."""
        token, name, rest = _parts(request)
        upstream = self._world.upstreams.get(name)
        known, attempt = self._world.attempt_of(token)
        if not known:
            return await _refuse(
                out, 404, "no trial has this address: it is over, or the address is not one of the gate's"
            )
        if name == "stdio":
            return await self._stdio(attempt, request, rest.strip("/"), out)
        if upstream is None:
            names = ", ".join(self._world.upstreams)
            return await _refuse(out, 404, f"{name!r} is no server of this run: world.upstreams names {names}")
        if "websocket" in request.header(b"upgrade").lower():
            return await _refuse(out, REFUSED, "a WebSocket is neither recorded nor passed on")
        if _climbs(rest):
            return await _refuse(out, 400, "a path with .. in it")
        told = meant(request.headers) | whereabouts(upstream.url)
        if upstream.kind != "model":
            told |= signed_query(rest)
        path = path_without_keys(rest)
        asked = OutboundRequest(name, upstream.kind, request.method, path, told, request.body, time())
        if attempt is None:  # such as during the agent's import
            if self._world.replays and upstream.answered_by in ("replay", "fail"):
                return await _refuse(out, REFUSED, "it is asked outside of a trial, and nothing goes out in this mode")
            self._world.outside += 1
            await self._pass_on(upstream, request, rest, out)
            return None
        if upstream.kind == "mcp" and call_in(asked) is None:
            return await self._aside(attempt, upstream, request, rest, out)
        attempt.asked += 1
        call = _Call(attempt, upstream, asked, address(asked, self._world.volatile), attempt.asked, request, rest, out)
        return await self._within(call, self._world.answering(attempt, upstream, asked, call.key))

    async def _stdio(self, attempt: Attempt | None, request: Incoming, name: str, out: Outgoing) -> None:
        """Handle a message for a server on standard input and output; 204 tells the caller to send it to the server."""
        number = request.header(b"x-gate-call")
        if attempt is None:
            self._world.outside += not number
            return await out.whole(204, [], b"")
        if number:
            self._told(attempt, number, request.body)
            return await out.whole(204, [], b"")
        asked = OutboundRequest(f"stdio:{name}", "mcp", "POST", "", {}, request.body, time())
        upstream = self._world.stdio(name)
        if not (asks_what_there_is(asked) and upstream.answered_by == "replay-then-live"):  # else it is asked anyway
            asked = replace(asked, headers={"its server's program": request.header(b"x-gate-program")})
        if "id" not in (call_in(asked) or {}):  # a notification has no answer
            return await out.whole(202 if self._world.is_closed(attempt, upstream) else 204, [], b"")
        attempt.asked += 1
        call = _Call(attempt, upstream, asked, address(asked, self._world.volatile), attempt.asked, request, "", out)
        answering = self._world.answering(attempt, upstream, asked, call.key)
        if not answering.goes_out:
            return await self._within(call, answering)
        self._note_difference(call, answering)
        attempt.live += 1
        attempt.whole_unless_told.add(str(call.number))
        self._pending[attempt.name, str(call.number)] = call, answering, attempt.now, perf_counter()
        return await out.whole(204, [("x-gate-call", str(call.number))], b"")

    def _told(self, attempt: Attempt, number: str, body: bytes) -> None:
        """Store the answer of a server on standard input and output to a call."""
        found = self._pending.pop((attempt.name, number), None)
        if found is None:
            return
        call, answering, start, began = found
        attempt.whole_unless_told.discard(number)
        now = perf_counter()
        passed = _Passed(200, (("content-type", "application/json"),), body.strip(), now, now)
        tools = self._tools(call, passed)
        if _is_unchanged(answering, passed, tools):
            assert answering.exchange is not None
            attempt.live -= 1
            attempt.replay(answering.exchange, call.number)
            return
        _tell_change(call, answering, passed)
        self._keep(call, passed, tools, start=start, began=began)

    async def _aside(self, attempt: Attempt, upstream: Upstream, request: Incoming, rest: str, out: Outgoing) -> None:
        """Pass on an MCP client's listening stream or end of session; neither is recorded."""
        if self._world.is_closed(attempt, upstream):
            return await out.whole(405 if request.method == "GET" else 200, [], b"")
        task = asyncio.current_task()
        assert task is not None
        attempt.listening.add(task)
        try:
            await self._pass_on(upstream, request, rest, out)
        finally:
            attempt.listening.discard(task)

    async def _within(self, call: _Call, answering: Answering) -> None:
        """Answer a request within a trial."""
        attempt, asked = call.attempt, call.asked
        self._note_difference(call, answering)
        if answering.goes_out:
            return await self._live(call, answering)
        if answering.exchange is not None and answering.body is not None:
            attempt.replay(answering.exchange, call.number)
            headers = [*answering.exchange.headers, ("x-gate-replayed", "1")]
            return await call.out.whole(answering.exchange.status, headers, numbered(answering.body, asked))
        why = attempt.difference or "nothing is recorded of this trial"
        if answering.ends_trial:
            attempt.missing = attempt.missing or why
        body = refusal(asked, f"the recording has no answer: {why}")
        if body is not None:
            return await call.out.whole(200, [("content-type", "application/json")], body)
        return await _refuse(call.out, REFUSED, f"the recording has no answer: {why}")

    def _note_difference(self, call: _Call, answering: Answering) -> None:
        if answering.exchange is None:
            call.attempt.differs(call.asked, call.number, self._world.volatile, call.key.sent)

    async def _live(self, call: _Call, answering: Answering) -> None:
        attempt = call.attempt
        start, began = attempt.now, perf_counter()
        task, done = asyncio.current_task(), asyncio.get_running_loop().create_future()
        assert task is not None
        attempt.calls[done] = task
        attempt.live += 1
        try:
            passed = await self._pass_on(call.upstream, call.request, call.rest, call.out)
            if passed is None:
                attempt.whole = False
            elif _is_unchanged(answering, passed, tools := self._tools(call, passed)):
                assert answering.exchange is not None
                attempt.live -= 1  # the server still offers the same as recorded
                attempt.replay(answering.exchange, call.number)
            elif call.upstream.kind == "model" and _FAILED.search(passed.body):
                attempt.whole = False  # a temporary error within the stream
            elif passed.status not in PASSING and passed.status < 500:
                _tell_change(call, answering, passed)
                self._keep(call, passed, tools, start=start, began=began)
        except BaseException:
            attempt.whole = False
            raise
        finally:
            attempt.calls.pop(done, None)
            done.set_result(None)

    def _tools(self, call: _Call, passed: _Passed) -> str:
        """Return the digest of the tools listed in a server's answer; empty if there are none."""
        listed = tools_in(call.asked, passed.body)
        return "" if listed is None else digest_of(self._world.volatile.plain(listed, call.asked.at))

    def _keep(self, call: _Call, passed: _Passed, tools: str, *, start: float, began: float) -> None:
        exchange = RecordedExchange(
            number=call.number,
            upstream=call.asked.upstream,
            method=call.asked.method,
            path=call.asked.path,
            key=call.key.key,
            ids=call.key.ids,
            sent=call.key.sent,
            request="",
            status=passed.status,
            response="",
            headers=passed.headers,
            start=round(start, 4),
            first=round(passed.first - began, 4),
            seconds=round(passed.last - began, 4),
            tools=tools,
        )
        if tools:
            call.attempt.offered(exchange, tools_in(call.asked, passed.body) or [])
        self._world.record(call.attempt, call.asked, exchange, passed.body)

    async def _pass_on(self, upstream: Upstream, request: Incoming, rest: str, out: Outgoing) -> _Passed | None:
        """Send the request to its server and stream the answer back; None if it cannot be stored."""
        headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in request.headers]
        sent = [(name, value) for name, value in headers if name.lower() not in _OWN]
        sent.append(("accept-encoding", "identity"))
        going = self._client.build_request(request.method, upstream.url + rest, headers=sent, content=request.body)
        try:
            answer = await self._client.send(going, stream=True)
        except httpx.TransportError as error:
            await _refuse(out, LATER, f"{upstream.name} cannot be reached: {type(error).__name__}: {error}")
            return None
        try:
            first = perf_counter()
            told = [(name.lower(), value) for name, value in answer.headers.multi_items()]
            length = [item for item in told if item[0] == "content-length"]
            await out.begin(answer.status_code, [*(item for item in told if item[0] not in _OWN), *length])
            pieces = await _relay(answer, out)
            await out.end()
        except httpx.TransportError as error:
            raise ConnectionAbortedError("the server's answer broke off") from error
        finally:
            await answer.aclose()
        kept = tuple(item for item in told if item[0] in KEPT)
        return None if pieces is None else _Passed(answer.status_code, kept, pieces, first, perf_counter())


class _Call(Struct, frozen=True):
    """A request of a trial, with everything needed to answer it."""

    attempt: Attempt
    upstream: Upstream
    asked: OutboundRequest
    key: Addressed
    number: int
    request: Incoming
    rest: str
    out: Outgoing


class _Passed(Struct, frozen=True):
    """An answer that was passed on."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    first: float
    last: float


def _is_unchanged(answering: Answering, passed: _Passed, tools: str) -> bool:
    """True if a server that was asked anyway answered as recorded; ``tools``: digest of the tools in its answer."""
    recorded = answering.exchange
    if recorded is None or answering.body is None or recorded.status != passed.status:
        return False
    if tools and tools == recorded.tools:
        return True
    return results_in(answering.body) == results_in(passed.body)


def _tell_change(call: _Call, answering: Answering, passed: _Passed) -> None:
    """Store how a server's present offer differs from the recorded one."""
    if answering.body is None or call.attempt.difference:
        return
    old, new = results_in(answering.body), results_in(passed.body)
    place = first_difference(old[0] if len(old) == 1 else old, new[0] if len(new) == 1 else new)
    method = (call_in(call.asked) or {}).get("method")
    call.attempt.difference = shorten(f"{method} of {call.upstream.name} answers otherwise at {place}", MOST_CHARS)


async def _relay(answer: httpx.Response, out: Outgoing) -> bytes | None:
    """Pass on an answer piece by piece; return it, or None if it is too large to be stored."""
    pieces: list[bytes] = []
    size = 0
    async for piece in answer.aiter_raw():
        await out.send(piece)
        size += len(piece)
        if size <= MAX_ANSWER_BYTES:
            pieces.append(piece)
    if size > MAX_ANSWER_BYTES:
        return None
    return b"".join(pieces)


def _parts(request: Incoming) -> tuple[str, str, str]:
    """Return the token of a worker or trial, the server's name, and the rest of the path with its query."""
    target = request.target
    if "://" in target:
        target = "/" + target.partition("://")[2].partition("/")[2]
    token = request.header(TRIAL_HEADER).strip()
    path = target[1:]
    if not token:
        token, _, path = path.partition("/")
    name = re.split("[/?]", path, maxsplit=1)[0]
    return token, name, path[len(name) :]


def _climbs(path: str) -> bool:
    plain = (
        path.partition("?")[0].lower().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/").replace("\\", "/")
    )
    return ".." in plain.split("/")


async def _refuse(out: Outgoing, status: int, message: str) -> None:
    """Send an error in the form of model APIs; clients retry it only for status 503."""
    body = json.dumps({"error": {"message": f"gate: {message}", "type": "gate_world", "code": "gate_world"}}).encode()
    headers: Iterable[tuple[str, str]] = [("content-type", "application/json")]
    if status != LATER:
        headers = [*headers, ("x-should-retry", "false")]
    await out.whole(status, headers, body)
