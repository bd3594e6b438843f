"""Drives an assistant behind a LangGraph server: one thread per trial, one awaited run per turn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import quote

from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from gate.agents.answer_paths import StatePaths
from gate.agents.base import AgentFailure, AgentOptions, Request, decode_answer, read_answer
from gate.agents.http import TEMPLATE, Server, ServerAgent, render
from gate.formats import messages as formats
from gate.formats.paths import PathError, find
from gate.formats.shapes import as_list, as_mapping, as_text, in_list, text_or_json
from gate.model import ErrorKind, Invocation, Part
from gate.security.limits import shorten

MOST_RESUMES = 20
"""The most interrupts to answer in one turn."""
INTERRUPTS = "__interrupt__"
REMEDY = "agent.langgraph.resume, answers it; interrupts: ask takes it for the turn's answer"


class LangGraphServer(Server):
    """The section ``langgraph:``."""

    url: str = "http://127.0.0.1:2024"
    """Address of the LangGraph server."""
    assistant: str
    """The assistant's or graph's id."""
    config: Annotated[Mapping[str, Any], TEMPLATE] = Field(default_factory=dict)
    """The ``config`` of every run, such as ``{configurable: {model: small}}``; ``{{state.x}}`` and the other fields are
    replaced."""
    context: Annotated[Mapping[str, Any], TEMPLATE] = Field(default_factory=dict)
    """The static context of every run, with the same fields."""
    input: Annotated[Mapping[str, Any] | None, TEMPLATE] = None
    """The input of every run, with the same fields. Default: the turn as a message, with the case's state in the
    first turn."""
    response: StatePaths | None = None
    """Paths to the parts of a run's final state. Default: its ``messages``."""
    resume: Annotated[tuple[Any, ...], TEMPLATE] = ()
    """Answers to the interrupts of each turn, in order; ``resume`` in a case's metadata takes precedence and
    covers the whole conversation."""
    interrupts: Literal["fail", "ask"] = "fail"
    """An interrupt without an answer: a failure (``fail``), or the answer of the turn (``ask``), which the next
    turn answers."""


class LangGraphOptions(AgentOptions):
    """``langgraph: {assistant: …}``."""

    langgraph: LangGraphServer
    """The server and the graph."""


class _Thread(Struct):
    """A trial's thread on the server."""

    thread_id: str
    resume: Iterator[Any]
    """The unused answers to interrupts from the session's case."""
    told: list[Any] = []
    """The messages in its state after the last turn."""
    is_waiting: bool = False
    """True if its last run waits for an answer."""

    @property
    def path(self) -> str:
        return f"/threads/{quote(self.thread_id, safe='')}"


class LangGraphAgent(ServerAgent[LangGraphServer, _Thread]):
    """Reads the messages in the final state of a run; the new ones after the user's last question are the turn."""

    Options = LangGraphOptions
    kind = "langgraph"

    def __init__(self, options: LangGraphOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        self._paths = options.langgraph.response or StatePaths()
        self.reports_calls = not self._paths.names_parts

    async def open_session(self, request: Request) -> None:
        thread, _ = await self._ask_for_json(request, {}, "/threads")
        try:
            found = find(thread, "thread_id")
        except LookupError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the new thread has {error}") from error
        if not isinstance(found, str) or not found:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the new thread's id is none: {shorten(repr(found), 60)}")
        resume = iter(in_list(request.metadata.get("resume", [])))
        self._sessions[request.session_id] = _Thread(found, resume)

    async def answer(self, request: Request) -> Invocation:
        thread = self._sessions[request.session_id]
        asked: dict[str, Any] = {"input": self._input(request)}
        if thread.is_waiting:
            asked = {"command": {"resume": request.user}}
        thread.is_waiting = False
        answers = chain(thread.resume, render(list(self._server.resume), request.payload()))
        state, duration = await self._run(request, asked)
        try:
            for _ in range(MOST_RESUMES):
                interrupts = interrupts_of(state)
                known = list(islice(answers, len(interrupts)))
                if not interrupts or len(known) < len(interrupts):
                    if interrupts:
                        turn = self._interrupted(state, interrupts, request)
                    else:
                        await self._refuse_unfinished(state, request)
                        turn = self._read(state, request)
                    thread.told = self._messages(state)
                    return replace(turn, duration=duration)
                given: Any = known[0]
                if len(known) > 1:
                    given = {str(one.get("id")): value for one, value in zip(interrupts, known, strict=True)}
                state, more = await self._run(request, {"command": {"resume": given}})
                duration += more
            raise AgentFailure(ErrorKind.CRASH, f"the graph still interrupts after {MOST_RESUMES} answers")
        except AgentFailure as failure:
            with suppress(AgentFailure):
                failure.turn = failure.turn or self._read(state, request, failed=True)
            raise

    def _input(self, request: Request) -> Any:
        if self._server.input is not None:
            return render(self._server.input, request.payload())
        said = {"messages": [{"role": "user", "content": request.user}]}
        if request.turn:
            return said
        return {**request.state, **said}

    async def _run(self, request: Request, asked: Mapping[str, Any]) -> tuple[Any, float]:
        """Return the final state of one run, and its duration."""
        body = {"assistant_id": self._server.assistant, **asked}
        for name in ("config", "context"):
            told = getattr(self._server, name)
            if told:
                body[name] = render(told, request.payload())
        path = self._sessions[request.session_id].path
        state, duration = await self._ask_for_json(request, body, f"{path}/runs/wait")
        if isinstance(state, Mapping) and "__error__" in state:
            raise AgentFailure(ErrorKind.CRASH, f"the run failed: {shorten(str(state['__error__']), 1000)}")
        return state, duration

    async def _refuse_unfinished(self, state: Any, request: Request) -> None:
        """Raise AgentFailure for a run that stopped before a node, as at a breakpoint: its state looks final.

        If a call in the last message has no result, the server is asked, since a graph may also end like that.
        """
        messages = as_list(as_mapping(state).get("messages"))
        if not messages or not as_mapping(messages[-1]).get("tool_calls"):
            return
        path = self._sessions[request.session_id].path
        response = await self._ask(request, None, path=f"{path}/state", method="GET")
        told = decode_answer(response.body, must_be_json=True)
        if isinstance(told, Mapping) and told.get("next"):
            text = f"the run stopped before {shorten(json.dumps(told['next']), 100)}, with a call that nothing answered"
            raise AgentFailure(ErrorKind.PROTOCOL, text)

    def _read(self, state: Any, request: Request, *, failed: bool = False) -> Invocation:
        """Return the turn in a state; ``failed``: as far as the state shows it."""
        answer: dict[str, Any]
        if self._paths.names_parts and failed:
            answer = self._paths.read_known(state)
        elif self._paths.names_parts:
            answer = self._paths.read(state)
        else:
            try:
                answer = {"messages": find(state, "messages")}
            except PathError as error:
                text = f"the state has {error}"
                if error.hint:
                    text += f"; {error.hint}"
                raise AgentFailure(
                    ErrorKind.PROTOCOL, f"{text}; agent.langgraph.response says where the answer is"
                ) from error
        if isinstance(answer.get("messages"), list):
            answer["messages"] = _later(answer["messages"], self._sessions[request.session_id].told)
        return read_answer(answer, user=request.user)

    def _messages(self, state: Any) -> list[Any]:
        """Return the messages in a state; none if it has none."""
        path = self._paths.messages or "messages"
        try:
            return as_list(find(state, path.removesuffix("?")))
        except PathError:
            return []

    def _interrupted(self, state: Any, interrupts: Sequence[Mapping[str, Any]], request: Request) -> Invocation:
        """Return the turn of a run that waits at an interrupt."""
        question = "\n".join(text_or_json(one.get("value")) for one in interrupts)
        if self._server.interrupts == "fail":
            text = f"nobody answers the graph's interrupt: {shorten(question, 500)}"
            raise AgentFailure(ErrorKind.PROTOCOL, f"{text}; metadata: {{resume: […]}} of the case, or {REMEDY}")
        self._sessions[request.session_id].is_waiting = True
        new = _later(self._messages(state), self._sessions[request.session_id].told)
        messages = formats.after_last_question(new, request.user)
        said = Invocation(request.user, reports_calls=True)
        if messages:
            said = read_answer({"messages": messages}, user=request.user)
        reports = said.reports_calls and self.reports_calls
        spoken = (*said.intermediate, *said.response)
        return replace(said, response=(Part(question),), intermediate=spoken, reports_calls=reports)


def _later(messages: list[Any], told: list[Any]) -> list[Any]:
    """Return the messages of a session that no earlier turn had: by their ids, which survive a shortened history.

    Without ids, the state of a graph that keeps its messages is longer and begins with them; any other is new.
    """
    ids = [as_text(as_mapping(message).get("id")) for message in (*told, *messages)]
    if not all(ids):
        return messages[len(told) :] if len(messages) > len(told) and messages[: len(told)] == told else messages
    known = dict(zip(ids, told, strict=False))
    for place, message in enumerate(messages):
        if known.get(message["id"]) != message:
            return messages[place:]
    return []


def interrupts_of(state: Any) -> list[Mapping[str, Any]]:
    """Return the interrupts that a run waits at, each with ``value`` and ``id``. Raises AgentFailure if they cannot be
    read."""
    told = as_mapping(state).get(INTERRUPTS) or []
    if not isinstance(told, list) or not all(isinstance(one, Mapping) for one in told):
        text = f"the run was interrupted, by what cannot be read: {shorten(json.dumps(told, default=repr), 200)}"
        raise AgentFailure(ErrorKind.PROTOCOL, text)
    return told
