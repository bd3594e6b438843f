"""An OTLP/HTTP receiver on loopback during a run: it accepts spans of the expected turns, and no others."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterable
from hmac import compare_digest
from secrets import token_hex
from typing import Self

from msgspec import Struct, field

from gate.errors import ConfigError
from gate.system.http import HttpError, inflated
from gate.system.serving import HOST, Bounds, Incoming, LoopbackServer, Outgoing
from gate.traces.dialects import Kind, kind_of
from gate.traces.reader import TraceReader
from gate.traces.span import Piece, Span
from gate.traces.tree import MAX_SPANS

MAX_BODY_BYTES = 20_000_000
"""Most bytes of one request, both packed and unpacked."""
MAX_TURN_BYTES = 50_000_000
"""Most bytes stored for one turn."""
QUIET_SECONDS = 0.5
"""Seconds of silence after which a turn without an enclosing span is complete, if the gate starts the agent: it then
exports every 0.2 s."""
MAX_HEAD_BYTES = 32_768
MAX_CONNECTIONS = 512
IDLE_SECONDS = 60.0
"""Longest silence on a connection, in seconds."""
_PATHS = {"v1/traces": "traces", "v1/logs": "logs", "v1/metrics": "metrics"}
_JSON = "application/json"
_PROTOBUF = "application/x-protobuf"


class AwaitedTurn(Struct):
    """One turn whose spans are expected."""

    trace_id: str
    parent_id: str
    """The id of the span under which the agent's spans begin."""
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0
    """Bytes of the request bodies with data for this turn."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def traceparent(self) -> str:
        """The header of W3C Trace Context for this turn, marked as sampled."""
        return f"00-{self.trace_id}-{self.parent_id}-01"

    @property
    def full(self) -> bool:
        return len(self.pieces) >= MAX_SPANS or self.size > MAX_TURN_BYTES

    @property
    def complete(self) -> bool:
        """True if a root and every parent that is named have arrived."""
        parents: set[str] = set()
        known = {"", self.parent_id}
        for piece in self.pieces:
            if isinstance(piece, Span):
                parents.add(piece.parent_id)
                known.add(piece.span_id)
        has_root = not parents.isdisjoint(("", self.parent_id))
        return has_root and parents <= known

    @property
    def held_together(self) -> bool:
        """True if a span of an agent or request encloses the turn: it ends and is exported after the spans within.

        Single calls of models and tools may be followed by others.
        """
        roots = [piece for piece in self.pieces if isinstance(piece, Span) and piece.parent_id in ("", self.parent_id)]
        return any(kind_of(root) not in (Kind.MODEL, Kind.TOOL) for root in roots)


class Receiver:
    """The receiver of a run, used as a context. ``expect`` announces a turn, ``collect`` waits for its spans."""

    def __init__(
        self, port: int = 0, take: Callable[[bytes, str, str], None] | None = None, *, token: str = ""
    ) -> None:
        """``take`` gets every request instead of the turns: its body, ``traces`` or ``logs``, and its media type.

        ``token``: the first part of the address's path; by default a new one if the port is chosen freely, else none.
        """
        self._take_whole = take
        self._is_new = port == 0
        self._token = token
        if self._is_new and not token:
            self._token = token_hex(16)
        self._expected: dict[str, AwaitedTurn] = {}
        bounds = Bounds(MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_CONNECTIONS, IDLE_SECONDS)
        self._server = LoopbackServer(self._handle, port=port, bounds=bounds, where="agent.traces")
        self._reader = TraceReader()
        self.unknown = 0
        """Spans and log records of unexpected traces."""
        self.late = 0
        """Turns whose trace was not complete in time."""
        self.left_out = 0
        """Spans beyond the limits of a turn."""
        self.seen = 0
        """Turns with a received trace."""

    @property
    def refused(self) -> dict[str, int]:
        """The counts of unreadable data, by reason."""
        return dict(self._reader.refused)

    @property
    def endpoint(self) -> str:
        """The address to which agents export: ``OTEL_EXPORTER_OTLP_ENDPOINT``."""
        return f"http://{HOST}:{self._server.port}/{self._token}".rstrip("/")

    def endpoint_of(self, turn: AwaitedTurn) -> str:
        """Return an endpoint for one turn: everything sent to it belongs to this turn, whatever its trace id."""
        return f"{self.endpoint}/{turn.trace_id}"

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    def expect(self) -> AwaitedTurn:
        """Return a new turn whose spans are expected from now on."""
        turn = AwaitedTurn(token_hex(16), token_hex(8))
        self._expected[turn.trace_id] = turn
        return turn

    def forget(self, turn: AwaitedTurn) -> None:
        """Stop expecting the spans of a turn."""
        self._expected.pop(turn.trace_id, None)

    async def collect(self, turn: AwaitedTurn, wait: float, *, failed: bool = False) -> list[Piece]:
        """Return the pieces of a turn once it is complete or the time is up; later pieces count as unknown.

        A turn that ``failed`` does not count as late.
        """
        try:
            async with asyncio.timeout(wait):
                while not turn.complete:
                    await _arrival(turn)
                while not turn.held_together and await self._more_comes(turn, wait):
                    pass
        except TimeoutError:
            pass
        self.late += not (turn.complete or failed)
        self.seen += bool(turn.pieces)
        self.forget(turn)
        return turn.pieces

    async def _more_comes(self, turn: AwaitedTurn, wait: float) -> bool:
        """True if anything arrives before the silence is long enough; longer for an agent that the gate did not
        start."""
        if self._is_new:
            wait = QUIET_SECONDS
        try:
            async with asyncio.timeout(wait):
                await _arrival(turn)
        except TimeoutError:
            return False
        return True

    # --- requests ---------------------------------------------------------------------------------

    async def _handle(self, request: Incoming, answer: Outgoing) -> None:
        status, kind, body = self._answer(request)
        await answer.whole(status, [("content-type", kind)], body)

    def _answer(self, request: Incoming) -> tuple[int, str, bytes]:
        """Return the status, media type and body of the response."""
        found = self._signal(request.target)
        if found is None:
            return 404, "text/plain", b""
        signal, turn = found
        if request.method != "POST":
            return 405, "text/plain", b""
        kind = request.header(b"content-type").partition(";")[0].strip().lower()
        if kind not in (_JSON, _PROTOBUF):
            return 415, "text/plain", b"application/json or application/x-protobuf"
        unpacked = _unpacked(request.body, request.header(b"content-encoding").strip().lower())
        if unpacked is None:
            return 400, "text/plain", b"the body cannot be unpacked, or is too large"
        if signal != "metrics" and self._take_whole is not None:
            self._take_whole(unpacked, signal, kind)
        elif signal != "metrics":
            self._take(unpacked, signal, kind, turn)
        return 200, kind, b"{}" if kind == _JSON else b""

    def _signal(self, target: str) -> tuple[str, AwaitedTurn | None] | None:
        """Return the signal of a path, and the turn if it names one; None for any other path."""
        path = target.partition("?")[0].strip("/")
        if self._token:
            token, _, path = path.partition("/")
            if not compare_digest(token.encode(), self._token.encode()):
                return None
        turn = self._expected.get(path.partition("/")[0])
        if turn is not None:
            path = path.partition("/")[2]
        if path not in _PATHS:
            return None
        return _PATHS[path], turn

    def _take(self, body: bytes, signal: str, kind: str, turn: AwaitedTurn | None) -> None:
        if kind == _JSON:
            pieces: Iterable[Piece] = self._reader.document(body)
        else:
            pieces = self._reader.protobuf(body, logs=signal == "logs")
        touched: dict[str, AwaitedTurn] = {}
        for piece in pieces:
            of_turn = turn or self._expected.get(piece.trace_id)
            if of_turn is None:
                self.unknown += 1
            elif of_turn.full:
                self.left_out += 1
            else:
                of_turn.pieces.append(piece)
                touched[of_turn.trace_id] = of_turn
        for one in touched.values():
            one.size += len(body)
            one.arrived.set()


async def _arrival(turn: AwaitedTurn) -> None:
    turn.arrived.clear()
    await turn.arrived.wait()


def _unpacked(body: bytes, encoding: str) -> bytes | None:
    """Return the decoded body; None if it is broken, has another encoding, or exceeds the limit."""
    if encoding in ("", "identity"):
        return body
    if encoding not in ("gzip", "deflate"):
        return None
    try:
        return inflated(body, MAX_BODY_BYTES)
    except (zlib.error, HttpError):
        return None


def check_library() -> None:
    """Raise `ConfigError` if protobuf, which most agents export, cannot be read."""
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401 - weight: only for a receiver
    except ImportError as error:
        from gate.traces.otlp import INSTALL

        raise ConfigError("the receiver needs opentelemetry-proto", where="agent.traces", hint=INSTALL) from error
