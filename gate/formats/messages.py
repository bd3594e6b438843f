"""Reads OpenAI's messages and items (also in LangChain's spelling), and makes one invocation of a list of them."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import chain
from mimetypes import guess_type
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from gate.errors import SAME_MEANING
from gate.formats.endings import PLACES, endings, noting_its_end
from gate.formats.json_text import json_or_text
from gate.formats.names import ARGUMENTS, CALL_ID, CALLS, NAME, RESULT, ROLES, first_value, is_result
from gate.formats.reading import carried, changed, known_value, leave_unread, says_something
from gate.formats.shapes import as_list, as_mapping, in_list, mappings_in, text_or_json
from gate.model import Invocation, Part, ToolCall, Usage, parts_of, text_of, total_usage
from gate.model.bounds import MAX_COUNT
from gate.security.limits import MAX_ID_CHARS, shorten
from gate.system.prices import turn_cost


class FormatError(ValueError):
    """The text does not have the expected form; a one-line message that can be shown."""


OBJECT = (dict, Mapping)
"""The types of a JSON object; `dict` comes first because checking for `Mapping` is slow."""
_STATUSES = frozenset({"success", "completed", "error"})
"""The known statuses of a tool's message; only an error means that the call failed."""
_TEXT_KEYS = {"text": "text", "output_text": "text", "input_text": "text", "refusal": "refusal"}
"""The text parts of a message, and the key that holds the text."""


class Trajectory:
    """Tool calls in order. A result joins its call by id, else by name, else in order; in constant time."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self._open: dict[tuple[str, str | None], deque[int]] = defaultdict(deque)
        """The calls without a result, by what may name them."""
        self._done: set[int] = set()

    def add(self, call: ToolCall) -> None:
        if call.result is None:
            index = len(self.calls)
            keys = [("any", call.name), ("any", None), ("bare", call.name), ("bare", None)]
            if call.id:
                keys[2:] = [("id", call.id)]
            for key in keys:
                self._open[key].append(index)
        self.calls.append(call)

    def answer(self, identifier: str | None, name: str | None, result: Any, error: str | None = None) -> bool:
        """Join a result to its call; False if every call has its result."""
        index = self._take(identifier, name)
        if index is None:
            return False
        call = self.calls[index]
        self.calls[index] = replace(call, result=result, error=error or call.error)
        return True

    def _take(self, identifier: str | None, name: str | None) -> int | None:
        keys = [("any", name)]
        if identifier:
            keys = [("id", identifier), ("bare", name)]
        for key in keys:
            queue = self._open.get(key)
            while queue:
                index = queue.popleft()
                if index not in self._done:
                    self._done.add(index)
                    return index
        return None


class _Reading(Struct):
    """The messages found so far."""

    user: str | None = None
    trajectory: Trajectory = field(default_factory=Trajectory)
    texts: list[tuple[Part, ...]] = field(default_factory=list)
    """The assistant's texts, per message."""
    usages: list[Usage | None] = field(default_factory=list)
    """The usage of each message that a model made; None if the message does not report it."""


def to_invocation(messages: Any, *, user: str = "") -> Invocation:
    """Return all messages as one invocation.

    The trajectory is every tool call in order, with its result joined by call id, or in order if ids are missing. The
    response is the assistant's last text; earlier texts are intermediate. ``user`` defaults to the user's first text.
    Arguments that are not JSON are kept as text: the failure is the agent's. Raises `FormatError`.
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        raise FormatError(f"messages must be a list, not {_kind(messages)}")
    reading = _Reading()
    for index, message in enumerate(messages):
        if not isinstance(message, OBJECT):
            raise FormatError(f"message {index} must be an object, not {_kind(message)}")
        try:
            _read(reading, message)
        except FormatError as error:
            raise FormatError(f"message {index}: {error}") from error
    *before, response = reading.texts or [()]
    return Invocation(
        user=user or reading.user or "",
        response=response,
        tool_calls=tuple(reading.trajectory.calls),
        intermediate=tuple(chain.from_iterable(before)),
        usage=usage_of(reading.usages),
        reports_calls=True,
    )


def to_call(raw: Any) -> ToolCall:
    """Return one tool call: ``{name, arguments}``, ``{name, args}``, OpenAI's ``{function: {name, arguments}}``, or
    Inspect's ``{function, arguments}``.

    ``id``, ``result``, ``error`` and ``duration`` are read if present. Raises `FormatError`.
    """
    if not isinstance(raw, OBJECT):
        raise FormatError(f"a tool call must be an object, not {_kind(raw)}")
    body = raw.get("function")
    if body is None or isinstance(body, str):
        body = raw
    if not isinstance(body, OBJECT):
        raise FormatError(f"function must be an object, not {_kind(body)}")
    error = raw.get("error")
    if error is not None:
        error = text_or_json(error)
    name = tool_name(body.get("name") or body.get("toolName") or body.get("function"))
    args = first_value(body, *ARGUMENTS)
    if args is None:
        for key in SAME_MEANING["args"].split():
            if key != "arguments" and says_something(body.get(key)):
                raise FormatError(f"the call of {name} has {key!r}: name its arguments 'arguments'")
    return ToolCall(
        name=name,
        args=to_arguments(args),
        id=optional_text(raw, *CALL_ID, "id"),
        result=carried(raw.get("result", raw.get("output"))),
        error=error,
        duration=number(raw.get("duration"), "duration"),
    )


def to_arguments(raw: Any) -> Any:
    """Return arguments as a value: a JSON text is parsed, an empty text means none, any other value is carried."""
    if not isinstance(raw, str):
        return carried(raw)
    if not raw.strip():
        return {}
    return json_or_text(raw)


def to_usage(raw: Any, *, cost_usd: Any = None) -> Usage | None:
    """Return usage from OpenAI's old or new spelling, or ours; None if there is none. Raises `FormatError`."""
    if raw is None and cost_usd is None:
        return None
    if raw is not None and not isinstance(raw, OBJECT):
        raise FormatError(f"usage must be an object, not {_kind(raw)}")
    body: Mapping[str, Any] = raw or {}
    if cost_usd is None:
        cost_usd = body.get("cost_usd")
    usage = Usage(
        input_tokens=_whole_input(body),
        output_tokens=_count(body, "output_tokens", "completion_tokens"),
        cost_usd=number(cost_usd, "cost_usd"),
        model_calls=_count(body, "model_calls"),
        model=optional_text(body, "model"),
        system=optional_text(body, "system_fingerprint"),
    )
    if usage == Usage():
        return None
    return usage


def _whole_input(usage: Mapping[str, Any]) -> int | None:
    """Return all input tokens: Anthropic counts those written to or read from a cache separately."""
    total = _count(usage, "input_tokens", "prompt_tokens")
    if usage.get("input_tokens") is not None:
        for name in ("cache_creation_input_tokens", "cache_read_input_tokens"):
            total = whole((total or 0) + (_count(usage, name) or 0), "the sum of input_tokens")
    return total


def tool_name(raw: Any) -> str:
    """Return a tool's name as text of bounded length. Raises `FormatError`."""
    if not isinstance(raw, str) or not raw:
        raise FormatError("a tool call must have a name")
    return shorten(raw, MAX_ID_CHARS)


def number(raw: Any, name: str) -> float | None:
    """Return a finite number of at least 0, or None. Raises `FormatError`."""
    if raw is None:
        return None
    value = math.nan
    try:
        if isinstance(raw, int | float) and not isinstance(raw, bool):
            value = float(raw)
    except OverflowError:
        value = math.inf
    if not 0 <= value < math.inf:
        raise FormatError(f"{name} must be a number of at least 0")
    return value


def _count(body: Mapping[str, Any], *keys: str) -> int | None:
    for key in keys:
        if body.get(key) is not None:
            return whole(body[key], key)
    return None


def whole(raw: Any, name: str) -> int | None:
    """Return a count from 0 to `MAX_COUNT`, or None. Raises `FormatError`."""
    value = number(raw, name)
    if value is not None and value > MAX_COUNT:
        raise FormatError(f"{name} {shorten(str(raw), 40)} is too large")
    if value is None:
        return None
    return int(value)


def usage_of(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the total usage of several model calls; None stands for one that reports nothing.

    Different models have no common price, so each part is priced separately if all can be. Raises `FormatError` if the
    sum is too large.
    """
    total = total_usage(usages)
    if total is None:
        return None
    for name in ("input_tokens", "output_tokens", "model_calls"):
        whole(getattr(total, name), f"the sum of {name}")
    if total.model is not None or not any(usage is not None and usage.model for usage in usages):
        return total
    priced = [Usage(cost_usd=turn_cost(usage)) for usage in usages]
    return replace(total, cost_usd=(total_usage(priced) or Usage()).cost_usd)


def with_attached(text: str, attached: Sequence[Mapping[str, Any]]) -> str | list[dict[str, Any]]:
    """Return the content of a user's message: text, or OpenAI's parts if there are files."""
    if not attached:
        return text
    return [{"type": "text", "text": text}, *map(_attached, attached)]


def _attached(part: Mapping[str, Any]) -> dict[str, Any]:
    (held,) = part.values()
    kind, name = str(held.get("mime_type") or "application/octet-stream"), held.get("display_name")
    address = held.get("file_uri") or f"data:{kind};base64,{held.get('data', '')}"
    if kind.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": address}}
    file = {"file_data": address}
    if name:
        file["filename"] = name
    return {"type": "file", "file": file}


def is_from_user(message: Any) -> bool:
    """True if a message in any supported form is from the user."""
    if not isinstance(message, OBJECT):
        return False
    message = unwrapped(message)
    return ROLES.get(str(message.get("role", message.get("type")))) == "user"


def unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the message inside LangChain's serialized forms (``kwargs`` or ``data``); else the message itself."""
    for key in ("kwargs", "data"):
        if key not in message:
            continue
        held = dict.get(message, key) if isinstance(message, dict) else None
        if isinstance(held, OBJECT) and "content" in held and message.keys() <= _WRAPPER:
            name = in_list(message.get("id") or [message.get("type")])[-1]
            for read in ("lc", "type", key):
                message.get(read)
            kind = str(held.get("type") or name)
            return changed(held, type=_CLASSES.get(kind, kind))
    return message


_WRAPPER = frozenset({"lc", "type", "id", "kwargs", "data", "name"})
_CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "SystemMessage": "system", "ToolMessage": "tool"}


def after_last_question(messages: Sequence[Any], question: str = "") -> Sequence[Any]:
    """Return the messages after the user's last question; all of them if the user asks nothing.

    ``question``: its text, if it is known. What an application says to itself in the user's name after that, such as an
    observation or a critique, is then part of the turn.
    """
    places = [place for place, message in enumerate(messages, 1) if _asks(message)]
    own = [place for place in places if question.strip() and _text_of(messages[place - 1]) == question.strip()]
    return messages[max(own or places, default=0) :]


def _text_of(message: Any) -> str:
    content = unwrapped(message).get("content")
    try:
        return text_of(_parts(content)).strip()
    except FormatError:
        return ""


def _asks(message: Any) -> bool:
    """True if a message is the user's question: Anthropic's API also puts tool results into the user's messages, which
    agents such as Claude Code send with a reminder beside them."""
    return is_from_user(message) and not _results_in(_typed(unwrapped(message).get("content")))


def attached(messages: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the files in the user's first question, in the form of `Turn.attached`."""
    for message in as_list(messages):
        if _asks(message) and unwrapped(message).get("content"):
            return tuple(filter(None, map(_file, mappings_in(unwrapped(message).get("content")))))
    return ()


def _file(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the file of a part, inline or by its address; None for any other part, which stays unread."""
    kind = str(part.get("type"))
    if kind in ("image_url", "input_image"):
        address = part.get("image_url")
        if isinstance(address, Mapping):
            address = address.get("url")
        return _by_address(address, "image/*")
    if kind in ("file", "input_file"):
        held = as_mapping(part.get("file", part))
        return _by_address(held.get("file_data"), _ANY_FILE, held.get("filename"))
    if kind == "input_audio":
        held = as_mapping(part.get("input_audio"))
        return {"inline_data": {"mime_type": f"audio/{held.get('format')}", "data": held.get("data")}}
    if kind in ("image", "document") and "source" in part:  # Anthropic's form
        held = as_mapping(part.get("source"))
        if held.get("type") == "base64":
            return {"inline_data": {"mime_type": held.get("media_type"), "data": held.get("data")}}
        return _by_address(held.get("url"), {"image": "image/*"}.get(kind, _ANY_FILE))
    if kind in ("image", "audio", "video", "document"):  # Inspect's form
        form = part.get("mime_type")
        if not form and kind == "document":
            form = _ANY_FILE
        elif not form:
            form = f"{kind}/{part.get('format') or '*'}"
        return _by_address(part.get(kind), str(form), part.get("filename"))
    return None


_ANY_FILE = "application/octet-stream"


def _by_address(address: Any, kind: str, name: Any = None) -> Mapping[str, Any] | None:
    if not isinstance(address, str) or not address:
        return None
    written = _DATA_ADDRESS.match(address)
    if written is not None:
        form, held = "inline_data", {"mime_type": written[1] or kind, "data": address[written.end() :]}
    else:
        form, held = "file_data", {"file_uri": address, "mime_type": guess_type(address)[0] or kind}
    if name:
        held["display_name"] = name
    return {form: held}


_DATA_ADDRESS = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,")


# --- one message ----------------------------------------------------------------------------------


def _read(reading: _Reading, message: Mapping[str, Any]) -> None:
    message = unwrapped(message)
    kind = message.get("type")
    status = known_value(message, "status", _STATUSES)
    role = message.get("role")
    if role is None and isinstance(kind, str) and kind not in ROLES:
        _read_item(reading, kind, message)
        return
    if role is None:
        role = kind
    if not isinstance(role, str):
        raise FormatError("no role")
    role = ROLES.get(role, "")
    if role == "user":
        content = message.get("content")
        given = _results_in(_typed(content))
        for part in given:
            _answer(reading, part, _failed(part))
        said = text_of(_parts(content))
        if reading.user is None and (said or not given):
            reading.user = said
    elif role == "assistant":
        _read_assistant(reading, message)
    elif role == "tool":
        failed = status == "error" or message.get("is_error") is True
        for part in _results_in(_typed(message.get("content"))) or [message]:
            _answer(reading, part, failed)
    elif role == "system":
        message.get("content")  # the agent's instructions: read, but part of neither question nor answer
    else:
        raise FormatError(f"unknown role {shorten(str(message.get('role', kind)), 40)!r}")


def _read_assistant(reading: _Reading, message: Mapping[str, Any]) -> None:
    content, held = message.get("content"), message.get("parts")
    typed = _typed(content) + _typed(held)
    if content is None and isinstance(held, list):
        content = held
    parts = _parts(content)
    if not parts and isinstance(message.get("refusal"), str):
        parts = (Part(message["refusal"]),)
    if text_of(parts):
        reading.texts.append(parts)
    for call in _calls_of(message, typed):
        reading.trajectory.add(call)
    for part in _results_in(typed):  # of tools that the provider ran
        _answer(reading, part, _failed(part))
    if _ABOUT_MODEL.isdisjoint(message.keys()):  # as in most messages
        reading.usages.append(None)
        return
    usage = to_usage(message.get("usage") or message.get("usage_metadata"))
    if usage is not None and usage.model is None:
        named = as_mapping(message.get("response_metadata"))
        usage = replace(usage, model=optional_text(named, "model_name", "model"))  # LangChain's keys
    usage = noting_its_end(usage, message)
    if usage is not None or _is_from_model(message):
        reading.usages.append(usage)


_ABOUT_MODEL = PLACES | {"usage", "usage_metadata"}
"""The keys by which a message tells how the model made it."""


def _is_from_model(message: Mapping[str, Any]) -> bool:
    """True unless LangChain's metadata is empty of a model: a graph writes some messages itself, such as handovers."""
    named = message.get("response_metadata")
    if not isinstance(named, Mapping):
        return True
    return bool(endings(message)) or not named.keys().isdisjoint(("model_name", "model"))


def _failed(part: Mapping[str, Any]) -> bool:
    """True if a part says that its tool failed."""
    return part.get("is_error") is True or known_value(part, "status", _STATUSES) == "error"


def _calls_of(message: Mapping[str, Any], typed: _Typed) -> list[ToolCall]:
    """Return the calls of the assistant's message, each once: LangChain repeats those of its content under
    ``tool_calls``, and some servers repeat a call under ``function_call``, OpenAI's former name."""
    listed = message.get("tool_calls")
    if listed is not None and not isinstance(listed, list):
        raise FormatError(f"tool_calls must be a list, not {_kind(listed)}")
    calls = list(map(to_call, listed or ()))
    for held in ([part for kind, part in typed if kind in CALLS], _interface_calls(message, typed)):
        if held:
            known = {call.id for call in calls if call.id}
            calls += [call for call in map(to_call, held) if call.id not in known]
    former = message.get("function_call")
    if former is not None and not calls:
        calls.append(to_call(former))
    return calls


def _interface_calls(message: Mapping[str, Any], typed: _Typed) -> list[Mapping[str, Any]]:
    """Return the calls in a message of the AI SDK's user interface, whose parts hold a call with its result."""
    found: list[Mapping[str, Any]] = []
    for kind, part in typed:
        if isinstance(part.get("toolInvocation"), Mapping):
            found.append(part["toolInvocation"])
        elif kind.startswith(("tool-", "dynamic-tool")) and kind not in CALLS and not is_result(kind):
            name = part.get("toolName", kind.removeprefix("tool-"))
            found.append({**part, "toolName": name, "error": part.get("errorText")})
    if not found and "toolInvocations" in message:  # of version 4, which may repeat those of the parts
        return mappings_in(message.get("toolInvocations"))
    return found


def _read_item(reading: _Reading, kind: str, item: Mapping[str, Any]) -> None:
    """Read an item of the Responses API that is not a message, or a part of a message's content without the message."""
    if kind.endswith("_call") or kind in CALLS:
        named = item
        if item.keys().isdisjoint(NAME):
            named = {**item, "name": kind.removesuffix("_call")}
        reading.trajectory.add(to_call(named))
    elif kind.endswith("_call_output") or is_result(kind):
        _answer(reading, item, _failed(item))
    elif kind in _TEXT_KEYS:
        reading.texts.append(_parts([item]))
    elif kind == "message":
        raise FormatError("no role")


def _answer(reading: _Reading, message: Mapping[str, Any], failed: bool) -> None:
    """Join a tool's result to its call. A result without a call is ignored, because its tool is unknown."""
    name = message.get("name")
    if not isinstance(name, str):
        name = None
    identifier, content = optional_text(message, *CALL_ID), first_value(message, *RESULT)
    if isinstance(content, list) and all(isinstance(part, str | Mapping) for part in content):
        content = text_of(_parts(content)) or carried(content)
    else:
        content = carried(content)
    error = None
    if failed:
        error = text_or_json(content)
    if not reading.trajectory.answer(identifier, name, content, error):
        leave_unread(message, *RESULT)


def _parts(content: Any) -> tuple[Part, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return parts_of(content)
    if not isinstance(content, list):
        raise FormatError(f"content must be text or a list of parts, not {_kind(content)}")
    parts = []
    for part in content:
        if isinstance(part, str):
            parts.append(Part(part))
            continue
        if not isinstance(part, Mapping):
            raise FormatError(f"a part of the content must be an object, not {_kind(part)}")
        text = part.get(_TEXT_KEYS.get(str(part.get("type", "text")), ""))
        if isinstance(text, str) and text:
            parts.append(Part(text))
    return tuple(parts)


_Typed = list[tuple[str, Mapping[str, Any]]]
"""The parts of a content that are objects, each with its type."""


def _typed(content: Any) -> _Typed:
    if not isinstance(content, list):
        return []
    parts = map(_with_type, mappings_in(content))
    return [(str(part.get("type")), part) for part in parts]


def _results_in(typed: _Typed) -> list[Mapping[str, Any]]:
    """Return the parts that hold results of tools."""
    return [part for kind, part in typed if is_result(kind)]


def _with_type(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part with its type: in Bedrock's form, also Strands', the type is the only key."""
    if len(part) == 1:
        for kind in ("toolUse", "toolResult"):
            if isinstance(part.get(kind), Mapping):
                return changed(part[kind], type=kind)
    return part


def optional_text(body: Mapping[str, Any], *keys: str) -> str | None:
    """Return the value of the first of these keys as text of bounded length; None if none has a value."""
    value = first_value(body, *keys)
    if value is None:
        return None
    return shorten(str(value), MAX_ID_CHARS)


def _kind(value: Any) -> str:
    """Return the name of a JSON value's type."""
    names = {type(None): "null", bool: "a boolean", str: "text", list: "a list"}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    return names.get(type(value), "an object")
