"""Drives an agent that serves AG-UI: one POST per turn, answered by a stream of events."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gate.agents.base import AgentFailure, AgentOptions, ByAddress, Request, Stream, decode_answer, read_answer
from gate.agents.http import Server, ServerAgent
from gate.model import ErrorKind, Invocation


class AguiServer(ByAddress, Server):
    """The section ``agui:``; a plain string is the address."""

    tools: tuple[Mapping[str, Any], ...] = ()
    """The front end's tools, each with ``name``, ``description`` and ``parameters``. The agent may call them;
    nothing executes them."""
    context: tuple[Mapping[str, Any], ...] = ()
    """Context of every run, each with ``description`` and ``value``."""


class AguiOptions(AgentOptions):
    """``agui: {url: …}``."""

    agui: AguiServer
    """The address of the agent."""


class AguiAgent(ServerAgent[AguiServer, None]):
    """One thread per trial, one run per turn; the events report the calls and their results."""

    Options = AguiOptions
    kind = "agui"
    reports_calls = True

    def __init__(self, options: AguiOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        self._headers["Accept"] = "text/event-stream"

    async def answer(self, request: Request) -> Invocation:
        body = {
            "threadId": request.session_id,
            "runId": f"{request.session_id}-{request.turn}",
            "state": dict(request.state),
            "messages": [{"id": f"m{place}", **message} for place, message in enumerate(request.messages)],
            "tools": list(self._server.tools),
            "context": list(self._server.context),
            "forwardedProps": {},
        }
        response = await self._ask(request, body)
        answer = decode_answer(response.body)
        if not isinstance(answer, Stream):
            raise AgentFailure(
                ErrorKind.PROTOCOL, "the answer is no stream of events, as AG-UI's are: is the path right?"
            )
        return read_answer(answer, user=request.user, duration=response.duration)
