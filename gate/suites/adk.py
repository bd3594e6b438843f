"""Reads ADK's eval sets, in the current and both legacy forms, and makes cases of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from gate.errors import closest
from gate.formats import adk
from gate.formats.messages import FormatError
from gate.formats.names import camel
from gate.formats.positions import Key
from gate.formats.reading import Ignored
from gate.model import Behavior, Case, Persona, Rubric, Scenario, ToolCall, Turn
from gate.suites.base import (
    Contents,
    Document,
    Format,
    Loss,
    complexity_of,
    expected_parts,
    kinds_of,
    note_losses,
    nothing_unread,
)

_CASE_KEYS = (
    "eval_id",
    "conversation",
    "conversation_scenario",
    "session_input",
    "creation_timestamp",
    "rubrics",
    "final_session_state",
    "tags",
    "complexity",
)
"""ADK's keys of a case, and two of ours, which ADK ignores."""
_QUERY_KEYS = ("query", "expected_tool_use", "reference", "expected_intermediate_agent_responses", "initial_state")
_LEGACY_CASE_KEYS = ("name", "data", "initial_session", "initial_state")
_CALL_KEYS = ("tool_name", "tool_input", "name", "args", "mock_tool_output")
IGNORED = Ignored(
    {
        "the suite's name is that of its files": "eval_set_id",
        "of an eval set, for people": "$.name $.description",
        "when it was written": "creation_timestamp",
        "which recording it comes from": "invocation_id invocation_events.id",
        "it is the user's": "user_content.role",
        "it is the agent's": "final_response.role",
        "the author of an event says it": "content.role",
        "what the agent was told; it is not asked for": "app_details",
        "of the recording": "duration model_duration tool_duration invocation_events.timestamp model_version",
        "joins a call to its response in the recording": "tool_uses.id function_call.id",
        "what the tools gave back in the recording; google-adk compares none of it": "tool_responses",
        "what a tool gave back in the recording; google-adk compares none of it": "function_response",
        "an opaque token of the model": "thought_signature",
        "which of the agents spoke": "invocation_events.author invocation_events.branch",
        "what the recording consumed": "usage_metadata",
        "of a legacy case, which google-adk does not read either": "initial_state",
        "google-adk does not read it either": "mock_tool_output",
    },
    either_spelling=True,
)


TYPESCRIPT = (
    "keys in camelCase, as ADK for TypeScript writes them: it scores as `flavor: adk-ts` of response_match_score"
)
"""A note that is unnecessary if a criterion names a flavor."""


def recognises(data: Any) -> bool:
    if isinstance(data, Mapping):
        return "eval_cases" in data or "evalCases" in data
    if not isinstance(data, list) or not data or not isinstance(data[0], Mapping):
        return False
    return "query" in data[0] or "data" in data[0]


@nothing_unread(IGNORED, checks=False)
def read(document: Document) -> Contents:
    """Return the cases of a file, and their losses. A flat legacy list is one conversation, named after its file."""
    data, key = document.data, "eval_cases"
    notes: tuple[str, ...] = ()
    if not isinstance(data, Mapping):
        if data and "query" in data[0]:
            turns = tuple([_query(document, row, index) for index, row in enumerate(data)])
            return Contents((Case(document.name, turns, location=document.location()),))
        return Contents(tuple(_each(document, data, _legacy_case)))
    if "evalCases" in data:
        key, notes = "evalCases", (TYPESCRIPT,)
    with document.errors_at():
        listed = adk.get(data, "eval_cases")
    cases = _each(document, listed, _eval_case, key)
    losses: list[Loss] = []
    for index, (case, body) in enumerate(zip(cases, listed, strict=True)):
        with document.errors_at(key, index):
            losses += _lost(case.id, body)
    return Contents(tuple(cases), notes=notes, losses=tuple(losses))


def _each(document: Document, raw: Any, read_one: Any, *keys: Key) -> list[Case]:
    if not isinstance(raw, list):
        raise document.error("cases must be a list", *keys)
    cases = []
    for index, item in enumerate(raw):
        with document.errors_at(*keys, index):
            cases.append(read_one(document, item, (*keys, index)))
    return cases


def _lost(name: str, body: Mapping[str, Any]) -> list[Loss]:
    """Return the parts of a case that google-adk reads but never checks."""
    losses = []
    if adk.get(body, _FINAL_STATE) not in (None, {}):
        losses.append(Loss(name, _FINAL_STATE))
    for turn in adk.get(body, "conversation") or []:
        if adk.get(adk.get(turn, "intermediate_data") or {}, "intermediate_responses"):
            losses.append(Loss(name, "intermediate_responses", check=False))
            break
    return losses


_FINAL_STATE = "final_session_state"


# --- the current form -----------------------------------------------------------------------------


def _eval_case(document: Document, raw: Any, keys: tuple[Key, ...]) -> Case:
    body = adk.mapping(raw, "a case")
    identifier = adk.get(body, "eval_id")
    if not isinstance(identifier, str) or not identifier:
        raise FormatError("a case must have an eval_id")
    _refuse_misspelt(document, body, identifier, keys)
    held = _conversation(document, body, identifier, keys)
    scenario = None
    if isinstance(held, Scenario):
        scenario, turns = held, [Turn(held.start)]
    else:
        turns = [_turn(document, turn, (*keys, "conversation", index)) for index, turn in enumerate(held)]
    session = adk.mapping(adk.get(body, "session_input") or {}, "session_input")
    with document.errors_at(*keys, "complexity"):
        complexity = complexity_of(adk.get(body, "complexity"))
    case = Case(
        identifier,
        tuple(turns),
        rubrics=_rubrics(document, adk.get(body, "rubrics"), (*keys, "rubrics")),
        tags=_tags(document, adk.get(body, "tags"), keys),
        complexity=complexity,
        location=document.location(*keys),
        scenario=scenario,
    )
    return _with_session(case, session)


def _refuse_misspelt(document: Document, body: Mapping[str, Any], identifier: str, keys: tuple[Key, ...]) -> None:
    """Raise `ConfigError` for a key similar to a known one: ADK allows it, but it is probably a mistake."""
    known = {*_CASE_KEYS, *map(camel, _CASE_KEYS)}
    for key in body:
        if key in known:
            continue
        near = closest(key, known, cutoff=0.85)
        if near:
            raise document.error(
                f"case {identifier!r}: unknown key {key!r}", *keys, key, hint=f"did you mean {near!r}?"
            )


def _conversation(
    document: Document, body: Mapping[str, Any], identifier: str, keys: tuple[Key, ...]
) -> list[Any] | Scenario:
    conversation = adk.get(body, "conversation")
    scenario = adk.get(body, "conversation_scenario")
    if (conversation is None) == (scenario is None):
        raise FormatError(f"case {identifier!r}: give exactly one of conversation and conversation_scenario")
    if scenario is not None:
        return _scenario(document, scenario, identifier, (*keys, "conversation_scenario"))
    if not isinstance(conversation, list) or not conversation:
        raise FormatError(f"case {identifier!r}: conversation must be a list of at least one turn")
    return conversation


def _scenario(document: Document, raw: Any, identifier: str, keys: tuple[Key, ...]) -> Scenario:
    """Return the scenario of a conversation with a simulated user."""
    with document.errors_at(*keys, about=f"case {identifier!r}: "):
        body = adk.mapping(raw, "a conversation_scenario")
        adk.refuse_unknown(body, ("starting_prompt", "conversation_plan", "user_persona"), "a conversation_scenario")
        start, plan = adk.get(body, "starting_prompt"), adk.get(body, "conversation_plan")
        if not isinstance(start, str) or not start or not isinstance(plan, str) or not plan:
            raise FormatError("a conversation_scenario must have a starting_prompt and a conversation_plan")
        persona = adk.get(body, "user_persona")
        if persona is not None:
            persona = _persona(persona)
        return Scenario(start, plan, persona)


def _persona(raw: Any) -> Persona:
    """Return one of google-adk's personas by its name, or one that is defined in place."""
    if isinstance(raw, str):
        if raw not in PERSONAS:
            raise FormatError(f"unknown user_persona {raw!r}; known: {', '.join(PERSONAS)}")
        return Persona(raw, PERSONAS[raw])
    body = adk.mapping(raw, "user_persona")
    adk.refuse_unknown(body, ("id", "description", "behaviors"), "user_persona")
    behaviors = []
    for item in adk.items(adk.get(body, "behaviors"), "behaviors"):
        one = adk.mapping(item, "a behavior")
        instructions = adk.items(adk.get(one, "behavior_instructions"), "behavior_instructions")
        violations = adk.items(adk.get(one, "violation_rubrics"), "violation_rubrics")
        if not all(isinstance(text, str) for text in (*instructions, *violations)):
            raise FormatError("behavior_instructions and violation_rubrics must be lists of strings")
        name, description = _words(adk.get(one, "name")), _words(adk.get(one, "description"))
        behaviors.append(Behavior(name, description, tuple(instructions), tuple(violations)))
    return Persona(_words(adk.get(body, "id")), _words(adk.get(body, "description")), tuple(behaviors))


def _words(value: Any) -> str:
    if not isinstance(value, str):
        raise FormatError("a persona and its behaviors need an id, a name and a description")
    return value


PERSONAS = {
    "EXPERT": "Knows exactly what is wanted, states details at once, answers only what is asked, has no patience for "
    "small talk, points out mistakes, and lets the agent try again once before giving up.",
    "NOVICE": "Does not quite understand the problem, states the aim rather than the details, answers every question "
    "patiently, cannot correct the agent, and gives up as soon as it fails.",
    "EVALUATOR": "Wants to find out whether the agent can fulfil the plan: states details, answers only what is asked, "
    "does not correct mistakes, and ends as soon as the agent fails.",
}
"""google-adk's personas by name, in our words."""


def _turn(document: Document, raw: Any, keys: tuple[Key, ...]) -> Turn:
    with document.errors_at(*keys):
        turn = expected_turn(raw)
        attached = adk.attached(adk.get(raw, "user_content"))
    if not turn.user:
        what = "user_content has no text"
        if attached:
            what += f", only {kinds_of(attached)}"
        raise document.error(what, *keys, hint="describe the request in words")
    return replace(turn, rubrics=_rubrics(document, adk.get(raw, "rubrics"), (*keys, "rubrics")), attached=attached)


def expected_turn(raw: Any) -> Turn:
    """Return a turn that expects the calls of an invocation, and its final response if it states one."""
    invocation = adk.to_invocation(raw)
    calls = tuple([ToolCall(call.name, call.args) for call in invocation.tool_calls])
    if adk.get(raw, "final_response") is None:
        return Turn(invocation.user, calls)
    return Turn(invocation.user, calls, invocation.response)


def _rubrics(document: Document, raw: Any, keys: tuple[Key, ...]) -> tuple[Rubric, ...]:
    with document.errors_at(*keys):
        return tuple(map(adk.to_rubric, adk.items(raw, "rubrics")))


def _tags(document: Document, raw: Any, keys: tuple[Key, ...]) -> frozenset[str]:
    if raw is None:
        return frozenset()
    if not isinstance(raw, list) or not all(isinstance(tag, str) and tag for tag in raw):
        raise document.error("tags must be a list of strings", *keys, "tags")
    return frozenset(raw)


def _with_session(case: Case, session: Mapping[str, Any]) -> Case:
    state = adk.mapping(adk.get(session, "state") or {}, "state")
    app = {}
    for name in ("app_name", "user_id"):
        value = adk.get(session, name)
        if not isinstance(value, str | None):
            raise FormatError(f"{name} must be text")
        if value:
            app[name] = value
    return replace(case, state=state, app=app)


# --- the legacy forms -----------------------------------------------------------------------------


def _legacy_case(document: Document, raw: Any, keys: tuple[Key, ...]) -> Case:
    body = adk.mapping(raw, "a case")
    name, rows = body.get("name"), body.get("data")
    if not isinstance(name, str) or not name:
        raise FormatError("a case must have a name")
    for key in body:
        if key not in _LEGACY_CASE_KEYS:
            hint = f"known: {', '.join(sorted(_LEGACY_CASE_KEYS))}"
            raise document.error(f"case {name!r}: unknown key {key!r}", *keys, hint=hint)
    if not isinstance(rows, list) or not rows:
        raise FormatError(f"case {name!r}: data must be a list of at least one turn")
    turns = tuple(_query(document, row, *keys, "data", index) for index, row in enumerate(rows))
    session = adk.mapping(body.get("initial_session") or {}, "initial_session")
    return _with_session(Case(name, turns, location=document.location(*keys)), session)


def _query(document: Document, raw: Any, *keys: Key) -> Turn:
    with document.errors_at(*keys):
        body = adk.mapping(raw, "a turn")
        adk.refuse_unknown(body, _QUERY_KEYS, "a turn")
        query, reference = adk.get(body, "query"), adk.get(body, "reference")
        if not isinstance(query, str) or not query:
            raise FormatError("a turn must have a query")
        if not isinstance(reference, str | None):
            raise FormatError("reference must be text")
        calls = tuple(map(_legacy_call, adk.items(adk.get(body, "expected_tool_use"), "expected_tool_use")))
    return Turn(query, calls, expected_parts(reference))


def _legacy_call(raw: Any) -> ToolCall:
    """Return a call from ``{tool_name, tool_input}``, or ``{name, args}`` from ADK for TypeScript."""
    body = adk.mapping(raw, "an expected tool use")
    adk.refuse_unknown(body, _CALL_KEYS, "an expected tool use")
    name, args = _either(body, "tool_name", "name"), _either(body, "tool_input", "args")
    if not isinstance(name, str) or not name:
        raise FormatError("an expected tool use must have a tool_name")
    if not isinstance(args, dict | None):
        raise FormatError(f"the tool_input of {name!r} must be an object")
    return ToolCall(name, args)


def _either(body: Mapping[str, Any], python: str, typescript: str) -> Any:
    """Return the value of ADK's key in Python, in snake or camel case, or of its key in TypeScript."""
    value = adk.get(body, python)
    if typescript not in body:
        return value
    if python in body or camel(python) in body:
        raise FormatError(f"both {python} and {typescript} are given")
    return body[typescript]


FORMAT = Format(
    shape="an ADK eval set: `eval_cases`, or a list of `query` or of `name` with `data`",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
    settle=note_losses,
)
