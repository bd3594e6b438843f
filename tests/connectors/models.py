"""A model whose answers are scripted, behind a real socket: Chat Completions and Gemini's generateContent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = (11, 4)
"""Tokens of every call, in and out."""


def said_by(messages: list[tuple[str, str]]) -> tuple[str, Mapping[str, Any] | None]:
    """The text, or the arguments of a call of ``lookup``, that follow a conversation of roles and texts.

    Every question is looked up first; the answer then tells all that the user asked in this conversation.
    """
    asked = [text for role, text in messages if role == "user"]
    if messages[-1][0] == "user":
        return "", {"order": asked[-1]}
    return f"{'+'.join(asked)}: {messages[-1][1]}", None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = _gemini(body) if "contents" in body else _chat(body)
        if "no model today" in json.dumps(body):
            self._send(400, {"error": {"code": 400, "message": "no model today", "status": "INVALID_ARGUMENT"}})
        elif body.get("stream"):
            self._send(200, *_streamed(answer))
        else:
            self._send(200, answer)

    def _send(self, status: int, *answers: Any) -> None:
        """One answer, or the events of a stream."""
        one = len(answers) == 1
        data = (json.dumps(*answers) if one else "".join(f"data: {event}\n\n" for event in answers)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json" if one else "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


def _chat(body: Mapping[str, Any]) -> dict[str, Any]:
    told = [(message["role"], _text(message.get("content"))) for message in body["messages"]]
    text, args = said_by([one for one in told if one[0] in ("user", "tool")])
    function = {"name": "lookup", "arguments": json.dumps(args)}
    call = {"id": f"call_{len(told)}", "type": "function", "function": function}
    message = {"role": "assistant", "content": text or None} | ({} if args is None else {"tool_calls": [call]})
    choice = {"index": 0, "message": message, "finish_reason": "stop" if args is None else "tool_calls"}
    usage = {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _streamed(answer: Mapping[str, Any]) -> list[str]:
    """The events by which a completion comes piece by piece."""
    head = {**answer, "object": "chat.completion.chunk", "usage": None}
    (choice,) = answer["choices"]
    message = choice["message"]
    text, calls = message["content"], [{"index": n, **call} for n, call in enumerate(message.get("tool_calls", []))]
    deltas = [{"content": text[:5]}, {"content": text[5:]}] if text else [{"tool_calls": calls}]
    events = [{"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None} for delta in deltas]
    events.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    told = [{**head, "choices": [event]} for event in events]
    return [*map(json.dumps, [*told, {**head, "choices": [], "usage": answer["usage"]}]), "[DONE]"]


def _gemini(body: Mapping[str, Any]) -> dict[str, Any]:
    told = list[tuple[str, str]]()
    for content in body["contents"]:
        for part in content["parts"]:
            if "functionResponse" in part:
                told.append(("tool", str(part["functionResponse"]["response"].get("result"))))
            elif content["role"] == "user" and "text" in part:
                told.append(("user", part["text"]))
    text, args = said_by(told)
    part = {"text": text} if args is None else {"functionCall": {"name": "lookup", "args": args}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": USAGE[0], "candidatesTokenCount": USAGE[1], "totalTokenCount": sum(USAGE)}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash"}


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content)
    return str(content or "")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def scripted_model() -> Iterator[str]:
    """The address of the model."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
