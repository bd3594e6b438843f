"""An HTTP/1.1 server on loopback for the time of a run: limits what it accepts, and answers at once or piece by piece.

h11 handles the HTTP: a parser that reads from no socket and limits its input.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Self

import h11
from msgspec import Struct

from gate.errors import MeasureError

HOST = "127.0.0.1"
_OWN_NAMES = frozenset({HOST, "localhost", "[::1]"})
"""Names that this machine has for itself. A page in a browser uses another one."""
_PORT = re.compile(r":\d*$", re.ASCII)
Headers = Iterable[tuple[str, str]]


class Bounds(Struct, frozen=True):
    """The limits of a server on loopback."""

    body_bytes: int
    """The most bytes of one request."""
    head_bytes: int
    connections: int
    """The most open connections; for one more, the one that has been silent longest is closed."""
    idle_seconds: float
    """Longest silence on a connection, in seconds."""


class Incoming(Struct, frozen=True):
    """A request as received."""

    method: str
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    """Names in lower case."""
    body: bytes

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.headers if key == name), "")


class Outgoing:
    """The answer to one request: ``whole``; or ``begin``, ``send`` for each piece, and ``end``."""

    def __init__(self, connection: h11.Connection, writer: asyncio.StreamWriter) -> None:
        self._connection, self._writer = connection, writer
        self.begun = False

    async def whole(self, status: int, headers: Headers, body: bytes) -> None:
        self.begun = True
        sent = [*headers, ("content-length", str(len(body)))]
        data = self._connection.send(h11.Response(status_code=status, headers=sent)) or b""
        data += self._connection.send(h11.Data(data=body)) or b""
        data += self._connection.send(h11.EndOfMessage()) or b""
        self._writer.write(data)
        await self._writer.drain()

    async def begin(self, status: int, headers: Headers) -> None:
        self.begun = True
        self._writer.write(self._connection.send(h11.Response(status_code=status, headers=list(headers))) or b"")
        await self._writer.drain()

    async def send(self, piece: bytes) -> None:
        self._writer.write(self._connection.send(h11.Data(data=piece)) or b"")
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(self._connection.send(h11.EndOfMessage()) or b"")
        await self._writer.drain()


Handler = Callable[[Incoming, Outgoing], Awaitable[None]]


class LoopbackServer:
    """Entered for a run; ``handle`` answers each request."""

    def __init__(self, handle: Handler, *, port: int, bounds: Bounds, where: str) -> None:
        self._handle, self.port, self._bounds, self._where = handle, port, bounds, where
        self._connections: set[asyncio.Task[None]] = set()
        self._silent: dict[asyncio.Task[None], None] = {}
        """The connections waiting for data, the one that has been silent longest first."""

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._connected, HOST, self.port)
        except OSError as error:
            what = f"port {self.port} cannot be opened: {error.strerror}"
            hint = "does another run have it open? name another port"
            raise MeasureError(what, where=self._where, hint=hint) from error
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            if self._make_room():
                await self._serve(reader, writer)
        except (OSError, TimeoutError, h11.ProtocolError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            self._silent.pop(task, None)
            writer.close()

    def _make_room(self) -> bool:
        """True if there is room for a connection; makes room so that idle connections cannot lock others out."""
        if len(self._connections) > self._bounds.connections:
            if not self._silent:
                return False
            longest = next(iter(self._silent))
            del self._silent[longest]
            longest.cancel()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection, one after the other."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=self._bounds.head_bytes)
        while True:
            request = await self._next(connection, reader)
            if not isinstance(request, h11.Request):
                return
            if connection.they_are_waiting_for_100_continue:
                writer.write(connection.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            body = await self._body(connection, reader)
            answer = Outgoing(connection, writer)
            if body is None:
                await answer.whole(413, [("connection", "close")], b"")
                return
            if not _is_for_us(request):
                await answer.whole(421, [("connection", "close")], b"")
                return
            target, method = request.target.decode("ascii", "replace"), request.method.decode("ascii", "replace")
            await self._handle(Incoming(method, target, tuple(request.headers), body), answer)
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()

    async def _body(self, connection: h11.Connection, reader: asyncio.StreamReader) -> bytes | None:
        """Return the body of the request; None if it is too large."""
        pieces: list[bytes] = []
        size = 0
        while isinstance(event := await self._next(connection, reader), h11.Data):
            pieces.append(bytes(event.data))
            size += len(event.data)
            if size > self._bounds.body_bytes:
                return None
        return b"".join(pieces)

    async def _next(self, connection: h11.Connection, reader: asyncio.StreamReader) -> object:
        """Return the next event of a connection."""
        task = asyncio.current_task()
        assert task is not None
        while (event := connection.next_event()) is h11.NEED_DATA:
            self._silent[task] = None
            async with asyncio.timeout(self._bounds.idle_seconds):
                connection.receive_data(await reader.read(262_144))
            self._silent.pop(task, None)
        return event


def _is_for_us(request: h11.Request) -> bool:
    """True if the request names this machine: a page in a browser may use a name that leads here."""
    named = next((value.decode("latin-1") for key, value in request.headers if key == b"host"), "")
    return _PORT.sub("", named).lower() in _OWN_NAMES
