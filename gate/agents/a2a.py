"""Drives an agent that speaks A2A: one message per turn, by JSON-RPC or HTTP+JSON, whichever the agent's card
offers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from msgspec import Struct
from msgspec.structs import replace
from pydantic import BeforeValidator, Field, field_validator

from gate.agents.answer_paths import CallPaths, CheckedPath, calls_at, part_at
from gate.agents.base import AgentFailure, AgentOptions, ByAddress, Request, decode_answer, read_answer
from gate.agents.http import TEMPLATE, Server, ServerAgent, media_type, render
from gate.agents.jsonrpc import refuse_stated, result_in
from gate.errors import ConfigError
from gate.formats import streams
from gate.formats.a2a import ANSWERED, OPEN, Exchange, file_part, text_of_parts
from gate.formats.messages import FormatError
from gate.formats.shapes import as_mapping, as_text, mappings_in
from gate.model import ErrorKind, Invocation
from gate.security.limits import shorten
from gate.system.http import Response, check_url

CARD = "/.well-known/agent-card.json"
BINDINGS = ("JSONRPC", "HTTP+JSON")
FIRST_LOOK = 0.1
"""Seconds before an unfinished task is polled again; the wait doubles each time."""
LONGEST_LOOK = 2.0
HERE = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"})  # noqa: S104 - names that a card may give
"""Hosts in a card that mean the machine that the card came from."""
WORDS = {
    "failed": "the task failed",
    "rejected": "the agent rejected the task",
    "canceled": "the task was canceled",
    "auth-required": "the task waits for credentials, which go with every request under agent.a2a.headers",
}
"""States in which a task ends without an answer."""


class A2AServer(ByAddress, Server):
    """The section ``a2a:``; a plain string is the address."""

    stream: bool | None = None
    """True to stream answers. Default: if the agent's card supports it."""
    endpoint: str | None = None
    """Path on this server for messages. Default: the address in the agent's card, if it is on this server."""
    context: Literal["server", "gate"] = "server"
    """The side that sets the conversation's id: the ``server`` in its first answer, or the ``gate``."""
    metadata: Annotated[Mapping[str, Any], TEMPLATE] = Field(default_factory=dict)
    """The ``metadata`` of every request; ``{{state.x}}`` and the other fields are replaced."""
    tool_calls: Annotated[CallPaths | None, BeforeValidator(calls_at)] = None
    """Path of the calls in a task, such as ``metadata.calls``. Default: the parts sent by google-adk."""
    usage: CheckedPath | None = None
    """Path of the token counts, such as ``metadata.usage``."""

    @field_validator("endpoint")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        if value is not None and (not value.startswith("/") or value.startswith("//")):
            raise ValueError("write a path such as /a2a; url sets the server")
        return value


class A2AOptions(AgentOptions):
    """``a2a: {url: …}``."""

    a2a: A2AServer
    """Address of the agent, or of its card."""


class Interface(NamedTuple):
    """The address and the protocol version to reach an agent with."""

    url: str
    is_rpc: bool
    """True for JSON-RPC, False for HTTP+JSON."""
    is_old: bool
    """True for protocol 0.3, False for 1.0."""
    tenant: str = ""
    streams: bool = False
    """True if the card offers streams."""


class A2AContext(Struct):
    """The state of a trial's conversation."""

    context_id: str = ""
    task_id: str = ""
    """The task that waits for the next message; empty if there is none."""
    artifacts: frozenset[str] = frozenset()
    """Artifacts that the task had before this turn."""


class A2AAgent(ServerAgent[A2AServer, A2AContext]):
    """One context per trial, one message per turn; the next turn continues a task that asks for input."""

    Options = A2AOptions
    kind = "a2a"
    takes_attached = True

    def __init__(self, options: A2AOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        self._headers["Accept"] = "application/json, text/event-stream"
        self._interface: Interface | None = None
        self._asking = asyncio.Lock()

    async def open_session(self, request: Request) -> None:
        async with self._asking:  # one trial fetches the card, and the others wait for it
            if self._interface is None:
                self._interface = await self._find_interface(request)
                self._headers["A2A-Version"] = "1.0"
                if self._interface.is_old:
                    self._headers["A2A-Version"] = "0.3"
        named = ""
        if self._server.context == "gate":
            named = request.session_id
        self._sessions[request.session_id] = A2AContext(named)

    async def _find_interface(self, request: Request) -> Interface:
        card_url = self._url
        if not urlsplit(self._url).path.endswith(".json"):
            card_url = self._url.rstrip("/") + CARD
        try:
            response = await self._ask(request, None, url=card_url, method="GET")
        except AgentFailure as error:
            if error.status != 404:
                raise
            text = f"no agent card at {card_url} (HTTP 404): agent.a2a is the address under which {CARD} lies"
            raise AgentFailure(ErrorKind.PROTOCOL, text) from error
        try:
            found = interface_of(decode_answer(response.body, must_be_json=True))
        except FormatError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the agent card at {card_url}: {error}") from error
        streamed = self._server.stream
        if streamed is None:
            streamed = found.streams
        return found._replace(url=self._place(found.url), streams=streamed)

    def _place(self, told: str) -> str:
        """Return the address for messages; messages, and the keys sent with them, only go to the configured server."""
        if self._server.endpoint is not None:
            return urljoin(self._url, self._server.endpoint)
        try:  # parsed as in the request: what looks like a path may name a host, as in //host/path
            there, here = check_url(urljoin(self._url, told)), check_url(self._url)
        except ConfigError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the agent card names {error}") from error
        path = there.path or "/"
        if there.query:
            path += f"?{there.query}"
        ports = [parts.port or {"http": 80, "https": 443}[parts.scheme] for parts in (there, here)]
        same = there.scheme == here.scheme and ports[0] == ports[1]
        if same and (there.hostname == here.hostname or there.hostname in HERE):
            return urljoin(self._url, path)
        text = f"the agent card sends messages to {shorten(told, 200)}, which is another server than agent.a2a.url"
        raise AgentFailure(ErrorKind.PROTOCOL, f"{text}: agent.a2a.endpoint: {shorten(path, 100)} sends them here")

    async def answer(self, request: Request) -> Invocation:
        held = self._sessions[request.session_id]
        if request.turn and not held.context_id:
            text = "the server named no context with its first answer, so the conversation cannot go on"
            raise AgentFailure(ErrorKind.PROTOCOL, f"{text}: agent.a2a.context: gate names one from the start")
        message_id = f"{request.session_id}-{request.turn}"
        exchange = Exchange(message_id, known=held.artifacts)
        if request.turn:  # the server's first answer may name another
            exchange.context_id = held.context_id
        try:
            response = await self._send(request, exchange, held)
            received = perf_counter()
            async with asyncio.timeout(request.clock.seconds):
                await self._wait(request, exchange)
            _refuse_unanswered(exchange)
        except AgentFailure as failure:
            with suppress(AgentFailure):
                failure.turn = self._read(exchange, request)
            raise
        duration = response.duration
        if exchange.state:
            duration += perf_counter() - received
        held.context_id = exchange.context_id or held.context_id
        held.task_id, held.artifacts = "", frozenset()
        if exchange.state == "input-required" and exchange.task_id:
            held.task_id, held.artifacts = exchange.task_id, exchange.artifact_keys
        return replace(self._read(exchange, request), duration=duration)

    async def _send(self, request: Request, exchange: Exchange, held: A2AContext) -> Response:
        assert self._interface is not None
        old, streamed = self._interface.is_old, self._interface.streams
        part, verb = {"text": request.user}, "send"
        if streamed:
            verb = "stream"
        message: dict[str, Any] = {"messageId": exchange.message_id, "role": "ROLE_USER"}
        name = f"Send{'Streaming' * streamed}Message"
        if old:
            part["kind"] = "text"
            message |= {"role": "user", "kind": "message"}
            name = f"message/{verb}"
        message["parts"] = [part, *(file_part(one, old=old) for one in request.attached)]
        if held.context_id:
            message["contextId"] = held.context_id
        if held.task_id:
            message["taskId"] = held.task_id
        params: dict[str, Any] = {"message": message}
        if old and not streamed:
            params["configuration"] = {"blocking": True}
        if self._server.metadata:
            params["metadata"] = render(self._server.metadata, request.payload())
        return await self._call(request, exchange, name, params, f"message:{verb}")

    async def _wait(self, request: Request, exchange: Exchange) -> None:
        """Poll a task until it is finished. A streamed task is not polled: if it is still open, its stream broke
        off."""
        assert self._interface is not None
        pause, name = FIRST_LOOK, "GetTask"
        if self._interface.is_old:
            name = "tasks/get"
        while exchange.state in OPEN:
            if self._interface.streams or not exchange.task_id:
                raise AgentFailure(ErrorKind.PROTOCOL, f"the stream broke off: the task is still {exchange.state}")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_LOOK)
            await self._call(
                request, exchange, name, {"id": exchange.task_id}, f"tasks/{quote(exchange.task_id, safe='')}"
            )

    async def _call(
        self, request: Request, exchange: Exchange, name: str, params: Mapping[str, Any], path: str
    ) -> Response:
        """Call one method and add the results to the exchange."""
        assert self._interface is not None
        url, is_rpc, tenant = self._interface.url, self._interface.is_rpc, self._interface.tenant
        if is_rpc:
            if tenant:
                params = {"tenant": tenant, **params}
            body: Any = {"jsonrpc": "2.0", "id": exchange.message_id, "method": name, "params": params}
            response = await self._ask(request, body, url=url)
        else:
            base = url.rstrip("/")
            if tenant:
                base += f"/{quote(tenant, safe='')}"
            if path.startswith("tasks/"):
                response = await self._ask(request, None, url=f"{base}/{path}", method="GET")
            else:
                response = await self._ask(request, params, url=f"{base}/{path}")
        try:
            for result in results_of(response, is_rpc=is_rpc, asked=exchange.message_id):
                exchange.take(result)
        except FormatError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the answer cannot be read: {error}") from error
        return response

    def _read(self, exchange: Exchange, request: Request) -> Invocation:
        try:
            found = exchange.to_invocation(user=request.user)
        except FormatError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the answer cannot be read: {error}") from error
        told, parts = exchange.to_json(), dict[str, Any]()
        if self._server.tool_calls is not None:
            parts["tool_calls"] = self._server.tool_calls.read(told, "tool_calls")
        if self._server.usage is not None:
            parts["usage"] = part_at(told, self._server.usage, "usage")
        if not parts:
            return found
        stated = read_answer({"output": found.text, **parts}, user=request.user)
        reports = stated.reports_calls or found.reports_calls
        found = replace(found, usage=stated.usage or found.usage, reports_calls=reports)
        if self._server.tool_calls is None:
            return found
        return replace(found, tool_calls=stated.tool_calls)


def interface_of(card: Any) -> Interface:
    """Return the first interface of an agent card that is supported: of protocol 1 if possible, else of 0.3.

    Raises:
        FormatError: not a card, or it names no such interface.
    """
    if not isinstance(card, Mapping):
        raise FormatError("it is not an object")
    told = card.get("supportedInterfaces") or card.get("additionalInterfaces") or []
    listed = mappings_in(told)
    if isinstance(card.get("url"), str):  # 0.3
        listed = [{"url": card["url"], "transport": card.get("preferredTransport", "JSONRPC")}, *listed]
    found = list[Interface]()
    for one in listed:
        binding = str(one.get("protocolBinding") or one.get("transport") or "").upper()
        version = str(one.get("protocolVersion") or card.get("protocolVersion") or "1.0")
        url = one.get("url")
        old = version.startswith("0.") or "transport" in one
        if isinstance(url, str) and binding in BINDINGS and not (old and binding != "JSONRPC"):
            found.append(Interface(url, binding == "JSONRPC", old, as_text(one.get("tenant"))))
    if not found:
        told = [str(one.get("protocolBinding") or one.get("transport") or "").upper() for one in listed]
        offered = "it names no interface"
        if any(told):
            offered = f"it offers only {shorten(', '.join(dict.fromkeys(told)), 100)}"
        spoken = "the gate speaks JSONRPC and HTTP+JSON (1.0), or JSONRPC (0.3)"
        raise FormatError(f"{offered}; {spoken}: make the server offer one of these, too")
    streams = as_mapping(card.get("capabilities")).get("streaming") is True
    return min(found, key=lambda one: one.is_old)._replace(streams=streams)


def results_of(response: Response, *, is_rpc: bool, asked: str) -> Iterator[Any]:
    """Yield the results in a response: one, or one per event. Raises FormatError, or AgentFailure for an error."""
    if media_type(response) == "text/event-stream":
        events = list(streams.events_of(response.body.decode("utf-8", "replace")))
        streams.refuse_broken(events)
        bodies = [event.data for event in events]
        if not bodies:
            raise FormatError("the stream has no events")
    else:
        bodies = [decode_answer(response.body, must_be_json=True)]
    for body in bodies:
        if is_rpc:
            yield result_in(body, asked, key="agent.a2a.endpoint")
        else:
            refuse_stated(body)
            yield body


def _refuse_unanswered(exchange: Exchange) -> None:
    """Raise AgentFailure if a task ended without an answer, or in an unknown state."""
    if exchange.state in ANSWERED or (exchange.reply is not None and not exchange.state):
        return
    said = text_of_parts((exchange.status or {}).get("parts"), between=" ")
    detail = ""
    if said:
        detail = f": {shorten(said, 1000)}"
    if exchange.state not in WORDS:
        state = shorten(exchange.state or "none", 80)
        raise AgentFailure(ErrorKind.PROTOCOL, f"the task is in a state that is not known: {state}{detail}")
    kind = ErrorKind.CRASH
    if exchange.state == "auth-required":
        kind = ErrorKind.PROTOCOL
    raise AgentFailure(kind, WORDS[exchange.state] + detail)
