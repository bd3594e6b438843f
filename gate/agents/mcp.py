"""Drives an agent that is a tool of an MCP server: one MCP session per trial, one call per turn, over HTTP or stdio.

It speaks the protocol directly: only four messages are needed, and the library would bring 28 packages.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Self

from msgspec import Struct
from pydantic import model_validator

from gate import __version__
from gate.agents.answer_paths import ResultPaths
from gate.agents.base import (
    Agent,
    AgentFailure,
    AgentOptions,
    CommandLine,
    Request,
    allowed_environment,
    decode_answer,
    read_answer,
    so_far,
    unchanged,
)
from gate.agents.http import (
    CLOSING_SECONDS,
    FIELDS,
    TEMPLATE,
    Server,
    ServerAgent,
    media_type,
    render,
    session_id_at,
)
from gate.agents.jsonrpc import result_in
from gate.agents.programs import ProgramAgent, ProgramLine, files_in, modules_in
from gate.errors import ConfigError, nearest
from gate.formats import answers, streams
from gate.formats.json_text import parse_json
from gate.formats.shapes import as_list, as_mapping, mappings_in
from gate.model import ErrorKind, Invocation, RecordedTrial
from gate.security.limits import shorten
from gate.system.http import Response

OFFERED = "2025-11-25"
"""The protocol version to offer; a server may answer with an older one."""
SPOKEN = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", OFFERED})
STATELESS = "2026-07-28"
"""The protocol version without sessions: each message states its version."""
_META = "io.modelcontextprotocol/"
ENVELOPE = {
    f"{_META}protocolVersion": STATELESS,
    f"{_META}clientInfo": {"name": "gate", "version": __version__},
    f"{_META}clientCapabilities": {},
}
"""The fields of each message in that version."""
REFUSALS = re.compile(r"-32020\b|-32022\b|-32601\b")
"""Error codes of a server that knows no greeting, or none of the offered versions."""
STARTING_SECONDS = 120.0
"""Seconds for a process to start and greet."""
MOST_PAGES = 100
"""The most pages of a list of tools."""
METHOD_NOT_FOUND = -32601


class McpServer(Server):
    """The section ``mcp:``."""

    url: str = ""
    """Address of a server over streamable HTTP; or set ``command``."""
    command: CommandLine = ()
    """Program and arguments of a server on standard input and output; no shell runs it."""
    reuse: bool = False
    """True to share one process among trials; otherwise, each trial has its own."""
    tool: str
    """The tool that calls the agent."""
    arguments: Annotated[Mapping[str, Any] | None, TEMPLATE] = None
    """The tool's arguments, in which ``{{message}}``, ``{{session_id}}``, … are replaced. Default: each argument
    named like a field gets it; a required argument with another name gets the message."""
    response: ResultPaths | None = None
    """Paths to the parts of the tool's result. Default: one of the usual forms."""

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise ValueError("set either the server's url or a command that starts it")
        if self.command and self.headers:
            raise ValueError("headers need a url; pass variables to a process with agent.env")
        return self


class McpOptions(AgentOptions):
    """``mcp: {url: …, tool: …}``, or ``mcp: {command: …, tool: …}``."""

    mcp: McpServer
    """The server and the tool."""

    @property
    def entry(self) -> tuple[str, ...]:
        return files_in(self.mcp.command)

    @property
    def modules(self) -> tuple[str, ...]:
        return modules_in(self.mcp.command)

    @property
    def is_local(self) -> bool:
        return bool(self.mcp.command)


class McpSession(Struct):
    """One trial's session with the server."""

    mcp_id: str = ""
    """The server's id of the session, over HTTP."""
    version: str = ""
    given: str | int | None = None
    """The id that the tool gave the conversation."""
    line: ProgramLine | None = None
    """The process, over stdio."""
    asked: int = 0
    """Number of requests sent in this session."""


class McpAgent(Agent):
    """Opens a session, looks up the tool once, and calls it for every turn. Nothing is sent twice."""

    Options = McpOptions
    _server: McpServer
    _arguments: Mapping[str, Any] | None
    _sessions: dict[str, McpSession]
    _is_stateless: bool = False
    """True once the server is known to speak the version without sessions."""

    @classmethod
    def make(
        cls,
        options: McpOptions,
        *,
        root: Path,
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - replay's
    ) -> McpAgent:
        if options.mcp.url:
            return _OverHttp(options, root, environment)
        return _OverStdio(options, root, environment)

    @abstractmethod
    async def _exchange(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> tuple[Any, float]:
        """Return the response to a message that has an id, and its duration. Raises AgentFailure."""

    @abstractmethod
    async def _notify(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> None:
        """Send a message that gets no answer."""

    async def _greet(self, session: McpSession, request: Request) -> None:
        """Begin the session and, the first time, find out how to call the tool."""
        if self._is_stateless:
            await self._discover(session, request)
        else:
            try:
                await self._initialize(session, request)
            except AgentFailure as refused:
                if not REFUSALS.search(refused.message):
                    raise
                try:
                    await self._discover(session, request)
                except AgentFailure:
                    raise refused from None
        if self._arguments is None:
            self._arguments = await self._look_up(session, request)

    async def _initialize(self, session: McpSession, request: Request) -> None:
        """Begin a session of the protocol."""
        about = {"protocolVersion": OFFERED, "capabilities": {}, "clientInfo": {"name": "gate", "version": __version__}}
        found, _ = await self._call(session, request, "initialize", about)
        version = found.get("protocolVersion")
        if version not in SPOKEN:
            told = shorten(str(version), 40)
            raise AgentFailure(ErrorKind.PROTOCOL, f"the server speaks version {told} of MCP, and {OFFERED} is spoken")
        session.version = str(version)
        await self._notify(session, request, {"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def _discover(self, session: McpSession, request: Request) -> None:
        """Ask once which versions the server speaks without a session, and speak one from then on."""
        session.version, session.mcp_id = STATELESS, ""
        if self._is_stateless:
            return
        found, _ = await self._call(session, request, "server/discover", {})
        versions = found.get("supportedVersions")
        if not isinstance(versions, list) or STATELESS not in versions:
            told = shorten(str(versions), 100)
            text = f"the server speaks {told} of MCP; without a session, {STATELESS} is spoken"
            raise AgentFailure(ErrorKind.PROTOCOL, text)
        self._is_stateless = True

    async def _look_up(self, session: McpSession, request: Request) -> Mapping[str, Any]:
        """Return the arguments of each call, as a template. Raises AgentFailure if there is no such tool."""
        names, params = list[str](), dict[str, str]()
        for _ in range(MOST_PAGES):
            page, _ = await self._call(session, request, "tools/list", params)
            for tool in mappings_in(page.get("tools")):
                if tool.get("name") == self._server.tool:
                    if self._server.arguments is not None:
                        return self._server.arguments
                    return arguments_for(tool.get("inputSchema"))
                names.append(str(tool.get("name")))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
            params = {"cursor": cursor}
        hint = "it has none"
        if names:
            hint = shorten(nearest(self._server.tool, names), 300)
        raise AgentFailure(ErrorKind.PROTOCOL, f"the server has no tool {self._server.tool!r}: {hint}")

    async def _call(
        self, session: McpSession, request: Request, method: str, params: Mapping[str, Any]
    ) -> tuple[Mapping[str, Any], float]:
        session.asked += 1  # unique with the session's id: a process may still answer its previous session
        asked = f"{request.session_id}-{session.asked}"
        if session.version == STATELESS:
            params = {**params, "_meta": {**ENVELOPE, **params.get("_meta", {})}}
        message = {"jsonrpc": "2.0", "id": asked, "method": method, "params": params}
        answer, duration = await self._exchange(session, request, message)
        return _result_of(answer, asked), duration

    async def answer(self, request: Request) -> Invocation:
        session = self._sessions[request.session_id]
        payload = request.payload()
        if session.given is not None:
            payload["session_id"] = session.given
        params = {"name": self._server.tool, "arguments": render(self._arguments, payload)}
        if request.traceparent:
            params["_meta"] = {"traceparent": request.traceparent}
        result, duration = await self._call(session, request, "tools/call", params)
        paths = self._server.response or ResultPaths()
        answer = body_of(result, named=self._server.response is not None, parts_of=paths.read_known)
        if paths.session_id is not None:
            session.given = session_id_at(answer, paths.session_id)
        return read_answer(paths.read(answer), user=request.user, mapping="mcp.response", duration=duration)


class _OverHttp(McpAgent, ServerAgent[McpServer, McpSession]):
    """A session of streamable HTTP; every message carries the server's session id."""

    kind = "mcp"

    def __init__(self, options: McpOptions, root: Path, environment: Mapping[str, str]) -> None:
        ServerAgent.__init__(self, options, root, environment)
        self._headers["Accept"] = "application/json, text/event-stream"
        self._arguments = None

    async def open_session(self, request: Request) -> None:
        session = self._sessions[request.session_id] = McpSession()
        await self._greet(session, request)

    async def close_session(self, session_id: str) -> None:
        session = self._sessions.get(session_id)
        if session is not None and session.mcp_id:
            request = Request("", 1, session_id, 0, "", ())
            with suppress(AgentFailure, TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._ask(request, None, method="DELETE", headers=_headers_of(session, {}))
        await ServerAgent.close_session(self, session_id)

    async def _exchange(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> tuple[Any, float]:
        try:
            response = await self._ask(request, message, headers=_headers_of(session, message))
        except AgentFailure as error:
            if session.mcp_id and error.status == 404:
                raise AgentFailure(ErrorKind.CRASH, f"the server has ended the session: {error.message}") from error
            raise
        if session.version != STATELESS:
            session.mcp_id = session.mcp_id or response.headers.get("mcp-session-id", "")
        return _answer_in(response, message["id"]), response.duration

    async def _notify(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> None:
        await self._ask(request, message, headers=_headers_of(session, message))


class _OverStdio(McpAgent, ProgramAgent):
    """A process per trial, or one that serves trials in turn."""

    starts_clock = True

    def __init__(self, options: McpOptions, root: Path, environment: Mapping[str, str]) -> None:
        passed = allowed_environment(environment, options.env)
        ProgramAgent.__init__(self, options.mcp.command, root, passed, key="agent.mcp.command")
        self._server, self._arguments, self._sessions = options.mcp, None, {}
        self._idle: list[McpSession] = []

    def lines(self) -> list[ProgramLine]:
        return [session.line for session in (*self._idle, *self._sessions.values()) if session.line is not None]

    async def open_session(self, request: Request) -> None:
        while self._idle:
            session = self._idle.pop()
            if session.line is not None and session.line.alive:
                session.given = None
                session.line.take(request.session_id)
                self._sessions[request.session_id] = session
                return
        session = self._sessions[request.session_id] = McpSession()
        try:
            async with asyncio.timeout(STARTING_SECONDS):
                session.line = await self.open_line()
                session.line.take(request.session_id)
                await self._greet(session, request)
        except TimeoutError as error:
            text = (
                f"the server did not greet within {STARTING_SECONDS:g} s: does {self._server.command[0]!r} speak MCP?"
            )
            raise AgentFailure(ErrorKind.CRASH, text) from error

    async def close_session(self, session_id: str) -> None:
        session = self._sessions.pop(session_id, None)
        if session is None or session.line is None:
            return
        if self._server.reuse and session.line.alive:
            self._idle.append(session)
        else:
            await session.line.end()

    async def _exchange(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> tuple[Any, float]:
        line = session.line
        if line is None or not line.alive:
            raise AgentFailure(ErrorKind.CRASH, "the process that held the session has ended")
        line.child.forget()
        start = perf_counter()
        if message["method"] == "tools/call":
            request.clock.start()
        try:
            line.send(message)
            answer = await self._next(line, message["id"])
        except BaseException:
            await line.end()
            raise
        finally:
            request.log.add(line.child.tail)
        return _with_cause(answer, line.child.tail), perf_counter() - start

    async def _notify(self, session: McpSession, request: Request, message: Mapping[str, Any]) -> None:  # noqa: ARG002
        assert session.line is not None
        session.line.send(message)

    async def _next(self, line: ProgramLine, asked: str) -> Any:
        """Return the response to a message; refuse the server's own requests meanwhile, and skip its notifications."""
        while True:
            read = await line.next(called="server")
            with suppress(ValueError, ConfigError):
                message = parse_json(read.decode("utf-8", "replace"), "a message")
                if isinstance(message, Mapping) and "method" in message and "id" in message:
                    line.send(_refusal(message))
                elif isinstance(message, Mapping) and message.get("id") == asked:
                    return message


def arguments_for(schema: Any) -> dict[str, Any]:
    """Return a tool's default arguments from its schema. Raises AgentFailure if they are ambiguous."""
    schema = as_mapping(schema)
    names = list(map(str, as_mapping(schema.get("properties"))))
    filled = {name: f"{{{{{name}}}}}" for name in names if name in FIELDS}
    others = [str(name) for name in as_list(schema.get("required")) if name not in filled]
    if not others and not filled.keys() & {"message", "messages"} and len(names) - len(filled) == 1:
        others = [name for name in names if name not in filled]
    if len(others) + bool(filled.keys() & {"message", "messages"}) != 1:
        told = shorten(", ".join(names), 300) or "none"
        text = f"which of the tool's arguments the message is cannot be told ({told})"
        raise AgentFailure(ErrorKind.PROTOCOL, f"{text}: agent.mcp.arguments: {{name: '{{{{message}}}}', …}}")
    return {**filled, **dict.fromkeys(others, "{{message}}")}


def body_of(result: Mapping[str, Any], *, named: bool = False, parts_of: Callable[[Any], Any] = unchanged) -> Any:
    """Return the result of a tool: structured content if it is an answer or paths lead into it, else the text.

    ``parts_of`` finds the parts of structured content with an error.
    """
    text = text_of(result.get("content"))
    if result.get("isError"):
        text = f"the tool reports an error: {shorten(text or 'without a word', 1000)}"
        raise AgentFailure(ErrorKind.CRASH, text, turn=so_far(result.get("structuredContent"), parts_of))
    structured = result.get("structuredContent")
    if isinstance(structured, Mapping) and (named or not structured.keys().isdisjoint(answers.CONTENT)):
        return structured
    if (
        isinstance(structured, Mapping)
        and structured.keys() == {"result"}
        and not isinstance(structured["result"], str)
    ):
        return structured["result"]
    if not text and structured is not None:
        return structured
    return decode_answer(text.encode())


def text_of(content: Any) -> str:
    """Return the blocks of a result as text, each on separate lines."""
    found = []
    for block in mappings_in(content):
        text = block.get("text")
        if not isinstance(text, str):
            text = as_mapping(block.get("resource")).get("text")
        if not isinstance(text, str):
            text = f"[{block.get('type')} {block.get('mimeType') or block.get('uri') or ''}]"
        found.append(text)
    return "\n".join(found)


def _headers_of(session: McpSession, message: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a message: the session's id, or without sessions the method and the tool's name."""
    told = {"Mcp-Session-Id": session.mcp_id, "MCP-Protocol-Version": session.version}
    if session.version == STATELESS:
        told["Mcp-Method"] = message["method"]
        told["Mcp-Name"] = _as_header(message["params"].get("name", ""))
    return {name: value for name, value in told.items() if value}


def _as_header(text: str) -> str:
    """Return a name as a header value: in base64 if it is not plain ASCII."""
    if not text or (re.fullmatch(r"[!-~]([ -~]*[!-~])?", text) and not text.startswith("=?base64?")):
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def _answer_in(response: Response, asked: str) -> Any:
    """Return the response to a message; it may be the last event of a stream."""
    if media_type(response) != "text/event-stream":
        if not response.body.strip():
            raise AgentFailure(ErrorKind.PROTOCOL, "the answer is empty: does agent.mcp.url lead to an MCP server?")
        return decode_answer(response.body, must_be_json=True)
    events = list(streams.events_of(response.body.decode("utf-8", "replace")))
    found = [event.data for event in events if isinstance(event.data, Mapping) and event.data.get("id") == asked]
    found = [one for one in found if "result" in one or "error" in one]
    if not found:
        raise AgentFailure(ErrorKind.PROTOCOL, "the stream broke off: it holds no result of the call")
    if any(one != found[0] for one in found):
        raise AgentFailure(ErrorKind.PROTOCOL, "the stream holds several results of the call, which differ")
    return found[0]


def _result_of(answer: Any, asked: str) -> Mapping[str, Any]:
    """Return the result in the response to a message. Raises AgentFailure."""
    result = result_in(answer, asked, key="agent.mcp.url")
    if not isinstance(result, Mapping):
        raise AgentFailure(ErrorKind.PROTOCOL, "the response has no result")
    if result.get("resultType", "complete") != "complete":
        told = shorten(str(result["resultType"]), 40)
        raise AgentFailure(ErrorKind.PROTOCOL, f"the call is not complete ({told}): nobody gives what it asks for")
    return result


def _with_cause(answer: Any, written: str) -> Any:
    """Return a failed result with the last line of standard error added: some servers report the cause only there."""
    result = as_mapping(as_mapping(answer).get("result"))
    if not result.get("isError") or not written:
        return answer
    cause = {"type": "text", "text": f"(its last line of error: {shorten(written.splitlines()[-1], 500)})"}
    return {**answer, "result": {**result, "content": [*as_list(result.get("content")), cause]}}


def _refusal(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return the response to a server's request: a ping is answered, and anything else refused."""
    head = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": METHOD_NOT_FOUND, "message": "not offered by this client"}}
