"""Reads rows exported by other products: DeepEval goldens, LangSmith examples, Langfuse items, OpenAI Evals rows and
AgentCore scenarios, as a JSON list or JSON Lines. Each row becomes a case; expectations that cannot be checked are
refused.

"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.formats import adk
from gate.formats.documents import parse_csv
from gate.formats.json_text import json_or_text
from gate.formats.messages import FormatError, unwrapped
from gate.formats.names import ROLES, camel
from gate.formats.reading import Ignored, plain_copy, replaced, says_something
from gate.formats.shapes import as_list, as_mapping
from gate.model import Case, Invocation, Part, RecordedTrial, Rubric, ToolCall, Turn
from gate.model.strict import one_or_more
from gate.security.limits import shorten
from gate.suites.base import NO_ANSWER, Contents, Document, Format, Loss, expected_parts, nothing_unread

Row = Mapping[str, Any]


class _RowFinds(Struct):
    """The findings of a reader in one row, while it reads."""

    turns: list[Turn]
    id: str = ""
    metadata: dict[str, Any] = {}
    rubrics: list[Rubric] = []
    tags: list[str] = []
    recorded: Invocation | None = None
    unanswered: bool = False
    """True if the agent was asked but its answer is missing."""
    losses: list[Loss] = []
    """Without the id of the case."""
    put_away: str = ""
    """The reason why the row is not a case; empty if it is one."""


# --- pieces that several kinds share --------------------------------------------------------------

_QUESTIONS = ("input", "question", "query", "prompt", "user", "message", "text")
_EXPECTED = ("ideal", "answer", "expected", "expected_output", "reference")
"""The names of expected answers, as opposed to given ones."""
_ANSWERS = ("output", "answer", "response", "expected", "expected_output", "ideal", "reference", "text", "content")


def _text(value: Any, names: Sequence[str], what: str) -> str:
    """Return a text, or the main text of a mapping: under a usual name or its only key; else the mapping as JSON."""
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Mapping) and value:
        name = _usual(plain_copy(value), names)
        if name is not None:
            return str(value[name])
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    raise FormatError(f"{what}: expected a string or a mapping with one, found {shorten(repr(value), 60)}")


def _usual(held: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """Return the key of a mapping's main text; None if the whole mapping is needed."""
    if len(held) == 1:
        names = list(held)
    for name in names:
        if isinstance(held.get(name), str) and held[name]:
            return name
    return None


def question_of(value: Any, what: str) -> str:
    """Return the user's request in an input of any shape. Raises `FormatError`."""
    return _text(value, _QUESTIONS, what)


def response_of(value: Any, what: str) -> str:
    """Return the expectation in an output of any shape, including numbers and booleans. Raises `FormatError`."""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    return _text(value, _ANSWERS, what)


_EMPTY: tuple[Any, ...] = (None, "", [], {})


def _expected(value: Any, what: str) -> str | None:
    """Return the expectation; None if there is none. 0 and false are expectations."""
    if value in _EMPTY:
        return None
    return response_of(value, what)


def _said(messages: Any, what: str, losses: list[Loss], *, instructed: bool = False) -> list[Turn]:
    """Return the user's texts in a list of messages as turns; with ``instructed``, after their instructions."""
    if not isinstance(messages, list) or not all(isinstance(one, Mapping) for one in messages):
        raise FormatError(f"{what}: expected a list of messages, as {_MESSAGES}")
    before, said = list[str](), list[str]()
    for one in map(unwrapped, messages):
        stated, text = one.get("role", one.get("type")), one.get("content")
        role = ROLES.get(str(stated))
        if role == "user" or (role == "system" and instructed):
            if not isinstance(text, str) or not text:
                raise FormatError(f"{what}: expected texts of a user")
            before.append(text)
            if role == "user":
                said.append("\n\n".join(before))
                before = []
        else:
            losses.append(Loss("", f"{what}: what the {shorten(str(stated), 40)} says", check=False))
    if not said:
        raise FormatError(f"{what}: expected texts of a user")
    losses[:] = dict.fromkeys(losses)
    return list(map(Turn, said))


_MESSAGES = '[{"role": "user", "content": "…"}]'


def _conversation(value: Any, what: str, losses: list[Loss], *, instructed: bool = False) -> list[Turn]:
    """Return the turns of an input: a text, messages, or a mapping with either."""
    if isinstance(value, list):
        return _said(value, what, losses, instructed=instructed)
    if isinstance(value, Mapping) and isinstance(plain_copy(value).get("messages"), list):
        return _said(value["messages"], f"{what}.messages", losses, instructed=instructed)
    return [Turn(question_of(value, what))]


def _with_expectation(turns: list[Turn], response: str | None, tools: tuple[ToolCall, ...] | None = None) -> list[Turn]:
    """Return the turns with this expectation in the last one."""
    return [*turns[:-1], Turn(turns[-1].user, tools, expected_parts(response))]


def _calls(value: Any, what: str, arguments: str) -> tuple[ToolCall, ...]:
    """Return expected or made calls: names, or mappings with a name and arguments."""
    if not isinstance(value, list):
        raise FormatError(f"{what}: expected a list")
    found = []
    for one in value:
        name, args = one, None
        if isinstance(one, Mapping):
            name, args = one.get("name"), one.get(arguments, one.get("input_parameters"))
        if not isinstance(name, str) or not name:
            raise FormatError(f"{what}: expected names of tools")
        if args is not None and not isinstance(args, Mapping):
            raise FormatError(f"{what}: expected a mapping of arguments")
        found.append(ToolCall(name, args, any_args=args is None))
    return tuple(found)


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if value is None or value == "":  # tables use these for a missing value
        return {}
    if not isinstance(value, Mapping):
        raise FormatError(f"{what}: expected a mapping")
    return dict(value)


def _rubrics(texts: Any, what: str) -> list[Rubric]:
    if not texts:
        return []
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise FormatError(f"{what}: expected a list of strings")
    return [Rubric(text, text, "FINAL_RESPONSE_QUALITY") for text in texts]


def _given(row: Row, name: str) -> Any:
    """Return the value of a key in either spelling; tables hold lists and mappings as JSON text."""
    key = name
    if camel(name) in row:
        key = camel(name)
    value = adk.get(row, name)
    if not isinstance(value, str) or value.lstrip()[:1] not in ("[", "{"):
        return value
    found = json_or_text(value)
    return value if found is value else replaced(row, key, found, IGNORED)


# --- one kind each --------------------------------------------------------------------------------


def _golden(row: Row) -> _RowFinds:
    """Read DeepEval's golden or conversational golden."""
    metadata = _mapping(_given(row, "additional_metadata"), "additional_metadata")
    metadata |= _kept(row, "context", "retrieval_context")
    name, turns = _name(row.get("name")), _given(row, "turns")
    if row.get("scenario") or turns:
        if not turns:
            raise FormatError("scenario: a simulated user cannot be carried over; state turns")
        metadata |= _kept(row, "scenario", "user_description", "persona")
        outcome, losses, rubrics = adk.get(row, "expected_outcome"), list[Loss](), list[Rubric]()
        if outcome:
            rubrics = _rubrics([outcome], "expected_outcome")
        return _RowFinds(_said(turns, "turns", losses), name, metadata, rubrics, losses=losses)
    tools, made = _given(row, "expected_tools"), _given(row, "tools_called")
    expected = _expected(adk.get(row, "expected_output"), "expected_output")
    calls = None
    if tools not in (None, ""):  # an empty list means that no tool is called, an empty cell of a table nothing
        calls = _calls(tools, "expected_tools", "inputParameters")
    asked = _with_expectation([Turn(question_of(row.get("input"), "input"))], expected, calls)
    recorded = None
    answer = adk.get(row, "actual_output")
    if answer:
        called = _calls(made or [], "tools_called", "inputParameters")
        results = []
        for call, one in zip(called, made or [], strict=True):
            results.append(ToolCall(call.name, call.args, result=as_mapping(one).get("output")))
        said = Part(_text(answer, _ANSWERS, "actual_output"))
        recorded = Invocation(asked[0].user, (said,), tuple(results), reports_calls=isinstance(made, list))
    return _RowFinds(asked, name, metadata, recorded=recorded)


def _kept(row: Row, *names: str) -> dict[str, Any]:
    """Return the values of a row that are kept as metadata, without empty ones."""
    found = {}
    for name in names:
        value = adk.get(row, name)
        if value:
            found[name] = value
    return found


def _example(row: Row) -> _RowFinds:
    """Read a LangSmith example."""
    losses = [Loss("", f"{key}, which are part of the question") for key in _ATTACHED if row.get(key)]
    turns = _conversation(row.get("inputs"), "inputs", losses)
    stated, bare = "outputs", plain_copy(row)
    if bare.get("outputs") in _EMPTY and bare.get("reference_outputs") not in _EMPTY:
        stated = "reference_outputs"
    response = _expected(row.get(stated), stated)
    split = one_or_more(row.get("split") or [])
    if not isinstance(split, list) or not all(isinstance(one, str) for one in split):
        raise FormatError("split: expected a string or a list of strings")
    metadata = _mapping(row.get("metadata"), "metadata")
    return _RowFinds(_with_expectation(turns, response), _name(row.get("id")), metadata, tags=split, losses=losses)


_ATTACHED = ("attachments", "attachment_urls")


def _item(row: Row) -> _RowFinds:
    """Read a Langfuse dataset item, in either spelling."""
    response = _expected(adk.get(row, "expected_output"), "expectedOutput")
    losses = list[Loss]()
    turns = _with_expectation(_conversation(row.get("input"), "input", losses), response)
    status, away = row.get("status"), ""
    if status == "ARCHIVED":
        away = "it is archived"
    elif status not in (None, "ACTIVE"):
        raise FormatError(f"status: expected ACTIVE or ARCHIVED, found {shorten(repr(status), 60)}")
    metadata = _mapping(row.get("metadata"), "metadata")
    return _RowFinds(turns, _name(row.get("id")), metadata, losses=losses, put_away=away)


def _evals_row(row: Row) -> _RowFinds:
    """Read a row of OpenAI Evals: of a data source (``item``), or of the older files (``input`` and ``ideal``)."""
    item = row.get("item", row)
    if not isinstance(item, Mapping):
        raise FormatError("item: expected a mapping")
    bare = plain_copy(item)
    asked = next((name for name in ("input", "messages", *_QUESTIONS) if bare.get(name)), None)
    if asked is None:
        raise FormatError(f"no input: expected one of {', '.join(_QUESTIONS)} or messages")
    stated = [name for name in dict.fromkeys(("ideal", *_ANSWERS)) if bare.get(name) not in _EMPTY and name != asked]
    answered = next(iter(stated), None)
    ideal = item.get(answered)
    losses = [Loss("", name, check=name in _EXPECTED) for name in stated[1:]]
    if isinstance(ideal, list):
        if len(ideal) > 1:
            losses.append(Loss("", f"further texts of {answered}"))
        ideal = ideal[0]
    response = _expected(ideal, str(answered))
    metadata = {}
    for name in item:
        if name not in (asked, answered, "id", "sample") and says_something(bare[name]):
            metadata[name] = item[name]
    turns = _with_expectation(_conversation(item[asked], asked, losses, instructed=True), response)
    sample = row.get("sample") or {}
    if not isinstance(sample, Mapping):
        raise FormatError("sample: expected a mapping")
    said, recorded = sample.get("output_text"), None
    if isinstance(said, str) and len(turns) == 1:
        recorded = Invocation(turns[-1].user, (Part(said),))
    unanswered = bool(sample) and not isinstance(said, str)
    return _RowFinds(turns, _name(item.get("id")), metadata, recorded=recorded, unanswered=unanswered, losses=losses)


def _scenario(row: Row) -> _RowFinds:
    """Read AgentCore's predefined scenario, in either spelling: AWS's library writes both."""
    given = row.get("turns")
    if not isinstance(given, list) or not given or not all(isinstance(one, Mapping) for one in given):
        raise FormatError("turns: expected a list; a simulated actor cannot be carried over")
    turns = []
    for one in given:
        response = _expected(adk.get(one, "expected_response"), "expected_response")
        turns += _with_expectation([Turn(question_of(one.get("input"), "input"))], response)
    losses = list[Loss]()
    names = adk.get(row, "expected_trajectory")
    if isinstance(names, Mapping):
        names = adk.get(names, "tool_names")
    if names and len(turns) > 1:
        losses.append(Loss("", "expected_trajectory of several turns"))
    elif names is not None:
        tools = _calls(names, "expected_trajectory", "arguments")
        turns = [Turn(turn.user, tools, turn.response) for turn in turns]
    rubrics = _rubrics(row.get("assertions"), "assertions")
    metadata = _mapping(row.get("metadata"), "metadata")
    return _RowFinds(turns, _name(adk.get(row, "scenario_id")), metadata, rubrics, losses=losses)


def _name(value: Any) -> str:
    if not isinstance(value, str | int) or isinstance(value, bool):
        return ""
    return str(value)


_OF_GOLDENS = ("actual_output", "expected_tools", "tools_called", "additional_metadata", "retrieval_context")
_KINDS: tuple[tuple[frozenset[str], Callable[[Row], _RowFinds]], ...] = (
    (frozenset({"scenario_id", "scenarioId"}), _scenario),
    (frozenset({"inputs"}), _example),
    (frozenset({"item", "ideal"}), _evals_row),
    (frozenset(map(camel, _OF_GOLDENS)), _golden),
    (frozenset({"expectedOutput", "datasetName", "sourceTraceId", "dataset_name", "source_trace_id"}), _item),
    (frozenset({"expected_output", "scenario", *_OF_GOLDENS}), _golden),
)
"""For each kind of row, keys that identify it, and its reader; the first match is used."""


def _kind(row: Any) -> Callable[[Row], _RowFinds] | None:
    for keys, reader in _KINDS:
        if not keys.isdisjoint(as_mapping(row)):
            return reader
    return None


_CRITERIA: Mapping[str, Any] = {
    "tool_trajectory_avg_score": 1.0,
    "response_match_score": 0.8,
    "rubric_based_final_response_quality_v1": {"threshold": 1.0},
}
"""The criteria of rows with assertions: ADK's defaults, plus one that requires every assertion to hold."""

IGNORED = Ignored(
    {
        "when it was written": "created_at modified_at updated_at",
        "for people": "comments description expected_tools.description expected_tools.reasoning expected_tools.type",
        "where the row comes from": (
            "dataset_id dataset_name source_run_id source_trace_id source_observation_id project_id source_file "
            "schema_type"
        ),
        "of the recording": (
            "token_cost input_token_count output_token_count completion_time tools_called.description "
            "tools_called.reasoning tools_called.type sample.model sample.usage sample.finish_reason sample.error"
        ),
        "of a page of a service's answer": "$.meta",
        "of DeepEval's own reports": "$.tags",
        "columns that DeepEval's own reports show": "$.custom_column_key_values",
    },
    either_spelling=True,
)


def _checks(path: str) -> bool:
    """True for a key that no reader knows, except those of a recorded answer."""
    return path.partition(".")[0] not in ("sample", "tools_called", "toolsCalled")


# --- a file ---------------------------------------------------------------------------------------


def recognises(data: Any) -> bool:
    if isinstance(data, str):  # a table: its first line holds the column names
        return _kind(dict.fromkeys(data.removeprefix("\ufeff").partition("\n")[0].strip().split(","))) is not None
    if isinstance(data, Mapping):
        return bool(_wrapper(data))
    return isinstance(data, list) and bool(data) and _kind(data[0]) is not None


def _wrapper(data: Any) -> str:
    """Return the key that holds the rows in a service's answer or a larger file; empty if there is none."""
    held = as_mapping(data)
    for key in _WRAPPERS:
        if key in held and recognises(as_list(held.get(key))):
            return key
    return ""


_WRAPPERS = ("data", "items", "examples", "goldens", "scenarios", "rows")


def read(document: Document) -> Contents:
    """Return the cases of a file, and their losses. Raises `ConfigError` for a row of no known kind."""
    rows, lost = _rows(document)
    found = _read(rows)
    return replace(found, losses=(*lost, *found.losses))


def _rows(document: Document) -> tuple[Document, list[Loss]]:
    """Return the document as rows, also from a table or a wrapper, and the losses of the rest."""
    if isinstance(document.data, str):
        rows, lines = parse_csv(document.data, document.where)
        return replace(document, data=rows, row_lines=lines), []
    key = _wrapper(document.data)
    if not key:
        return document, []
    rows, lost = document.data[key], list[Loss]()
    lines = [document.location(key, number).line or 1 for number in range(len(rows))]
    for other, held in document.data.items():
        if other != key and says_something(held) and (str(other),) not in IGNORED:
            lost.append(Loss("", str(other), unread=True, location=str(document.location(str(other)))))
    return replace(document, data=rows, lines=None, row_lines=lines), lost


@nothing_unread(IGNORED, checks=_checks)
def _read(document: Document) -> Contents:
    """Return the cases of the rows, and their losses. Raises `ConfigError` as `read` does."""
    cases, recorded, losses = [], [], list[Loss]()
    for number, row in enumerate(document.data):
        reader = _kind(row)
        if reader is None:
            raise document.error("a row of a different kind from the first", number)
        with document.errors_at(number):
            found = reader(row)
        case = _case(document, found, number)
        if found.put_away:
            losses.append(Loss(case.id, f"the whole item: {found.put_away}", check=False))
            continue
        cases.append(case)
        for loss in found.losses:
            losses.append(replace(loss, case=case.id, location=str(document.location(number))))
        if found.recorded is not None:
            recorded.append(RecordedTrial(case.id, 1, (found.recorded,)))
        elif found.unanswered:
            recorded.append(RecordedTrial(case.id, 1, (), NO_ANSWER))
    criteria = None
    if any(case.rubrics for case in cases):
        criteria = _CRITERIA
    return Contents(tuple(cases), tuple(recorded), criteria, losses=tuple(losses))


def _case(document: Document, found: _RowFinds, number: int) -> Case:
    return Case(
        found.id or f"{document.name}-{number + 1}",
        tuple(found.turns),
        tags=frozenset(found.tags),
        metadata=found.metadata,
        rubrics=tuple(found.rubrics),
        location=document.location(number),
    )


FORMAT = Format(
    shape="rows of DeepEval, LangSmith, Langfuse, OpenAI Evals or AgentCore",
    recognises=recognises,
    read=read,
    suffixes=(".csv",),
    ignored=IGNORED,
)
