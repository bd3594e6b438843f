"""Drives an agent behind HTTP: a request made from a template, an answer found by paths, statuses read as failures."""

from __future__ import annotations

import json
import re
import resource
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from pathlib import Path
from time import time
from typing import Any, Literal, Self

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from gate.agents.base import (
    STREAMS,
    Agent,
    AgentFailure,
    AgentOptions,
    Request,
    decode_answer,
    expand,
    kind_of_status,
    read_answer,
    refuse_error,
    refuse_stream,
)
from gate.model import ErrorKind, Invocation, RecordedTrial
from gate.security.limits import MAX_LOG_CHARS
from gate.system.http import Client, HttpError, Response, check_url

FIELDS = ("message", "messages", "session_id", "state", "metadata", "case_id", "trial", "turn")
RESERVED_FILES = 64
"""File descriptors that are left to everything but connections."""
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


def steps_of(path: str) -> tuple[str | int, ...]:
    """``choices[0].message.content`` as its steps; ValueError for anything that is not such a path."""
    steps: list[str | int] = []
    at = 0
    while at < len(path):
        match = _STEP.match(path, at)
        if match is None or (at == 0 and path[0] == "."):
            raise ValueError(f"{path!r} is not a path such as choices[0].message.content")
        steps.append(match[1] if match[1] is not None else int(match[2]))
        at = match.end()
    return tuple(steps)


def find(value: Any, path: str) -> Any:
    """The value at a path. Raises LookupError if a step is missing."""
    for step in steps_of(path):
        fits = isinstance(value, list) if isinstance(step, int) else isinstance(value, Mapping)
        if not fits:
            raise LookupError(f"nothing at {path!r}")
        try:
            value = value[step]
        except LookupError:
            raise LookupError(f"nothing at {path!r}") from None
    return value


class ResponsePaths(BaseModel):
    """Where the answer's parts are; by default the answer itself is of a form the gate reads.

    A path that ends with ``?`` may lead to a name that an answer leaves out.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    output: str | None = None
    """Path of the text."""
    messages: str | None = None
    """Path of OpenAI messages, instead of ``output``."""
    tool_calls: str | None = None
    """Path of the list of calls."""
    usage: str | None = None
    """Path of the token counts."""
    cost_usd: str | None = None
    """Path of the cost in US dollars."""
    model: str | None = None
    """Path of the model that answered, as the provider names it."""
    system_fingerprint: str | None = None
    """Path of the provider's fingerprint of the system that answered."""

    @field_validator("*")
    @classmethod
    def _is_a_path(cls, value: str | None) -> str | None:
        if value is not None and not steps_of(value.removesuffix("?")):
            raise ValueError("a path must not be empty")
        return value

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        if (self.output is None) == (self.messages is None):
            raise ValueError("name the path of either output or messages")
        return self

    def read(self, body: Any) -> dict[str, Any]:
        """The parts that are named: null is no part, and a missing name is an error unless marked with ``?``."""
        parts = {}
        for name in type(self).model_fields:
            path: str | None = getattr(self, name)
            if path is None:
                continue
            plain = path.removesuffix("?")
            try:
                value = find(body, plain)
            except LookupError as error:
                if plain == path:
                    hint = f"; write {path}? if it may be left out" if _may_be_absent(body, plain) else ""
                    raise AgentFailure(ErrorKind.PROTOCOL, f"the answer has {error} ({name}){hint}") from error
                if not _may_be_absent(body, plain):
                    raise AgentFailure(ErrorKind.PROTOCOL, f"the answer has {error} ({name})") from error
                value = None
            parts[name] = value
        return parts


def _may_be_absent(body: Any, path: str) -> bool:
    """Whether all but the last step of a path is there: then the part is absent, else the path is wrong."""
    parent = path[: list(_STEP.finditer(path))[-1].start()]
    try:
        find(body, parent)
    except LookupError:
        return False
    return True


class Server(BaseModel):
    """Where a server is, and what every request to it carries; shared by the kinds that speak HTTP."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    url: str
    """The address; ``${NAME}`` is taken from the environment, here and in headers."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Sent with every request."""

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name in value:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
                raise ValueError(f"{name!r} is not the name of a header")
            if name.lower() in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding"):
                raise ValueError(f"the header {name} is the client's to set")
        return value


class ServerAgent(Agent):
    """An agent behind a server, asked through one client, whose statuses are read as failures."""

    starts_clock = True

    def __init__(self, server: Server, kind: str, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._url = expand(server.url, environment, where=f"agent.{kind}.url")
        check_url(self._url, where=f"agent.{kind}.url")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain"}
        for name, value in server.headers.items():
            self._headers[name] = expand(value, environment, where=f"agent.{kind}.headers.{name}")

    async def __aenter__(self) -> Self:
        self._client = Client(limit=connections(), environment=self._environment)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def _ask(self, request: Request, body: Any, *, path: str = "", method: str = "POST") -> Response:
        """A response of status 2xx. Raises AgentFailure. Waiting for a connection is not the request's time."""
        data = b"" if body is None else json.dumps(body).encode()
        request.clock.stop()
        try:
            response = await self._client.request(
                method,
                self._url.rstrip("/") + path if path else self._url,
                headers=self._headers if not request.traceparent else _traced(self._headers, request.traceparent),
                body=data,
                on_send=request.clock.start,
            )
        except HttpError as error:
            raise AgentFailure(error.kind, error.message, transient=error.transient) from error
        if not 200 <= response.status < 300:
            request.log.add(response.body[: 4 * MAX_LOG_CHARS].decode("utf-8", "replace")[:MAX_LOG_CHARS])
            raise _failure(response)
        if (kind := _media_type(response)) in STREAMS:
            refuse_stream(f"a stream ({kind})")
        return response

    async def _ask_for_json(self, request: Request, body: Any, path: str) -> tuple[Any, float]:
        """The JSON of the answer, and how long it took."""
        response = await self._ask(request, body, path=path)
        return decode_answer(response.body, must_be_json=True), response.duration


def _traced(headers: Mapping[str, str], traceparent: str) -> dict[str, str]:
    others = {name: value for name, value in headers.items() if name.lower() != "traceparent"}
    return {**others, "traceparent": traceparent}


def _failure(response: Response) -> AgentFailure:
    """What a status other than 2xx says."""
    status = response.status
    said = response.body[:300].decode("utf-8", "replace").strip()
    message = f"HTTP {status}{f': {said}' if said else ''}"
    if 300 <= status < 400:
        message = f"HTTP {status}: redirects are not followed (to {response.headers.get('location', 'nowhere')})"
    wait = _seconds_to_wait(response.headers.get("retry-after"))
    return AgentFailure(kind_of_status(status), message, transient=True, retry_after=wait)


def _seconds_to_wait(header: str | None) -> float | None:
    """``Retry-After`` in seconds, whether it gives seconds or a date; None if it is neither."""
    if header is None:
        return None
    if header.isascii() and header.isdecimal():
        return float(header[:9])
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time())
    except ValueError:
        return None


def connections() -> int:
    """How many connections the limit on open files leaves room for."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4096 if soft == resource.RLIM_INFINITY else max(8, min(4096, soft - RESERVED_FILES))


class HttpRequest(Server):
    """What is under ``http:``; a text alone is the address."""

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """HTTP method."""
    request: Any = None
    """JSON in which ``{{message}}``, ``{{messages}}``, ``{{session_id}}``, … are replaced. Default: all of them."""
    response: ResponsePaths | None = None
    """Paths to the parts of the answer. Default: the answer has one of the usual forms."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        return {"url": value} if isinstance(value, str) else value

    @field_validator("request")
    @classmethod
    def _uses_known_fields(cls, value: Any) -> Any:
        for name in _VARIABLE.findall(json.dumps(value)):
            if name.partition(".")[0] not in FIELDS:
                raise ValueError(f"unknown field {{{{{name}}}}}; known: {', '.join(FIELDS)}")
        return value


class HttpOptions(AgentOptions):
    """``http: {url: …}``."""

    http: HttpRequest
    """The address alone, or address and form of request and answer."""

    @property
    def tells_tools(self) -> bool:
        told = self.http.response
        return told is None or told.messages is not None or told.tool_calls is not None


class HttpAgent(ServerAgent):
    """One request per turn, made from a template."""

    Options = HttpOptions

    def __init__(self, http: HttpRequest, environment: Mapping[str, str]) -> None:
        super().__init__(http, "http", environment)
        self._http = http

    @classmethod
    def make(
        cls,
        options: HttpOptions,
        *,
        root: Path,  # noqa: ARG003 - nothing is relative
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - replay's
    ) -> HttpAgent:
        return cls(options.http, environment)

    async def answer(self, request: Request) -> Invocation:
        payload = request.payload()
        body = payload if self._http.request is None else render(self._http.request, payload)
        method = self._http.method
        response = await self._ask(request, None if method == "GET" else body, method=method)
        answer = _decode(response)
        if self._http.response is not None:
            refuse_error(answer)
            answer = self._http.response.read(answer)
        return replace(read_answer(answer, user=request.user), duration=response.duration)


def render(template: Any, payload: Mapping[str, Any]) -> Any:
    """The template with its ``{{fields}}`` replaced: as JSON if one is the whole text, as text within a text."""
    if isinstance(template, Mapping):
        return {key: render(value, payload) for key, value in template.items()}
    if isinstance(template, list):
        return [render(value, payload) for value in template]
    if not isinstance(template, str):
        return template
    values = {**payload, "message": payload["messages"][-1]["content"]}
    whole = _VARIABLE.fullmatch(template)
    if whole:
        return _field(values, whole[1])

    def as_text(match: re.Match[str]) -> str:
        value = _field(values, match[1])
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    return _VARIABLE.sub(as_text, template)


def _field(values: Mapping[str, Any], name: str) -> Any:
    """A field, or a key of the case's state or metadata; null if the case has none."""
    try:
        return find(values, name)
    except LookupError:
        return None


def _media_type(response: Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _decode(response: Response) -> Any:
    kind = _media_type(response)
    if kind == "text/html":
        raise AgentFailure(ErrorKind.PROTOCOL, "the answer is a web page, not JSON or plain text")
    return decode_answer(response.body, must_be_json=kind == "application/json" or kind.endswith("+json"))
