"""Reads rows of recorded OpenAI messages, in JSON or JSON Lines, with a layout from the configuration.

Rows that share an id are the trials of one case. Each is one invocation, however many messages it has, because a
simulated user says something else in every trial; the case consists of the values that all its rows share.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace
from pydantic import AfterValidator, Field

from gate.errors import ConfigError
from gate.formats import messages, paths
from gate.formats.messages import FormatError
from gate.formats.paths import PathError
from gate.formats.positions import Key
from gate.formats.reading import Ignored, carried, kind_of, unread
from gate.model import Case, Invocation, RecordedTrial, ToolCall, Turn
from gate.model.strict import StrictModel, one_or_more, short_for
from gate.security.limits import shorten
from gate.suites.base import (
    NO_ANSWER,
    Contents,
    Document,
    Format,
    complexity_of,
    expected_parts,
    is_answered,
    losses_of,
    note_unread,
    nothing_unread,
)
from gate.suites.spill import InvocationFile

Path = Annotated[str, Field(min_length=1), AfterValidator(paths.checked)]
"""``info.task.actions``, ``choices[0].message``: see gate/formats/paths.py."""


class ToolPaths(StrictModel):
    """Paths to the expected calls, and to their names and arguments within each."""

    path: Path
    """The list of calls in a row."""
    name: Path = "name"
    """The tool's name, within a call."""
    args: Path = "args"
    """The arguments, within a call."""


class FieldPaths(StrictModel):
    """Paths in a row. Every given path must lead somewhere in every row; null there says nothing."""

    rows: Path | None = None
    """The list of rows in a JSON file. Default: the file is the list."""
    id: Path = "id"
    """The case's id; rows that share it are trials of one case."""
    trial: Path | None = None
    """The trial's number in its case. Default: the order of the rows."""
    messages: Path = "messages"
    """The conversation, as OpenAI's messages."""
    expected_tools: Annotated[ToolPaths | None, short_for("path")] = None
    """The expected calls; an empty list means that no call is expected."""
    expected_response: Path | None = None
    """The expected answer."""
    tags: Path | None = None
    """A string or a list of strings."""
    complexity: Path | None = None
    """``simple``, ``medium`` or ``complex``."""
    metadata: dict[str, Path] = Field(default={})
    """Name → path; part of the case, so its rows must agree."""
    content: list[Path] = Field(default=[])
    """Other fields that define a case: if one changes, the case is no longer compared."""
    error: Path | None = None
    """The trial's error; it then counts as failed."""
    usage: Path | None = None
    """Token counts, as OpenAI reports them. Default: those in the messages."""
    cost_usd: Path | None = None
    """US dollars."""
    duration: Path | None = None
    """Seconds."""
    trials: list[int | str] | None = None
    """Only these trials, by their numbers in the rows. Default: all."""


def recognises(data: Any, fields: FieldPaths) -> bool:
    """True if a file has rows of messages: the first row has a value at the path of the messages."""
    rows = data
    if fields.rows is not None:
        rows = value_at(data, fields.rows)
    return isinstance(rows, list) and bool(rows) and value_at(rows[0], fields.messages) is not None


def format_of(fields: FieldPaths) -> Format:
    """Return the format of rows with the layout ``fields``."""
    return Format(
        shape=f"rows of messages: a list, or JSON Lines, with `{fields.id}` and `{fields.messages}`",
        recognises=lambda data: recognises(data, fields),
        read=nothing_unread(ignored_in(fields.messages), checks=False)(lambda document: _contents(document, fields)),
        ignored=ignored_in(fields.messages),
        settle=settle,
    )


def settle(document: Document, found: Contents) -> Contents:
    """Settle the losses of rows, with a hint on the layout."""
    return note_unread(document, found, "; `fields` says what is")


_IGNORED = {
    "of the model's own record of a message": (
        "tool_calls.type tool_calls.index content.index function_call.type annotations citations logprobs "
        "cache_control phase finish_reason stop_reason stop_sequence system_fingerprint response_metadata "
        "additional_kwargs provider_specific_fields providerOptions providerMetadata example caller"
    ),
    "joins a call to its result": "tool_call_id tool_use_id call_id toolCallId",
    "a thought, which the user is not told": (
        "reasoning_content reasoning thinking thinking_blocks signature encrypted_content summary"
    ),
    "in the counts of tokens": "usage.* usage_metadata.*",
}


@cache
def ignored_in(messages: str) -> Ignored:
    """Return the keys of rows that are ignored because they are neither question, answer nor call.

    ``messages``: the path of the messages.
    """
    last = paths.steps_of(messages)[-1]
    return Ignored({"which message it is": f"{last}.id", "which of the speakers said it": f"{last}.name", **_IGNORED})


def _contents(document: Document, fields: FieldPaths) -> Contents:
    data: Any = document.data
    keys: tuple[Key, ...] | None = ()
    if fields.rows is not None:
        data = _Located(document, document.data, ()).at(fields.rows)
        keys = paths.keys_of(document.data, fields.rows)
    if not isinstance(data, list):
        raise document.error("rows must be a list", *(keys or ()), hint="set `rows` to its path")
    return _gather(document, data, keys, fields)


def read_lines(lines: Iterable[Any], document: Document, fields: FieldPaths) -> Contents:
    """Read the marked rows of JSON Lines; messages are stored on disk, so a file may be larger than memory.

    ``document`` names the file and contains no rows.
    """
    left: Counter[str] = Counter()
    ignored = ignored_in(fields.messages)

    def rows() -> Iterator[Any]:
        for row in lines:
            yield row  # its reader is done before the next row is requested
            for one in unread(row, ignored):
                left[kind_of(one.path, left)] += one.count

    found = _gather(document, rows(), (), fields, spill=InvocationFile())
    return replace(found, losses=losses_of(left))


def _gather(
    document: Document,
    data: Iterable[Any],
    keys: tuple[Key, ...] | None,
    fields: FieldPaths,
    *,
    spill: InvocationFile | None = None,
) -> Contents:
    """Return the contents of rows; ``keys`` is the place of their list, None if a filter selected them."""
    wanted = set(map(str, fields.trials or ()))
    known: set[str] = set()
    groups: dict[str, _Group] = {}
    for index, raw in enumerate(data):
        at: tuple[Key, ...] = ()
        if keys is not None:
            at = (*keys, index)
        place = _Located(document, raw, at)
        trial, case, said, error = _row(place, fields, groups)
        if fields.trials is not None:
            if trial is None:
                raise document.error("`trials` needs `trial`, the path of each row's number")
            known.add(str(trial))
            if str(trial) not in wanted:
                continue
        group = groups.get(case.id)
        if group is None:
            group = groups[case.id] = _Group(case)
        kept: Sequence[Invocation] = ()
        if error is None and spill is not None:
            kept = spill.keep(said)
        elif error is None:
            kept = (said,)
        group.add(place, trial, case, kept, error)
    for number in sorted(wanted - known):
        raise document.error(f"no row has trial {number!r}", hint=f"known: {', '.join(sorted(known))}")
    recorded: list[RecordedTrial] = []
    unanswered: list[RecordedTrial] = []
    for group in groups.values():
        for recording in group.trials():
            if recording.error == NO_ANSWER:
                unanswered.append(recording)
            else:
                recorded.append(recording)
    cases = tuple([group.case for group in groups.values()])
    return Contents(cases, tuple(recorded), unanswered=tuple(unanswered))


# --- paths ----------------------------------------------------------------------------------------


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    try:
        return paths.find(value, path)
    except PathError:
        return None


class _Located(Struct, frozen=True):
    """A value and its place in the document."""

    document: Document
    value: Any
    keys: tuple[Key, ...]

    def at(self, path: str | None) -> Any:
        """Return the value at a path; None without a path. Raises `ConfigError` if there is no value."""
        if path is None:
            return None
        try:
            return paths.find(self.value, path)
        except PathError as problem:
            what = f"path {path!r} leads nowhere at {problem.step!r}"
            raise self.document.error(what, *self.keys, hint=problem.hint) from problem

    def label(self, path: str | None) -> str | int | None:
        """Return the id or number at a path. Raises `FormatError`."""
        value = self.at(path)
        if path is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise FormatError(f"{path} must be text or a whole number")
        return value


# --- one row --------------------------------------------------------------------------------------


def _row(
    place: _Located, fields: FieldPaths, known: Collection[str]
) -> tuple[str | int | None, Case, Invocation, str | None]:
    """Return the trial's number in a row, its case, its invocation and its error; ``known``: the ids before it."""
    with place.document.errors_at(*place.keys):
        if not isinstance(place.value, Mapping):
            raise FormatError("a row must be an object")
        error = place.at(fields.error)
        trial = place.label(fields.trial)
        invocation = _invocation(place, fields, failed=error is not None)
        case = _case(place, fields, invocation.user, known)
    if error is not None:
        error = shorten(str(error), 1000)
    elif not is_answered([invocation]):
        error = NO_ANSWER
    return trial, case, invocation, error


def _invocation(place: _Located, fields: FieldPaths, *, failed: bool) -> Invocation:
    found, invocation = place.at(fields.messages), Invocation()
    if found is not None or not failed:
        invocation = messages.to_invocation(found)
    usage = messages.to_usage(place.at(fields.usage), cost_usd=place.at(fields.cost_usd))
    duration = messages.number(place.at(fields.duration), "duration")
    if usage is None and duration is None:
        return invocation
    return replace(invocation, usage=usage or invocation.usage, duration=duration)


def _case(place: _Located, fields: FieldPaths, user: str, known: Collection[str]) -> Case:
    response = place.at(fields.expected_response)
    tools = _expected_tools(place, fields.expected_tools)
    if not isinstance(response, str | None):
        raise FormatError("the expected response must be text")
    calls = None
    if tools is not None:
        calls = [[call.name, call.args] for call in tools]
    metadata = {name: carried(place.at(path)) for name, path in fields.metadata.items()}
    identifier = str(place.label(fields.id))
    attached: tuple[Mapping[str, Any], ...] = ()
    if identifier not in known:  # those of further rows stay unread
        attached = carried(messages.attached(place.at(fields.messages)))
    return Case(
        identifier,
        (Turn(user, tools, expected_parts(response), attached=attached),),
        tags=_tags(place.at(fields.tags)),
        complexity=complexity_of(place.at(fields.complexity)),
        metadata=metadata,
        location=place.document.location(*place.keys),
        content={
            "tools": calls,
            "response": response,
            "metadata": metadata,
            "content": {path: carried(place.at(path)) for path in fields.content},
        },
    )


def _expected_tools(place: _Located, paths: ToolPaths | None) -> tuple[ToolCall, ...] | None:
    if paths is None:
        return None
    found = carried(place.at(paths.path))
    if found is None:
        return None
    if not isinstance(found, list):
        raise FormatError(f"{paths.path}: the expected calls must be a list")
    calls = []
    for item in found:
        if not isinstance(item, Mapping):
            raise FormatError(f"{paths.path}: an expected call must be an object")
        call = _Located(place.document, item, place.keys)
        calls.append(ToolCall(messages.tool_name(call.at(paths.name)), messages.to_arguments(call.at(paths.args))))
    return tuple(calls)


def _tags(raw: Any) -> frozenset[str]:
    if raw is None:
        return frozenset()
    tags = one_or_more(raw)
    if not isinstance(tags, list) or not all(isinstance(tag, str) and tag for tag in tags):
        raise FormatError("tags must be a string or a list of strings")
    return frozenset(tags)


# --- rows of one case -----------------------------------------------------------------------------


class _Group:
    """The rows that share an id."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self._recorded: list[tuple[str | int | None, Sequence[Invocation], str | None]] = []
        """The trials: the number in the row, the conversation and the error."""
        self._seen: set[str] = set()

    def add(
        self, place: _Located, number: str | int | None, case: Case, said: Sequence[Invocation], error: str | None
    ) -> None:
        """Add a row. Raises `ConfigError` if it contradicts an earlier row of the case, or its trial exists already."""
        _check_agreed(self.case, case)
        if number is not None:
            if str(number) in self._seen:
                raise place.document.error(f"case {case.id!r} has trial {number!r} twice", *place.keys)
            self._seen.add(str(number))
        self._recorded.append((number, said, error))

    def trials(self) -> list[RecordedTrial]:
        """Return the recorded trials of the case, numbered from 1 in the order of the rows' trial numbers."""
        found = self._recorded
        if all(isinstance(number, int) for number, _, _ in found):
            found = sorted(found, key=lambda one: int(one[0] or 0))
        return [RecordedTrial(self.case.id, number, said, error) for number, (_, said, error) in enumerate(found, 1)]


def _check_agreed(first: Case, case: Case) -> None:
    if (case.content, case.tags, case.complexity) == (first.content, first.tags, first.complexity):
        return
    parts = [name for name in first.content if first.content[name] != case.content[name]]
    raise ConfigError(
        f"row of case {first.id!r} disagrees with {first.location} in {', '.join(parts) or 'its tags'}",
        where=str(case.location),
        hint="rows that share an id are trials of one case; give other cases other ids",
    )
