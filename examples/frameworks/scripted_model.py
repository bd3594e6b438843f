"""A model that follows a script, behind a real socket: the examples of this folder run without a key.

    python ../scripted_model.py gate run        # in the folder of an example

It speaks the interfaces of OpenAI (Chat Completions and Responses), Anthropic and Gemini on loopback, points their
clients' own environment variables at itself, and runs the command. What is real is everything else: the framework, its
client, the requests, the tools. Without the server, and with your key, the same example asks the real model.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, ClassVar

Json = dict[str, Any]
ORDER = re.compile(r"\b[A-Z]\d\b")
INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
NUMBERS = count(1)
"""Of calls and answers, over all requests."""


# --- the script -------------------------------------------------------------------------------------------------------


@dataclass
class Asked:
    """What a request says, whatever interface it came by."""

    tools: list[str] = field(default_factory=list)
    users: list[str] = field(default_factory=list)
    """The user's texts, the newest last."""
    called: list[str] = field(default_factory=list)
    """Tools called since the newest of them."""

    def say(self, text: str) -> None:
        self.users.append(text)
        self.called.clear()


@dataclass
class Reply:
    """What the model says, or the one tool that it calls."""

    text: str = ""
    tool: str = ""
    args: Json = field(default_factory=dict)
    number: int = field(default_factory=lambda: next(NUMBERS))


def reply_to(asked: Asked) -> Reply:
    """Looks orders up before anything else, refunds those that it is asked to, and hands over what it cannot do."""
    orders = [order for text in asked.users for order in ORDER.findall(text)]
    if not orders:
        return Reply("Which order do you mean?")
    refund = "refund" in asked.users[-1].lower()
    for wanted in ["lookup_order", "refund_order"] if refund else ["lookup_order"]:
        tool = next((name for name in asked.tools if name.endswith(wanted)), "")
        other = next((name for name in asked.tools if name.startswith("transfer_to_")), "")
        if tool and tool not in asked.called:
            return Reply(tool=tool, args={"order_id": orders[-1]})
        if not tool and wanted == "refund_order" and other and other not in asked.called:
            return Reply(tool=other, args={"agent_name": "refunds"} if other == "transfer_to_agent" else {})
    return Reply(f"Order {orders[-1]} has been refunded." if refund else f"Order {orders[-1]} has shipped.")


def text_of(content: Any) -> str:
    """The text of a message, which is one, or a list of parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part, dict) and "text" in part)


# --- OpenAI: Chat Completions -----------------------------------------------------------------------------------------


def read_chat(body: Json) -> Asked:
    asked = Asked([tool["function"]["name"] for tool in body.get("tools") or ()])
    for message in body["messages"]:
        if message["role"] == "user":
            asked.say(text_of(message["content"]))
        asked.called += [call["function"]["name"] for call in message.get("tool_calls") or ()]
    return asked


def write_chat(reply: Reply, model: str) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None}
    if reply.tool:
        function = {"name": reply.tool, "arguments": json.dumps(reply.args)}
        message["tool_calls"] = [{"id": f"call_{reply.number}", "type": "function", "function": function}]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool else "stop"}
    used = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": OUTPUT_TOKENS}
    said = {"id": f"chatcmpl-{reply.number}", "object": "chat.completion", "created": 0, "model": model}
    return {**said, "choices": [choice], "usage": {**used, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}}


def stream_chat(reply: Reply, model: str) -> Iterator[tuple[str, Json | str]]:
    whole = write_chat(reply, model)
    (choice,) = whole["choices"]
    delta = choice.pop("message")
    for index, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = index
    chunk = {**whole, "object": "chat.completion.chunk", "usage": None}
    yield "", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield "", {**chunk, "choices": [{**choice, "delta": {}}]}
    yield "", {**chunk, "choices": [], "usage": whole["usage"]}
    yield "", "[DONE]"


# --- OpenAI: Responses ------------------------------------------------------------------------------------------------


def read_responses(body: Json) -> Asked:
    asked = Asked([tool["name"] for tool in body.get("tools") or () if tool["type"] == "function"])
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        if item.get("role") == "user":
            asked.say(text_of(item["content"]))
        elif item.get("type") == "function_call":
            asked.called.append(item["name"])
    return asked


def write_responses(reply: Reply, model: str) -> Json:
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    item: Json = {"type": "message", "id": f"msg_{reply.number}", "role": "assistant", "content": [text]}
    if reply.tool:
        call = {"call_id": f"call_{reply.number}", "name": reply.tool, "arguments": json.dumps(reply.args)}
        item = {"type": "function_call", "id": f"fc_{reply.number}", **call}
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS, "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    said = {"id": f"resp_{reply.number}", "object": "response", "created_at": 0, "model": model, "status": "completed"}
    fixed = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True, "error": None}
    return {**said, **fixed, "output": [{**item, "status": "completed"}], "usage": {**usage, **details}}


def stream_responses(reply: Reply, model: str) -> Iterator[tuple[str, Json | str]]:
    whole = write_responses(reply, model)
    (item,) = whole["output"]
    at = {"output_index": 0, "item_id": item["id"]}
    events: list[Json] = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
    if reply.tool:
        events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}})
        done = {"type": "response.function_call_arguments.done", **at, "name": reply.tool}
        events.append({"type": "response.function_call_arguments.delta", **at, "delta": item["arguments"]})
        events.append({**done, "arguments": item["arguments"]})
    else:
        events.append({"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": []}})
        part = {**at, "content_index": 0}
        empty = {"type": "output_text", "text": "", "annotations": []}
        events.append({"type": "response.content_part.added", **part, "part": empty})
        events.append({"type": "response.output_text.delta", **part, "delta": reply.text, "logprobs": []})
        events.append({"type": "response.output_text.done", **part, "text": reply.text, "logprobs": []})
        events.append({"type": "response.content_part.done", **part, "part": item["content"][0]})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": whole})
    for number, event in enumerate(events):
        yield event["type"], {**event, "sequence_number": number}


# --- Anthropic --------------------------------------------------------------------------------------------------------


def read_anthropic(body: Json) -> Asked:
    asked = Asked([tool["name"] for tool in body.get("tools") or ()])
    for message in body["messages"]:
        blocks = [] if isinstance(message["content"], str) else message["content"]
        said = re.sub(r"<system-reminder>.*?</system-reminder>", "", text_of(message["content"]), flags=re.DOTALL)
        if message["role"] == "user" and said.strip():
            asked.say(said)
        asked.called += [block["name"] for block in blocks if block["type"] == "tool_use"]
    return asked


def write_anthropic(reply: Reply, model: str) -> Json:
    block: Json = {"type": "text", "text": reply.text}
    if reply.tool:
        block = {"type": "tool_use", "id": f"toolu_{reply.number}", "name": reply.tool, "input": reply.args}
    said = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    return {**said, "content": [block], "stop_reason": "tool_use" if reply.tool else "end_turn", "usage": usage}


def stream_anthropic(reply: Reply, model: str) -> Iterator[tuple[str, Json | str]]:
    whole = write_anthropic(reply, model)
    (block,) = whole["content"]
    delta: Json = {"type": "text_delta", "text": reply.text}
    if reply.tool:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.args)}
    empty = {**block, "input": {}} if reply.tool else {**block, "text": ""}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_start", {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    yield "content_block_start", {"type": "content_block_start", "index": 0, "content_block": empty}
    yield "content_block_delta", {"type": "content_block_delta", "index": 0, "delta": delta}
    yield "content_block_stop", {"type": "content_block_stop", "index": 0}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield "message_stop", {"type": "message_stop"}


# --- Gemini -----------------------------------------------------------------------------------------------------------


def read_gemini(body: Json) -> Asked:
    functions = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
    asked = Asked([function["name"] for function in functions])
    for content in body["contents"]:
        said = text_of(content["parts"])
        if content.get("role") == "user" and said and not said.startswith("For context:"):
            asked.say(said)
        asked.called += [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
    return asked


def write_gemini(reply: Reply, model: str) -> Json:
    part: Json = {"text": reply.text}
    if reply.tool:
        part = {"functionCall": {"id": f"call_{reply.number}", "name": reply.tool, "args": reply.args}}
    used = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    total = {**used, "totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS}
    return {"candidates": [candidate], "usageMetadata": total, "modelVersion": model}


def stream_gemini(reply: Reply, model: str) -> Iterator[tuple[str, Json | str]]:
    yield "", write_gemini(reply, model)


# --- the server -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interface:
    """How one provider's requests are read and answered."""

    read: Callable[[Json], Asked]
    write: Callable[[Reply, str], Json]
    stream: Callable[[Reply, str], Iterator[tuple[str, Json | str]]]


INTERFACES = {
    "/chat/completions": Interface(read_chat, write_chat, stream_chat),
    "/responses": Interface(read_responses, write_responses, stream_responses),
    "/v1/messages": Interface(read_anthropic, write_anthropic, stream_anthropic),
    ":generateContent": Interface(read_gemini, write_gemini, stream_gemini),
    ":streamGenerateContent": Interface(read_gemini, write_gemini, stream_gemini),
}
"""How a path ends → what answers it."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    interfaces: ClassVar = INTERFACES

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
        path = self.path.partition("?")[0]
        end = next((end for end in self.interfaces if path.endswith(end)), None)
        if end is None:
            self.send(404, "application/json", b'{"error": {"message": "not in the script", "type": "not_found"}}')
            return
        spoken, reply = self.interfaces[end], reply_to(self.interfaces[end].read(body))
        model = body.get("model") or path.rpartition("/")[2].partition(":")[0]
        if body.get("stream") or end == ":streamGenerateContent":
            events = "".join(written(*event) for event in spoken.stream(reply, model))
            self.send(200, "text/event-stream", events.encode())
        else:
            self.send(200, "application/json", json.dumps(spoken.write(reply, model)).encode())

    def send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Prints nothing: the output is the command's."""


def written(name: str, data: Json | str) -> str:
    """A server-sent event."""
    event = f"event: {name}\n" if name else ""
    return f"{event}data: {data if isinstance(data, str) else json.dumps(data)}\n\n"


@contextmanager
def serving() -> Iterator[dict[str, str]]:
    """The variables that lead the providers' own clients to a server that runs meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield {
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": "scripted",
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "scripted",
            "GOOGLE_GEMINI_BASE_URL": address,
            "GEMINI_API_KEY": "scripted",
        }
    finally:
        server.shutdown()
        server.server_close()


def main(command: list[str]) -> int:
    if not command:
        print("usage: python scripted_model.py COMMAND …", file=sys.stderr)
        return 2
    with serving() as variables:
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
