"""The interface of an agent: a request in, an invocation or a failure out. Each kind is one file in this folder."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn, Self

from msgspec import Struct, field
from msgspec.structs import replace
from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from gate.agents import AGENTS
from gate.agents.hints import looks_like, says_elsewhere
from gate.errors import ConfigError, first_problem, kind_of, unknown_key
from gate.formats import adk, answers, streams
from gate.formats.durations import Seconds
from gate.formats.json_text import parse_json
from gate.formats.messages import OBJECT, FormatError
from gate.formats.shapes import text_or_json
from gate.model import ENDS, End, ErrorKind, Invocation, RecordedTrial
from gate.model.strict import WORDS_SCHEMA, StrictModel, Words, one_or_more
from gate.model.strictness import FEWER, OFF, Tightens, steps
from gate.security.environment import ALWAYS_ALLOWED, handed_on, is_allowed, is_withheld
from gate.security.limits import RAW_LOG_CHARS, shorten, tail

if TYPE_CHECKING:
    from gate.system.own_user import OwnUser
    from gate.world.world import World

MAX_MESSAGE_CHARS = 5_000
LEAST_PATTERN = 4
"""The fewest characters of a pattern under ``agent.transient``, not counting ``*``."""
HINT_SECRET = "give the step a variable of its own by `env:`"  # noqa: S105  (words, no secret)

_ENCODED_TWICE = re.compile(r'"\s*\{\s*\\".*\}\s*"$', re.DOTALL)
_BEGINS_LIKE_JSON = re.compile(r"\{|\[\s*\{|null$|\[\s*\]$")


def split_words(value: Any) -> Any:
    """Return a command line as words, any other value unchanged."""
    if isinstance(value, str):
        return shlex.split(value)
    return value


CommandLine = Annotated[tuple[str, ...], BeforeValidator(split_words), WORDS_SCHEMA]


def _names_or_values(value: Any) -> Any:
    """Return names of variables to pass on, or a mapping of names to values; a name without a value is passed on."""
    if isinstance(value, Mapping):
        found: dict[str, str | None] = {}
        for name, given in value.items():
            found[str(name)] = None
            if given is not None:
                found[str(name)] = str(given)
            if isinstance(given, bool) or not (given is None or isinstance(given, str | int | float)):
                raise ValueError(f"{name}: expected a string or a number (quote true and false)")
            if given is not None and is_withheld(str(name)):
                raise ValueError(f"{name} is reserved for the action and cannot be set")
        return found
    names = one_or_more(value)
    if not isinstance(names, list | tuple):
        return names
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"expected names, found {kind_of(name)}: write {{NAME: value}}, without a list, for values"
            )
        if "=" in name:
            first = name.partition("=")[0]
            raise ValueError(f"{first}=… is no name: write {{{first}: …}} to give a value")
    return dict.fromkeys(names)


_ENV_SCHEMA = {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}}
_NAMES_SCHEMA = [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
Env = Annotated[
    Mapping[str, str | None],
    BeforeValidator(_names_or_values),
    PlainSerializer(lambda env: dict(env) if any(v is not None for v in env.values()) else list(env)),
    WithJsonSchema({"anyOf": [*_NAMES_SCHEMA, _ENV_SCHEMA]}),
]
"""Name or pattern → its value; None takes the value from the gate's own environment."""


class VersionSource(StrictModel):
    """The source of the agent's version; a plain string is the version."""

    text: str | None = None
    """The version; ``${NAME}`` comes from the environment."""
    command: CommandLine | None = None
    """A program and its arguments, run without a shell in the configuration's folder; it prints the version."""
    header: str | None = None
    """A header of the server's answers, such as ``X-Version``."""
    url: str | None = None
    """With ``header``: the address to GET. Default: the agent's own."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, bool | int | float):
            raise ValueError(f"put it in quotes: {value!r} is read as a number, and 1.10 would be 1.1")
        if isinstance(value, str):
            return {"text": value}
        return value

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        if self.url is not None and self.header is None:
            raise ValueError("url needs a header: set header, too")
        if sum(given is not None for given in (self.text, self.command, self.header)) != 1:
            raise ValueError("set a string, a command or a header")
        return self


class ByAddress(StrictModel):
    """A section with an address; a plain string is the address."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"url": value}
        return value


class BaseAddress(ByAddress):
    """The address of the base commit's agent, for kinds that the gate does not start."""

    url: str
    """Its address; ``${NAME}`` comes from the environment. If empty, the base is not run."""
    headers: Mapping[str, str] | None = None
    """Sent with every request to it. Default: the agent's own."""


class TraceOptions(StrictModel):
    """The receiver of traces that is open during a run."""

    port: int = Field(default=0, ge=0, le=65_535)
    """Port of the receiver on loopback, for an agent that the gate does not start; 0: a free one."""
    wait: Annotated[Seconds, Field(le=600)] = 6.0
    """Longest wait for spans after an answer, in seconds or as ``500ms``, ``6s``."""


def _on_or_off(value: Any) -> Any:
    return {True: {}, False: None}[value] if isinstance(value, bool) else value


class AgentOptions(StrictModel):
    """The options of every kind; a kind adds its own, beginning with the key that names it."""

    model_config = ConfigDict(populate_by_name=True)

    timeout: Seconds = 60.0
    """Longest time for one turn, in seconds or as ``500ms``, ``60s``, ``2m``."""
    concurrency: int = Field(default=16, ge=1, le=4096)
    """Largest number of trials at once."""
    retries: int = Field(default=2, ge=0, le=20)
    """More attempts after an infrastructure error; an agent failure is never retried, and a forbidden call counts in
    every attempt."""
    transient: Annotated[Words, FEWER] = ()
    """Error messages that mark a failure as the provider's, not the agent's; ``*`` stands for anything."""
    env: Env = Field(default_factory=dict)
    """Environment variables that a child process may see: names, patterns such as ``OPENAI_*``, or names with
    values."""
    sources: Words = ()
    """Globs of the agent's files, if the gate can tell which file starts it. Default: all files of the repository."""

    version: VersionSource | None = None
    """The agent's version: a string, or its source. The gate pools and continues records of one version; an agent
    that the gate does not start needs a version for that."""
    base: Annotated[BaseAddress | None, Tightens("never")] = None
    """Address of the base commit's agent, over HTTP; the gate runs it alongside the change's."""

    traces: Annotated[TraceOptions | None, BeforeValidator(_on_or_off)] = None
    """True to receive the agent's traces during the run, or ``{port: 4318}`` for an agent that the gate does not
    start."""

    reports_calls: Annotated[bool, OFF] = False
    """True if every answer reports its tool calls, even if the answers do not show it."""

    user: Annotated[Literal["own", "same"] | None, steps("same", "own")] = None
    """The user of the agent's processes: a separate one (``own``; the gate must be root) or the gate's
    (``same``). Default: `own` in
    CI, if the gate is root and another user can reach the agent."""
    reads_suite: Annotated[bool, OFF] = False
    """True if an agent that runs as a separate user may read the suite's files."""

    @field_validator("transient")
    @classmethod
    def _says_something(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for text in value:
            if len(text.replace("*", "").strip()) < LEAST_PATTERN:
                raise ValueError(f"{text!r} would match almost any error: write at least {LEAST_PATTERN} letters of it")
        return value

    @property
    def tells_tools(self) -> bool:
        """True if the answers can report tool calls."""
        for _, section in self:
            paths = getattr(section, "response", None)
            if paths is not None:
                return bool(paths.tells_tools)
        return True

    @property
    def entry(self) -> tuple[str, ...]:
        """Files and folders, relative to the configuration's folder, that the gate may start or import from; those that
        exist are part of the agent, whatever ``sources`` says."""
        return ()

    @property
    def modules(self) -> tuple[str, ...]:
        """Dotted names of modules that the gate may start."""
        return ()

    @property
    def is_local(self) -> bool:
        """True if the gate starts the agent from local files, so that it can also start another commit's."""
        return False


class Clock(Struct):
    """The time limit of a turn; it pauses while the request waits for a process or a connection."""

    seconds: float | None = None
    limit: asyncio.Timeout | None = None

    def stop(self) -> None:
        """Suspend the limit: the time that follows is not the agent's."""
        if self.limit is not None and not self.limit.expired():
            self.limit.reschedule(None)

    @property
    def is_over(self) -> bool:
        """True if the turn took longer than its limit."""
        return self.limit is not None and self.limit.expired()

    def overrun(self) -> AgentFailure:
        """Return the failure of a turn that took longer."""
        return AgentFailure(ErrorKind.TIMEOUT, f"no answer within {self.seconds:g} s")

    def start(self) -> None:
        """Restart the limit: the request goes out now."""
        if self.limit is not None and self.seconds is not None and not self.limit.expired():
            self.limit.reschedule(asyncio.get_running_loop().time() + self.seconds)


class Log(Struct):
    """The agent's output besides its answers in one trial: only the end, of limited length, with secrets not yet
    masked."""

    text: str = ""

    def add(self, text: str) -> None:
        """Append text as separate lines."""
        text = text.strip("\n")
        if text.strip():
            if self.text:
                text = f"{self.text}\n{text}"
            self.text = tail(text, RAW_LOG_CHARS)


class Request(Struct, frozen=True):
    """One turn, as the agent gets it."""

    case_id: str
    trial: int
    session_id: str
    """The id shared by all turns of a trial; no other trial or attempt has it."""
    turn: int
    """The turn's number, from 0."""
    user: str
    messages: tuple[Mapping[str, Any], ...]
    """OpenAI messages: the conversation so far, ending with this turn's user message."""
    state: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    app: Mapping[str, str] = field(default_factory=dict)
    attached: tuple[Mapping[str, Any], ...] = ()
    """The parts that the user sends with the text, in google-genai's form."""
    clock: Clock = field(default_factory=Clock)
    traceparent: str = ""
    """The turn's trace as a W3C Trace Context; empty if traces are not received."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables for a process that is started for this turn only."""
    log: Log = field(default_factory=Log)
    """Shared by the turns of a trial."""

    def payload(self) -> dict[str, Any]:
        """Return the JSON object that is sent to agents."""
        found = {
            "v": 1,
            "case_id": self.case_id,
            "trial": self.trial,
            "session_id": self.session_id,
            "turn": self.turn,
            "messages": list(self.messages),
            "state": dict(self.state),
            "metadata": dict(self.metadata),
        }
        if self.traceparent:
            found["traceparent"] = self.traceparent
        return found


LATER = frozenset({408, 425, 429, 503, 529})
"""Statuses by which a server says that it, or a service that it depends on, takes no requests now. Other 5xx are
failures of its own."""
_LIMITED = re.compile(
    r"rate.?limit|too many requests|overloaded(?! (?:func|meth|oper))"
    r"|resource.?exhausted|service.?unavailable|throttl(?:ed|ing)"
    r"|insufficient.quota|quota.{0,20}exceeded|exceeded.{0,30}quota|\b(?:http|status|code)\W{0,4}(?:429|503|529)\b",
    re.IGNORECASE,
)
"""Signs in an error text that a provider takes no requests now."""
UNKNOWN_MODEL = re.compile(
    r"model_not_found|not_found_error|DeploymentNotFound|model identifier is invalid|\b(?:unknown|invalid) model\b"
    r"|\bmodels?\b[\s/:]*(?:[`'\"]?[\w./:@-]+[`'\"]?,?\s+)?(?:was |is )?(?:does not exist|not found|not supported)",
    re.IGNORECASE,
)
"""Signs in an error text that a provider has no such model."""
_REFUSED_KEY = re.compile(
    r"(?:invalid|incorrect|wrong|missing|expired|no|unable to locate) (?:\w+ )?"
    r"(?:(?:api|access|subscription|x-api).?(?:key|token)|credentials)\b"
    r"|api.?key\b.{0,30}\b(?:not valid|invalid|missing|expired|must be set|is not set|not found)|invalid_api_key"
    r"|(?-i:KeyError: '[A-Z0-9_]+_(?:KEY|TOKEN)')|default credentials were not found"
    r"|authentication.?(?:error|failed|method)"
    r"|permission_error|permission_?denied|AccessDeniedException|not authorized to perform|\bunauthorized\b(?! to\b)"
    r"|UnrecognizedClient|\b(?:http|status|code)\W{0,4}(?:401|403)\b",
    re.IGNORECASE,
)
"""Signs in an error text that a key is missing or refused."""


def kind_of_status(status: int) -> ErrorKind:
    """Return the kind of failure that an HTTP status other than 2xx means."""
    if status in LATER:
        return ErrorKind.UNREACHABLE
    if 300 <= status < 400 or status in (401, 403, 404, 405):
        return ErrorKind.SETUP
    if status >= 500:
        return ErrorKind.CRASH
    return ErrorKind.PROTOCOL


def kind_of_text(kind: ErrorKind, text: str) -> ErrorKind:
    """Return the kind of failure that the signs in an error text mean; ``kind`` if it has none."""
    if kind is ErrorKind.CRASH and _LIMITED.search(text):
        return ErrorKind.LIMIT
    is_setup = UNKNOWN_MODEL.search(text) or _REFUSED_KEY.search(text)
    if is_setup and kind in (ErrorKind.CRASH, ErrorKind.PROTOCOL):
        return ErrorKind.SETUP
    return kind


def _matches(pattern: str, text: str) -> bool:
    """True if the parts of a pattern (``*`` matches anything) occur in order; a regular expression could hang."""
    at = 0
    for part in pattern.lower().split("*"):
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


class AgentFailure(Exception):  # noqa: N818 - a result of the trial, not an error of the run
    """A request that brought no answer. It is a result of the trial and never ends the run.

    Signs in its text tell the kind of a crash (`kind_of_text`), for every kind of agent.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        transient: bool = False,
        retry_after: float | None = None,
        collateral: bool = False,
        said: str | None = None,
        turn: Invocation | None = None,
        status: int = 0,
    ) -> None:
        """``said``: the part of the message to search for such signs, if not all of it."""
        super().__init__(message)
        self.message = shorten(message, MAX_MESSAGE_CHARS)
        self.said = self.message
        if said is not None:
            self.said = said
        self.kind = kind_of_text(kind, self.said)
        self.transient = self.kind is ErrorKind.LIMIT or (transient and self.end is End.UNMEASURED)
        """True if another attempt may succeed. A failure of the agent itself is never retried."""
        self.retry_after = retry_after
        """Seconds that the agent asked the gate to wait."""
        self.collateral = collateral
        """True if another trial's failure caused this one; the attempt does not count."""
        self.turn = turn
        """The known part of the turn before it failed; a forbidden call in it counts."""
        self.status = status
        """The HTTP status that means this failure; 0 for another one."""

    @property
    def end(self) -> End:
        return ENDS[self.kind]

    def under(self, patterns: Sequence[str]) -> AgentFailure:
        """Return the failure as a provider's limit if it matches a pattern of ``agent.transient``."""
        if self.end is not End.FAILED or not any(_matches(pattern, self.message.lower()) for pattern in patterns):
            return self
        return AgentFailure(
            ErrorKind.LIMIT, self.message, transient=True, collateral=self.collateral, status=self.status
        )


class Agent(ABC):
    """Drives an agent. Entered once per run; ``answer`` is called concurrently."""

    Options: ClassVar[type[AgentOptions]]
    explained: Callable[[str], str] = staticmethod(str)
    """Adds to an error text the line that would give the agent a variable that it lacks."""
    starts_clock: ClassVar[bool] = False
    """True if the agent starts the clock of a turn itself when the request goes out; otherwise it runs from the
    beginning."""
    takes_attached: ClassVar[bool] = False
    """True if the agent passes on what the user sends in addition to text; otherwise cases with such parts are
    refused."""
    reports_calls: bool = False
    """True if every answer reports the tool calls of its turn, even if there were none."""
    version: tuple[str, str] | None = None
    """The answer header that gives the agent's version, in lower case, and its value at the start of the run; None if
    there is no such header."""
    user: OwnUser | None = None
    """The user that the agent's processes run as, if not the gate's. Set before the agent is entered."""
    world: World | None = None
    """The proxy that records and replays the outside world. Each process gets its own address there, once, and holds
    one session at a time. Set before the agent is entered."""

    def __init__(  # noqa: B027 - nothing to keep here
        self, options: Any, root: Path, environment: Mapping[str, str]
    ) -> None:
        """Raises ConfigError if the options cannot work."""

    @classmethod
    def make(
        cls,
        options: Any,
        *,
        root: Path,
        environment: Mapping[str, str],
        recorded: Sequence[RecordedTrial],  # noqa: ARG003 - for kinds that override this
    ) -> Agent:
        """Build the agent without starting it; raises ConfigError if the options cannot work."""
        return cls(options, root, environment)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:  # noqa: B027 - most kinds start nothing
        """End everything that the agent started."""

    @abstractmethod
    async def answer(self, request: Request) -> Invocation:
        """Send one turn to the agent. Raises AgentFailure; leaves nothing running when cancelled."""

    async def open_session(self, request: Request) -> None:  # noqa: B027 - most kinds need none
        """Prepare a session; called before the first turn of a trial."""

    def process_of(self, session_id: str) -> str:  # noqa: ARG002 - most kinds have none
        """Return the name of the process that holds an open session, if the gate started it and it serves several
        sessions in turn; else an empty string."""
        return ""

    async def close_session(self, session_id: str) -> None:  # noqa: B027 - most kinds need none
        """End a session; called after the last turn of a trial, however it ended."""


def read_answer(answer: Any, *, user: str, mapping: str = "", duration: float | None = None) -> Invocation:
    """Return the agent's answer, in the forms of docs/reference/agents.md.

    Args:
        answer: the answer as the agent sent it, decoded.
        user: the text that it answers.
        mapping: the configuration key that gives the paths of its parts, for the hint of an error.
        duration: seconds that the agent took.

    Raises:
        AgentFailure: the answer is unreadable or reports an error.
    """
    refuse_error(answer)
    try:
        if isinstance(answer, Stream):
            found = streams.to_invocation(answer, user=user, whole=answer.whole, mapping=mapping)
        else:
            found = answers.to_invocation(answer, user=user)
    except FormatError as error:
        if isinstance(answer, Stream):  # the error itself says how to read its texts
            hint = looks_like(next((event.data for event in streams.events_of(answer)), None), mapping)
        else:
            hint = says_elsewhere(answer, mapping)
        text = f"the answer cannot be read: {error}{hint}"
        raise AgentFailure(ErrorKind.PROTOCOL, text, turn=so_far(answer)) from error
    if duration is None:
        return found
    return replace(found, duration=duration)


def unchanged(answer: Any) -> Any:
    """Return the answer: its parts have their usual names."""
    return answer


def refuse_error(answer: Any, parts_of: Callable[[Any], Any] = unchanged) -> None:
    """Raise AgentFailure for a stream that ends with an error, or an object that states one, such as ``error`` or
    ``errors``, whatever else it says; likewise for text that ends with such an object, and for google-adk's events that
    end in an error without an answer.

    ``parts_of`` finds the parts of an answer of another form.
    """
    stated = None
    if isinstance(answer, Stream):
        stated = streams.error_in(answer)
    elif isinstance(answer, OBJECT):
        stated = streams.failure_of(answer)
    elif isinstance(answer, str):
        stated = streams.error_ending(answer)
    elif isinstance(answer, list) and adk.are_events(answer):
        with suppress(FormatError):  # which the reader of the answer reports
            stated = adk.failure_of(answer)
    if not stated:
        return
    text = f"the agent reports an error: {shorten(text_or_json(stated), 1000)}"
    if isinstance(answer, OBJECT) and "jsonrpc" in answer:
        text += looks_like(answer)
    raise AgentFailure(ErrorKind.CRASH, text, turn=so_far(answer, parts_of))


def so_far(answer: Any, parts_of: Callable[[Any], Any] = unchanged) -> Invocation | None:
    """Return what an answer that reports an error or breaks off says of its turn; None if that cannot be read."""
    try:
        if isinstance(answer, Stream):
            return streams.so_far(answer)
        if isinstance(answer, OBJECT):
            answer = {key: value for key, value in answer.items() if key not in ("error", "errors")}
        return answers.to_invocation(parts_of(answer), user="")
    except (FormatError, AgentFailure):
        return None


def refuse_truncated(text: str) -> None:
    """Raise AgentFailure for text that is a stream, or begins like an object or messages but is not complete."""
    if is_stream(text):
        refuse_stream("a stream")
    if _BEGINS_LIKE_JSON.match(text.strip()):
        _parse(text.strip())


_TERMINAL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\))")
"""A code by which a program colours or moves text in a terminal."""


def text_of(output: bytes) -> str:
    """Return the text of an answer, without codes for a terminal: they would hide JSON, and differ from any expected
    answer. Raises AgentFailure if it is not UTF-8."""
    try:
        text = output.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AgentFailure(ErrorKind.PROTOCOL, "the answer is not UTF-8") from error
    if "\0" in text:
        raise AgentFailure(ErrorKind.PROTOCOL, "the answer is not UTF-8: it has null characters, as UTF-16 does")
    return _TERMINAL.sub("", text)


WEB_PAGE = "the answer is a web page, not JSON or plain text"
_ASIDE = re.compile(rb"\s*(<!--|<\?xml\b)", re.IGNORECASE)
"""The beginning of a comment, or of XML's declaration."""
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html|head|body|meta)\b", re.IGNORECASE)
"""The beginning of a web page, which some servers call plain text."""


def is_web_page(body: bytes) -> bool:
    """True if a body begins like a web page, after a byte order mark, comments and declarations."""
    place = len(BOM_UTF8) if body.startswith(BOM_UTF8) else 0
    while aside := _ASIDE.match(body, place):
        closing = b"-->" if aside[1] == b"<!--" else b">"
        place = body.find(closing, aside.end())
        if place < 0:
            return False
        place += len(closing)
    return _WEB_PAGE.match(body, place) is not None


def decode_answer(output: bytes, *, must_be_json: bool = False) -> Any:
    """Return the bytes of an answer as a JSON value, or as text if they do not begin like an object or messages.

    Bytes in the form of a stream become a `Stream`, unless the answer ``must_be_json``.
    """
    text = text_of(output).strip()
    if not text:
        raise AgentFailure(ErrorKind.PROTOCOL, "the answer is empty")
    if must_be_json and is_web_page(output):
        raise AgentFailure(ErrorKind.PROTOCOL, WEB_PAGE)
    if not must_be_json and is_stream(text):
        return Stream(text)
    if not must_be_json and not _BEGINS_LIKE_JSON.match(text) and not _ENCODED_TWICE.match(text):
        return text
    value = _parse(text)
    if isinstance(value, str) and _BEGINS_LIKE_JSON.match(value.strip()):
        return _parse(value.strip())
    return value


STREAMS = frozenset(
    {
        "text/event-stream",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "application/jsonlines",
        "application/json-seq",
        "application/stream+json",
    }
)
"""Media types of answers that come piece by piece."""


class Stream(str):
    """An answer that came piece by piece: server-sent events, or lines of JSON."""

    whole: bool = True
    """True if the transport marked its end; otherwise only a final event of its own can."""


def refuse_stream(what: str) -> NoReturn:
    """Raise AgentFailure for an unrequested stream: read as text, it would hide every call."""
    raise AgentFailure(
        ErrorKind.PROTOCOL, f"the answer is {what}, which is not read: answer with one JSON object, without streaming"
    )


def refuse_disguised(text: str) -> None:
    """Raise AgentFailure for text with an answer object on a separate line or at its end: its calls would be
    overlooked.

    The usual cause is a program that prints a banner or a log line along with its answer.
    """
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith("{")]
    if not starts:
        return
    candidates = [*(lines[number] for number in starts), "\n".join(lines[starts[0] :])]
    if any(map(_is_answer, candidates)):
        raise AgentFailure(
            ErrorKind.PROTOCOL,
            "the answer is text and JSON: print the JSON alone, and the rest on standard error",
        )


def _is_answer(text: str) -> bool:
    if not any(f'"{key}"' in text for key in answers.CONTENT):
        return False
    found = _object_in(text)
    return found is not None and not found.keys().isdisjoint(answers.CONTENT)


def _object_in(text: str) -> dict[str, Any] | None:
    """Return the JSON object in a text; None for any other text."""
    try:
        value = parse_json(text, "the answer")
    except (ValueError, ConfigError):
        return None
    return value if isinstance(value, dict) else None


def is_stream(text: str) -> bool:
    """True if a text is an event stream, or lines of JSON, regardless of the media type."""
    lines = [line for line in streams.LINE_END.split(text) if line.strip()]
    if any(line.startswith("data:") for line in lines) and all(streams.EVENT_LINE.match(line) for line in lines):
        return True
    return len(lines) > 1 and all(_is_object(line) for line in lines)


def _is_object(line: str) -> bool:
    is_framed = line.lstrip().startswith("{") and line.rstrip().endswith("}")
    return is_framed and _object_in(line) is not None


def _parse(text: str) -> Any:
    try:
        return parse_json(text, "the answer")
    except json.JSONDecodeError as error:
        if is_stream(text):
            refuse_stream("a stream")
        alone = "; answer with the JSON alone" if error.msg == "Extra data" else ""
        raise AgentFailure(ErrorKind.PROTOCOL, f"the answer is not JSON: {error}{alone}") from error
    except ConfigError as error:
        raise AgentFailure(ErrorKind.PROTOCOL, f"the answer is refused: {error}") from error


def allowed_environment(
    environment: Mapping[str, str], env: Mapping[str, str | None] | Sequence[str]
) -> dict[str, str]:
    """Return the environment of a child process: the variables that ``env`` names, never the action's own, and the
    values that it gives.

    Raises:
        ConfigError: a value refers to a variable that is not set (``${NAME}``).
    """
    if not isinstance(env, Mapping):
        return handed_on(environment, (*ALWAYS_ALLOWED, *env))
    named, given = [], {}
    for name, value in env.items():
        if value is None:
            named.append(name)
        else:
            given[name] = expand(value, environment, where=f"agent.env.{name}")
    return {**handed_on(environment, (*ALWAYS_ALLOWED, *named)), **given}


_VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")


_KEY = re.compile(r"\b[A-Z][A-Z0-9_]*_(?:API_KEY|KEY|TOKEN|SECRET)\b")


def naming_hidden(message: str, environment: Mapping[str, str], env: Mapping[str, str | None]) -> str:
    """Return an error text, with the line to add if it names a variable that is set here and not passed on by ``env``.

    Likewise for a key that is not set at all.
    """
    for name in _VARIABLE.findall(message):
        if name in environment and not is_withheld(name) and not is_allowed(name, (*ALWAYS_ALLOWED, *env)):
            return f"{message} ({name} is set here; hand it on: agent.env: [{name}])"
    key = next(iter(_KEY.findall(message)), None)
    if key is None or key in environment or env.get(key) is not None or is_withheld(key):
        return message
    if is_allowed(key, tuple(env)):
        return f"{message} (set {key})"
    return f"{message} (set {key}, and write agent.env: [{key}])"


_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def expand(text: str, environment: Mapping[str, str], *, where: str) -> str:
    """Replace ``${NAME}`` with its value in the environment; ConfigError names a missing or empty one."""

    def value(match: re.Match[str]) -> str:
        if is_withheld(match[1]):
            raise ConfigError(f"{match[1]} is reserved for the action and not passed on", where=where, hint=HINT_SECRET)
        found = environment.get(match[1])
        if found is None:
            what = f"the environment variable {match[1]} is not set"
            raise ConfigError(what, where=where, hint=f"export {match[1]}")
        if not found:
            what = f"the environment variable {match[1]} is empty"
            raise ConfigError(what, where=where, hint=f"give {match[1]} a value")
        return found

    return _REFERENCE.sub(value, text)


def referred_to(text: str) -> list[str]:
    """Return the variables that `expand` fills into a text."""
    return _REFERENCE.findall(text)


def agent_class(kind: str) -> type[Agent]:
    """Return the class of a kind; ConfigError names the nearest known one."""
    loaded: type[Agent] = AGENTS.load(kind, where="agent")
    return loaded


def parse_options(agent: Mapping[str, Any], *, where: str = "agent") -> tuple[str, AgentOptions]:
    """Parse the ``agent:`` mapping, in which exactly one key names the kind."""
    kind = _kind_in(agent, where)
    options = agent_class(kind).Options
    try:
        return kind, options.model_validate(dict(agent))
    except ValidationError as error:
        raise _config_error(error, options, where) from error


def _kind_in(agent: Mapping[str, Any], where: str) -> str:
    """Return the built-in kind that is named; if none is, one that an installed package offers."""
    unknown = [str(key) for key in agent if key not in AGENTS and key not in AgentOptions.model_fields]
    kinds = [key for key in agent if key in AGENTS] or [key for key in unknown if AGENTS.is_known(key)]
    if len(kinds) == 1:
        return kinds[0]
    if kinds:
        raise ConfigError("more than one agent kind", where=where, hint="name one of " + ", ".join(AGENTS))
    if not unknown:
        raise ConfigError("no agent kind is set", where=where, hint="name one of " + ", ".join(AGENTS))
    raise ConfigError("no agent kind is set", where=where, hint=AGENTS.unknown(unknown[0]).hint)


def _config_error(error: ValidationError, options: type[AgentOptions], where: str) -> ConfigError:
    problem = first_problem(error, options)
    place = ".".join([where, *(str(part) for part in problem.path)])
    if problem.kind == "unknown":
        return unknown_key(str(problem.path[-1]), list(problem.known), place)
    if problem.kind == "missing":
        return problem._replace(path=problem.path[-1:]).as_error(place.rpartition(".")[0])
    return ConfigError(problem.message, where=place)


def create(
    kind: str,
    options: AgentOptions,
    *,
    root: Path,
    environment: Mapping[str, str],
    recorded: Sequence[RecordedTrial] = (),
) -> Agent:
    """Return the agent of a configuration, not yet started. Relative paths and imports start from ``root``."""
    agent = agent_class(kind).make(options, root=root, environment=environment, recorded=recorded)
    agent.reports_calls = agent.reports_calls or options.reports_calls
    if options.is_local:
        agent.explained = partial(naming_hidden, environment=environment, env=options.env)
    return agent
