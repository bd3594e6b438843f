"""Paths to the parts of an answer, as the configuration gives them; errors name what is there instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gate.agents.base import AgentFailure, Stream, refuse_error
from gate.agents.hints import says_elsewhere
from gate.formats import paths, streams
from gate.formats.endings import is_cut_off
from gate.formats.messages import FormatError
from gate.formats.paths import PathError, find, parent_of
from gate.formats.shapes import as_mapping, text_or_json
from gate.model import ErrorKind
from gate.model.strict import StrictModel


def _checked(path: str) -> str:
    paths.checked(path.removesuffix("?"))
    return path


CheckedPath = Annotated[str, AfterValidator(_checked)]
PARTS = ("output", "messages", "usage", "cost_usd", "model", "system_fingerprint")


def calls_at(value: Any) -> Any:
    """Return the paths of calls; a string is the path of their list."""
    return {"path": value} if isinstance(value, str) else value


class CallPaths(StrictModel):
    """Paths to the calls, and to the parts of each: the form of a suite's ``expected_tools``, and the results."""

    path: CheckedPath
    """The list of calls, or a single call; ``steps[type=tool]`` selects those of that ``type``."""
    name: CheckedPath | None = None
    """The tool's name, within a call. Default for all of these: the usual names."""
    args: CheckedPath | None = None
    """The arguments, within a call."""
    result: CheckedPath | None = None
    """The tool's result."""
    error: CheckedPath | None = None
    """The tool's error; null or missing if it did not fail."""
    id: CheckedPath | None = None
    """The call's id."""
    duration: CheckedPath | None = None
    """The tool's duration in seconds."""

    def read(self, body: Any, what: str) -> Any:
        """Return the calls with their parts under the usual names."""
        calls = part_at(body, self.path, what)
        if isinstance(calls, Mapping):
            calls = [calls]
        stated = self.model_dump(exclude={"path"}, exclude_none=True)
        if not isinstance(calls, list) or not stated:
            return calls
        found = []
        for call in calls:
            told = dict(as_mapping(call))
            for key, path in stated.items():
                if key in ("name", "args"):
                    told[key] = part_at(call, path, f"{what}.{key}")
                else:
                    told[key] = _if_there(call, path)
            found.append(told)
        return found


def _if_there(value: Any, path: str) -> Any:
    try:
        return find(value, path.removesuffix("?"))
    except PathError:
        return None


class EventPaths(StrictModel):
    """Paths to the parts in the events of a stream; events without such a part are skipped."""

    output: CheckedPath
    """A piece of the text."""
    tool_calls: Annotated[CallPaths | None, BeforeValidator(calls_at)] = None
    """Complete calls."""
    usage: CheckedPath | None = None
    """Token counts; the last event counts."""
    error: CheckedPath | None = None
    """The error. Without it, an event with an ``error`` counts, or one that is an error by its name or type, if no text
    follows."""
    done: str | Annotated[Mapping[CheckedPath, str | bool | int], Field(min_length=1)] | None = None
    """The last event of a complete stream: its data as text, or values at paths, such as ``{type: end}``. Default:
    none; the body then needs a length or chunked encoding."""

    def read(self, stream: Stream) -> dict[str, Any]:
        """Return the answer that the events make up. Raises AgentFailure."""
        if self.done is None and not stream.whole:
            text = "nothing says that the stream is over (events.done names what does)"
            raise AgentFailure(ErrorKind.PROTOCOL, f"{text}: {streams.ENDLESS}")
        pieces, calls, usage, found = list[str](), list[Any](), None, False
        failed: Any = None
        events = list(streams.events_of(stream))
        try:
            streams.refuse_broken(events)
        except FormatError as error:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the answer cannot be read: {error}") from error
        for event in events:
            data = event.data
            found = found or self._is_last(data)
            if self.error is not None:
                refuse_error({"error": _if_there(data, self.error), "output": "".join(pieces), "tool_calls": calls})
            piece = _if_there(data, self.output)
            if isinstance(piece, str):
                pieces.append(piece)
                if piece.strip():
                    failed = None
            failed = streams.error_of(event) or failed
            if self.tool_calls is not None and _if_there(data, self.tool_calls.path) is not None:
                told = self.tool_calls.read(data, "events.tool_calls")
                if not isinstance(told, list):
                    text = "what is at events.tool_calls is neither a call nor a list of calls"
                    raise AgentFailure(ErrorKind.PROTOCOL, text)
                calls += told
            if self.usage is not None:
                usage = _if_there(data, self.usage) or usage
        refuse_error({"error": failed, "output": "".join(pieces), "tool_calls": calls})
        if self.done is not None and not found:
            raise AgentFailure(ErrorKind.PROTOCOL, f"the stream broke off: {text_or_json(self.done)!r} is missing")
        if not pieces and not calls:
            raise AgentFailure(
                ErrorKind.PROTOCOL, f"no event of the stream has anything at {self.output!r} (events.output)"
            )
        answer: dict[str, Any] = {"output": "".join(pieces)}
        if usage:
            answer["usage"] = usage
        if self.tool_calls is not None:
            answer["tool_calls"] = calls
        return answer

    def _is_last(self, data: Any) -> bool:
        if self.done is None or isinstance(self.done, str):
            return self.done is not None and text_or_json(data) == self.done
        told = [(_if_there(data, path), value) for path, value in self.done.items()]
        return all(type(found) is type(value) and found == value for found, value in told)


class StatePaths(StrictModel):
    """Paths to the answer's parts; by default the answer itself is of a form the gate reads.

    A path that ends with ``?`` may lead to a name that an answer leaves out.
    """

    output: CheckedPath | None = None
    """Path of the text."""
    messages: CheckedPath | None = None
    """Path of OpenAI messages, instead of ``output``."""
    tool_calls: Annotated[CallPaths | None, BeforeValidator(calls_at)] = None
    """The calls: the path of their list, or the paths of their parts too."""
    usage: CheckedPath | None = None
    """Path of the token counts."""
    cost_usd: CheckedPath | None = None
    """Path of the cost in US dollars."""
    model: CheckedPath | None = None
    """Path of the name of the model that answered."""
    system_fingerprint: CheckedPath | None = None
    """Path of the provider's ``system_fingerprint``."""

    @model_validator(mode="after")
    def _says_where(self) -> Self:
        told = self.model_fields_set - {"session_id", "events"}
        if told and (self.output is None) == (self.messages is None):
            raise ValueError("name the path of either output or messages")
        return self

    @property
    def names_parts(self) -> bool:
        """True if the path of the text is given; otherwise the answer has one of the usual forms."""
        return self.output is not None or self.messages is not None

    @property
    def tells_tools(self) -> bool:
        """True if an answer can report tool calls."""
        return not self.names_parts or self.messages is not None or self.tool_calls is not None

    def read(self, body: Any) -> Any:
        """Return the named parts: null counts as absent, and a missing name is an error unless marked with ``?``.

        If no part is named, return the answer itself.
        """
        if not self.names_parts:
            return body
        parts = {name: read(body) for name, read in self._readers()}
        if is_cut_off(body):
            parts["finish_reason"] = "length"
        return parts

    def read_known(self, body: Any) -> Any:
        """Return the named parts that an answer with an error has; the answer itself if no part is named."""
        if not self.names_parts:
            return body
        parts = {}
        for name, read in self._readers():
            with suppress(AgentFailure):
                parts[name] = read(body)
        return parts

    def _readers(self) -> Iterator[tuple[str, Callable[[Any], Any]]]:
        """Yield each part whose path is given, with the function that reads it from an answer."""
        for name in PARTS:
            path = getattr(self, name)
            if path is not None:
                yield name, partial(part_at, path=path, name=name)
        if self.tool_calls is not None:
            yield "tool_calls", partial(self.tool_calls.read, what="tool_calls")


class ResultPaths(StatePaths):
    """Paths to the parts in the answer of a server that names conversations itself."""

    session_id: CheckedPath | None = None
    """Path of the server's id of the conversation, which becomes ``{{session_id}}``."""


class ResponsePaths(ResultPaths):
    """Paths to the parts in an answer that may come piece by piece."""

    events: EventPaths | None = None
    """Paths in each event of a streamed answer. Default: the known dialects."""

    @property
    def tells_tools(self) -> bool:
        if not self.names_parts and self.events is not None:
            return self.events.tool_calls is not None
        return super().tells_tools


def part_at(body: Any, path: str, name: str) -> Any:
    """Return the value at a path; None if the path is marked with ``?`` and only its last step is missing."""
    plain = path.removesuffix("?")
    try:
        return find(body, plain)
    except PathError as error:
        absent = _may_be_absent(body, plain)
        if absent and plain != path:
            return None
        text = f"the answer has {error} ({name})"
        if absent:
            text += f"; write {path}? if it may be left out"
        if error.hint:
            text += f"; {error.hint}"
        else:
            text += says_elsewhere(body, "response")
        raise AgentFailure(ErrorKind.PROTOCOL, text) from error


def _may_be_absent(body: Any, path: str) -> bool:
    """True if all but the last step of a path exists: then the part is absent, otherwise the path is wrong."""
    try:
        find(body, parent_of(path))
    except LookupError:
        return False
    return True
