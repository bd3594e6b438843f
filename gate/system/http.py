"""The HTTP/1.1 client of the hot path: handles connections and framing; callers interpret the answers.

Built on asyncio's protocols because at the concurrency of a run, general clients cost many times the request itself;
docs/dev/decisions/0003-http-client.md has the measurements.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import ssl
import zlib
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import cached_property, lru_cache
from time import perf_counter, time
from typing import TYPE_CHECKING, Literal, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit

from gate.errors import ConfigError
from gate.model import ErrorKind
from gate.security.limits import MAX_ANSWER_BYTES

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
"""Seconds to open a connection; the caller limits the time of the request itself."""
MAX_HEAD_BYTES = 65_536
_LINE_BYTES = 256
"""The longest chunk-size line; everything longer is an attack or garbage."""
MOST_ROUTES = 1000
"""Addresses to remember; an agent's addresses may each contain a different id."""
MOST_MEMBERS = 100
"""The most parts of a gzip body."""
_NO_BODY = frozenset({204, 304})
TURNS_TO_READ = 2
"""Turns of the event loop after which it has read everything that had arrived on a connection."""


PARTIAL = 206
"""The status of a partial answer, which the gate never requests."""


class Response(NamedTuple):
    """A server's answer, with any status."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; the last value of a repeated header."""
    body: bytes
    duration: float
    """Seconds from the first byte of the request sent to the last byte of the answer read, on an open connection."""
    cookies: tuple[str, ...] = ()
    """The values of its ``Set-Cookie`` headers."""
    whole: bool = True
    """True if the body has a marked end: a length, chunks or its compression. Otherwise it ended with the connection
    and may be incomplete."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by ``Retry-After``, a number or a date; None if absent or unreadable."""
    from email.utils import parsedate_to_datetime  # weight: few answers have it

    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = max(0.0, parsedate_to_datetime(said).timestamp() - time())
        except (ValueError, OverflowError):
            return None
    return seconds if 0.0 <= seconds < math.inf else None


class HttpError(Exception):
    """No response could be read: unreachable (no connection), crash (dropped) or protocol (not a valid answer)."""

    def __init__(self, kind: ErrorKind, message: str, *, transient: bool) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.transient = transient
        """True if the same request may succeed later."""


_NOT_HTTP = "the answer is not HTTP/1.1"
_BAD_CHUNK = "a malformed chunk"


class _Malformed(ValueError):  # noqa: N818 - private, never shown
    """The bytes read are not an HTTP/1.1 response within limits."""


def _read_header(line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not colon or name != name.strip() or not name:
        raise _Malformed("a malformed response header")
    return name.lower(), value.strip()


_known_header = lru_cache(maxsize=256)(_read_header)
"""Cached, because most headers are the same in all answers of a server."""


class _Parser:
    """Parses one response from chunks of bytes; ``feed`` returns True once it is complete."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = b""
        self._at = 0
        """Number of bytes in the buffer that have been parsed."""
        self._pieces: list[bytes] = []
        self._room = limit
        """Bytes that the body may still have."""
        self._reading = self._read()
        self.started = False
        self.status = 0
        self.headers: dict[str, str] = {}
        self.cookies: tuple[str, ...] = ()
        self.reusable = True
        self.whole = True
        """False once the body is known to end with the connection."""

    @property
    def body(self) -> bytes:
        return b"".join(self._pieces)

    def feed(self, data: bytes) -> bool:
        self.started = True
        self._buffer = self._buffer[self._at :] + data
        self._at = 0
        if not next(self._reading, True):
            return False
        self.reusable = self.reusable and self._at == len(self._buffer)
        return True

    def _read(self) -> Iterator[Literal[False]]:
        """Read the response; yields False whenever more bytes are needed."""
        too_long = f"a response head of more than {MAX_HEAD_BYTES:,} bytes"
        while self.status < 200:
            head = yield from self._until(b"\r\n\r\n", MAX_HEAD_BYTES, too_long, begin=b"HTTP/1.", otherwise=_NOT_HTTP)
            status, *lines = head.decode("latin-1").split("\r\n")
            version, _, rest = status.partition(" ")
            if version not in ("HTTP/1.1", "HTTP/1.0") or not rest[:3].isdecimal() or rest[3:4] not in ("", " "):
                raise _Malformed(_NOT_HTTP)
            self.status = int(rest[:3])
        lengths = self._read_headers(lines)
        transfer = self.headers.get("transfer-encoding", "").lower()
        self.reusable = version == "HTTP/1.1" and "close" not in self.headers.get("connection", "").lower()
        if self.status in _NO_BODY:
            return
        if transfer and (transfer != "chunked" or lengths):
            raise _Malformed("a response with contradictory framing")
        if transfer:
            yield from self._read_chunks()
        elif lengths:
            length = lengths.pop()
            if lengths or not (length.isascii() and length.isdecimal()) or len(length) > 18:
                raise _Malformed("a malformed Content-Length")
            yield from self._take(int(length))
        else:
            self.reusable = self.whole = False
            while True:
                yield from self._take(len(self._buffer) - self._at)
                yield False

    def _read_headers(self, lines: list[str]) -> set[str]:
        """Store the headers; return the lengths that they state."""
        lengths = set()
        for line in lines:
            key, value = _known_header(line) if len(line) <= _LINE_BYTES else _read_header(line)
            self.headers[key] = value
            if key == "content-length":
                lengths.add(value)
            elif key == "set-cookie":
                self.cookies += (value,)
        return lengths

    def _read_chunks(self) -> Iterator[Literal[False]]:
        size = -1
        while size:
            line = yield from self._until(b"\r\n", _LINE_BYTES, _BAD_CHUNK)
            digits = line.partition(b";")[0].strip()
            if not digits or len(digits) > 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise _Malformed(_BAD_CHUNK)
            size = int(digits, 16)
            if size:
                yield from self._take(size)
                yield from self._until(b"\r\n", 1, _BAD_CHUNK, begin=b"\r\n", otherwise=_BAD_CHUNK)
        while (yield from self._until(b"\r\n", _LINE_BYTES, _BAD_CHUNK)):
            pass  # a trailer

    def _until(
        self, end: bytes, most: int, problem: str, *, begin: bytes = b"", otherwise: str = ""
    ) -> Generator[Literal[False], None, bytes]:
        """Return the bytes before ``end``, of which there are ``most``; the ``problem`` is that there are more.

        ``begin``: what they and ``end`` begin with, checked as soon as they arrive; ``otherwise``: the problem.
        """
        while True:
            found = self._buffer.find(end, self._at)
            if (found if found >= 0 else len(self._buffer)) - self._at > most:
                raise _Malformed(problem)
            if not begin.startswith(self._buffer[self._at : self._at + len(begin)]):
                raise _Malformed(otherwise)
            if found >= 0:
                break
            yield False
        piece = self._buffer[self._at : found]
        self._at = found + len(end)
        return piece

    def _take(self, size: int) -> Iterator[Literal[False]]:
        """Add the next bytes to the body."""
        self._room -= size
        if self._room < 0:
            raise _Malformed(f"an answer of more than {self._limit:,} bytes")
        while size:
            piece = self._buffer[self._at : self._at + size]
            self._pieces.append(piece)
            self._at += len(piece)
            size -= len(piece)
            if size:
                yield False


class _Connection(asyncio.Protocol):
    """One connection, one request at a time. Time is measured when bytes arrive, not when the waiting task wakes up."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parser = _Parser(limit)
        self._answer: asyncio.Future[Response] | None = None
        self._sent = 0.0
        self._transport: asyncio.Transport | None = None
        self.alive = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.alive = True

    async def exchange(self, data: bytes) -> Response:
        assert self._transport is not None
        self._parser = _Parser(self._limit)
        self._answer = asyncio.get_running_loop().create_future()
        self._sent = perf_counter()
        self._transport.write(data)
        try:
            return await self._answer
        except asyncio.CancelledError:
            self.abort()
            raise

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.abort()  # unrequested bytes
            return
        try:
            if self._parser.feed(data):
                self._finish()
        except _Malformed as error:
            self._fail(HttpError(ErrorKind.PROTOCOL, str(error), transient=False))

    def eof_received(self) -> bool:
        self.alive = False
        if self._answer is not None and not self._answer.done() and not self._parser.whole:
            self._finish()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.alive = False
        if self._answer is None or self._answer.done():
            return
        if self._parser.started:
            self._fail(
                HttpError(ErrorKind.PROTOCOL, "the connection closed in the middle of the answer", transient=True)
            )
        else:
            text = f"the connection closed before an answer came{f': {error}' if error else ''}"
            self._fail(HttpError(ErrorKind.CRASH, text, transient=True))  # it was open: the server dropped it

    def _finish(self) -> None:
        assert self._answer is not None
        parser = self._parser
        if not parser.reusable:
            self.abort()
        duration = perf_counter() - self._sent
        self._answer.set_result(
            Response(parser.status, parser.headers, parser.body, duration, parser.cookies, parser.whole)
        )

    def _fail(self, error: HttpError) -> None:
        assert self._answer is not None
        self._answer.set_exception(error)
        self.abort()

    @property
    def unanswered(self) -> bool:
        """True if nothing of the last answer arrived."""
        return not self._parser.started

    def is_quiet(self) -> bool:
        """True if nothing has arrived since the last answer, not even the server's end of the connection.

        Asks the operating system, since the event loop may not have noticed yet.
        """
        if not self.alive or self._transport is None:
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def abort(self) -> None:
        self.alive = False
        if self._transport is not None:
            self._transport.abort()


async def _take_open(idle: deque[_Connection]) -> _Connection | None:
    """Return an idle connection that the server has not closed; None if there is none.

    A request is never sent twice, because a server that closes the connection may have acted on it. So the connection
    is checked before anything is written.
    """
    while idle:
        connection = idle.pop()
        if connection.is_quiet():
            return connection
        for _ in range(TURNS_TO_READ):  # lets the event loop read what has arrived: the end, or a TLS session ticket
            await asyncio.sleep(0)
        if connection.is_quiet():
            return connection
        connection.abort()
    return None


Place = tuple[str, str, int]
"""Scheme, host and port."""


class _Route(NamedTuple):
    """The properties of an address that are the same for every request to it."""

    place: Place
    netloc: str
    target: str
    proxy: str | None


class Client:
    """A pool of connections to the agents under test. Redirects are not followed.

    ``environment`` may set ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY`` and ``NO_PROXY`` (either case),
    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR``; requests through a proxy use httpx, which supports proxies but costs more.
    ``limit`` is the most open connections.
    """

    def __init__(
        self, *, limit: int = 64, max_bytes: int = MAX_ANSWER_BYTES, environment: Mapping[str, str] | None = None
    ) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._max_bytes = max_bytes
        self._environment = environment or {}
        self._idle: dict[Place, deque[_Connection]] = {}
        self._closing: set[Place] = set()
        """Servers that closed a kept connection during a request; from then on each request gets a new one."""
        self._proxied: dict[str, httpx.AsyncClient] = {}
        self._routes: dict[str, _Route] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for connections in self._idle.values():
            for connection in connections:
                connection.abort()
        self._idle.clear()
        for client in self._proxied.values():
            await client.aclose()
        await asyncio.sleep(0)  # lets the transports close before their loop does

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        on_send: Callable[[], None] = lambda: None,
    ) -> Response:
        """Send one request and read the whole answer. Raises HttpError; the caller limits the time.

        ``on_send`` is called when the request goes out, after the wait for a connection.
        """
        route = self._routes.get(url) or self._find_route(url)
        if route.proxy:
            client = self._proxy_client(route.proxy)
            asked = client.build_request(method, url, headers=dict(headers or {}), content=body)
            return await self._through_proxy(client, asked, on_send)
        head = _encode_head(method, route, tuple((headers or {}).items()))
        data = b"%b%d\r\n\r\n%b" % (head, len(body), body)
        async with self._slots:
            response = await self._exchange(route.place, data, on_send)
        return response if "content-encoding" not in response.headers else _decoded(response, self._max_bytes)

    def _find_route(self, url: str) -> _Route:
        """Check an address that is new or was forgotten. Raises ConfigError."""
        parts = check_url(url)
        assert parts.hostname is not None
        port = parts.port or (443 if parts.scheme == "https" else 80)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        proxy = proxy_for(parts, self._environment)
        route = _Route((parts.scheme, parts.hostname, port), parts.netloc, target, proxy)
        if len(self._routes) >= MOST_ROUTES:
            self._routes.clear()
        self._routes[url] = route
        return route

    async def _exchange(self, place: Place, data: bytes, on_send: Callable[[], None]) -> Response:
        idle = self._idle.setdefault(place, deque())
        connection = await _take_open(idle)
        reused = connection is not None
        if connection is None:
            connection = await self._connect(*place)
        on_send()
        try:
            response = await connection.exchange(data)
        except HttpError:
            if reused and connection.unanswered:
                self._closing.add(place)
            raise
        if connection.alive and place not in self._closing:
            idle.append(connection)
        else:
            connection.abort()
        return response

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        """The system's certificates, or those that ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name.

        Raises ConfigError if the file or folder cannot be read.
        """
        file = self._environment.get("SSL_CERT_FILE") or None
        folder = self._environment.get("SSL_CERT_DIR") or None
        try:
            return ssl.create_default_context(cafile=file, capath=folder)
        except (OSError, ssl.SSLError) as error:
            said = "holds no certificate"
            if not isinstance(error, ssl.SSLError) and error.strerror:
                said = error.strerror
            where = "SSL_CERT_FILE" if file else "SSL_CERT_DIR"
            raise ConfigError(f"{file or folder}: {said}", where=where, hint="a file in PEM format") from error

    async def _connect(self, scheme: str, host: str, port: int) -> _Connection:
        loop = asyncio.get_running_loop()
        tls = self._trusted if scheme == "https" else None

        def made() -> _Connection:
            return _Connection(self._max_bytes)

        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(made, host, port, ssl=tls)
        except ssl.SSLCertVerificationError as error:
            raise HttpError(ErrorKind.UNREACHABLE, f"{host}:{port}: {error.verify_message}", transient=False) from error
        except TimeoutError as error:
            text = f"{host}:{port} did not accept a connection within {CONNECT_SECONDS:g} s"
            raise HttpError(ErrorKind.UNREACHABLE, text, transient=True) from error
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).lower().replace("_", " ")
            text = f"{host}:{port}: no TLS connection ({reason})"
            raise HttpError(ErrorKind.UNREACHABLE, text, transient=True) from error
        except OSError as error:
            plain = error.strerror or str(error)
            if error.errno and error.errno > 0:
                plain = os.strerror(error.errno)
            text = f"{host}:{port}: {plain}"
            raise HttpError(ErrorKind.UNREACHABLE, text, transient=True) from error
        return connection

    def _proxy_client(self, proxy: str) -> httpx.AsyncClient:
        if proxy not in self._proxied:
            import httpx  # weight: only where a proxy applies

            timeout = httpx.Timeout(None, connect=CONNECT_SECONDS)
            try:
                made = httpx.AsyncClient(proxy=proxy, verify=self._trusted, trust_env=False, timeout=timeout)
            except ImportError as error:
                hint = "pip install 'httpx[socks]', or name an HTTP proxy"
                raise ConfigError("a SOCKS proxy needs a package that is not installed", hint=hint) from error
            except ValueError as error:
                shown = _without_user(proxy)
                raise ConfigError(f"the environment's proxy is not an address: {shown!r}", hint=str(error)) from error
            self._proxied[proxy] = made
        return self._proxied[proxy]

    async def _through_proxy(
        self, client: httpx.AsyncClient, request: httpx.Request, on_send: Callable[[], None]
    ) -> Response:
        import httpx  # weight: only where a proxy applies

        async with self._slots:
            on_send()
            start = perf_counter()
            try:
                response = await client.send(request, stream=True)
                chunks, size = [], 0
                try:
                    async for chunk in response.aiter_bytes():
                        chunks.append(chunk)
                        size += len(chunk)
                        if size > self._max_bytes:
                            text = f"an answer of more than {self._max_bytes:,} bytes"
                            raise HttpError(ErrorKind.PROTOCOL, text, transient=False)
                finally:
                    await response.aclose()
            except httpx.DecodingError as error:
                raise HttpError(
                    ErrorKind.PROTOCOL, f"an answer that cannot be decompressed: {error}", transient=False
                ) from error
            except httpx.TransportError as error:
                text = f"through the proxy: {error or type(error).__name__}"
                unopened = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError)
                kind = ErrorKind.UNREACHABLE if unopened else ErrorKind.PROTOCOL
                raise HttpError(kind, text, transient=True) from error
            cookies = tuple(response.headers.get_list("set-cookie"))
            duration, headers = perf_counter() - start, dict(response.headers)
            whole = "content-length" in headers or "transfer-encoding" in headers
            return Response(response.status_code, headers, b"".join(chunks), duration, cookies, whole)


def _decoded(response: Response, limit: int) -> Response:
    """Return the response with its body decompressed: some servers send gzip and deflate unrequested."""
    encoding = response.headers["content-encoding"].strip().lower()
    if encoding in ("", "identity"):
        return response
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise HttpError(ErrorKind.PROTOCOL, f"an answer in an unrequested encoding: {encoding[:40]}", transient=False)
    try:
        body = inflated(response.body, limit)
    except zlib.error as error:
        raise HttpError(ErrorKind.PROTOCOL, f"an answer in invalid {encoding}: {error}", transient=False) from error
    headers = {name: value for name, value in response.headers.items() if name != "content-encoding"}
    return response._replace(headers=headers, body=body, whole=True)


def inflated(data: bytes, limit: int) -> bytes:
    """Return the data of all gzip members, or of one deflate stream with or without zlib's header.

    Raises zlib.error if they are broken, HttpError if there are more than ``limit`` bytes.
    """
    out: list[bytes] = []
    left = limit
    raw = bool(data) and data[:2] != b"\x1f\x8b" and (data[0] & 15 != 8 or int.from_bytes(data[:2], "big") % 31 != 0)
    for _ in range(MOST_MEMBERS):
        if not data:
            return b"".join(out)
        unpack = zlib.decompressobj(-zlib.MAX_WBITS if raw else zlib.MAX_WBITS | 32)
        piece = unpack.decompress(data, left + 1)
        left -= len(piece)
        if left < 0:
            raise HttpError(ErrorKind.PROTOCOL, f"an answer of more than {limit:,} bytes", transient=False)
        if not unpack.eof:
            raise zlib.error("it is incomplete")
        out.append(piece)
        data = unpack.unused_data.lstrip(b"\0")
    raise zlib.error(f"it has more than {MOST_MEMBERS} parts")


def check_url(url: str, *, where: str = "") -> SplitResult:
    """Return the parts of an http or https address; ConfigError for anything else, without showing anything before an
    ``@``."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isascii() or any(c <= " " for c in url) or "@" in parts.netloc:
        raise ConfigError(
            f"not an address: {_without_user(url)!r}",
            where=where,
            hint="http://host:port/path, credentials in headers",
        )
    return parts


def _without_user(url: str) -> str:
    """Return an address, even a malformed one, with every possible user name or password masked."""
    before, at, after = url.rpartition("@")
    if not at:
        return url
    scheme, slashes, _ = before.partition("://")
    if not slashes:
        return f"***@{after}"
    return f"{scheme}{slashes}***@{after}"


@lru_cache(maxsize=MOST_ROUTES)
def _encode_head(method: str, route: _Route, headers: tuple[tuple[str, str], ...]) -> bytes:
    """Return a request's head up to the body's length; cached because most requests to an agent share it."""
    lines = [f"{method} {route.target} HTTP/1.1", f"Host: {route.netloc}"]
    lines += ["Accept-Encoding: identity", "User-Agent: agent-gate"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines.append("Content-Length: ")
    text = "\n".join(lines)
    if text.count("\n") != len(lines) - 1 or "\r" in text or "\0" in text:
        raise ConfigError("a request header holds a line break")
    try:
        return "\r\n".join(lines).encode("latin-1")
    except UnicodeEncodeError as error:
        raise ConfigError("a request header holds characters that HTTP cannot carry") from error


def proxy_for(parts: SplitResult, environment: Mapping[str, str]) -> str | None:
    """Return the proxy that the environment names for this address, by curl's rules."""
    name = f"{parts.scheme}_proxy"
    proxy = environment.get(name) or environment.get(name.upper())
    proxy = proxy or environment.get("all_proxy") or environment.get("ALL_PROXY")
    if not proxy or parts.hostname is None:
        return None
    for entry in (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(","):
        domain = entry.strip().lower().lstrip(".")
        if domain == "*" or (domain and f".{parts.hostname}".endswith(f".{domain}")):
            return None
    return proxy if "://" in proxy else f"http://{proxy}"
