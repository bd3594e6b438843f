"""Drives an assistant behind a LangGraph server: a thread per trial, then one awaited run per turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec.structs import replace

from gate.agents.base import AgentFailure, AgentOptions, Request, read_answer
from gate.agents.http import Server, ServerAgent
from gate.formats.paths import find
from gate.model import ErrorKind, Invocation, RecordedTrial
from gate.security.limits import shorten


class LangGraphServer(Server):
    """What is under ``langgraph:``."""

    url: str = "http://127.0.0.1:2024"
    """Address of the LangGraph server."""
    assistant: str
    """The assistant's or graph's id."""


class LangGraphOptions(AgentOptions):
    """``langgraph: {assistant: …}``."""

    langgraph: LangGraphServer
    """The server, and the graph to ask."""


class LangGraphAgent(ServerAgent):
    """Reads the messages of the state that a run ends with; what follows the last user message is the turn."""

    Options = LangGraphOptions
    reports_calls = True

    def __init__(self, server: LangGraphServer, environment: Mapping[str, str]) -> None:
        super().__init__(server, "langgraph", environment)
        self._assistant = server.assistant
        self._threads: dict[str, str] = {}

    @classmethod
    def make(
        cls,
        options: LangGraphOptions,
        *,
        root: Path,  # noqa: ARG003 - nothing is relative
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - replay's
    ) -> LangGraphAgent:
        return cls(options.langgraph, environment)

    async def open_session(self, request: Request) -> None:
        thread, _ = await self._ask_for_json(request, {}, "/threads")
        try:
            self._threads[request.session_id] = str(find(thread, "thread_id"))
        except LookupError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the new thread has {error}") from error

    async def close_session(self, session_id: str) -> None:
        self._threads.pop(session_id, None)
        await super().close_session(session_id)

    async def answer(self, request: Request) -> Invocation:
        said = {"messages": [{"role": "user", "content": request.user}]}
        turn_input = {**request.state, **said} if request.turn == 0 else said
        path = f"/threads/{quote(self._threads[request.session_id], safe='')}/runs/wait"
        state, duration = await self._ask_for_json(
            request, {"assistant_id": self._assistant, "input": turn_input}, path
        )
        if isinstance(state, Mapping) and "__error__" in state:
            raise AgentFailure(ErrorKind.CRASH, f"the run failed: {shorten(str(state['__error__']), 1000)}")
        try:
            messages = find(state, "messages")
        except LookupError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the state has {error}") from error
        return replace(read_answer({"messages": messages}, user=request.user), duration=duration)
