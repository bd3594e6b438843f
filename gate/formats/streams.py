"""Reads streamed answers: server-sent events or lines of JSON, in these dialects.

Chat Completions, Responses, Anthropic's Messages, AG-UI, the AI SDK's UI messages, Claude Code's and ADK's events,
LangGraph's values, and plain text. A stream without an explicit end is no answer: half an answer would be scored as a
bad one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from msgspec import Struct, field

from gate.formats import adk, answers, messages
from gate.formats.endings import is_cut_off
from gate.formats.json_text import json_or_text
from gate.formats.messages import FormatError
from gate.formats.shapes import as_mapping, as_text, from_json, mappings_in, text_or_json
from gate.model import Invocation, Usage, total_usage
from gate.security.limits import shorten

EVENT_LINE = re.compile(r"(?:data|event|id|retry)?:")
"""A line of server-sent events; one that begins with a colon is a comment."""
LINE_END = re.compile(r"\r\n|\n|\r")
"""The line ends of a stream; other Unicode separators may occur within a JSON text."""
DONE = "[DONE]"
"""The text that servers send after the last event."""


class StreamEvent(NamedTuple):
    """One event; ``data`` is the parsed JSON, or the text if it is not JSON."""

    name: str
    data: Any


class Assembly(Struct):
    """The answer assembled from the events."""

    texts: list[tuple[Any, str]] = field(default_factory=list)
    """The id and text of each message, in order."""
    calls: dict[Any, dict[str, Any]] = field(default_factory=dict)
    spoken: int = 0
    """The number of texts before the last call; those after it are the answer."""
    usage: dict[str, Any] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    """Further keys of the answer, such as its cost and model."""
    ended: bool = False
    hides_calls: bool = False
    """True if the dialect does not show the calls that the server executed, so that no visible call proves nothing."""

    def say(self, key: Any, piece: Any) -> None:
        if not isinstance(piece, str) or not piece:
            return
        if self.texts and self.texts[-1][0] == key and len(self.texts) > self.spoken:
            self.texts[-1] = (key, self.texts[-1][1] + piece)
        else:
            self.texts.append((key, piece))

    def tell(self, data: Mapping[str, Any], *names: str) -> None:
        """Copy these keys if their values are text."""
        for name in names:
            if isinstance(data.get(name), str):
                self.told[name] = data[name]

    def _call_of(self, key: Any) -> dict[str, Any]:
        if isinstance(key, str):
            return self.calls.setdefault(key, {"id": key})
        return self.calls.setdefault(_hashable(key), {"id": None})

    def call(self, key: Any, name: Any = None, arguments: Any = None) -> None:
        """Start a call, or complete one that was started."""
        call = self._call_of(key)
        self.spoken = len(self.texts)
        if isinstance(name, str) and name:
            call["name"] = name
        if arguments is not None:
            call["arguments"] = arguments

    def add_arguments(self, key: Any, piece: Any) -> None:
        call = self._call_of(key)
        before = call.get("arguments")
        if isinstance(piece, str) and isinstance(before, str):
            call["arguments"] = before + piece
        elif isinstance(piece, str) and (piece or not before):  # pieces of what an earlier event had whole
            call["arguments"] = piece

    def result(self, key: Any, value: Any, *, error: Any = None) -> None:
        call = self.calls.get(_hashable(key))
        if call is None:
            return
        if error is None:
            call["result"] = value
        else:
            call["error"] = error
        self.spoken = len(self.texts)

    def to_answer(self) -> Mapping[str, Any]:
        said = [text for _, text in self.texts[self.spoken :]] or [text for _, text in self.texts]
        answer: dict[str, Any] = {"output": "\n".join(said), **self.told}
        if self.calls or not self.hides_calls:
            answer["tool_calls"] = list(self.calls.values())
        if self.usage:
            answer["usage"] = self.usage
        return answer


def _hashable(key: Any) -> str | tuple[Any, ...]:
    if isinstance(key, str | tuple):
        return key
    return repr(key)


def events_of(text: str) -> Iterator[StreamEvent]:
    """Yield the events of a stream of server-sent events or JSON Lines."""
    name, data = "", list[str]()
    lines = LINE_END.split(text)
    sent = any(EVENT_LINE.match(line) for line in lines)
    for line in [*lines, ""]:
        if not sent:
            for part in line.split("\x1e"):
                if part.strip():
                    yield StreamEvent("", _value(part.strip()))
        elif not line:
            if data or name:
                yield StreamEvent(name, _value("\n".join(data)))
            name, data = "", []
        else:
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if key == "data":
                data.append(value)
            elif key == "event":
                name = value


def _value(text: str) -> Any:
    if text[:1] not in '{["':
        return text
    return json_or_text(text)


_OPENS = re.compile(r'\s*(?:\[\s*)?\{\s*(?:"|$)')
"""The beginning of an object or of a list of objects."""

Dialect = Callable[[Assembly, Sequence[StreamEvent]], None]


ENDLESS = "the connection was closed, which may be its end or not: name the last event under http.response.events.done"


def to_invocation(text: str, *, user: str, whole: bool = True, mapping: str = "") -> Invocation:
    """Return the turn in a stream of a known dialect, provided that it has no error (`error_in`).

    ``whole``: whether the transport marked the end of the stream; if not, an event must do so. ``mapping``: the
    configuration key that gives the paths of its events' parts, for the hint of an error; empty if there is none.

    Raises:
        FormatError: the dialect is unknown, or the stream is incomplete.
    """
    events = list(events_of(text))
    objects = [event.data for event in events if isinstance(event.data, Mapping)]
    if not events:
        raise FormatError("the stream has no events")
    if not objects:
        if not whole:
            _endless()
        return answers.to_invocation(_plain(events), user=user)
    refuse_broken(events)
    remedy = f"map them with {mapping}.events" if mapping else "answer with one object"
    answer = _whole(events, objects, remedy)
    if answer:
        if not whole and any(event.name == "values" for event in events):
            _endless()  # a later value might replace it
        return answers.to_invocation(answer, user=user)
    if any("author" in data and ("content" in data or "actions" in data) for data in objects):
        if not whole:
            _endless()
        if adk.is_incomplete(objects):
            raise FormatError("the stream broke off: its last event is partial, or a call has no result")
        return adk.events_to_invocation(objects, user=user)
    read = _reader_of(objects)
    if read is not None:
        turn = Assembly()
        read(turn, events)
        return finished(turn, user=user)
    shown = shorten(json.dumps(objects[0], ensure_ascii=False, default=repr), 120)
    raise FormatError(f"its events have no known dialect (the first: {shown}); {remedy}")


def _endless() -> NoReturn:
    raise FormatError(f"no event of the stream says that it is over: {ENDLESS}")


def finished(turn: Assembly, *, user: str) -> Invocation:
    """Return the turn. Raises `FormatError` for a stream that broke off."""
    if not turn.ended:
        raise FormatError("the stream broke off: its last event is missing")
    return answers.to_invocation(turn.to_answer(), user=user)


def so_far(text: str) -> Invocation:
    """Return what the events of a stream that broke off or failed say of the turn. Raises `FormatError`."""
    events = list(events_of(text))
    objects = [event.data for event in events if isinstance(event.data, Mapping)]
    if any("author" in data for data in objects):
        return adk.events_to_invocation(objects)
    read = _reader_of(objects)
    if read is None:
        raise FormatError("its events have no known dialect")
    turn = Assembly()
    read(turn, events)
    return answers.to_invocation(turn.to_answer(), user="")


def error_in(text: str) -> Any:
    """Return the error that a stream ends with; None if there is none, or text follows: the agent went on."""
    events = list(events_of(text))
    objects = [event.data for event in events if isinstance(event.data, Mapping)]
    reader = _reader_of(objects)
    ends = [event for event in events if as_mapping(event.data).get("type") == "result"]
    if ends:
        last = error_of(ends[-1])
        if last:
            return last
    for place in reversed(range(len(events))):
        error = error_of(events[place])
        if error and _goes_on(events, place, reader):
            break
        if error:
            return error
    try:
        return adk.failure_of([data for data in objects if "author" in data]) or None
    except FormatError:
        return None  # reported where the events are read


def _reader_of(objects: Sequence[Mapping[str, Any]]) -> Dialect | None:
    """Return the reader of a stream's dialect; None if it has none."""
    for fits, read in DIALECTS:
        if any(fits(data) for data in objects):
            return read
    return None


def _goes_on(events: Sequence[StreamEvent], place: int, reader: Dialect | None) -> bool:
    """True if the events after an error add text to the answer, or end it in a form that no reader joins."""
    before, after = events[: place + 1], events[place + 1 :]
    if reader is not None:
        turn, whole = Assembly(), Assembly()
        reader(turn, before)
        reader(whole, events)
        if _said(turn) != _said(whole):
            return True
    if not any(isinstance(event.data, Mapping) for event in events):
        names = {"", *(event.name for event in before if not _failing(event))}  # others end it: "event: end"
        return any(event.name in names and str(event.data).strip() not in (DONE, "") for event in after)
    return any(_has_text(as_mapping(event.data), event.name) for event in after)


def _said(turn: Assembly) -> str:
    return "".join("".join(text for _, text in turn.texts).split())


def _has_text(data: Mapping[str, Any], name: str) -> bool:
    """True if an event has text of an answer that no dialect's reader joins."""
    if name == "values" or data.get("type") == "result":
        return True
    if "author" in data:
        parts = mappings_in(as_mapping(data.get("content")).get("parts"))
        return str(data["author"]).lower() != "user" and any(part.get("text") for part in parts)
    return "type" not in data and not data.keys().isdisjoint(answers.CONTENT)


_ERRORS = frozenset({"error", "errors", "exception", "failure", "fatal", "crash", "crashed"})
"""The last words in the names of events that report an error."""
_NOT_THE_RUNS = frozenset({"tool", "tools", "call", "calls", "function", "functions", "no", "non"})
"""Words of errors that an agent may survive, or of none."""
_BAD_ENDS = frozenset({"fail", "failed", "abort", "aborted", "cancelled", "canceled", "cancel", "expired", "timeout"})
"""The last words in the names of events that report a bad end, of the run or of anything that an agent speaks of: an
order that is cancelled, or a search that failed, is news."""
_OF_RUNS = frozenset(
    (
        *("agent", "assistant", "chat", "completion", "conversation", "crew", "execution", "flow", "generation"),
        *("graph", "inference", "job", "kickoff", "llm", "message", "model", "on", "request", "response", "run"),
        *("server", "session", "state", "status", "stream", "task", "team", "thread", "turn", "user", "workflow"),
    )
)
"""Words that name a run or a part of it on which the whole depends."""
_WORD_END = re.compile(r"(?<=[a-z])(?=[A-Z])|[^A-Za-z]+")
_OBJECT = re.compile(r'\{\s*"')
_QUOTES = re.compile(r":[*_ \t]*\n\s*\Z")
"""The end of a line that introduces what follows."""
MAX_ERROR_CHARS = 20_000
"""The last characters of a text in which to look for an error."""
MOST_OBJECTS = 50
"""The last places of a text at which an object may begin that ends it."""
_UNFINISHED = frozenset({"failed", "cancelled", "queued", "in_progress"})
"""The statuses of a response of OpenAI's that has no answer, although it may hold a part of one."""


def _failing(event: StreamEvent) -> bool:
    """True if the event's name or type says that the stream failed (``error``, ``RUN_ERROR``, ``response.failed``,
    ``ThrottlingException``)."""
    data = as_mapping(event.data)
    return any(map(_says_failed, (event.name, as_text(data.get("type")), as_text(data.get("event")))))


def _says_failed(name: str) -> bool:
    words = _WORD_END.sub(" ", name).lower().split()
    if len(words) > 1 and words[-1] == "event":
        words.pop()
    if not words:
        return False
    last = words.pop()
    if last in _ERRORS:
        return _NOT_THE_RUNS.isdisjoint(words)
    return last in _BAD_ENDS and _OF_RUNS.issuperset(words)


def error_of(event: StreamEvent) -> Any:
    """Return the error that an event states; None if it states none."""
    data = as_mapping(event.data)
    if _failing(event) or data.get("finishReason") == "error":
        told = [as_mapping(data.get("response")).get("error")]
        told += [data.get(name) for name in ("error", "message", "errorText", "reason")]
        return next(filter(_is_stated, [*told, event.data]), f"the event {event.name!r}")
    outcome = as_mapping(data.get("outcome"))
    if data.get("type") == "RUN_FINISHED" and outcome.get("type") == "interrupt":
        return f"nobody answers the run's interrupt: {text_or_json(outcome.get('interrupts'))}"
    if data.get("type") is None:
        return failure_of(data)
    return _failure(data)


def failure_of(answer: Mapping[str, Any]) -> Any:
    """Return the error that a whole answer states, in upper or lower case, whatever else it says; None if it states
    none."""
    names = ["error", "errors"]
    if "choices" in answer or answer.get("object") == "response":
        names = ["error"]  # completions do not define the other
    for key, value in answer.items():
        if str(key).lower() in names and _is_stated(value):
            return value
    return _failure(answer)


def error_ending(text: str) -> Any:
    """Return the error in an object that ends a text: a server that fails while it sends text often adds one; None if
    there is none, or if the text quotes it below a line that ends with a colon."""
    end = text.rstrip()[-MAX_ERROR_CHARS:]
    if not end.endswith("}"):
        return None
    for begin in list(_OBJECT.finditer(end))[-MOST_OBJECTS:]:
        found = from_json(end[begin.start() :])
        if isinstance(found, dict):
            return None if _QUOTES.search(end[: begin.start()]) else failure_of(found)
    return None


def _failure(data: Mapping[str, Any]) -> Any:
    """Return the error in an object of a dialect that defines where; None if there is none."""
    if data.get("type") == "result" and (data.get("is_error") or str(data.get("subtype")).startswith("error_")):
        return data.get("result") or data.get("subtype") or "an error"
    if data.get("object") == "error":  # vLLM's
        return data.get("message") or "an error"
    if data.get("object") == "response" and as_text(data.get("status")) in _UNFINISHED:
        return f"the response is {data['status']}"
    for key in ("__error__", "__interrupt__"):  # in the state of a LangGraph graph
        if data.get(key):
            return f"the run ended with {key}: {text_or_json(data[key])}"
    for choice in mappings_in(data.get("choices"))[:1]:  # routers (OpenRouter) put it there
        if _is_stated(choice.get("error")):
            return choice["error"]
        if choice.get("finish_reason") == "error":
            return "the choice ended in an error"
    return None


def _is_stated(error: Any) -> bool:
    """True if an error says anything: ``{"code": 0, "message": ""}`` does not."""
    if isinstance(error, Mapping):
        return any(map(_is_stated, error.values()))
    if isinstance(error, list):
        return any(map(_is_stated, error))
    return bool(error)


def refuse_broken(events: Sequence[StreamEvent]) -> None:
    """Raise `FormatError` for an event that begins like an object but is not valid JSON: it may have held a call."""
    for event in events:
        if isinstance(event.data, str) and _OPENS.match(event.data):
            raise FormatError(f"an event is not valid JSON: {shorten(event.data, 120)}")


def _plain(events: Sequence[StreamEvent]) -> str:
    """Return the text of a stream without objects. Raises `FormatError` if it is empty or half an object."""
    text = "".join(str(event.data) for event in events if event.data != DONE and not _failing(event))
    if not text:
        raise FormatError("the stream has only empty events")
    if _OPENS.match(text) and isinstance(_value(text.strip()), str):
        raise FormatError(f"the stream broke off within an event: {shorten(text, 120)}")
    return text


def _whole(
    events: Sequence[StreamEvent], objects: Sequence[Mapping[str, Any]], remedy: str
) -> Mapping[str, Any] | None:
    """Return the last event if it is a complete answer: LangGraph's values, or a line with the whole answer."""
    for event in reversed(events):
        if event.name == "values":
            return event.data  # type: ignore[no-any-return]
    full = [data for data in objects if "type" not in data and not data.keys().isdisjoint(answers.CONTENT)]
    if len(full) > 1:
        raise FormatError(f"several of its events are answers; {remedy}")
    if not full or full[0] is not objects[-1]:
        return None
    return full[0]


# --- the dialects ---------------------------------------------------------------------------------


def _typed(events: Sequence[StreamEvent]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for event in events:
        if isinstance(event.data, Mapping):
            yield str(event.data.get("type") or event.name), event.data


def read_chat(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read chunks of Chat Completions; a call's name and arguments come in pieces, joined by its index.

    The chunks do not show the calls that the server executed itself.
    """
    turn.hides_calls = True
    begun = dict[str, Any]()
    for event in events:
        if event.data == DONE:
            turn.ended = True
        if not isinstance(event.data, Mapping):
            continue
        chunk = event.data
        if isinstance(chunk.get("usage"), Mapping):
            turn.usage = dict(chunk["usage"])
        turn.tell(chunk, "model", "system_fingerprint")
        for choice in mappings_in(chunk.get("choices"))[:1]:
            delta = choice.get("delta")
            turn.ended = turn.ended or choice.get("finish_reason") is not None
            turn.tell(choice, "finish_reason")
            if isinstance(delta, Mapping):
                _read_delta(turn, delta, begun)


def _read_delta(turn: Assembly, delta: Mapping[str, Any], begun: dict[str, Any]) -> None:
    """Add the pieces of a chunk. ``begun``: for each index, the key of its last call.

    Gemini gives parallel calls the same index: another id begins another call if the one before it is complete, for
    vLLM gave each piece an id of its own.
    """
    turn.say("", delta.get("content") or delta.get("refusal"))
    for piece in mappings_in(delta.get("tool_calls")):
        index, body, given = repr(piece.get("index", 0)), as_mapping(piece.get("function")), piece.get("id")
        before = turn.calls.get(begun.get(index), {})
        if index not in begun or (given and before.get("id") not in (None, given) and _is_next(before, body)):
            begun[index] = ("call", index, len(turn.calls))
        key = begun[index]
        turn.call(key, body.get("name"))
        turn.add_arguments(key, body.get("arguments"))
        if isinstance(given, str):
            turn.calls[key]["id"] = given


def _is_next(before: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """True if a function is of another call than the one before it."""
    name, written = body.get("name"), before.get("arguments")
    if not name or name != before.get("name"):
        return bool(name)
    return bool(body.get("arguments")) and isinstance(written, str) and isinstance(_value(written), dict)


def read_responses(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read events of Responses: the last one has the complete output, otherwise the finished items are used."""
    done = list[Mapping[str, Any]]()
    for kind, data in _typed(events):
        response = data.get("response")
        if kind == "response.output_item.done" and isinstance(data.get("item"), Mapping):
            done.append(data["item"])
        if kind in ("response.completed", "response.incomplete") and isinstance(response, Mapping):
            turn.ended = True
            turn.told = {}
            turn.tell(response, "model")
            if is_cut_off(response):
                turn.told["finish_reason"] = "length"
            turn.usage = dict(as_mapping(response.get("usage")))
            told = mappings_in(response.get("output"))
            _read_items(turn, max(told, done, key=len))


def _read_items(turn: Assembly, items: Sequence[Mapping[str, Any]]) -> None:
    for place, item in enumerate(items):
        key = item.get("call_id") or item.get("id") or place
        if item.get("type") == "message":
            for part in mappings_in(item.get("content")):
                turn.say(place, part.get("text") or part.get("refusal"))
        elif item.get("type") == "function_call_output":
            turn.result(key, item.get("output"))
        elif str(item.get("type")).endswith("_call"):
            turn.call(key, item.get("name") or str(item["type"]).removesuffix("_call"), item.get("arguments"))
            if "output" in item or item.get("error"):
                turn.result(key, item.get("output"), error=item.get("error"))


def read_anthropic(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read events of Anthropic's Messages, for one message or several in a row."""
    message, blocks = 0, dict[Any, Any]()
    used = [dict[str, Any]()]
    """The token counts of each message, after those outside of any."""
    for kind, data in _typed(events):
        block = as_mapping(data.get("delta"))
        if kind == "content_block_start":
            block = as_mapping(data.get("content_block"))
        key = message, repr(data.get("index"))
        if kind == "message_start" and isinstance(data.get("message"), Mapping):
            message, turn.ended = message + 1, False
            turn.tell(data["message"], "model")
            used.append({**as_mapping(data["message"].get("usage")), "output_tokens": None})
        elif kind == "content_block_start" and str(block.get("type")).endswith("tool_use"):
            blocks[key] = key
            if isinstance(block.get("id"), str):
                blocks[key] = block["id"]
            turn.call(blocks[key], block.get("name"), block.get("input") or None)
        elif kind == "content_block_start" and str(block.get("type")).endswith("tool_result"):
            _read_result(turn, block)
        elif kind == "content_block_delta" and block.get("type") == "input_json_delta":
            turn.add_arguments(blocks.get(key, key), block.get("partial_json"))
        elif kind in ("content_block_start", "content_block_delta"):
            turn.say(message, block.get("text"))
        elif kind == "message_delta" and isinstance(data.get("usage"), Mapping):
            used[-1]["output_tokens"] = data["usage"].get("output_tokens")  # of the message so far
        turn.tell(block, "stop_reason")
        turn.ended = turn.ended or kind == "message_stop"
    turn.usage = _total(used if used[0] else used[1:])


def _read_result(turn: Assembly, block: Mapping[str, Any]) -> None:
    failed = None
    if block.get("is_error"):
        failed = block.get("content")
    turn.result(block.get("tool_use_id"), block.get("content"), error=failed)


def _total(counts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the total of token counts; empty if there is none. Raises `FormatError`."""
    total = total_usage(map(messages.to_usage, counts)) or Usage()
    found = {"input_tokens": total.input_tokens, "output_tokens": total.output_tokens}
    return {name: count for name, count in found.items() if count is not None}


def read_claude(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read messages of the Claude Agent SDK, as printed by ``claude -p --output-format stream-json``."""
    for place, (kind, data) in enumerate(_typed(events)):
        for block in mappings_in(as_mapping(data.get("message")).get("content")):
            if kind == "assistant" and str(block.get("type")).endswith("tool_use"):
                turn.call(block.get("id"), block.get("name"), block.get("input"))
            elif kind == "assistant":
                turn.say(place, block.get("text"))
            elif block.get("type") == "tool_result":
                _read_result(turn, block)
        if kind == "result":
            turn.ended = True
            turn.usage = _total([as_mapping(data.get("usage"))])
            if data.get("total_cost_usd") is not None:
                turn.told["cost_usd"] = data["total_cost_usd"]


def read_agui(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read events of AG-UI, from CopilotKit, Mastra, LangGraph, Microsoft's Agent Framework and others."""
    snapshot: Any = None
    models: list[Mapping[str, Any]] = []
    key: Any = None
    message: Any = None
    authors = dict[Any, Any]()
    for kind, data in _typed(events):
        key, message = data.get("toolCallId") or key, data.get("messageId") or message
        if kind.startswith("TEXT_MESSAGE_"):
            if data.get("role") or kind.endswith("_START"):  # also of an id that was another's
                authors[_hashable(message)] = data.get("role")
            if authors.get(_hashable(message)) not in _OTHERS:
                turn.say(message, data.get("delta"))
        elif kind in ("TOOL_CALL_START", "TOOL_CALL_CHUNK"):
            turn.call(key, data.get("toolCallName"))
            turn.add_arguments(key, data.get("delta"))
        elif kind == "TOOL_CALL_ARGS":
            turn.add_arguments(key, data.get("delta"))
        elif kind == "TOOL_CALL_RESULT":
            turn.result(key, data.get("content"))
        elif kind == "MESSAGES_SNAPSHOT":
            snapshot = data.get("messages")
        elif kind == "RUN_FINISHED":
            models += mappings_in(data.get("usage"))
        turn.ended = (turn.ended and kind != "RUN_STARTED") or kind == "RUN_FINISHED"
    _read_run_usage(turn, models)
    _read_snapshot(turn, mappings_in(snapshot))


_OTHERS = ("user", "human", "system", "developer", "tool", "activity", "reasoning")
"""The roles of messages that are not the assistant's."""


def _read_run_usage(turn: Assembly, models: Sequence[Mapping[str, Any]]) -> None:
    """Set the usage over all models; the answering model is set only if there is a single one."""
    counts = [{"input_tokens": one.get("inputTokens"), "output_tokens": one.get("outputTokens")} for one in models]
    turn.usage = _total(counts)
    names = {as_text(one.get("model")) for one in models} - {""}
    if len(names) == 1:
        turn.told["model"] = names.pop()


def _read_snapshot(turn: Assembly, messages: Sequence[Mapping[str, Any]]) -> None:
    """Add the messages after the user's last one: texts if none were streamed, and calls that were not.

    A call may also have been streamed without its arguments: some servers omit arguments that came whole.
    """
    streamed = {key for key, call in turn.calls.items() if call.get("arguments")}
    texts, spoken = bool(turn.texts), turn.spoken
    asked = max((place for place, message in enumerate(messages) if message.get("role") == "user"), default=-1)
    for place, message in enumerate(messages[asked + 1 :]):
        if message.get("role") == "tool":
            turn.result(message.get("toolCallId"), message.get("content"), error=message.get("error"))
            continue
        if not texts:
            turn.say(place, message.get("content"))
        for call in mappings_in(message.get("toolCalls")):
            body = as_mapping(call.get("function"))
            if _hashable(call.get("id")) not in streamed:
                turn.call(call.get("id"), body.get("name"), body.get("arguments"))
    if texts:
        turn.spoken = spoken


def read_ui_messages(turn: Assembly, events: Sequence[StreamEvent]) -> None:
    """Read the AI SDK's stream of UI messages."""
    for kind, data in _typed(events):
        key = data.get("toolCallId")
        if kind == "text-delta":
            turn.say(data.get("id"), data.get("delta"))
        elif kind in ("tool-input-start", "tool-input-available", "tool-input-error"):
            turn.call(key, data.get("toolName"), data.get("input"))
        elif kind == "tool-output-available":
            turn.result(key, data.get("output"))
        if kind in ("tool-output-error", "tool-input-error"):
            turn.result(key, None, error=data.get("errorText"))
        turn.ended = turn.ended or kind == "finish"
    turn.ended = turn.ended or any(event.data == DONE for event in events)


def _starts(*beginnings: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda data: str(data.get("type", "")).startswith(beginnings)


DIALECTS: Sequence[tuple[Callable[[Mapping[str, Any]], bool], Dialect]] = (
    (lambda data: isinstance(data.get("choices"), list), read_chat),
    (_starts("response."), read_responses),
    (_starts("RUN_", "TEXT_MESSAGE_", "TOOL_CALL_", "MESSAGES_SNAPSHOT"), read_agui),
    (_starts("message_start", "content_block_"), read_anthropic),
    (_starts("text-", "tool-input-", "tool-output-"), read_ui_messages),
    (lambda data: data.get("type") in ("assistant", "result") and ("message" in data or "result" in data), read_claude),
)
"""The readers, each with a test for the events of its dialect."""
