"""A provider of models on loopback that answers differently each time, as models do; counts what it is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random
from threading import Lock, Thread
from typing import Any

from gate.world.cassette import Cassette


class Provider:
    """What was asked so far, and how it answers."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.status = 200
        self.leads = ""
        """Where a redirect leads, if the status is one."""
        self.says = ""
        """Said in every answer, besides what is said by chance."""
        self.ends = b""
        """What a stream says at its end."""
        self.random = Random(0)
        self.url = ""
        self._lock = Lock()

    @property
    def calls(self) -> int:
        return len(self.asked)

    def take(self, body: dict[str, Any], headers: dict[str, str]) -> str:
        with self._lock:
            self.asked.append(body)
            self.headers.append(headers)
            return f"answer {self.random.randrange(10**9)}{self.says}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    provider: Provider

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = self.provider.take(body, {name.lower(): value for name, value in self.headers.items()})
        if self.provider.status != 200:
            self._whole(self.provider.status, {"error": {"message": "not now"}})
        elif body.get("stream"):
            self._stream(text)
        else:
            self._whole(200, {"choices": [{"message": {"role": "assistant", "content": text}}]})

    def _whole(self, status: int, value: dict[str, Any]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        if self.provider.leads:
            self.send_header("Location", self.provider.leads)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = [{"choices": [{"delta": {"content": word + " – "}}]} for word in text.split()]
        for event in [*(json.dumps(one, ensure_ascii=False) for one in events), "[DONE]"]:
            piece = f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        if ends := self.provider.ends:
            self.wfile.write(f"{len(ends):x}\r\n".encode() + ends + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


@contextmanager
def providing() -> Iterator[Provider]:
    provider = Provider()
    handler = type("Bound", (Handler,), {"provider": provider})
    server = _Server(("127.0.0.1", 0), handler)
    provider.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def everything_in(path: Path) -> bytes:
    """The lines of a recording, and every body in it unpacked, whether or not a trial names it."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    names = [line["body"]["digest"] for line in lines if "body" in line]
    assert names
    return b"\n".join([path.read_bytes(), *(Cassette(path).body(name) or b"" for name in names)])
