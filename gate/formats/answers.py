"""Reads the forms of an agent's answer to a turn: text, messages, or output with tool calls."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec.structs import asdict, replace

from gate.errors import closest, kind_of
from gate.formats import adk, messages
from gate.formats.endings import noting_its_end
from gate.formats.json_text import bounded_json
from gate.formats.messages import FormatError
from gate.formats.shapes import as_list, as_text, from_json
from gate.model import Invocation, Usage, parts_of
from gate.model.conversation import PARTS
from gate.security.limits import MAX_ID_CHARS, shorten

CONTENT = ("messages", "output", "tool_calls")
"""The keys of which an answer object has at least one."""
KEYS = (*CONTENT, "usage", "cost_usd")
_STATED = frozenset({"usage", "cost_usd", "model", "system_fingerprint"})
"""The keys of an answer's usage."""


def to_invocation(answer: Any, *, user: str) -> Invocation:
    """Return the agent's answer to one turn.

    Text is the response, unless it is a JSON answer object with calls or messages. A list of google-adk's events is
    read like its server's answer. Any other list, or ``{"messages": […]}``, holds OpenAI messages; if it repeats the
    conversation, only the part after the user's last question counts. Otherwise the form is ``{"output", "tool_calls",
    "usage", "cost_usd"}``; an output that is not text is kept as JSON. ``unseen`` lists parts (of `PARTS`) that the
    answer cannot show. Other keys are ignored unless they look like a misspelling.

    Messages, and an object with ``tool_calls`` (even empty), show that the agent reports its calls; text and a bare
    output do not. Raises `FormatError`, also if there is neither text nor a tool call: an empty text is an answer, a
    missing one is not.
    """
    try:
        answer = bounded_json(answer)
    except ValueError as error:
        raise FormatError(str(error)) from error
    if isinstance(answer, str):
        answer = _enveloped(answer)
    if isinstance(answer, str):
        return Invocation(user=user, response=parts_of(answer))
    if isinstance(answer, list):
        if adk.are_events(answer):
            return adk.events_to_invocation(answer, user=user)
        return messages.to_invocation(_latest(answer, user), user=user)
    if not isinstance(answer, messages.OBJECT):
        raise FormatError(f"an answer must be text or an object, but this is {kind_of(answer)}")
    _refuse_misspelt(answer)
    if "messages" in answer:
        return _from_messages(answer, user)
    if "output" in answer or "tool_calls" in answer:
        return _from_output(answer, user)
    raise FormatError('no "output" or "messages"')


def _enveloped(text: str) -> Any:
    """Return the answer object in a text if it has calls or messages; else the text, which may be any JSON."""
    if text.lstrip()[:1] != "{":
        return text
    found = from_json(text)
    if not isinstance(found, dict) or not found.keys() <= {*KEYS, *_STATED}:
        return text
    if isinstance(found.get("tool_calls"), list) or isinstance(found.get("messages"), list):
        return found
    return text


def _from_messages(answer: Mapping[str, Any], user: str) -> Invocation:
    if "output" in answer or "tool_calls" in answer:
        raise FormatError('an answer has either "messages" or "output" and "tool_calls"')
    invocation = messages.to_invocation(_latest(answer["messages"], user), user=user)
    return replace(invocation, usage=overlaid(invocation.usage, _usage(answer)))


def _from_output(answer: Mapping[str, Any], user: str) -> Invocation:
    calls = answer.get("tool_calls")
    if not isinstance(calls, list | None):
        raise FormatError("tool_calls must be a list")
    output = answer.get("output")
    if isinstance(output, list) and answer.get("object") == "response":
        raise FormatError("the output is a list of items that already contain the calls")
    if output is None and not calls:
        raise FormatError("no output and no tool call")
    if output is not None and not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False)
    return Invocation(
        user=user,
        response=parts_of(output or ""),
        tool_calls=tuple(map(messages.to_call, calls or ())),
        usage=_usage(answer),
        reports_calls="tool_calls" in answer,
        unseen=tuple([part for part in PARTS if part in as_list(answer.get("unseen"))]),
    )


def _usage(answer: Mapping[str, Any]) -> Usage | None:
    """Return the usage in an answer, with the model and system named next to it."""
    usage = messages.to_usage(answer.get("usage"), cost_usd=answer.get("cost_usd")) or Usage()
    model, system = as_text(answer.get("model")), as_text(answer.get("system_fingerprint"))
    if model and usage.model is None:
        usage = replace(usage, model=shorten(model, MAX_ID_CHARS))
    if system and usage.system is None:
        usage = replace(usage, system=shorten(system, MAX_ID_CHARS))
    return noting_its_end(None if usage == Usage() else usage, answer)


def _latest(raw: Any, user: str) -> Any:
    """Return the messages after the user's last question, ``user``; all of them if there is none."""
    if not isinstance(raw, list):
        return raw
    if not raw:
        raise FormatError("there is no message")
    found = messages.after_last_question(raw, user)
    if not found:
        raise FormatError("no message follows the user's")
    return found


def overlaid(counted: Usage | None, stated: Usage | None) -> Usage | None:
    """Return the stated usage, completed by what was counted elsewhere."""
    if counted is None or stated is None:
        return stated or counted
    said = {name: value for name, value in asdict(stated).items() if value is not None and value is not False}
    return replace(counted, **said)


def _folded(key: str) -> str:
    """Return a key in a common spelling, equal for ``toolCalls``, ``Tool-Calls`` and ``tool_calls``."""
    return "".join(filter(str.isalnum, key.lower()))


_FOLDED = {_folded(key): key for key in KEYS}


def _refuse_misspelt(answer: Mapping[str, Any]) -> None:
    for key in answer:
        if key in KEYS:
            continue
        near = _FOLDED.get(_folded(str(key))) or closest(str(key), KEYS, cutoff=0.85)
        if near:
            raise FormatError(f"unknown key {shorten(str(key), 80)!r}, did you mean {near!r}?")
