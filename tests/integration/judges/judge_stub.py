"""A judge on loopback that speaks the OpenAI protocol over real HTTP, and misbehaves when a test asks it to."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.patience import eventually


@dataclass
class Reply:
    """What the stub sends back; ``body`` str is sent as it is, anything else as JSON."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before it is sent, or until the stub closes."""
    at_once: int = 1
    """Sent once so many requests were in flight together."""
    per_byte: float = 0.0
    """Seconds between bytes: tokens that come slowly."""


def chat(content: Any, *, finish: str = "stop", refusal: str | None = None, **reply: Any) -> Reply:
    """A chat completion with this content, as text or as the JSON of a value."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    message = {"role": "assistant", "content": text, "refusal": refusal}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    return Reply({"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}, **reply)


def failure(status: int, message: str = "no", **headers: str) -> Reply:
    return Reply({"error": {"message": message}}, status, {k.replace("_", "-"): v for k, v in headers.items()})


@dataclass(frozen=True)
class Request:
    path: str
    json: dict[str, Any]
    headers: dict[str, str]

    @property
    def text(self) -> str:
        return "\n".join(message["content"] for message in self.json["messages"])

    @property
    def unfenced(self) -> str:
        """What stands outside the fence that the system message announces."""
        boundary = re.search(r"`BEGIN (\w+) <title>`", self.text)
        assert boundary, "the system message announces no boundary"
        mark = boundary[1]
        return re.sub(rf"(?ms)^BEGIN {mark} [^\n]*\n.*?^END {mark}$", "", self.text)

    @property
    def fenced(self) -> dict[str, str]:
        """Title → text of the material."""
        mark = re.search(r"`BEGIN (\w+) <title>`", self.text)
        assert mark
        blocks = re.findall(rf"(?ms)^BEGIN {mark[1]} ([^\n]*)\n(.*?)\nEND {mark[1]}$", self.text)
        return dict(blocks)

    @property
    def question(self) -> str:
        return str(self.json.get("response_format", {}).get("json_schema", {}).get("name", ""))


class JudgeStub:
    """Give it `answer`, read `requests`; in ``with``."""

    def __init__(self) -> None:
        self.answer: Callable[[Request], Reply] = lambda request: chat({})
        self.requests: list[Request] = []
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # head and body are two writes

            def do_POST(self) -> None:
                data = json.loads(self.rfile.read(int(self.headers["content-length"])))
                request = Request(self.path, data, {k.lower(): v for k, v in self.headers.items()})
                with stub._lock:
                    stub.requests.append(request)
                    stub._now += 1
                    stub.most_at_once = max(stub.most_at_once, stub._now)
                    reply = stub.answer(request)
                stub._closed.wait(reply.delay)
                eventually(lambda: stub.most_at_once >= reply.at_once)
                with stub._lock:
                    stub._now -= 1  # before it is sent: the next request may follow at once
                try:
                    self._send(reply)
                except ConnectionError:
                    self.close_connection = True

            def _send(self, reply: Reply) -> None:
                body = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
                content = body.encode()
                self.send_response(reply.status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if not reply.per_byte:
                    self.wfile.write(content)
                    return
                for byte in content:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(reply.per_byte)

            def log_message(self, *args: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def script(self, *replies: Reply) -> None:
        """Answers in this order; the last one stays."""
        left = list(replies)
        self.answer = lambda request: left.pop(0) if len(left) > 1 else left[0]

    def __enter__(self) -> JudgeStub:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
