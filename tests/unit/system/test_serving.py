"""A server on loopback: who may ask it, and who waits at whose expense."""

from __future__ import annotations

import asyncio
import socket

import pytest

from gate.system.serving import HOST, Bounds, Incoming, LoopbackServer, Outgoing

BOUNDS = Bounds(body_bytes=1_000, head_bytes=1_000, connections=20, idle_seconds=60.0)


async def _answered(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(request)
    found = await reader.readline()
    writer.close()
    return found


async def _handle(request: Incoming, answer: Outgoing) -> None:
    await answer.whole(200, [], request.body)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:1", 200),
        ("localhost", 200),
        ("LOCALHOST:4318", 200),
        ("[::1]:4318", 200),
        ("evil.test:4318", 421),
        ("127.0.0.1.evil.test", 421),
        ("localhost:80:evil.test", 421),
        ("", 421),
    ],
)
def test_who_asks_by_the_name_of_another_machine_is_refused(host: str, status: int) -> None:
    """A page may have a name of its own that leads to this machine, and then ask what it likes."""

    async def work() -> bytes:
        async with LoopbackServer(_handle, port=0, bounds=BOUNDS, where="test") as server:
            return await _answered(server.port, f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    assert int(asyncio.run(work()).split()[1]) == status


@pytest.mark.parametrize(
    "said", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1"]
)
def test_connections_that_say_nothing_lock_nobody_out(said: bytes) -> None:
    async def work() -> bytes:
        async with LoopbackServer(_handle, port=0, bounds=BOUNDS, where="test") as server:
            held = [socket.create_connection((HOST, server.port)) for _ in range(3 * BOUNDS.connections)]
            for one in held:
                one.sendall(said)
            await asyncio.sleep(0.05)
            try:
                return await _answered(server.port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            finally:
                for one in held:
                    one.close()

    assert asyncio.run(work()).startswith(b"HTTP/1.1 200")
