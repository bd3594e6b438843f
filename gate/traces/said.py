"""Reads messages of every dialect: texts with their roles, calls of tools, and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any

from msgspec import UNSET, Struct

from gate.formats.messages import unwrapped
from gate.formats.names import ARGUMENTS, CALL_ID, CALLS, NAME, RESULT, ROLES, first_value, is_result
from gate.formats.reading import says_something
from gate.formats.shapes import as_text
from gate.security.limits import MAX_ID_CHARS, shorten
from gate.traces.values import is_placeholder, listed, mapping, parsed, present

_INDEXED = re.compile(r"(\d{1,5})\.(.+)", re.DOTALL)


class Call(Struct, gc=False):
    """A call of a tool, as far as it is known: requested by a model, or with a result that was sent to a model."""

    name: str
    id: str = ""
    args: Any = UNSET
    result: Any = UNSET
    error: str = ""
    duration: float | None = None


class Message(Struct, frozen=True, gc=False):
    """One message, in any dialect."""

    role: str
    texts: tuple[str, ...] = ()
    called: tuple[Call, ...] = ()
    """The calls that it requests."""
    returned: tuple[Call, ...] = ()
    """The calls whose results it holds; the name may be empty."""
    unread: tuple[str, ...] = ()
    """The kinds of its parts that no dialect here knows."""

    @property
    def says_something(self) -> bool:
        return bool(self.texts or self.called or self.returned)


def messages(raw: Any, role: str = "user") -> tuple[Message, ...]:
    """Return the messages in a list, an object or JSON text, without empty ones. ``role``: the default role."""
    return with_content(message(item, role) for item in listed(raw))


def message(raw: Any, role: str = "user") -> Message:
    """Return one message: from a text, an object with ``parts`` or ``content``, and perhaps ``tool_calls``, or an item
    of the Responses API that is a call or its result."""
    if isinstance(raw, str):
        return Message(role, () if is_placeholder(raw) else (raw,))
    if not isinstance(raw, dict):
        return Message(role)
    inner = raw.get("message")
    if isinstance(inner, dict):  # LangChain's generations and choices
        raw = inner
    raw = present(unwrapped(raw))
    found = as_text(raw.get("role", raw.get("type"))) or role
    if found in CALLS:
        raw, found = {"content": [raw]}, "assistant"
    elif is_result(found):
        raw, found = {"content": [raw]}, "tool"
    found = _ROLES.get(found, found)
    content = raw.get("parts")
    if not isinstance(content, list):
        content = raw.get("content", raw.get("refusal"))
    texts, called, returned, other = _parts(content, found, raw)
    asked = listed(raw.get("tool_calls"))
    if not asked and not called:
        asked = listed(raw.get("function_call"))  # OpenAI's former name
    known = {call.id for call in called if call.id}
    for call in filter(None, map(_called, asked)):
        if call.id not in known:  # LangChain repeats the calls of its content
            called.append(call)
    if found not in _ROLES:
        other.append(f"a message of {shorten(repr(found), MAX_ID_CHARS)}")
    return Message(found, tuple(texts), tuple(called), tuple(returned), tuple(other))


def _parts(content: Any, role: str, message: Mapping[str, Any]) -> tuple[list[str], list[Call], list[Call], list[str]]:
    """Return the texts, calls and results of a message, and the kinds of all other parts."""
    if role == "tool" and not isinstance(content, list):
        return [], [], [_returned(message, content)], []
    if isinstance(content, str) and content[:1] == "[":
        content = parsed(content)  # Strands writes blocks as JSON text
    if isinstance(content, dict) and isinstance(content.get("parts"), list):
        content = content["parts"]
    if not isinstance(content, list):
        content = [content]
    texts: list[str] = []
    called: list[Call] = []
    returned: list[Call] = []
    other: list[str] = []
    for part in content:
        if isinstance(part, str) and not is_placeholder(part):
            texts.append(part)
        elif isinstance(part, dict):
            kind = part.get("type")
            known = not isinstance(kind, dict | list) and (role != "user" or _is_of_users(kind))
            if not known or not _read_part(kind, present(part), texts, called, returned):
                other.append(f"a part of type {shorten(repr(kind), MAX_ID_CHARS)}")
    if role == "tool" and texts and not returned:
        return [], called, [_returned(message, "\n".join(texts))], other
    return texts, called, returned, other


def _read_part(kind: Any, part: Mapping[str, Any], texts: list[str], called: list[Call], returned: list[Call]) -> bool:
    """Add a part to the list for its kind. False if the kind is unknown and the part is not empty."""
    if kind in CALLS or not _CALL_KEYS.isdisjoint(part):
        call = _called(_held(part, _CALL_KEYS))
        if call is not None:
            called.append(call)
    elif is_result(str(kind)) or not _RESULT_KEYS.isdisjoint(part):
        returned.append(_returned(_held(part, _RESULT_KEYS), UNSET))
    elif kind in ("reasoning", "thinking") or part.get("thought") is True:
        return True
    else:
        text = part.get("text", part.get("content", part.get("refusal")))
        if not isinstance(text, str):
            return not says_something({key: held for key, held in part.items() if key != "type"})
        if not is_placeholder(text):
            texts.append(text)
    return True


def _held(part: Mapping[str, Any], keys: Set[str]) -> Mapping[str, Any]:
    """Return the object at the first of these keys that the part has; the part itself if it has none."""
    for key in keys:
        held = part.get(key)
        if isinstance(held, dict):
            return held
    return part


_ROLES = {**ROLES, "model": "assistant"}
_CALL_KEYS = dict.fromkeys(("toolUse", "function_call", "functionCall")).keys()
_RESULT_KEYS = dict.fromkeys(("toolResult", "function_response", "functionResponse")).keys()


def _is_of_users(kind: Any) -> bool:
    """True for the types of parts for texts of the user and results of tools; a summary of the conversation is
    neither."""
    return kind in (None, "text", "input_text") or kind in CALLS or is_result(str(kind))


def _id(raw: Mapping[str, Any]) -> str:
    for key in (*CALL_ID, "id"):
        value = raw.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _called(raw: Any) -> Call | None:
    if not isinstance(raw, dict):
        return None
    body = raw.get("function")
    if not isinstance(body, dict):
        body = raw
    name = first_value(body, *NAME)
    if not isinstance(name, str) or is_placeholder(name):
        return None
    return Call(name, _id(raw), content(first_value(body, *ARGUMENTS)))


def _returned(raw: Mapping[str, Any], value: Any) -> Call:
    if value is UNSET:
        value = first_value(raw, *RESULT)
    return Call(as_text(first_value(raw, *NAME)), _id(raw), result=content(value))


def content(value: Any) -> Any:
    """Return arguments or a result as a value; UNSET if not recorded."""
    if is_placeholder(value):
        return UNSET
    if isinstance(value, dict) and len(value) == 1 and is_placeholder(value.get("result", value)):
        return UNSET
    return parsed(value)


def indexed(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return ``prefix.0.role``, ``prefix.0.tool_calls.1.name`` … as a list of objects, by index."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if not key.startswith(prefix):
            continue
        match = _INDEXED.fullmatch(key, len(prefix))
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = value
    return [found[index] for index in sorted(found)]


def openinference(attributes: Mapping[str, Any], prefix: str, *, whole: bool = False) -> tuple[Message, ...]:
    """Return OpenInference's messages, of which each part is a separate attribute.

    ``whole``: include messages without supported content.
    """
    found = tuple(map(_openinference, indexed(attributes, prefix)))
    if whole:
        return found
    return with_content(found)


def _openinference(entry: Mapping[str, Any]) -> Message:
    content = entry.get("message.content")
    if content is None:
        content = list(map(_openinference_part, indexed(entry, "message.contents."))) or None
    return message(
        {
            "role": entry.get("message.role"),
            "content": content,
            "tool_calls": list(map(_openinference_call, indexed(entry, "message.tool_calls."))),
            "tool_call_id": entry.get("message.tool_call_id"),
            "name": entry.get("message.name"),
        }
    )


def _openinference_call(call: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "id": call.get("tool_call.id"),
        "name": call.get("tool_call.function.name"),
        "arguments": call.get("tool_call.function.arguments"),
    }


def _openinference_part(part: Mapping[str, Any]) -> Any:
    """Return the text of a part; the part itself if it has none, because it is of another type."""
    text = part.get("message_content.text")
    if text is None:
        return {**part, "type": part.get("message_content.type")}
    return text


def openllmetry(attributes: Mapping[str, Any], prefix: str, role: str) -> tuple[Message, ...]:
    """Return OpenLLMetry's messages, which are also spread over indexed attributes."""
    found = []
    for entry in indexed(attributes, prefix):
        found.append(message({**entry, "tool_calls": indexed(entry, "tool_calls.")}, role))
    return with_content(found)


def with_content(found: Iterable[Message]) -> tuple[Message, ...]:
    """Return the messages that are not empty."""
    return tuple([one for one in found if one.says_something])


def texts_in(found: Iterable[Message]) -> list[str]:
    """Return the texts of messages."""
    return list(chain.from_iterable([one.texts for one in found]))


def calls_in(found: Iterable[Message]) -> list[Call]:
    """Return the calls requested in messages."""
    return list(chain.from_iterable([one.called for one in found]))


def results_in(found: Iterable[Message]) -> list[Call]:
    """Return the results of tools in messages."""
    return list(chain.from_iterable([one.returned for one in found]))


def user_text(found: Sequence[Message]) -> str:
    """Return the text of the user's last message."""
    for one in reversed(found):
        if one.role == "user" and one.texts:
            return "\n".join(one.texts)
    return ""


def answers_tools(found: Sequence[Message]) -> bool:
    """True if the last message holds only results of tools."""
    return bool(found) and bool(found[-1].returned) and not found[-1].texts


def plain_text(value: Any) -> str:
    """Return the text of an input or output recorded as one value; empty for other values and states of graphs."""
    found = parsed(value)
    if isinstance(found, str):
        if is_placeholder(found):
            return ""
        return found
    if isinstance(value, str) and not isinstance(found, dict | list):
        return value  # a number or boolean
    held = mapping(found)
    texts = []
    for key in _TEXT_KEYS:
        text = held.get(key)
        if isinstance(text, str) and not is_placeholder(text):
            texts.append(text)
    if len(texts) != 1:
        return ""
    return texts[0]


_TEXT_KEYS = ("input", "output", "question", "answer", "query", "content", "text", "prompt")
