"""Drives an agent behind HTTP: fills in a template, finds the answer by paths, and treats error statuses as
failures."""

from __future__ import annotations

import asyncio
import json
import re
import resource
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar
from urllib.parse import quote, urljoin, urlsplit

from pydantic import AfterValidator, Field, field_validator

from gate.agents.answer_paths import CheckedPath, ResponsePaths, part_at
from gate.agents.base import (
    STREAMS,
    WEB_PAGE,
    Agent,
    AgentFailure,
    AgentOptions,
    ByAddress,
    Request,
    Stream,
    decode_answer,
    expand,
    is_web_page,
    kind_of_status,
    read_answer,
    refuse_error,
    refuse_stream,
    so_far,
    text_of,
    unchanged,
)
from gate.agents.hints import LACKS, refused_by, unconnected
from gate.errors import MeasureError
from gate.formats import streams
from gate.formats.paths import find
from gate.formats.shapes import text_or_json
from gate.model import ErrorKind, Invocation
from gate.model.strict import StrictModel
from gate.security.escape import one_line
from gate.security.limits import MAX_LOG_CHARS, shorten
from gate.system.http import PARTIAL, Client, HttpError, Response, check_url, retry_after

if TYPE_CHECKING:
    from gate.system.cookies import Cookies

FIELDS = ("message", "messages", "session_id", "state", "metadata", "case_id", "trial", "turn")
MAX_SESSION_CHARS = 1_000
"""The most characters of a session id that a server gives."""
MOST_SHOWN = 100
"""Characters of an address to show."""
CLOSING_SECONDS = 10.0
"""Seconds for the request that ends a session."""
RESERVED_FILES = 64
"""File descriptors to keep free for everything except connections."""
WORD_CHARS = ascii_letters + digits + "_.~+/=-"
_VARIABLE = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}")
_OWN_WORDS = re.compile(rb"<(?:title|pre)\b[^>]*>([^<]{1,300})", re.IGNORECASE)
"""The title of a web page and its preformatted text, in which servers such as Express show an exception."""


class Server(StrictModel):
    """The address of a server, and the parts that every request to it carries; shared by the kinds that speak HTTP."""

    url: str
    """The address; ``${NAME}`` comes from the environment, here and in headers."""
    headers: Mapping[str, str] = Field(default_factory=dict)
    """Sent with every request."""

    @field_validator("headers")
    @classmethod
    def _are_headers(cls, value: Mapping[str, str]) -> Mapping[str, str]:
        for name in value:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
                raise ValueError(f"{name!r} is not a header name")
            if name.lower() in ("host", "content-length", "transfer-encoding", "connection", "accept-encoding"):
                raise ValueError(f"the header {name} is set by the client")
        return value


def server_of(options: AgentOptions, kind: str) -> Server | None:
    """Return the server of an agent; None for a kind that has none, or that the gate starts."""
    found = getattr(options, kind, None)
    return found if isinstance(found, Server) and found.url else None


def stated_options(options: AgentOptions) -> dict[str, Any]:
    """Return an agent's options as JSON values, for fingerprints."""
    found = options.model_dump(mode="json")
    for name, held in options:
        if isinstance(held, Server):  # without this removed option, no fingerprint equals that of an older record
            found[name]["socket"] = None
    return found


def shown_address(url: str) -> str:
    """Return an address for display, on one line: without user, query or fragment, which may hold secrets."""
    scheme, slashes, rest = re.split(r"[?#]", url, maxsplit=1)[0].rpartition("://")
    authority, slash, path = rest.partition("/")
    return one_line(f"{scheme}{slashes}{authority.rpartition('@')[2]}{slash}{path}", MOST_SHOWN)


ServerT = TypeVar("ServerT", bound=Server)
SessionT = TypeVar("SessionT")


class ServerAgent(Agent, Generic[ServerT, SessionT]):
    """An agent behind a server, reached through one client; error statuses become failures."""

    kind: ClassVar[str]
    """The key under ``agent`` of its section."""
    starts_clock = True
    parts_of: Callable[[Any], Any] = staticmethod(unchanged)
    """Finds the parts of an answer with an error."""

    def __init__(self, options: Any, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        kind = self.kind
        server: ServerT = getattr(options, kind)
        self._server = server
        self._environment = environment
        self._sessions: dict[str, SessionT] = {}
        """The state of each open session, by its id."""
        self._url = expand(server.url, environment, where=f"agent.{kind}.url")
        check_url(self._url, where=f"agent.{kind}.url")
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/plain"}
        for name, value in server.headers.items():
            self._headers[name] = expand(value, environment, where=f"agent.{kind}.headers.{name}")
        self._cookies: dict[str, Cookies] = {}

    async def __aenter__(self) -> Self:
        self._client = Client(limit=connections(), environment=self._environment)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.__aexit__()

    async def _ask(
        self,
        request: Request,
        body: Any,
        *,
        path: str = "",
        url: str = "",
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        """Return a response of status 2xx. Raises AgentFailure. Waiting for a connection is not counted as the
        request's time.

        ``headers`` are added to those of every request. Cookies that a server set in a session are sent only in that
        session.
        """
        if not url:
            url = self._url
            if path:
                url = self._url.rstrip("/") + path
        data = b""
        if body is not None:
            data = json.dumps(body).encode()
        headers = {**self._headers, **(headers or {})}
        cookies = self._cookies.get(request.session_id)
        if cookies is not None:
            headers = cookies.beside(headers, url)
        if request.traceparent:
            headers = {name: value for name, value in headers.items() if name.lower() != "traceparent"}
            headers["traceparent"] = request.traceparent
        request.clock.stop()
        try:
            response = await self._client.request(method, url, headers=headers, body=data, on_send=request.clock.start)
        except HttpError as error:
            remedy = unconnected(error.message, self.kind, reached=error.kind is not ErrorKind.UNREACHABLE)
            raise AgentFailure(
                error.kind, error.message + remedy, transient=error.transient, said=error.message
            ) from error
        if response.cookies and request.session_id:
            from gate.system.cookies import Cookies  # weight: only where a server sets some

            self._cookies.setdefault(request.session_id, Cookies()).take(url, response.cookies)
        self._check_version(response)
        if not 200 <= response.status < 300 or response.status == PARTIAL:
            request.log.add(_beginning(response.body))
            raise _failure(response, self.kind, self.parts_of)
        return response

    def _check_version(self, response: Response) -> None:
        """Raise MeasureError if the answer comes from another version; nothing of that answer is recorded."""
        if self.version is None:
            return
        header, told = self.version
        answered = response.headers.get(header, told).strip()
        if answered != told:
            what = f"the agent's version changed during the run, from {told!r} to {shorten(answered, 200)!r}"
            hint = f"an answer's header {header} says so; `version: {{header: …, url: …}}` asks another address for it"
            raise MeasureError(what, where="agent.version", hint=hint)

    async def close_session(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)
        self._cookies.pop(session_id, None)

    async def _ask_for_json(self, request: Request, body: Any, path: str) -> tuple[Any, float]:
        """Return the JSON of the answer, and the request's duration."""
        response = await self._ask(request, body, path=path)
        kind = media_type(response)
        if kind in STREAMS:
            refuse_stream(f"a stream ({kind})")
        return decode_answer(response.body, must_be_json=True), response.duration


def _beginning(body: bytes) -> str:
    """Return the beginning of a body, without a word that is cut off, which may be half of a secret."""
    text = body[: 4 * MAX_LOG_CHARS].decode("utf-8", "replace")
    if len(text) <= MAX_LOG_CHARS:
        return text
    return text[:MAX_LOG_CHARS].rstrip(WORD_CHARS)


def _failure(response: Response, kind: str, parts_of: Callable[[Any], Any]) -> AgentFailure:
    """Return the failure that a status other than 2xx means for this kind of agent."""
    status = response.status
    body = response.body[:300].decode("utf-8", "replace").strip()
    said = body
    if is_web_page(response.body):  # its other words are a framework's: Flask's page of a crash says "overloaded"
        words = _OWN_WORDS.findall(response.body[:4000])[:2]
        said = "a web page without a title"
        if words:
            import html  # weight: its table of entities, only for a web page in place of an answer

            said = " ".join(html.unescape(b": ".join(words).decode("utf-8", "replace")).split())
    message = f"HTTP {status}"
    if said:
        message = f"HTTP {status}: {said}"
    lacks = LACKS.search(body)
    if lacks:
        message = f"HTTP {status}: the request has no {lacks[1]!r}"
    if 300 <= status < 400:
        target = response.headers.get("location", "nowhere").partition("?")[0]  # a query may hold credentials
        message = f"HTTP {status}: redirects are not followed (to {shorten(target, 200)})"
    message += refused_by(status, response.body, kind)
    if status in (401, 403):
        message += "; is its key set? "
        if kind == "openai":
            message += "OPENAI_API_KEY is what is sent; "
        message += "headers: {Authorization: Bearer ${NAME}} sends a variable of the environment"
    wait = retry_after(response.headers)
    turn = None
    if media_type(response) == "application/json":
        with suppress(AgentFailure):
            turn = so_far(decode_answer(response.body, must_be_json=True), parts_of)
    return AgentFailure(kind_of_status(status), message, transient=True, retry_after=wait, turn=turn, status=status)


def connections() -> int:
    """Return the number of connections that the limit on open files allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4096 if soft == resource.RLIM_INFINITY else max(8, min(4096, soft - RESERVED_FILES))


def known_fields(value: Any) -> Any:
    """Return a template if all its fields are known; raises ValueError otherwise."""
    for name in _VARIABLE.findall(json.dumps(value)):
        if name.partition(".")[0] not in FIELDS:
            raise ValueError(f"unknown field {{{{{name}}}}}; known: {', '.join(FIELDS)}")
    return value


TEMPLATE = AfterValidator(known_fields)
"""Marks an option in which the fields of a turn are replaced."""


class SessionPaths(StrictModel):
    """The parts to read from the answer to a request that begins a session."""

    session_id: CheckedPath
    """Path of the server's id of the session, which becomes ``{{session_id}}``."""


class SessionRequest(ByAddress):
    """A request that ends a session; a plain string is the address."""

    url: Annotated[str, TEMPLATE]
    """The address, or a path on the agent's server; ``{{session_id}}`` in it is replaced."""
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = "POST"
    """HTTP method."""
    request: Annotated[Any, TEMPLATE] = None
    """JSON with the same fields as in the turns. Default: no body."""


class SetupRequest(SessionRequest):
    """A request that begins a session; a plain string is the address."""

    response: SessionPaths | None = None
    """The parts to read from the answer."""


class HttpRequest(ByAddress, Server):
    """The section ``http:``; a plain string is the address."""

    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    """HTTP method."""
    request: Annotated[Any, TEMPLATE] = None
    """JSON in which ``{{message}}``, ``{{messages}}``, ``{{session_id}}``, … are replaced. Default: all of them."""
    response: ResponsePaths | None = None
    """Paths to the parts of the answer. Default: one of the usual forms."""
    setup: SetupRequest | None = None
    """Sent before the first turn of a trial."""
    teardown: SessionRequest | None = None
    """Sent after the last turn, however the trial ended; its answer is ignored."""


class HttpOptions(AgentOptions):
    """``http: {url: …}``."""

    http: HttpRequest
    """The address, or the address with a mapping of request and answer."""


class HttpAgent(ServerAgent[HttpRequest, str | int]):
    """One request per turn, made from a template."""

    Options = HttpOptions
    kind = "http"

    def __init__(self, options: HttpOptions, root: Path, environment: Mapping[str, str]) -> None:
        super().__init__(options, root, environment)
        self._paths = options.http.response or ResponsePaths()
        self.parts_of = self._paths.read_known

    async def open_session(self, request: Request) -> None:
        setup = self._server.setup
        if setup is not None:
            response = await self._ask_beside(setup, request)
            if setup.response is not None:
                body = decode_answer(response.body, must_be_json=True)
                self._sessions[request.session_id] = session_id_at(body, setup.response.session_id)

    async def close_session(self, session_id: str) -> None:
        if self._server.teardown is not None:
            request = Request("", 1, session_id, 0, "", ({"role": "user", "content": ""},))
            with suppress(AgentFailure, TimeoutError):
                async with asyncio.timeout(CLOSING_SECONDS):
                    await self._ask_beside(self._server.teardown, request)
        await super().close_session(session_id)

    async def _ask_beside(self, told: SessionRequest, request: Request) -> Response:
        """Send a request that is not a turn."""
        payload = self._payload(request)
        place = _VARIABLE.sub(lambda match: quote(str(_field(payload, match[1])), safe=""), told.url)
        url = urljoin(self._url, expand(place, self._environment, where="agent.http"))
        if urlsplit(url).netloc != urlsplit(self._url).netloc:
            check_url(url, where="agent.http")
        body = None
        if told.request is not None:
            body = render(told.request, payload)
        return await self._ask(request, body, url=url, method=told.method)

    def _payload(self, request: Request) -> dict[str, Any]:
        """Return the request's payload, with the server's session id if it gave one."""
        payload = request.payload()
        if request.session_id in self._sessions:
            payload["session_id"] = self._sessions[request.session_id]
        return payload

    async def answer(self, request: Request) -> Invocation:
        payload = self._payload(request)
        body: Any = payload
        if self._server.request is not None:
            body = render(self._server.request, payload)
        if self._server.method == "GET":
            body = None
        response = await self._ask(request, body, method=self._server.method)
        answer, paths = _decode(response), self._paths
        if not isinstance(answer, Stream):
            refuse_error(answer, self.parts_of)
            if paths.session_id is not None:
                self._sessions[request.session_id] = session_id_at(answer, paths.session_id)
            answer = paths.read(answer)
        elif paths.events is not None:
            answer = paths.events.read(answer)
        return read_answer(answer, user=request.user, mapping="http.response", duration=response.duration)


def session_id_at(answer: Any, path: str) -> str | int:
    """Return the id that a server gave a conversation. Raises AgentFailure if there is none."""
    found = part_at(answer, path, "session_id")
    if isinstance(found, bool) or not isinstance(found, str | int) or found == "":
        raise AgentFailure(ErrorKind.PROTOCOL, f"the session id at {path!r} is neither text nor a number")
    if len(str(found)) > MAX_SESSION_CHARS or found in (".", ".."):  # it becomes part of addresses
        raise AgentFailure(ErrorKind.PROTOCOL, f"the session id at {path!r} is no id: {shorten(str(found), 60)!r}")
    return found


def render(template: Any, payload: Mapping[str, Any]) -> Any:
    """Return the template with its ``{{fields}}`` replaced: as JSON if a field is the whole text, else as text."""
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
        return text_or_json(_field(values, match[1]))

    return _VARIABLE.sub(as_text, template)


def _field(values: Mapping[str, Any], name: str) -> Any:
    """Return a field, or a key of the case's state or metadata; None if the case has none."""
    try:
        return find(values, name)
    except LookupError:
        return None


def media_type(response: Response) -> str:
    """Return the media type of a response, without parameters."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _decode(response: Response) -> Any:
    kind, body = media_type(response), response.body
    if kind in ("text/html", "application/xhtml+xml") or is_web_page(body):
        raise AgentFailure(ErrorKind.PROTOCOL, WEB_PAGE)
    if kind in STREAMS:
        answer: Any = Stream(text_of(body))
    else:
        answer = decode_answer(body, must_be_json=kind == "application/json" or kind.endswith("+json"))
    if isinstance(answer, Stream):
        answer.whole = response.whole
    elif isinstance(answer, str) and not response.whole:
        raise AgentFailure(ErrorKind.PROTOCOL, f"nothing says where the text ends (Content-Length): {streams.ENDLESS}")
    return answer
