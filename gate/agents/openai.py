"""Drives what speaks Chat Completions or Responses; tools that the server runs itself show in Responses only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace

from gate.agents.base import AgentFailure, AgentOptions, Request, read_answer
from gate.agents.http import Server, ServerAgent
from gate.formats.paths import find
from gate.model import ErrorKind, Invocation, RecordedTrial


class OpenAIServer(Server):
    """What is under ``openai:``."""

    url: str = "https://api.openai.com/v1"
    """Address of any server that speaks the protocol."""
    model: str
    """The model's name, as the server knows it."""
    api: Literal["chat", "responses"] = "chat"
    """Chat Completions or Responses; the latter shows the calls that the server made."""
    system: str | None = None
    """Instructions that come before every conversation."""


class OpenAIOptions(AgentOptions):
    """``openai: {model: …}``."""

    openai: OpenAIServer
    """The server, and the model to ask."""


class OpenAIAgent(ServerAgent):
    """One request per turn with the whole history; ``OPENAI_API_KEY`` is sent unless a header replaces it."""

    Options = OpenAIOptions

    def __init__(self, server: OpenAIServer, environment: Mapping[str, str]) -> None:
        super().__init__(server, "openai", environment)
        self._server = server
        key = environment.get("OPENAI_API_KEY")
        if key and not any(name.lower() == "authorization" for name in server.headers):
            self._headers["Authorization"] = f"Bearer {key}"

    @classmethod
    def make(
        cls,
        options: OpenAIOptions,
        *,
        root: Path,  # noqa: ARG003 - nothing is relative
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - replay's
    ) -> OpenAIAgent:
        return cls(options.openai, environment)

    async def answer(self, request: Request) -> Invocation:
        system = [{"role": "system", "content": self._server.system}] if self._server.system else []
        messages = [*system, *request.messages]
        chat = self._server.api == "chat"
        body: dict[str, Any] = {"model": self._server.model, "messages" if chat else "input": messages}
        answer, duration = await self._ask_for_json(request, body, "/chat/completions" if chat else "/responses")
        try:
            said = [find(answer, "choices[0].message")] if chat else find(answer, "output")
        except LookupError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the answer has {error}") from error
        invocation = read_answer({"messages": said, "usage": self._usage(answer)}, user=request.user)
        # a chat completion does not show the calls that the server executed itself: one without calls says nothing
        return replace(invocation, duration=duration, reports_calls=not chat)

    def _usage(self, answer: Mapping[str, Any]) -> Any:
        """The usage with the model and system that answered, and the cost if a router (OpenRouter) gives it."""
        usage = answer.get("usage")
        if not isinstance(usage, Mapping):
            return usage
        model = answer.get("model")
        told = {"model": model if isinstance(model, str) and model else self._server.model, **usage}
        if isinstance(system := answer.get("system_fingerprint"), str):
            told = {"system_fingerprint": system, **told}
        return told if usage.get("cost") is None else {"cost_usd": usage["cost"], **told}
