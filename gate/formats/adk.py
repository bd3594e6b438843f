"""Reads ADK's JSON like google-adk 2.13.0, in snake or camel case at every level, and makes invocations of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from gate.errors import closest
from gate.formats.endings import noting_its_end
from gate.formats.messages import FormatError, Trajectory, number, usage_of, whole
from gate.formats.names import camel
from gate.formats.reading import carried, plain_copy, says_something
from gate.formats.shapes import as_mapping, text_or_json
from gate.model import Invocation, Part, Rubric, ToolCall, Usage, text_of
from gate.security.limits import MAX_ID_CHARS, shorten


def _any(keys: str) -> dict[str, Any]:
    """Return a shape with these keys, whose values may be anything."""
    return dict.fromkeys(keys.split())


_SHAPES: Mapping[str, Mapping[str, Any]] = {
    "an invocation": {
        **_any("invocation_id creation_timestamp duration model_duration tool_duration rubrics"),
        "user_content": "a content",
        "final_response": "a content",
        "app_details": "app_details",
        "intermediate_data": "intermediate_data",
    },
    "intermediate_data": {
        "tool_uses": ["a function call"],
        "tool_responses": ["a function response"],
        "intermediate_responses": None,
        "invocation_events": ["an event"],
    },
    "an event": {
        **_any("author model_version id timestamp invocation_id branch"),
        "content": "a content",
        "usage_metadata": "usage_metadata",
    },
    "a content": {**_any("role"), "parts": ["a part"]},
    "a part": {
        **_any(
            "media_resolution code_execution_result executable_code text thought thought_signature video_metadata "
            "tool_call tool_response part_metadata audio_transcription media_processing speech_metadata "
            "document_metadata spreadsheet_metadata audio_metadata"
        ),
        "file_data": "file_data",
        "function_call": "a function call",
        "function_response": "a function response",
        "inline_data": "inline_data",
    },
    "a function call": _any("id args name partial_args will_continue"),
    "a function response": _any("will_continue scheduling parts id name response"),
    "inline_data": _any("data display_name mime_type"),
    "file_data": _any("display_name file_uri mime_type"),
    "usage_metadata": _any(
        "cache_tokens_details cached_content_token_count candidates_token_count candidates_tokens_details "
        "prompt_token_count prompt_tokens_details thoughts_token_count tool_use_prompt_token_count "
        "tool_use_prompt_tokens_details total_token_count traffic_type"
    ),
    "app_details": {"agent_details": {"*": "the details of an agent"}},
    "the details of an agent": _any("name instructions tool_declarations"),
    "a rubric": {**_any("rubric_id description type"), "rubric_content": "rubric_content"},
    "rubric_content": _any("text_property"),
}
"""The keys of google-adk's and google-genai's models, each with the shape of its value: a name, a list of one, or a
mapping by any key to one; None for any value. Every shape refuses other keys, apart from `_LENIENT` ones."""
_LENIENT = "an event"
"""The model that ignores unknown keys in google-adk: only a misspelling of a known one is refused."""


def to_invocation(data: Any) -> Invocation:
    """Return the ``Invocation`` of an eval set or an eval result.

    Raises `FormatError`, also for any nested key that google-adk refuses: otherwise a misspelt ``args`` would become a
    call without arguments, which some comparisons accept.
    """
    body = mapping(data, "an invocation")
    _check(plain_copy(body), "an invocation")
    data = get(body, "intermediate_data")
    calls, intermediate, usage = _intermediate(data)
    return Invocation(
        user=text_of_content(get(body, "user_content")),
        response=content_parts(get(body, "final_response")),
        tool_calls=calls,
        intermediate=intermediate,
        usage=usage,
        duration=number(get(body, "duration"), "duration"),
        reports_calls=data is not None,
    )


def events_to_invocation(events: Any, *, user: str = "") -> Invocation:
    """Return the events of one turn, in the form of ``/run``, as one invocation.

    All function calls count, also those of sub-agents. The response is the last final event, preferably one with text.
    Partial events repeat content of a later event and are left out. Raises `FormatError`.
    """
    asked: Mapping[str, Any] = {}
    said: list[Mapping[str, Any]] = []
    for event in items(events, "events"):
        body = mapping(event, "an event")
        if get(body, "partial"):
            continue
        if str(get(body, "author")).lower() == "user":
            asked = body
        else:
            said.append(body)
    final = _final_event(said)
    calls, intermediate, usage = _read_events(said, final)
    return Invocation(
        user=user or text_of_content(get(asked, "content")),
        response=content_parts(get(final or {}, "content")),
        tool_calls=calls,
        intermediate=intermediate,
        usage=usage,
        reports_calls=True,
    )


def are_events(values: Sequence[Any]) -> bool:
    """True for a list of google-adk's events, from its server or ``model_dump()``."""
    return bool(values) and all(
        isinstance(one, Mapping) and "author" in one and "role" not in one and "type" not in one for one in values
    )


def is_incomplete(events: Sequence[Mapping[str, Any]]) -> bool:
    """True if streamed events end before the answer is complete: with a partial event or a call."""
    spoken = [event for event in events if _raw_parts(get(event, "content"))]
    if not spoken:
        return False
    last = spoken[-1]
    calls = _held_in(_raw_parts(get(last, "content")), "function_call")
    return bool(get(last, "partial")) or (bool(calls) and not get(last, "long_running_tool_ids"))


def failure_of(events: Any) -> str:
    """Return the error that ended a turn: that of its last event with an error or content; empty if that has text.

    Raises `FormatError`.
    """
    last: Mapping[str, Any] = {}
    for event in items(events, "events"):
        body = mapping(event, "an event")
        if str(get(body, "author")).lower() == "user" or get(body, "partial"):
            continue
        if get(body, "error_code") or _raw_parts(get(body, "content")):
            last = body
    code, message = get(last, "error_code"), get(last, "error_message")
    if not code or content_parts(get(last, "content")):
        return ""
    if not message:
        return str(code)
    return f"{code}: {message}"


def to_rubric(data: Any) -> Rubric:
    """Return a rubric in ADK's form. Raises `FormatError`."""
    _check(data, "a rubric")
    body = mapping(data, "a rubric")
    text = get(mapping(get(body, "rubric_content"), "rubric_content"), "text_property")
    if not isinstance(text, str) or not text:
        raise FormatError("a rubric must have a text_property")
    identifier = get(body, "rubric_id")
    if not isinstance(identifier, str) or not identifier:
        raise FormatError("a rubric must have a rubric_id")
    kind, description = get(body, "type"), get(body, "description")
    if not isinstance(kind, str | None) or not isinstance(description, str | None):
        raise FormatError(f"type and description of rubric {shorten(identifier, 80)!r} must be text")
    return Rubric(identifier, text, kind, description)


# --- names in either case -------------------------------------------------------------------------


def camel_keys(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part with camelCase keys, which google-adk's servers accept in every language."""
    found = {}
    for key, held in part.items():
        found[camel(key)] = held
        if isinstance(held, Mapping):
            found[camel(key)] = camel_keys(held)
    return found


def attached(content: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the files in a user's content, inline or by their address.

    Raises:
        FormatError: there is another part, such as a function's response, which cannot be sent to an agent.
    """
    found: list[Mapping[str, Any]] = []
    for part in _raw_parts(content):
        for name in _SHAPES["a part"]:
            value = get(part, name)
            if name in _BESIDE_TEXT or not says_something(value):
                continue
            if name not in ("inline_data", "file_data"):
                raise FormatError(f"user_content has {name}, which cannot be sent to an agent")
            held, stated = mapping(carried(value), name), {}
            for key in _SHAPES[name]:
                one = get(held, key)
                if one is not None:
                    stated[key] = one
            found.append({name: stated})
    return tuple(found)


_BESIDE_TEXT = frozenset({"text", "thought", "thought_signature", "part_metadata"})


def get(body: Mapping[str, Any], name: str) -> Any:
    """Return the value of a snake_case key or its camelCase twin; None if neither exists. Raises `FormatError`."""
    twin = camel(name)
    if twin != name and twin in body:
        if name in body:
            raise FormatError(f"both {name} and {twin} are given")
        return body[twin]
    return body.get(name)


def refuse_unknown(body: Mapping[str, Any], known: Iterable[str], what: str, *, only_misspelt: bool = False) -> None:
    """Raise `FormatError` for a key that ADK does not know, and suggest the nearest known key.

    ``only_misspelt``: only for a key similar to a known one, in objects where google-adk ignores unknown keys.
    """
    names = set(known)
    spelled = names | set(map(camel, names))
    for key in body:
        if key in spelled:
            continue
        problem = f"unknown key {shorten(str(key), 80)!r} in {what}"
        near = closest(str(key), spelled, cutoff=0.85 if only_misspelt else 0.6)
        if near:
            raise FormatError(f"{problem}, did you mean {near!r}?")
        if not only_misspelt:
            raise FormatError(problem)


def _check(value: Any, what: str) -> None:
    """Raise `FormatError` for keys that google-adk refuses in a value of this shape or below it, or for a key in both
    spellings."""
    body, shape = mapping(value, what), _SHAPES[what]
    refuse_unknown(body, shape, what, only_misspelt=what == _LENIENT)
    for name, inner in shape.items():
        if inner is None and what == _LENIENT:
            continue
        held = get(body, name)
        if held is None or inner is None:
            continue
        if isinstance(inner, list):
            for one in items(held, name):
                _check(one, inner[0])
        elif isinstance(inner, dict):
            for one in mapping(held or {}, name).values():
                _check(one, inner["*"])
        else:
            _check(held, inner)


def mapping(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise FormatError(f"{what} must be an object")
    return value


def items(value: Any, what: str) -> list[Any]:
    """Return a list; null is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise FormatError(f"{what} must be a list")
    return value


# --- contents -------------------------------------------------------------------------------------


def content_parts(content: Any) -> tuple[Part, ...]:
    """Return the text parts of a content, with thoughts marked. Raises `FormatError`."""
    return _texts(_raw_parts(content))


def text_of_content(content: Any) -> str:
    """Return the text of a content, its parts joined by newlines. Raises `FormatError`."""
    return text_of(content_parts(content))


def _raw_parts(content: Any) -> list[Mapping[str, Any]]:
    if content is None:
        return []
    parts = items(get(mapping(content, "a content"), "parts"), "parts")
    return [mapping(part, "a part") for part in parts]


def _held_in(parts: Iterable[Mapping[str, Any]], name: str) -> list[Any]:
    """Return the calls, responses or other values that parts have under a name."""
    held = [get(part, name) for part in parts]
    return [one for one in held if one is not None]


def _texts(parts: list[Mapping[str, Any]]) -> tuple[Part, ...]:
    texts = []
    for part in parts:
        text = get(part, "text")
        if not isinstance(text, str | None):
            raise FormatError("the text of a part must be text")
        if text:
            texts.append(Part(text, thought=bool(get(part, "thought"))))
    return tuple(texts)


def _call(raw: Any) -> ToolCall:
    body = mapping(raw, "a function call")
    name, args = get(body, "name"), get(body, "args")
    if not isinstance(name, str | None):
        raise FormatError("the name of a function call must be text")
    if not isinstance(args, dict | None):
        raise FormatError(f"the args of {shorten(name or '', 80)!r} must be an object")
    return ToolCall(shorten(name or "", MAX_ID_CHARS), args, _identifier(body))


def _identifier(body: Mapping[str, Any]) -> str | None:
    value = get(body, "id")
    if not isinstance(value, str | None):
        raise FormatError("an id must be text")
    return value


def _with_results(calls: list[ToolCall], responses: list[Any]) -> tuple[ToolCall, ...]:
    """Join responses to calls by id, or by name and order if there are no ids."""
    trajectory = Trajectory()
    for call in calls:
        trajectory.add(call)
    for raw in responses:
        body = mapping(raw, "a function response")
        name, response = get(body, "name"), get(body, "response")
        if not isinstance(name, str):
            name = None
        trajectory.answer(_identifier(body), name, response, _tool_error(response))
    return tuple(trajectory.calls)


def _tool_error(response: Any) -> str | None:
    """Return the error of a tool: by convention, function responses have it under ``error``."""
    error = as_mapping(response).get("error")
    if not error:
        return None
    return text_or_json(error)


# --- what happened before the response ------------------------------------------------------------

_Found = tuple[tuple[ToolCall, ...], tuple[Part, ...], Usage | None]


def _intermediate(data: Any) -> _Found:
    if data is None:
        return (), (), None
    body = mapping(data, "intermediate_data")
    events = get(body, "invocation_events")
    if events is not None:
        if len(body) > 1:
            raise FormatError("intermediate_data has either invocation_events or tool_uses")
        return _read_events([mapping(event, "an event") for event in items(events, "invocation_events")], None)
    calls = list(map(_call, items(get(body, "tool_uses"), "tool_uses")))
    texts: list[Part] = []
    for pair in items(get(body, "intermediate_responses"), "intermediate_responses"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise FormatError("an intermediate response must be a pair of author and parts")
        parts = items(pair[1], "parts")
        for part in plain_copy(parts):
            _check(part, "a part")
        texts.extend(_texts([mapping(part, "a part") for part in parts]))
    return _with_results(calls, items(get(body, "tool_responses"), "tool_responses")), tuple(texts), None


def _read_events(events: list[Mapping[str, Any]], final: Mapping[str, Any] | None) -> _Found:
    calls: list[ToolCall] = []
    responses: list[Any] = []
    texts: list[Part] = []
    for event in events:
        parts = _raw_parts(get(event, "content"))
        calls += map(_call, _held_in(parts, "function_call"))
        responses += _held_in(parts, "function_response")
        if event is not final:
            texts.extend(_texts(parts))
    return _with_results(calls, responses), tuple(texts), usage_of_events(events)


def usage_of_events(events: Iterable[Mapping[str, Any]]) -> Usage | None:
    """Return the total usage of a turn. Raises `FormatError`.

    As in google-adk's metrics, an event without a token count adds 0 to those of others: live sessions report the
    counts in events of their own, and Gemini leaves out a count of 0.
    """
    usages: list[Usage] = []
    for event in events:
        usage = noting_its_end(_usage_of_event(event), event)
        if usage is not None:
            usages.append(usage)
    for name in ("input_tokens", "output_tokens", "model_calls"):
        if any(getattr(usage, name) is not None for usage in usages):
            usages = [replace(usage, **{name: getattr(usage, name) or 0}) for usage in usages]
    return usage_of(usages)


def _usage_of_event(event: Mapping[str, Any]) -> Usage | None:
    """Return the usage of one model call, by google-adk's sums: tool prompts count as input, thoughts as output.

    Raises `FormatError`.
    """
    raw, model = get(event, "usage_metadata"), get(event, "model_version")
    if raw is None and model is None:
        return None
    if raw is None:
        raw = {}
    if isinstance(model, str):
        model = shorten(model, MAX_ID_CHARS)
    else:
        model = None
    body = mapping(raw, "usage_metadata")
    return Usage(
        input_tokens=_count(body, "prompt", "tool_use_prompt"),
        output_tokens=_count(body, "candidates", "thoughts"),
        model_calls=1,
        model=model,
    )


def _count(body: Mapping[str, Any], *names: str) -> int | None:
    """Return the sum of some token counts; None if no count is reported."""
    total = None
    for name in names:
        count = whole(get(body, f"{name}_token_count"), name)
        if count is not None:
            total = (total or 0) + count
    return whole(total, "the sum of tokens")


def _final_event(events: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the event with the response, selected like ADK's evaluation does."""
    final, has_text = None, False
    for event in events:
        parts = _raw_parts(get(event, "content"))
        if parts and _is_final(event, parts):
            text = bool(_texts(parts))
            if text or not has_text:
                final, has_text = event, text
    return final


def _is_final(event: Mapping[str, Any], parts: list[Mapping[str, Any]]) -> bool:
    actions = get(event, "actions")
    if (isinstance(actions, Mapping) and get(actions, "skip_summarization")) or get(event, "long_running_tool_ids"):
        return True
    calls = _held_in(parts, "function_call")
    if get(event, "error_code") and not calls:
        return True
    responses = _held_in(parts, "function_response")
    return not calls and not responses and get(parts[-1], "code_execution_result") is None
