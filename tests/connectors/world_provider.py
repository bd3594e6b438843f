"""The protocols of three providers on loopback, answered at random: whole and as streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Lock, Thread
from typing import Any


class Providers(BaseHTTPRequestHandler):
    """OpenAI's chat, responses and embeddings, Anthropic's messages, Gemini's generateContent."""

    protocol_version = "HTTP/1.1"
    calls: list[str]
    random: Random
    lock: Lock

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.partition("?")[0]
        with self.lock:
            self.calls.append(path)
            number = self.random.randrange(10**9)
        text = f"drawn {number} – ünïcode"
        if path.endswith("/chat/completions"):
            self._chat(text, stream=bool(body.get("stream")))
        elif path.endswith("/embeddings"):
            vector = [number / 10**9, 0.5]
            self._whole({"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": vector}]})
        elif path.endswith("/responses"):
            self._whole(response(text, number))
        elif path.endswith("/messages"):
            self._messages(text, stream=bool(body.get("stream")))
        elif path.endswith(":generateContent"):
            self._whole(candidate(text))
        elif path.endswith(":streamGenerateContent"):
            self._stream([("", candidate(word + " ")) for word in text.split()])
        else:
            self.send_error(404)

    def _chat(self, text: str, *, stream: bool) -> None:
        head = {"id": "chatcmpl-x", "created": 1, "model": "gpt-5-mini"}
        if stream:
            deltas = [{"index": 0, "delta": {"content": word + " "}, "finish_reason": None} for word in text.split()]
            events = [("", {**head, "object": "chat.completion.chunk", "choices": [one]}) for one in deltas]
            return self._stream(events, done="[DONE]")
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
        return self._whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})

    def _messages(self, text: str, *, stream: bool) -> None:
        message: dict[str, Any] = {"id": "msg_x", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5"}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 5}}
        if not stream:
            return self._whole({**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})
        block = {"type": "text", "text": ""}
        events: list[tuple[str, dict[str, Any]]] = [
            ("message_start", {"message": {**message, "content": []}}),
            ("content_block_start", {"index": 0, "content_block": block}),
        ]
        for word in text.split():
            events.append(("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": word + " "}}))
        delta = {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}}
        events += [("content_block_stop", {"index": 0}), ("message_delta", delta), ("message_stop", {})]
        return self._stream([(name, {"type": name, **event}) for name, event in events])

    def _whole(self, value: dict[str, Any]) -> None:
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: list[tuple[str, dict[str, Any]]], done: str = "") -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        told = [(name, json.dumps(event, ensure_ascii=False)) for name, event in events]
        for name, event in [*told, *([("", done)] if done else [])]:
            piece = (f"event: {name}\n" if name else "").encode() + f"data: {event}\n\n".encode()
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        pass


def response(text: str, number: int) -> dict[str, Any]:
    """What OpenAI's Responses answer."""
    said = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [said]}
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "gpt-5-mini", "status": "completed"}
    return {**head, "output": [item], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage}


def candidate(text: str) -> dict[str, Any]:
    """What Gemini answers, or a piece of it."""
    return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}]}


@contextmanager
def providing_all() -> Iterator[tuple[str, list[str]]]:
    """The address of all three, and the paths that were asked."""
    calls: list[str] = []
    handler = type("Bound", (Providers,), {"calls": calls, "random": Random(1), "lock": Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", calls
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
