"""The HTTP client against raw sockets: framing in any pieces, failures by name, connections reused, proxies asked."""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import sys
import time
import zlib
from collections.abc import Callable, Coroutine
from contextlib import suppress
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.model import ErrorKind
from gate.system.http import (
    Client,
    HttpError,
    Response,
    _Connection,
    _Malformed,
    _Parser,
    check_url,
    proxy_for,
    retry_after,
)
from tests.integration.agents.driving import open_files, read_request, response, serving
from tests.patience import CEILING, until


def ask(handler: Any, *, count: int = 1, **options: Any) -> list[Response]:
    """The responses to requests sent one after the other by one client."""

    async def main() -> list[Response]:
        async with serving(handler) as port, Client(**options) as client:
            return [await client.request("POST", f"http://127.0.0.1:{port}/p?q=1", body=b"hi") for _ in range(count)]

    return asyncio.run(main())


def sends(data: bytes, *, close: bool = True) -> Callable[..., Coroutine[Any, Any, None]]:
    """A server that answers one request with these bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(data)
        await writer.drain()
        if not close:
            await asyncio.sleep(60)

    return handler


WHOLE = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", b"hello"),
    (b"HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n", b""),
    (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", b""),
    (b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: 1\r\n\r\n", b"abcde"),
]


@given(st.sampled_from(WHOLE), st.lists(st.integers(0, 120)))
def test_a_response_reads_the_same_in_any_pieces(sample: tuple[bytes, bytes], cuts: list[int]) -> None:
    data, body = sample
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    parser = _Parser(100)
    done = [parser.feed(data[start:end]) for start, end in pairwise(bounds)]
    assert done[-1] and not any(done[:-1])
    assert parser.body == body
    assert parser.reusable


@given(st.binary(max_size=300))
def test_garbage_is_refused_and_nothing_else_happens(data: bytes) -> None:
    for prefix in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        parser = _Parser(100)
        try:
            parser.feed(prefix + data)
        except _Malformed:
            continue
        assert len(parser.body) <= 100


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "not HTTP/1.1"),
        (b"HTTP/2 200 OK\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 2xx OK\r\n\r\n", "not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nA" + b"a" * 70_000, "a response head of more than"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "malformed response header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello", "malformed response header"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "malformed Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", "malformed Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "contradictory"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "contradictory"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc", "malformed chunk"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx", "unrequested encoding"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n", "more than 1,000 bytes"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFF\r\n", "more than 1,000 bytes"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000, "more than 1,000 bytes"),
    ],
)
def test_what_is_no_answer_is_named(data: bytes, message: str) -> None:
    with pytest.raises(HttpError, match=message) as caught:
        ask(sends(data, close=False), max_bytes=1000)
    assert caught.value.kind is ErrorKind.PROTOCOL
    assert not caught.value.transient


def test_a_body_that_ends_with_the_connection() -> None:
    (answer,) = ask(sends(b"HTTP/1.0 200 OK\r\n\r\nthe end"))
    assert answer.body == b"the end"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", ErrorKind.CRASH),
        (b"HTTP/1.1 20", ErrorKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", ErrorKind.PROTOCOL),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", ErrorKind.PROTOCOL),
    ],
)
def test_a_connection_that_closes_early(data: bytes, kind: ErrorKind) -> None:
    with pytest.raises(HttpError) as caught:
        ask(sends(data))
    assert caught.value.kind is kind
    assert caught.value.transient


def test_a_refused_connection() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))

        async def main() -> None:
            async with Client() as client:
                await client.request("GET", f"http://127.0.0.1:{held.getsockname()[1]}/")

        with pytest.raises(HttpError, match=r"127\.0\.0\.1:.*refused") as caught:
            asyncio.run(main())
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert caught.value.transient


def test_a_host_that_does_not_exist() -> None:
    async def main() -> None:
        async with Client() as client:
            await client.request("GET", "http://no-such-host.invalid/")

    with pytest.raises(HttpError, match=r"no-such-host\.invalid") as caught:
        asyncio.run(main())
    assert caught.value.kind is ErrorKind.UNREACHABLE


def test_what_is_sent() -> None:
    seen: list[Any] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await read_request(reader))
        writer.write(response(b"{}", extra="X-One: 1\r\n"))

    async def main() -> Response:
        async with serving(handler) as port, Client() as client:
            return await client.request(
                "PUT", f"http://127.0.0.1:{port}/a%20b?c=d#e", headers={"X-Key": "k"}, body=b"{1}"
            )

    answer = asyncio.run(main())
    line, headers, body = seen[0]
    assert line == "PUT /a%20b?c=d HTTP/1.1"
    assert (headers["x-key"], headers["content-length"], body) == ("k", "3", b"{1}")
    assert headers["host"].startswith("127.0.0.1:")
    assert (answer.status, answer.headers["x-one"]) == (200, "1")


def test_connections_are_kept_and_bounded() -> None:
    connections = 0
    most = 0
    flying = 0
    together = asyncio.Barrier(5)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections, most, flying
        connections += 1
        while True:
            await read_request(reader)
            flying += 1
            most = max(most, flying)
            await together.wait()
            await asyncio.sleep(0.01)
            flying -= 1
            writer.write(response(b"ok"))

    async def main() -> None:
        async with asyncio.timeout(CEILING), serving(handler) as port, Client(limit=5) as client:
            url = f"http://127.0.0.1:{port}/"
            await asyncio.gather(*(client.request("POST", url) for _ in range(50)))

    asyncio.run(main())
    assert connections == most == 5


def test_a_connection_that_the_server_closed_while_idle_is_not_written_to() -> None:
    asked = 0
    closed = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await read_request(reader)
        asked += 1
        writer.write(response(b"ok"))  # says keep-alive, and closes
        writer.close()
        await writer.wait_closed()
        closed.set()

    async def main() -> None:
        async with serving(handler) as port, Client() as client:
            for _ in range(4):
                closed.clear()
                answer = await client.request("POST", f"http://127.0.0.1:{port}/")
                assert answer.body == b"ok"
                await closed.wait()

    asyncio.run(main())
    assert asked == 4


@pytest.mark.parametrize("kept", [0, 1, 6])
def test_a_request_is_delivered_once_however_many_idle_connections_a_server_then_closes(kept: int) -> None:
    deliveries: list[bytes] = []
    together = asyncio.Barrier(max(kept, 1))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, _, body = await read_request(reader)
            deliveries.append(body)
            if body == b"fatal":
                return  # read, perhaps acted upon, and closed without an answer
            if body == b"warm":
                await together.wait()
            writer.write(response(b"ok"))

    async def main() -> None:
        async with asyncio.timeout(CEILING), serving(handler) as port, Client() as client:
            url = f"http://127.0.0.1:{port}/"
            await asyncio.gather(*(client.request("POST", url, body=b"warm") for _ in range(kept)))
            with pytest.raises(HttpError) as caught:
                await client.request("POST", url, body=b"fatal")
            assert caught.value.kind is ErrorKind.CRASH
            assert (await client.request("POST", url, body=b"next")).body == b"ok"

    asyncio.run(main())
    assert deliveries.count(b"fatal") == 1
    assert deliveries.count(b"next") == 1


def test_a_server_that_closed_a_kept_connection_under_a_request_gets_a_new_one_for_each() -> None:
    connections = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while (await read_request(reader))[2] != b"fatal":
            writer.write(response(b"ok"))

    async def main() -> None:
        async with serving(handler) as port, Client() as client:
            url = f"http://127.0.0.1:{port}/"
            await client.request("POST", url)
            with pytest.raises(HttpError):
                await client.request("POST", url, body=b"fatal")
            for _ in range(3):
                await client.request("POST", url)

    asyncio.run(main())
    assert connections == 4


def test_a_cancelled_request_gives_its_connection_up() -> None:
    asked: list[bytes] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            _, _, body = await read_request(reader)
            asked.append(body)
            if body == b"slow":
                await until(lambda: len(asked) == 2)
            writer.write(response(body))

    async def main() -> Response:
        async with serving(handler) as port, Client(limit=1) as client:
            url = f"http://127.0.0.1:{port}/"
            slow = asyncio.create_task(client.request("POST", url, body=b"slow"))
            await until(lambda: asked)
            slow.cancel()
            with pytest.raises(asyncio.CancelledError):
                await slow
            return await client.request("POST", url, body=b"quick")

    assert asyncio.run(main()).body == b"quick"


def test_duration_leaves_out_the_wait_for_a_connection() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await read_request(reader)
            await asyncio.sleep(0.05)
            writer.write(response(b"ok"))

    async def main() -> list[Response]:
        async with serving(handler) as port, Client(limit=4) as client:
            url = f"http://127.0.0.1:{port}/"
            return await asyncio.gather(*(client.request("POST", url) for _ in range(40)))

    start = time.perf_counter()
    durations = [answer.duration for answer in asyncio.run(main())]
    elapsed = time.perf_counter() - start
    assert all(duration >= 0.049 for duration in durations)
    assert sum(durations) <= 4 * elapsed


def test_duration_leaves_out_the_wait_for_our_own_loop() -> None:
    async def main() -> tuple[float, float]:
        connection = _Connection(1000)
        connection.connection_made(Nowhere())
        start = time.perf_counter()
        answer = asyncio.create_task(connection.exchange(b"hi"))
        await asyncio.sleep(0)
        connection.data_received(response(b"ok"))
        arrived = time.perf_counter()
        time.sleep(0.05)
        return (await answer).duration, arrived - start

    duration, most = asyncio.run(main())
    assert duration <= most


class Nowhere(asyncio.Transport):
    def write(self, data: bytes | bytearray | memoryview) -> None: ...


def test_no_descriptor_is_leaked() -> None:
    ask(sends(response(b"ok")))
    before = open_files()
    for data in (response(b"ok"), b"garbage", b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"):
        with suppress(HttpError):
            ask(sends(data), count=3)
    assert open_files() <= before


@pytest.mark.parametrize(
    "url",
    ["ftp://x/", "http://", "localhost:80/", "http://user:secret@x/", "http://x:99999/", "http://x/a b", "http://x/\n"],
)
def test_addresses_that_cannot_be_asked(url: str) -> None:
    with pytest.raises(ConfigError, match="not an address"):
        check_url(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://me:hunter2@x/",
        "http:// me:hunter2@x/",
        "me:hunter2@x/",
        "http://m e:hunter2@x/é",
        "http://me:hunter2@[x/",
        "http://me:hun@ter2@x/",
        "http:me:hunter2@x",
        "http://:hunter2@",
    ],
)
def test_a_password_in_an_address_is_not_echoed(url: str) -> None:
    with pytest.raises(ConfigError) as found:
        check_url(url)
    assert "ter2" not in str(found.value)


def test_headers_cannot_be_smuggled() -> None:
    async def main() -> None:
        async with Client() as client:
            await client.request("GET", "http://127.0.0.1:1/", headers={"X": "a\r\nEvil: 1"})

    with pytest.raises(ConfigError, match="line break"):
        asyncio.run(main())


# --- bodies that are packed ---

TEXT = b'{"output": "as it was"}' * 20
RAW = zlib.compressobj(wbits=-zlib.MAX_WBITS)


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("x-gzip", gzip.compress(TEXT[:50]) + gzip.compress(TEXT[50:])),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", RAW.compress(TEXT) + RAW.flush()),
        ("identity", TEXT),
    ],
    ids=["gzip", "two members", "deflate", "raw deflate", "identity"],
)
def test_a_packed_body_is_unpacked(encoding: str, body: bytes) -> None:
    (answer,) = ask(sends(response(body, extra=f"Content-Encoding: {encoding}\r\n")))
    assert answer.body == TEXT


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (gzip.compress(b"0" * 20_000), "more than 10,000 bytes"),
        (gzip.compress(b"") * 200, "more than 100 parts"),
        (gzip.compress(TEXT)[:-9], "it is incomplete"),
        (b"plain text", "invalid gzip"),
    ],
    ids=["bomb", "members", "torn", "plain"],
)
def test_a_packed_body_is_bounded_and_whole(body: bytes, message: str) -> None:
    with pytest.raises(HttpError, match=message) as caught:
        ask(sends(response(body, extra="Content-Encoding: gzip\r\n")), max_bytes=10_000)
    assert caught.value.kind is ErrorKind.PROTOCOL


def test_an_address_of_version_six() -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(response(b"six"))
        writer.close()

    async def main() -> Response:
        server = await asyncio.start_server(handler, "::1", 0)
        async with server, Client() as client:
            return await client.request("POST", f"http://[::1]:{server.sockets[0].getsockname()[1]}/")

    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    assert asyncio.run(main()).body == b"six"


# --- TLS and proxies ---


def ask_over_tls(certificate: Path, host: str, environment: dict[str, str]) -> Response:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(response(b"secret", extra="Connection: close\r\n"))
        await writer.drain()
        writer.close()

    async def main() -> Response:
        server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
        async with server, Client(environment=environment) as client:
            return await client.request("GET", f"https://{host}:{server.sockets[0].getsockname()[1]}/")

    return asyncio.run(main())


def test_tls_with_a_trusted_certificate(certificate: Path) -> None:
    environment = {"SSL_CERT_FILE": str(certificate / "cert.pem")}
    assert ask_over_tls(certificate, "localhost", environment).body == b"secret"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_tls_without_trust_is_refused_for_good(certificate: Path, host: str) -> None:
    trusted = {} if host == "localhost" else {"SSL_CERT_FILE": str(certificate / "cert.pem")}
    with pytest.raises(HttpError) as caught:
        ask_over_tls(certificate, host, trusted)
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert not caught.value.transient


def test_a_proxy_is_asked_where_the_environment_names_one() -> None:
    seen: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, _, body = await read_request(reader)
        seen.append(f"{line} {body!r}")
        writer.write(response(b"from the proxy", "201 Created"))

    async def main() -> Response:
        async with serving(proxy) as port, Client(environment={"HTTP_PROXY": f"127.0.0.1:{port}"}) as client:
            return await client.request("POST", "http://agent.invalid/path", body=b"hi")

    answer = asyncio.run(main())
    assert (answer.status, answer.body) == (201, b"from the proxy")
    assert seen == ["POST http://agent.invalid/path HTTP/1.1 b'hi'"]


def test_a_private_authority_is_believed_behind_a_proxy_too(certificate: Path) -> None:
    """The proxy opens a tunnel; the certificate of the agent behind it is checked as without one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")

    async def agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(response(b"secret", extra="Connection: close\r\n"))
        await writer.drain()
        writer.close()

    async def main(environment: dict[str, str]) -> Response:
        behind = await asyncio.start_server(agent, "127.0.0.1", 0, ssl=context)
        port = behind.sockets[0].getsockname()[1]
        async with behind, serving(tunnel) as proxy:
            client = Client(environment={"HTTPS_PROXY": f"http://127.0.0.1:{proxy}", **environment})
            async with client:
                return await client.request("POST", f"https://localhost:{port}/")

    assert asyncio.run(main({"SSL_CERT_FILE": str(certificate / "cert.pem")})).body == b"secret"
    with pytest.raises(HttpError, match="through the proxy"):
        asyncio.run(main({}))


async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A proxy that knows CONNECT."""
    line, _, _ = await read_request(reader)
    assert line.startswith("CONNECT localhost:")
    inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(line.split()[1].rpartition(":")[2]))
    writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
    await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


def test_a_socks_proxy() -> None:
    async def agent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(response(b"over socks", extra="Connection: close\r\n"))
        writer.close()

    async def socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        version, methods = await reader.readexactly(2)
        await reader.readexactly(methods)
        writer.write(b"\x05\x00")
        _, command, _, kind = await reader.readexactly(4)
        assert (version, command) == (5, 1)
        host = await reader.readexactly(4 if kind == 1 else (await reader.readexactly(1))[0])
        asked.append(host)
        port = int.from_bytes(await reader.readexactly(2), "big")
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await asyncio.gather(carry(reader, inner_writer), carry(inner_reader, writer))

    async def main() -> Response:
        async with serving(agent) as port, serving(socks) as proxy:
            client = Client(environment={"ALL_PROXY": f"socks5h://127.0.0.1:{proxy}"})
            async with client:
                return await client.request("POST", f"http://agent.invalid:{port}/")

    asked: list[bytes] = []
    pytest.importorskip("socksio")
    assert asyncio.run(main()).body == b"over socks"
    assert asked == [b"agent.invalid"]


def test_a_socks_proxy_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)

    async def main() -> None:
        async with Client(environment={"ALL_PROXY": "socks5://127.0.0.1:9"}) as client:
            await client.request("POST", "http://agent.invalid/")

    with pytest.raises(ConfigError, match="SOCKS proxy needs a package") as caught:
        asyncio.run(main())
    assert "httpx[socks]" in caught.value.hint


@pytest.mark.parametrize(("content", "said"), [(None, "No such file"), ("no certificate", "holds no certificate")])
def test_certificates_that_cannot_be_read(tmp_path: Path, content: str | None, said: str) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=said) as caught:
        ask_over_tls_of({"SSL_CERT_FILE": str(path)})
    assert caught.value.where == "SSL_CERT_FILE"


def ask_over_tls_of(environment: dict[str, str]) -> None:
    async def main() -> None:
        async with Client(environment=environment) as client:
            await client.request("GET", "https://127.0.0.1:9/")

    asyncio.run(main())


def test_a_proxy_that_is_down_or_answers_too_much() -> None:
    async def main(data: bytes) -> None:
        async with serving(sends(data)) as port:
            environment = {"http_proxy": f"http://127.0.0.1:{port}"}
            async with Client(environment=environment, max_bytes=1000) as client:
                await client.request("POST", "http://agent.invalid/")

    with pytest.raises(HttpError, match="through the proxy") as caught:
        asyncio.run(main(b""))
    assert caught.value.transient
    with pytest.raises(HttpError, match="more than 1,000 bytes"):
        asyncio.run(main(response(b"x" * 2000)))


@pytest.mark.parametrize(
    ("url", "no_proxy", "proxied"),
    [
        ("http://agent.example.com/", "", True),
        ("http://agent.example.com/", "example.com", False),
        ("http://agent.example.com/", ".example.com", False),
        ("http://agent.example.com/", "other.org, *", False),
        ("http://notexample.com/", "example.com", True),
        ("http://localhost:8000/", "localhost,127.0.0.1", False),
        ("https://agent.example.com/", "", False),
    ],
)
def test_when_a_proxy_applies(url: str, no_proxy: str, proxied: bool) -> None:
    environment = {"HTTP_PROXY": "proxy:3128", "no_proxy": no_proxy}
    assert (proxy_for(urlsplit(url), environment) is not None) == proxied


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("1.5", 1.5),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("-5", None),
        ("nan", None),
        ("9" * 400, None),
        ("whenever", None),
        ("", None),
    ],
)
def test_a_server_asks_to_wait_by_a_number_or_a_date(said: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": said}) == seconds


def test_a_date_to_come_is_waited_for() -> None:
    found = retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert found is not None
    assert 55 < found <= 61
    assert retry_after({}) is None
