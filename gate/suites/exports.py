"""Knows rows that other products export: DeepEval goldens, LangSmith examples, Langfuse items, OpenAI Evals rows and
AgentCore scenarios, as a JSON list or JSON Lines. A row is a case; what it expects and cannot be checked is refused.

`carry` says what a row would lose instead, for `gate import`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from gate.model import Case, Invocation, Part, RecordedTrial, Rubric, ToolCall, Turn
from gate.security.limits import shorten
from gate.suites.base import NO_ANSWER, Contents, Document, Format, Loss, without_losses

Row = Mapping[str, Any]


class _Found(Struct):
    """What a reader finds in a row, while it looks."""

    turns: list[Turn]
    id: str = ""
    metadata: dict[str, Any] = {}
    rubrics: list[Rubric] = []
    tags: list[str] = []
    recorded: Invocation | None = None
    unanswered: bool = False
    """Whether the agent was asked, and no answer of it is there."""
    losses: list[tuple[str, bool]] = []
    """What is lost, and whether it is a check."""


class ShapeError(Exception):
    """A row is not of the shape that its kind has; never leaves this module."""


# --- pieces that several kinds share --------------------------------------------------------------

_QUESTIONS = ("input", "question", "query", "prompt", "user", "message", "text")
_EXPECTED = ("ideal", "answer", "expected", "expected_output", "reference")
"""Of the names of answers, those of answers that are expected, and not given."""
_ANSWERS = ("output", "answer", "response", "expected", "expected_output", "ideal", "reference", "text", "content")


def _text(value: Any, names: Sequence[str], what: str) -> str:
    """A text, or the one text of a mapping: under a usual name, or alone in it; else the mapping as JSON."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and value:
        known = [value[name] for name in names if isinstance(value.get(name), str)]
        alone = [held for held in value.values() if isinstance(held, str)] if len(value) == 1 else []
        found = [*known, *alone]
        return found[0] if found and found[0] else json.dumps(value, ensure_ascii=False, sort_keys=True)
    raise ShapeError(f"{what}: expected a text or a mapping with one, found {shorten(repr(value), 60)}")


def question_of(value: Any, what: str) -> str:
    """What the user asks, of an input in any shape. Raises `ShapeError`."""
    return _text(value, _QUESTIONS, what)


def response_of(value: Any, what: str) -> str:
    """What is expected, of an output in any shape: also a number, or true. Raises `ShapeError`."""
    return json.dumps(value) if isinstance(value, bool | int | float) else _text(value, _ANSWERS, what)


def _further(value: Any, what: str) -> list[tuple[str, bool]]:
    """What a mapping expects beside the text that is taken of it; one without a usual name is taken whole."""
    known = [name for name in _ANSWERS if isinstance(value, Mapping) and isinstance(value.get(name), str)]
    rest = [str(key) for key, held in value.items() if key != known[0] and held not in _EMPTY] if known else []
    return [(f"{what}.{key}", True) for key in rest]


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _expected(value: Any, what: str) -> str | None:
    """What is expected; None if nothing is, which 0 and false are not."""
    return None if value in _EMPTY else response_of(value, what)


def _users(messages: Any, what: str) -> list[str]:
    """What the user says in a list of messages."""
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise ShapeError(f"{what}: expected a list of messages")
    said = [one.get("content") for one in messages if one.get("role", one.get("type")) in ("user", "human")]
    if not said or not all(isinstance(text, str) and text for text in said):
        raise ShapeError(f"{what}: expected texts of a user")
    return [str(text) for text in said]


def _conversation(value: Any, what: str) -> list[Turn]:
    """The turns of an input: a text, messages, or a mapping with either."""
    if isinstance(value, list):
        return [Turn(text) for text in _users(value, what)]
    if isinstance(value, Mapping) and isinstance(value.get("messages"), list):
        return [Turn(text) for text in _users(value["messages"], f"{what}.messages")]
    return [Turn(_text(value, _QUESTIONS, what))]


def _expecting(turns: list[Turn], response: str | None, tools: tuple[ToolCall, ...] | None = None) -> list[Turn]:
    """The turns, of which the last one expects this."""
    last = turns[-1]
    stated = None if response is None else (Part(response),)
    return [*turns[:-1], Turn(last.user, tools, stated)]


def _calls(value: Any, what: str, arguments: str) -> tuple[ToolCall, ...]:
    """Expected or made calls: names, or mappings with a name and arguments."""
    if not isinstance(value, list):
        raise ShapeError(f"{what}: expected a list")
    found = []
    for one in value:
        name = one if isinstance(one, str) else one.get("name") if isinstance(one, Mapping) else None
        if not isinstance(name, str) or not name:
            raise ShapeError(f"{what}: expected names of tools")
        args = None if isinstance(one, str) else one.get(arguments, one.get("input_parameters"))
        if args is not None and not isinstance(args, Mapping):
            raise ShapeError(f"{what}: expected a mapping of arguments")
        found.append(ToolCall(name, args, any_args=args is None))
    return tuple(found)


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ShapeError(f"{what}: expected a mapping")
    return dict(value)


def _rubrics(texts: Any, what: str) -> list[Rubric]:
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise ShapeError(f"{what}: expected a list of texts")
    return [Rubric(text, text, "FINAL_RESPONSE_QUALITY") for text in texts]


def _rest(row: Row, known: Sequence[str]) -> list[tuple[str, bool]]:
    """What is in a row under keys that nobody knows: it may be a check."""
    return [(key, True) for key, value in row.items() if key not in known and value not in _EMPTY]


# --- one kind each --------------------------------------------------------------------------------


def _golden(row: Row) -> _Found:
    """DeepEval's golden or conversational golden."""
    known = ("input", "actual_output", "expected_output", "context", "retrieval_context", "additional_metadata",
             "tools_called", "expected_tools", "name", "comments", "source_file", "scenario", "expected_outcome",
             "user_description", "turns", "token_cost", "input_token_count", "output_token_count", "tags",
             "custom_column_key_values", "completion_time")  # fmt: skip
    losses = _rest(row, known)
    losses += [("custom_column_key_values", False)] if row.get("custom_column_key_values") else []
    metadata = _mapping(row.get("additional_metadata"), "additional_metadata")
    metadata |= {key: row[key] for key in ("context", "retrieval_context") if row.get(key)}
    if "scenario" in row or "turns" in row:
        turns = [Turn(text) for text in _users(row.get("turns") or [], "turns")] if row.get("turns") else []
        if not turns:
            raise ShapeError("scenario: a simulated user cannot be carried over; state turns")
        outcome = row.get("expected_outcome")
        metadata |= {key: row[key] for key in ("scenario", "user_description") if row.get(key)}
        rubrics = _rubrics([outcome], "expected_outcome") if outcome else []
        losses += [(key, True) for key in ("expected_output", "expected_tools") if row.get(key)]
        return _Found(turns, _name(row.get("name")), metadata, rubrics, losses=losses)
    tools = _calls(row["expected_tools"], "expected_tools", "inputParameters") if row.get("expected_tools") else None
    expected = row.get("expected_output")
    response = _expected(expected, "expected_output")
    losses += [("expected_outcome", True)] if row.get("expected_outcome") else []
    losses += _further(expected, "expected_output")
    turns = _expecting([Turn(_text(row.get("input"), _QUESTIONS, "input"))], response, tools)
    recorded = None
    if row.get("actual_output"):
        made = _calls(row.get("tools_called") or [], "tools_called", "inputParameters")
        told = [one.get("output") if isinstance(one, Mapping) else None for one in row.get("tools_called") or []]
        calls = tuple(ToolCall(call.name, call.args, result=value) for call, value in zip(made, told, strict=True))
        said = Part(_text(row["actual_output"], _ANSWERS, "actual_output"))
        recorded = Invocation(turns[0].user, (said,), calls, reports_calls=row.get("tools_called") is not None)
    return _Found(turns, _name(row.get("name")), metadata, recorded=recorded, losses=losses)


def _example(row: Row) -> _Found:
    """LangSmith's example."""
    known = ("id", "dataset_id", "inputs", "outputs", "reference_outputs", "metadata", "split", "source_run_id",
             "created_at", "modified_at", "name", "attachments", "attachment_urls")  # fmt: skip
    turns = _conversation(row.get("inputs"), "inputs")
    stated = [key for key in ("outputs", "reference_outputs") if row.get(key) not in _EMPTY]
    outputs = row[stated[0]] if stated else None
    response = _expected(outputs, "outputs")
    split = [row["split"]] if isinstance(row.get("split"), str) else row.get("split") or []
    if not isinstance(split, list) or not all(isinstance(one, str) for one in split):
        raise ShapeError("split: expected a text or a list of texts")
    losses = _rest(row, known) + _further(outputs, "outputs") + [(key, True) for key in stated[1:]]
    losses += [("attachments", False)] if row.get("attachments") or row.get("attachment_urls") else []
    metadata = _mapping(row.get("metadata"), "metadata")
    return _Found(_expecting(turns, response), _name(row.get("id")), metadata, tags=split, losses=losses)


def _item(row: Row) -> _Found:
    """Langfuse's dataset item, in either spelling."""
    plain = {_SNAKE.get(key, key): value for key, value in row.items()}
    known = ("id", "input", "expected_output", "metadata", "source_trace_id", "source_observation_id", "status",
             "dataset_name", "dataset_id", "created_at", "updated_at", "project_id")  # fmt: skip
    expected = plain.get("expected_output")
    response = _expected(expected, "expectedOutput")
    turns = _expecting(_conversation(plain.get("input"), "input"), response)
    metadata = _mapping(plain.get("metadata"), "metadata")
    return _Found(
        turns, _name(plain.get("id")), metadata, losses=_rest(plain, known) + _further(expected, "expectedOutput")
    )


_SNAKE = {"expectedOutput": "expected_output", "sourceTraceId": "source_trace_id", "datasetName": "dataset_name",
          "sourceObservationId": "source_observation_id", "datasetId": "dataset_id", "createdAt": "created_at",
          "updatedAt": "updated_at", "projectId": "project_id"}  # fmt: skip


def _evals_row(row: Row) -> _Found:
    """OpenAI Evals: a row of a data source (``item``), or of the older files (``input`` and ``ideal``)."""
    item = _mapping(row.get("item"), "item") if "item" in row else dict(row)
    asked = next((name for name in ("input", "messages", *_QUESTIONS) if item.get(name)), None)
    if asked is None:
        raise ShapeError(f"no input: expected one of {', '.join(_QUESTIONS)} or messages")
    stated = [name for name in dict.fromkeys(("ideal", *_ANSWERS)) if item.get(name) not in _EMPTY and name != asked]
    answered = next(iter(stated), None)
    ideal = item[answered] if answered else None
    losses = [(name, name in _EXPECTED) for name in stated[1:]]
    losses += _rest(row, ("item", "sample", "id")) if "item" in row else []
    if isinstance(ideal, list):
        losses += [(f"further texts of {answered}", True)] if len(ideal) > 1 else []
        ideal = ideal[0] if ideal else None
    response = _expected(ideal, str(answered))
    losses += _further(ideal, str(answered))
    metadata = {name: value for name, value in item.items() if name not in (asked, answered, "id")}
    turns = _expecting(_conversation(item[asked], asked), response)
    sample = _mapping(row.get("sample"), "sample")
    said = sample.get("output_text")
    recorded = Invocation(turns[-1].user, (Part(said),)) if isinstance(said, str) and len(turns) == 1 else None
    unanswered = bool(sample) and not isinstance(said, str)
    return _Found(turns, _name(item.get("id")), metadata, recorded=recorded, unanswered=unanswered, losses=losses)


def _scenario(row: Row) -> _Found:
    """AgentCore's predefined scenario."""
    known = ("scenario_id", "schema_type", "turns", "expected_trajectory", "assertions", "metadata", "description")
    given = row.get("turns")
    if not isinstance(given, list) or not given or not all(isinstance(one, Mapping) for one in given):
        raise ShapeError("turns: expected a list; a simulated actor cannot be carried over")
    turns = []
    for one in given:
        expected = one.get("expected_response")
        response = _expected(expected, "expected_response")
        turns += _expecting([Turn(_text(one.get("input"), _QUESTIONS, "input"))], response)
    losses = _rest(row, known)
    path = row.get("expected_trajectory")
    names = path.get("toolNames", path.get("tool_names")) if isinstance(path, Mapping) else path
    if names and len(turns) == 1:
        tools = _calls(names, "expected_trajectory", "arguments")
        turns = [Turn(turns[0].user, tools, turns[0].response)]
    elif names:
        losses.append(("expected_trajectory of several turns", True))
    rubrics = _rubrics(row["assertions"], "assertions") if row.get("assertions") else []
    metadata = _mapping(row.get("metadata"), "metadata")
    return _Found(turns, _name(row.get("scenario_id")), metadata, rubrics, losses=losses)


def _name(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


_KINDS: tuple[tuple[frozenset[str], Callable[[Row], _Found]], ...] = (
    (frozenset({"scenario_id"}), _scenario),
    (frozenset({"inputs"}), _example),
    (frozenset({"item", "ideal"}), _evals_row),
    (frozenset({"expectedOutput", "datasetName", "sourceTraceId", "dataset_name", "source_trace_id"}), _item),
    (frozenset({"expected_output", "actual_output", "expected_tools", "tools_called", "additional_metadata",
                "retrieval_context", "scenario"}), _golden),
)  # fmt: skip
"""Keys of which one is in a row of a kind, and its reader; the first that fits reads it."""


def _kind(row: Any) -> Callable[[Row], _Found] | None:
    if not isinstance(row, Mapping):
        return None
    return next((reader for keys, reader in _KINDS if not keys.isdisjoint(row)), None)


_CRITERIA: Mapping[str, Any] = {
    "tool_trajectory_avg_score": {},
    "response_match_score": {},
    "rubric_based_final_response_quality_v1": {},
}
"""What rows with assertions bring: ADK's defaults, which hold without any, and what reads the assertions."""


# --- a file ---------------------------------------------------------------------------------------


def recognises(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and _kind(data[0]) is not None


def carry(document: Document) -> tuple[Contents, list[Loss]]:
    """The cases of a file, and what is lost of them. Raises `ConfigError` for a row that is of no kind."""
    cases, recorded, losses = [], [], list[Loss]()
    for number, row in enumerate(document.data):
        reader = _kind(row)
        if reader is None:
            raise document.error("a row of another kind than the first", number)
        try:
            found = reader(row)
        except ShapeError as error:
            raise document.error(str(error), number) from None
        case = _case(document, found, number)
        cases.append(case)
        losses += [Loss(case.id, what, check) for what, check in found.losses]
        origin = f"{document.location(number)}, trial 1"
        if found.recorded is not None:
            recorded.append(RecordedTrial(case.id, 1, (found.recorded,), origin=origin))
        elif found.unanswered:
            recorded.append(RecordedTrial(case.id, 1, (), NO_ANSWER, origin))
    judged = any(case.rubrics for case in cases)
    return Contents(tuple(cases), tuple(recorded), _CRITERIA if judged else None), losses


def _case(document: Document, found: _Found, number: int) -> Case:
    return Case(
        found.id or f"{document.name}-{number + 1}",
        tuple(found.turns),
        tags=frozenset(found.tags),
        metadata=found.metadata,
        rubrics=tuple(found.rubrics),
        location=document.location(number),
    )


def read(document: Document) -> Contents:
    """The cases of a file. Raises `ConfigError` for what cannot be read, or would be checked elsewhere and not here."""
    return without_losses(document, *carry(document))


FORMAT = Format(
    shape="rows of DeepEval, LangSmith, Langfuse, OpenAI Evals or AgentCore",
    recognises=recognises,
    read=read,
    carry=carry,
)
