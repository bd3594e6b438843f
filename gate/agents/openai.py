"""Drives anything that speaks Chat Completions or Responses; only Responses shows tools that the server runs itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import replace
from pydantic import Field, field_validator

from gate.agents.base import AgentFailure, AgentOptions, Request, read_answer, refuse_error, so_far
from gate.agents.hints import looks_like
from gate.agents.http import Server, ServerAgent
from gate.formats.endings import is_cut_off
from gate.formats.messages import FormatError, to_usage, usage_of
from gate.formats.paths import find
from gate.formats.shapes import as_mapping, as_text
from gate.model import ErrorKind, Invocation, Usage
from gate.model.defaults import OPENAI_URL

MOST_ROUNDS = 20
"""The most requests of one turn whose tool calls are answered."""


class OpenAIServer(Server):
    """The section ``openai:``."""

    url: str = OPENAI_URL
    """Address of any server that speaks the protocol."""
    model: str
    """The model's name, as the server knows it."""
    api: Literal["chat", "responses"] = "chat"
    """Chat Completions or Responses; the latter shows the calls that the server made."""
    system: str | None = None
    """Instructions sent before every conversation."""
    body: Mapping[str, Any] = Field(default_factory=dict)
    """More keys for each request, such as ``temperature``."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools that the model may call, in the protocol's form."""
    tool_results: Mapping[str, Any] = Field(default_factory=dict)
    """Tool → recorded result; ``tool_results`` in a case's metadata takes precedence. Nothing is executed: a call
    without a recorded result ends the turn."""

    @field_validator("body")
    @classmethod
    def _leaves_ours(cls, value: Mapping[str, Any]) -> Mapping[str, Any]:
        for name in ("model", "messages", "input", "tools", "stream"):
            if name in value:
                raise ValueError(f"{name} is not set here" + (": answers come whole" if name == "stream" else ""))
        return value


class OpenAIOptions(AgentOptions):
    """``openai: {model: …}``."""

    openai: OpenAIServer
    """The server and the model."""


class OpenAIAgent(ServerAgent[OpenAIServer, None]):
    """One request per turn with the whole history; ``OPENAI_API_KEY`` is sent unless a header replaces it."""

    Options = OpenAIOptions
    kind = "openai"
    takes_attached = True

    def __init__(self, options: OpenAIOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        self.parts_of = lambda answer: {"messages": _said(answer, chat=options.openai.api == "chat")}
        key = environment.get("OPENAI_API_KEY")
        if key and not any(name.lower() == "authorization" for name in options.openai.headers):
            self._headers["Authorization"] = f"Bearer {key}"

    async def answer(self, request: Request) -> Invocation:
        """Return the turn: further requests follow as long as its tool calls have recorded results."""
        chat = self._server.api == "chat"
        asked, key, path = list[Any](request.messages), "messages", "/chat/completions"
        if not chat:
            asked = [{**message, "content": _as_input(message["content"])} for message in request.messages]
            key, path = "input", "/responses"
        if self._server.system:
            asked.insert(0, {"role": "system", "content": self._server.system})
        said: list[Any] = []
        usages, durations, cut_off = list[Any](), list[float](), False
        for _ in range(MOST_ROUNDS):
            body = {**self._server.body, "model": self._server.model, key: [*asked, *said]}
            if self._server.tools:
                body["tools"] = list(self._server.tools)
            try:
                answer, duration = await self._ask_for_json(request, body, path)
                if not chat and isinstance(answer, Mapping):
                    answer = {"object": "response", **answer}  # not every server says so
                refuse_error(answer, self.parts_of)
                found = _said(answer, chat=chat)
            except AgentFailure as failure:
                failure.turn = _before_failure(said, usages, failure.turn)
                raise
            said += found
            usages.append(self._usage(answer))
            cut_off = cut_off or is_cut_off(answer)
            durations.append(duration)
            results = self._results(request, found, chat=chat)
            if not results:
                break
            said += results
        else:
            text = f"the model still calls tools after {MOST_ROUNDS} rounds of results"
            raise AgentFailure(ErrorKind.CRASH, text, turn=_before_failure(said, usages, None))
        invocation, usage = read_answer({"messages": said}, user=request.user), _total(usages)
        if cut_off:
            usage = replace(usage or Usage(), cut_off=True)
        # a chat completion hides calls that the server executed itself, so one without calls proves nothing
        return replace(
            invocation,
            duration=sum(durations),
            reports_calls=not chat or bool(self._server.tools),
            usage=usage,
        )

    def _results(self, request: Request, said: Sequence[Any], *, chat: bool) -> list[dict[str, Any]]:
        """Return the recorded results of the calls; none if any of them has no result."""
        known = {**self._server.tool_results, **as_mapping(request.metadata.get("tool_results"))}
        calls = _calls(said, chat=chat)
        if not calls or any(name not in known for _, name in calls):
            return []
        texts = [(key, known[name] if isinstance(known[name], str) else json.dumps(known[name])) for key, name in calls]
        if chat:
            return [{"role": "tool", "tool_call_id": key, "content": text} for key, text in texts]
        return [{"type": "function_call_output", "call_id": key, "output": text} for key, text in texts]

    def _usage(self, answer: Mapping[str, Any]) -> Any:
        """Return the usage with the model and system that answered, and the cost if a router (OpenRouter) gives it."""
        usage = answer.get("usage")
        if not isinstance(usage, Mapping):
            return usage
        told = {"model": as_text(answer.get("model")) or self._server.model, **usage}
        system = answer.get("system_fingerprint")
        if isinstance(system, str):
            told = {"system_fingerprint": system, **told}
        if usage.get("cost") is not None:
            told = {"cost_usd": usage["cost"], **told}
        return told


def _as_input(content: Any) -> Any:
    """Return a chat message's content in the form of the Responses API, which names its parts differently."""
    if not isinstance(content, list):
        return content
    found: list[dict[str, Any]] = []
    for part in content:
        if part["type"] == "text":
            found.append({"type": "input_text", "text": part["text"]})
        elif part["type"] == "image_url":
            found.append({"type": "input_image", "image_url": part["image_url"]["url"]})
        else:
            found.append({"type": "input_file", **part["file"]})
    return found


def _said(answer: Any, *, chat: bool) -> list[Any]:
    """Return the messages that the model added to the conversation."""
    try:
        if chat:
            return [find(answer, "choices[0].message")]
        found = find(answer, "output")
    except LookupError as error:
        raise AgentFailure(
            ErrorKind.PROTOCOL, f"the answer has {error}{looks_like(answer, 'http.response')}"
        ) from error
    if not isinstance(found, list):
        raise AgentFailure(ErrorKind.PROTOCOL, "the answer's output is no list")
    return found


def _calls(said: Sequence[Any], *, chat: bool) -> list[tuple[Any, str]]:
    """Return the id and the tool of each function call."""
    found = [item for item in said if isinstance(item, Mapping)]
    if not chat:
        return [(c.get("call_id"), str(c.get("name"))) for c in found if c.get("type") == "function_call"]
    calls = [call for item in found for call in item.get("tool_calls") or () if isinstance(call, Mapping)]
    return [(c.get("id"), str(c["function"].get("name"))) for c in calls if isinstance(c.get("function"), Mapping)]


def _before_failure(said: Sequence[Any], usages: Sequence[Any], last: Invocation | None) -> Invocation | None:
    """Return what a turn did in the requests before one that failed, and what the ``last`` answer says of it."""
    turn = so_far({"messages": said})
    if turn is None:
        return last
    with suppress(AgentFailure):
        turn = replace(turn, usage=_total(usages))
    if last is None:
        return turn
    return replace(turn, response=turn.response + last.response, tool_calls=turn.tool_calls + last.tool_calls)


def _total(usages: Sequence[Any]) -> Usage | None:
    """Return the total usage of a turn's requests. Raises AgentFailure."""
    try:
        return usage_of(list(map(to_usage, usages)))
    except FormatError as error:
        raise AgentFailure(ErrorKind.PROTOCOL, f"the answer cannot be read: {error}") from error
