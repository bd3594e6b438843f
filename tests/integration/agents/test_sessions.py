"""Conversations that take turns: what an agent of any kind keeps of one is never another's, and it would show.

Where all are asked at once, each goes on before another is answered, and state that they share is not seen: here a turn
of one comes between those of the others, which begin and end in between. Each proof is made to fail by sharing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gate.agents import AGENTS
from gate.agents.base import Agent, AgentFailure, Request
from gate.agents.programs import ProgramLine
from tests.integration.agents.driving import make, read_request, serving
from tests.integration.agents.test_matrix import AGENT, SERVERS, Protocols, at

ORDER = "ABACBADCBDCD"
"""Whose turn it is; each begins with its first, and ends with its third."""
SAID = {name: [f"{name} after nothing", f"{name}x after {name}", f"{name}xx after {name}"] for name in "ABCD"}


async def in_turns(
    agent: Agent, kind: str, *, session: str = "session-{}", shared: list[Any] | None = None
) -> dict[str, Any]:
    """What is answered to each conversation. ``shared``: a history that is all of theirs."""
    histories: dict[str, list[Any]] = {}
    found: dict[str, list[str]] = {}
    for name in ORDER:
        said, history = found.setdefault(name, []), histories.setdefault(name, []) if shared is None else shared
        text = name + "x" * len(said)
        history.append({"role": "user", "content": text})
        metadata = {"resume": [f"{name}{turn}" for turn in range(3)]} if kind == "langgraph-resumes" else {}
        key = session.format(name)
        request = Request(name, 1, key, len(said), text, tuple(history), metadata=metadata)
        if not said:
            await agent.open_session(request)
        said.append((await agent.answer(request)).text)
        history.append({"role": "assistant", "content": said[-1]})
        if len(said) == 3:
            await agent.close_session(key)
    return found


class Conversations(Protocols):
    """The server of all protocols, and those of its ways that leave something to be kept between two turns."""

    def __init__(self) -> None:
        async def wait() -> None: ...

        super().__init__(wait)
        self.asked: dict[str, str] = {}

    async def given(self, _path: str, _headers: Any, body: Any) -> Any:
        """A server that names the conversation with its first answer."""
        key = body["thread"] if str(body["thread"]).startswith("g") else self.open(id="g")["id"]
        return {"output": await self.turn(key, body["said"]), "id": key}

    async def begun(self, _path: str, _headers: Any, _body: Any) -> Any:
        return self.open(id="g")

    async def threads(self, path: str, headers: Any, body: Any) -> Any:
        """With two assistants that interrupt: one asks the user, one somebody whose answer the case holds."""
        assistant = body.get("assistant_id")
        if path == "/threads" or assistant == "a":
            return await super().threads(path, headers, body)
        if "input" in body:
            asked = body["input"]["messages"][-1]["content"]
            self.asked[path] = await self.turn(path, asked)
            question = [{"id": "i", "value": self.asked[path]}]
            return {"messages": [{"type": "human", "content": asked}], "__interrupt__": question}
        resumed = body["command"]["resume"]
        if assistant == "asks":
            text = await self.turn(path, resumed) if path in self.asked else "nothing was asked"
        else:
            resumed = next(iter(resumed)) if isinstance(resumed, list) else resumed
            text = self.asked[path] if str(resumed)[0] == self.asked[path][0] else f"mixed: {resumed}"
        return {"messages": [{"type": "human", "content": "?"}, {"type": "ai", "content": text}]}

    async def rpc(self, path: str, headers: Any, body: Any) -> Any:
        """A task that asks for input after each turn, where the message's metadata says so."""
        if not body["params"].get("metadata"):
            return await super().rpc(path, headers, body)
        asked = body["params"]["message"]
        key = asked.get("taskId") or self.open(id="k")["id"]
        text = await self.turn(key, asked["parts"][0]["text"])
        said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}
        status = {"state": "TASK_STATE_INPUT_REQUIRED", "message": said}
        task = {"id": key, "contextId": f"c{key}", "status": status}
        return {"jsonrpc": "2.0", "id": body["id"], "result": {"task": task}}


HTTP = {"request": {"said": "{{message}}", "thread": "{{session_id}}"}, "response": {"output": "output"}}
MORE: dict[str, dict[str, Any]] = {
    "http-given": {"http": {"url": "/given", **HTTP, "response": {"output": "output", "session_id": "id"}}},
    "http-setup": {"http": {"url": "/given", **HTTP, "setup": {"url": "/begun", "response": {"session_id": "id"}}}},
    "langgraph-asks": {"langgraph": {"url": "", "assistant": "asks", "interrupts": "ask"}},
    "langgraph-resumes": {"langgraph": {"url": "", "assistant": "resumes"}},
    "a2a-task": {"a2a": {"url": "", "metadata": {"asks": True}}},
}
SHARED = {
    "http-cookies": {"_cookies"},
    "http-given": {"_sessions"},
    "http-setup": {"_sessions"},
    "adk": {"_sessions"},
    "langgraph": {"_sessions"},
    "langgraph-asks": {"_sessions"},
    "langgraph-resumes": {"_sessions"},
    "a2a": {"_sessions"},
    "a2a-task": {"_sessions"},
    "mcp-http": {"_sessions"},
    "persistent": {"_lines"},
    "mcp-stdio": {"_sessions"},
}
"""Agent → what it keeps by session, and would be seen to share."""
UNSEEN = {"python": {"_sessions"}}
"""Agent → what it keeps by session, and changes no text if shared: the calls of a process."""
TOLD_APART = {
    **dict.fromkeys(("http", "http-stream", "agui", "python"), "session"),
    **dict.fromkeys(("openai", "responses", "command"), "history"),
}
"""Agent that keeps nothing that differs → what of the request tells its conversations apart."""
PROCESSES = {
    "python": {"python": "bot:answer"},
    "command": {"command": [sys.executable, "-S", "bot.py", "once"]},
    "persistent": {"command": [sys.executable, "-S", "bot.py", "persistent"], "persistent": True},
    "mcp-stdio": {"mcp": {"command": [sys.executable, "-S", "bot.py", "mcp"], "tool": "ask"}},
}
ALL = [*SHARED, *TOLD_APART]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "bot.py").write_text(AGENT.replace("asyncio.run(barrier())", "pass").replace("await barrier()", "pass"))
    return tmp_path


@asynccontextmanager
async def agent_of(name: str, root: Path) -> AsyncIterator[Agent]:
    conversations = Conversations()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            line, headers, body = await read_request(reader)
            writer.write(await conversations.answer(line.split()[1], headers, json.loads(body or "null")))
            await writer.drain()

    async with serving(handler) as port:
        told = PROCESSES.get(name) or at(name, port, table={**SERVERS, **MORE})
        async with make(told, root, {}) as agent:
            yield agent


class OneForAll(dict[str, Any]):
    """A mapping by session in which all sessions have the same place."""

    def __init__(self) -> None:
        self.held = list[Any]()

    async def end(self) -> None:
        """Ends the processes that the agent knows no more."""
        for line in [getattr(value, "line", value) for value in self.held]:
            if isinstance(line, ProgramLine):
                await line.end()

    def __getitem__(self, _key: str) -> Any:
        return super().__getitem__("one")

    def __setitem__(self, _key: str, value: Any) -> None:
        self.held.append(value)
        super().__setitem__("one", value)

    def get(self, _key: str, default: Any = None) -> Any:
        return super().get("one", default)

    def setdefault(self, _key: str, default: Any = None) -> Any:
        return super().setdefault("one", default)

    def pop(self, _key: str, *default: Any) -> Any:
        return super().pop("one", *default)


class Noticed(dict[str, Any]):
    """A mapping that remembers that it was by session."""

    by_session = False

    def __setitem__(self, key: str, value: Any) -> None:
        self.by_session = self.by_session or str(key).startswith("session-")
        super().__setitem__(key, value)

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]


def mappings(agent: Agent) -> Iterator[str]:
    return (name for name, value in vars(agent).items() if type(value) is dict)


def answers(name: str, root: Path, **round: Any) -> Any:
    async def main() -> Any:
        async with agent_of(name, root) as agent:
            return await in_turns(agent, name, **round)

    return asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_conversations_that_take_turns_do_not_mix(root: Path, name: str) -> None:
    """And all that the agent keeps by session is named here."""

    async def main() -> set[str]:
        async with agent_of(name, root) as agent:
            names = list(mappings(agent))
            for attribute in names:
                setattr(agent, attribute, Noticed(vars(agent)[attribute]))
            assert await in_turns(agent, name) == SAID
            return {attribute for attribute in names if vars(agent)[attribute].by_session}

    kind = name.partition("-")[0]
    kept = asyncio.run(main())
    proven = set[str]().union(*(found for other, found in SHARED.items() if other.startswith(kind)))
    assert kept <= proven | UNSEEN.get(kind, set()), "whatever is kept by session has its proof"
    assert kept >= SHARED.get(name, set())


@pytest.mark.parametrize(("name", "attribute"), [(name, one) for name, kept in SHARED.items() for one in sorted(kept)])
def test_what_conversations_share_is_seen(root: Path, name: str, attribute: str) -> None:
    async def main() -> Any:
        async with agent_of(name, root) as agent:
            assert isinstance(vars(agent).get(attribute), dict)  # a KeyError would count as seen
            shared = OneForAll()
            setattr(agent, attribute, shared)
            try:
                return await in_turns(agent, name)
            finally:
                await shared.end()

    try:
        found = asyncio.run(main())
    except (AgentFailure, KeyError):
        return
    assert found != SAID


@pytest.mark.slow
@pytest.mark.parametrize("name", TOLD_APART)
def test_a_request_that_names_another_conversation_is_seen(root: Path, name: str) -> None:
    mixing = {"session": {"session": "session-A"}, "history": {"shared": []}}[TOLD_APART[name]]
    try:
        found = answers(name, root, **mixing)
    except AgentFailure:
        return
    assert found != SAID


def test_every_kind_of_agent_takes_its_turns() -> None:
    tables = {**SERVERS, **MORE, **PROCESSES}
    assert set(tables) == set(ALL)
    assert {kind for told in tables.values() for kind in told if kind in AGENTS} == set(AGENTS) - {"replay"}
