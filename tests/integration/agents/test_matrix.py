"""Every kind of agent: what four failures say, and that sixty-four conversations at once do not mix.

The servers answer as their protocols say; released ones are asked in tests/connectors.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gate.errors import GateError
from gate.model import Trial
from tests.integration.agents.driving import case, drive, read_request, response, serving

SERVERS: dict[str, dict[str, Any]] = {
    "http": {"http": {"url": "/ask"}},
    "http-cookies": {"http": {"url": "/cookies"}},
    "http-stream": {"http": {"url": "/stream"}},
    "openai": {"openai": {"url": "/v1", "model": "m"}},
    "responses": {"openai": {"url": "/v1", "model": "m", "api": "responses"}},
    "agui": {"agui": {"url": "/agui"}},
    "adk": {"adk": {"url": "", "app": "shop"}},
    "langgraph": {"langgraph": {"url": "", "assistant": "a"}},
    "a2a": {"a2a": {"url": ""}},
    "mcp-http": {"mcp": {"url": "/mcp", "tool": "ask"}},
}
"""Name → the agent; ``url`` is the path on a server of the test."""


def at(
    name: str, port: int, path: str | None = None, *, table: Mapping[str, dict[str, Any]] = SERVERS
) -> dict[str, Any]:
    """The agent's section, with the address of a server."""
    ((kind, told),) = table[name].items()
    return {kind: {**told, "url": f"http://127.0.0.1:{port}{told['url'] if path is None else path}"}}


# --- failures -------------------------------------------------------------------------------------


def failed(agent: Mapping[str, Any], root: Path, environment: Mapping[str, str] | None = None) -> str:
    """What one case that cannot be answered says, from the trial or from the run."""
    try:
        (trial,) = asyncio.run(drive({**agent, "retries": 0}, [case("a")], root, environment=environment or {}))
    except GateError as error:
        return str(error)
    assert trial.error is not None
    assert not trial.invocations
    return trial.error.message


def refused(name: str, raw: bytes, path: str | None = None) -> str:
    """What is said of a server that answers everything with the same bytes and closes; it is asked once."""
    asked = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        await read_request(reader)
        asked += 1
        writer.write(raw)
        await writer.drain()
        writer.close()

    async def main() -> list[Trial]:
        async with serving(handler) as port:
            return await drive({**at(name, port, path), "retries": 0}, [case("a")], Path(), environment={})

    (trial,) = asyncio.run(main())
    assert trial.error is not None
    assert not trial.invocations
    assert asked == 1, "nothing is sent again: whatever was asked for may have happened"
    return trial.error.message


def broken(kind: str) -> bytes:
    return response(b'data: {"output": "It has"}\n\n' + b" " * 100, kind=kind)[:-50]


WRONG_PATH = {
    "a2a": "no agent card at http://127.0.0.1",
    "agui": "agent.agui is the whole address of an AG-UI endpoint, with its path",
    "http": "agent.http.url is the whole address of the agent, with its path",
    "openai": "agent.openai.url is what comes before /chat/completions or /responses",
    "adk": "agent.adk.url is the address of an ADK server (adk api_server)",
    "langgraph": "agent.langgraph.url is the address of a LangGraph server (langgraph dev)",
    "mcp": "agent.mcp.url is the whole address of an MCP server over HTTP, with its path",
}


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("failure", ["down", "key", "path", "page", "break", "broken stream"])
def test_a_server_that_fails_is_told_in_a_line_with_what_helps(name: str, failure: str) -> None:
    (kind,) = SERVERS[name]
    if failure == "down":
        said = failed(at(name, 9), Path())
        remedy = f"127.0.0.1:9: Connection refused; is the server started, and is agent.{kind}.url right?"
    elif failure == "key":
        said = refused(name, response(b'{"detail": "who are you?"}', "401 Unauthorized"))
        remedy = "headers: {Authorization: Bearer ${NAME}} sends a variable of the environment"
        assert ("OPENAI_API_KEY" in said) == (kind == "openai")
    elif failure == "path":
        said = refused(name, response(b'{"detail":"Not Found"}', "404 Not Found"), "/nowhere")
        remedy = WRONG_PATH[kind]
    elif failure == "page":
        said = refused(name, response(b"<!-- 1 --><html><title>Sign in</title></html>", kind="text/plain"))
        remedy = "as AG-UI's are: is the path right?" if kind == "agui" else "the answer is a web page"
    else:
        said = refused(name, broken("application/json" if failure == "break" else "text/event-stream"))
        remedy = "the connection closed in the middle of the answer; the server's own log says why"
    assert remedy in said
    assert "\n" not in said
    assert len(said) < 400


AGENT = """\
import asyncio, json, os, sys

class Reached(Exception):
    pass

async def barrier():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(os.environ["BARRIER"]))
    await reader.read(1)
    writer.close()

def said(texts):
    return f"{texts[-1]} after {texts[0] if len(texts) > 1 else 'nothing'}"

SEEN = {}

async def answer(message, session_id):
    texts = SEEN.setdefault(session_id, [])
    texts.append(message)
    await barrier()
    return said(texts)

def key(message):
    return os.environ["SHOP_API_KEY"]

def leave(message):
    print("out of memory", file=sys.stderr, flush=True)
    os._exit(3)

def reply(asked, output):
    print(json.dumps({"id": asked["id"], "output": output}), flush=True)

def persistent():
    texts = []
    for line in sys.stdin:
        asked = json.loads(line)
        texts = [] if asked["turn"] == 0 else texts
        texts.append(asked["messages"][-1]["content"])
        asyncio.run(barrier())
        reply(asked, said(texts))

def once():
    asked = json.load(sys.stdin)
    asyncio.run(barrier())
    print(json.dumps({"output": said([m["content"] for m in asked["messages"] if m["role"] == "user"])}))

def mcp(failure=""):
    texts = []
    for line in sys.stdin:
        asked = json.loads(line)
        method = asked["method"]
        if "id" not in asked:
            continue
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": "ask", "inputSchema": {"properties": {"message": {}}}}]}
        else:
            if failure:
                globals()[failure]("")
            texts.append(asked["params"]["arguments"]["message"])
            asyncio.run(barrier())
            result = {"content": [{"type": "text", "text": said(texts)}]}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)

def fails(failure):
    json.loads(sys.stdin.readline())
    globals()[failure]("")

if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(AGENT)
    return tmp_path


def processes(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    command = [sys.executable, "-S", "bot.py", *arguments]
    return {name: {"command": command, "tool": "ask"}, **more} if name == "mcp" else {name: command, **more}


NOT_SET = "(set SHOP_API_KEY, and write agent.env: [SHOP_API_KEY])"
NOT_SEEN = "(SHOP_API_KEY is set here; hand it on: agent.env: [SHOP_API_KEY])"
LOCAL = {
    "python": ({"python": "bot:key"}, {"python": "bot:leave"}, {"python": "bot:anser"}, "did you mean 'answer'"),
    "command": (
        processes("command", "fails", "key"),
        processes("command", "fails", "leave"),
        {"command": "./no-such-program"},
        "is it installed, executable, and named relative to the configuration?",
    ),
    "persistent": (
        processes("command", "fails", "key", persistent=True),
        processes("command", "fails", "leave", persistent=True),
        {"command": "./no-such-program", "persistent": True},
        "is it installed, executable, and named relative to the configuration?",
    ),
    "mcp-stdio": (
        processes("mcp", "mcp", "key"),
        processes("mcp", "mcp", "leave"),
        {"mcp": {"command": "./no-such-program", "tool": "ask"}},
        "is it installed, executable, and named relative to the configuration?",
    ),
}
"""Kind → an agent without its key, one that ends in the middle, one that is not there, and what helps the last."""


@pytest.mark.parametrize("name", LOCAL)
def test_a_process_that_fails_is_told_with_what_helps(root: Path, name: str) -> None:
    keyless, leaving, absent, remedy = LOCAL[name]
    assert failed(keyless, root).endswith(NOT_SET)
    assert failed(keyless, root, {"SHOP_API_KEY": "secret"}).endswith(NOT_SEEN)
    said = failed(leaving, root)
    assert "exited with status 3: out of memory" in said
    assert remedy in failed(absent, root)


# --- sessions -------------------------------------------------------------------------------------

AT_ONCE, PROCESSES = 64, 12
"""Conversations of one agent at once, and those in processes of their own, which share less."""
CASES = [case(f"A{number}", f"A{number}", f"A{number}x") for number in range(AT_ONCE)]


def check(trials: list[Trial]) -> None:
    """Each second answer is of the same conversation's first question, and all were in flight together."""
    assert {trial.case_id: trial.error for trial in trials if trial.error} == {}
    found = {trial.case_id: [invocation.text for invocation in trial.invocations] for trial in trials}
    expected = {one.id: [f"{one.id} after nothing", f"{one.id}x after {one.id}"] for one in CASES[: len(trials)]}
    assert found == expected


def said(texts: list[str]) -> str:
    return f"{texts[-1]} after {texts[0] if len(texts) > 1 else 'nothing'}"


def event(**fields: Any) -> str:
    return f"data: {json.dumps(fields)}\n\n"


Wait = Callable[[], Awaitable[Any]]


class Protocols:
    """A server of all protocols. What it answers to a turn waits until as many turns have arrived as are to be."""

    def __init__(self, wait: Wait) -> None:
        self.wait = wait
        self.seen: dict[str, list[str]] = {}
        self.ids = count()

    async def turn(self, key: str, text: str) -> str:
        self.seen.setdefault(key, []).append(text)
        answered = said(self.seen[key])
        await self.wait()
        return answered

    def open(self, **fields: str) -> dict[str, str]:
        """A session that the server names."""
        return {name: f"{value}{next(self.ids)}" for name, value in fields.items()}

    async def answer(self, path: str, headers: Mapping[str, str], body: Any) -> bytes:
        handler = getattr(self, path.strip("/").split("/")[0].replace(".", "").replace("-", "_") or "rpc")
        answer = await handler(path, headers, body)
        return answer if isinstance(answer, bytes) else response(json.dumps(answer).encode())

    async def ask(self, _path: str, _headers: Any, body: Any) -> Any:
        return {"output": await self.turn(body["session_id"], body["messages"][-1]["content"])}

    async def cookies(self, _path: str, headers: Mapping[str, str], body: Any) -> bytes:
        key = headers.get("cookie") or f"sid={next(self.ids)}"
        text = await self.turn(key, body["messages"][-1]["content"])
        return response(json.dumps({"output": text}).encode(), extra=f"Set-Cookie: {key}\r\n")

    async def stream(self, _path: str, _headers: Any, body: Any) -> bytes:
        text = await self.turn(body["session_id"], body["messages"][-1]["content"])
        chunks = [event(choices=[{"index": 0, "delta": {"content": piece}}]) for piece in (text[:3], text[3:])]
        return response("".join([*chunks, "data: [DONE]\n\n"]).encode(), kind="text/event-stream")

    async def v1(self, path: str, _headers: Any, body: Any) -> Any:
        messages = body["messages" if path.endswith("completions") else "input"]
        texts = [one["content"] for one in messages if one.get("role") == "user"]
        text = await self.turn(texts[0], texts[-1])
        assert text == said(texts), "the history is that of the conversation"
        if path.endswith("completions"):
            return {"choices": [{"message": {"role": "assistant", "content": text}}]}
        content = [{"type": "output_text", "text": text}]
        return {"output": [{"type": "message", "role": "assistant", "content": content}]}

    async def agui(self, _path: str, _headers: Any, body: Any) -> bytes:
        text = await self.turn(body["threadId"], body["messages"][-1]["content"])
        content = event(type="TEXT_MESSAGE_CONTENT", messageId="m", delta=text)
        stream = event(type="RUN_STARTED") + content + event(type="RUN_FINISHED")
        return response(stream.encode(), kind="text/event-stream")

    async def apps(self, _path: str, _headers: Any, _body: Any) -> Any:
        return self.open(id="s")

    async def run(self, _path: str, _headers: Any, body: Any) -> Any:
        text = await self.turn(body["sessionId"], body["newMessage"]["parts"][0]["text"])
        return [{"author": "shop", "content": {"role": "model", "parts": [{"text": text}]}}]

    async def threads(self, path: str, _headers: Any, body: Any) -> Any:
        if path == "/threads":
            return self.open(thread_id="t")
        asked = body["input"]["messages"][-1]["content"]
        text = await self.turn(path.split("/")[2], asked)
        return {"messages": [{"type": "human", "content": asked}, {"type": "ai", "content": text}]}

    async def well_known(self, _path: str, _headers: Any, _body: Any) -> Any:
        return {"supportedInterfaces": [{"url": "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}

    async def rpc(self, _path: str, _headers: Any, body: Any) -> Any:
        asked = body["params"]["message"]
        key = asked.get("contextId") or self.open(id="c")["id"]
        text = await self.turn(key, asked["parts"][0]["text"])
        message = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}], "contextId": key}
        return {"jsonrpc": "2.0", "id": body["id"], "result": {"message": message}}

    async def mcp(self, _path: str, headers: Mapping[str, str], body: Any) -> bytes:
        if body is None or "id" not in body:
            return response(b"", "202 Accepted")
        extra = ""
        if body["method"] == "initialize":
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {}}
            extra = f"Mcp-Session-Id: {self.open(id='m')['id']}\r\n"
        elif body["method"] == "tools/list":
            result = {"tools": [{"name": "ask", "inputSchema": {"properties": {"message": {}}}}]}
        else:
            text = await self.turn(headers["mcp-session-id"], body["params"]["arguments"]["message"])
            result = {"content": [{"type": "text", "text": text}]}
        answer = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return response(json.dumps(answer).encode(), extra=extra)


@pytest.mark.parametrize("name", SERVERS)
def test_conversations_at_once_do_not_mix(name: str) -> None:
    """No answer comes before all sixty-four questions have arrived, in either turn."""

    async def main() -> list[Trial]:
        protocols = Protocols(asyncio.Barrier(AT_ONCE).wait)

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                line, headers, body = await read_request(reader)
                writer.write(await protocols.answer(line.split()[1], headers, json.loads(body or "null")))
                await writer.drain()

        async with serving(handler) as port:
            return await drive({**at(name, port), "concurrency": AT_ONCE}, CASES, Path(), environment={})

    check(asyncio.run(main()))


@asynccontextmanager
async def meeting(number: int) -> AsyncIterator[int]:
    """The port of a server that answers with a byte once so many have come."""
    barrier = asyncio.Barrier(number)

    async def handler(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await barrier.wait()
        writer.write(b"x")
        await writer.drain()

    async with serving(handler) as port:
        yield port


ALONE = {
    "python": {"python": "bot:answer"},
    "command": processes("command", "once"),
    "persistent": processes("command", "persistent", persistent=True),
    "mcp-stdio": processes("mcp", "mcp"),
}


@pytest.mark.parametrize(
    "name", [*(pytest.param(name, marks=pytest.mark.slow) for name in ALONE if name != "python"), "python"]
)
def test_conversations_with_processes_at_once_do_not_mix(root: Path, name: str) -> None:
    """A process knows no session: what it says second is of what it was asked first."""

    number = AT_ONCE if name == "python" else PROCESSES

    async def main() -> list[Trial]:
        async with meeting(number) as port:
            more = {"concurrency": number, "timeout": 600, "env": {"BARRIER": str(port)}}
            return await drive({**ALONE[name], **more}, CASES[:number], root)

    trials = asyncio.run(main())
    assert len(trials) == number
    check(trials)
