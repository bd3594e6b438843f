"""Reads traces as suites: a conversation becomes a new case, or a trial of the case that matches it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from gate.errors import ConfigError, MeasureError
from gate.formats.reading import Ignored
from gate.formats.shapes import in_list
from gate.model import Case, Location, RecordedTrial, Suite, Turn
from gate.security.limits import shorten
from gate.suites.base import Contents, Document, Format, losses_of, note_unread

if TYPE_CHECKING:
    from gate.traces import Conversation, TraceReader

MAX_NAMED = 5
"""Most conversations named in a note."""
SESSION = "session"
"""The metadata key of a case that names its session or sessions."""


def recognises(data: Any) -> bool:
    """True if parsed lines or a document contain spans."""
    if isinstance(data, list) and data:
        data = data[0]
    return isinstance(data, dict) and bool(_reader().value(data))


def read(document: Document) -> Contents:
    """Return each conversation as a case without expectations and its trial, and the unread keys of spans as losses."""
    from gate.traces import conversations_of  # slow to import: only when there are traces

    reader = _reader()
    return _contents(conversations_of(reader.value(document.data)), reader, document.where)


IGNORED = Ignored(
    {
        "what the conventions name is read; anything else is of the machine": (
            "attributes events.attributes resource.attributes tags logs body"
        ),
        "how a span was made and sent": (
            "kind flags links traceState trace_state schemaUrl schema_url trace_flags object scope.version "
            "scope.attributes instrumentationLibrary.version workflow_name observedTimeUnixNano "
            "observed_time_unix_nano severityNumber severityText severity_number severity_text limit offset total "
            "warnings droppedAttributesCount droppedEventsCount droppedLinksCount dropped_attributes_count "
            "dropped_events_count dropped_links_count processes.*.serviceName references.refType references.traceID"
        ),
        "what the agent has, not what it did": (
            "span_data.tools span_data.handoffs span_data.output_type span_data.model_config"
        ),
        "of the model's call": (
            "span_data.usage.* span_data.response_id data.usage.* data.turn data.agent_name data.name"
        ),
    }
)
"""The keys of traces that are neither question, answer nor call."""
FORMAT = Format(
    shape="traces: OTLP as JSON, a request or a span a line; Jaeger's JSON; spans of the OpenAI Agents SDK",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
    settle=note_unread,
)


def read_lines(path: Path, where: str) -> Contents:
    """Read a file like `read`; broken lines are counted. Raises `ConfigError` if it cannot be read."""
    return _contents(*_conversations_in(path, where), where)


def _reader() -> TraceReader:
    from gate.traces import TraceReader  # slow to import: only when there are traces

    return TraceReader(IGNORED)


def _conversations_in(path: Path, where: str) -> tuple[Sequence[Conversation], TraceReader]:
    """Return the conversations of a file, and their reader. Raises `ConfigError` if it cannot be read."""
    from gate.traces import conversations_of, read_file

    reader = _reader()
    return conversations_of(read_file(path, reader, where=where)), reader


def _contents(conversations: Sequence[Conversation], reader: TraceReader, where: str) -> Contents:
    """Return conversations as cases. A conversation without turns shows no agent, and is only counted."""
    cases, trials = [], []
    for conversation in conversations:
        if conversation.turns:
            case = _case(conversation, where)
            cases.append(case)
            trials.append(_trial(conversation, case, 1))
    notes = _notes(conversations, reader.refused, where)
    return Contents(tuple(cases), tuple(trials), notes=notes, losses=losses_of(reader.unread))


def _case(conversation: Conversation, where: str) -> Case:
    turns = tuple([Turn(turn.invocation.user) for turn in conversation.turns])
    return Case(conversation.session, turns, tags=conversation.tags, location=Location(where))


def _trial(conversation: Conversation, case: Case, number: int) -> RecordedTrial:
    said = tuple([turn.invocation for turn in conversation.turns])
    return RecordedTrial(case.id, number, said, conversation.error)


def _notes(conversations: Sequence[Conversation], refused: Mapping[str, int], where: str) -> tuple[str, ...]:
    """Return notes on a file: unreadable data, and parts that its spans did not record."""
    notes = []
    if refused:
        counted = ", ".join(f"{reason} ({number:,})" for reason, number in refused.items())
        notes.append(f"{where}: not read: {counted}")
    left_out = sum(one.left_out for one in conversations)
    if left_out:
        notes.append(f"{where}: {left_out:,} spans beyond the bound of a trace were left out")
    empty = sum(not one.turns for one in conversations)
    if empty:
        notes.append(f"{where}: {empty:,} conversations hold no agent and no model call")
    turns = 0
    missing: Counter[str] = Counter()
    for one in conversations:
        turns += len(one.turns)
        for turn in one.turns:
            missing.update(turn.invocation.unseen)
            if turn.invocation.usage is None:
                missing["usage"] += 1
    if missing:
        what = ", ".join(f"{name} in {number:,} of {turns:,} turns" for name, number in missing.items())
        notes.append(f"{where}: not recorded, so not measured: {what}")
    return tuple(notes)


# --- traces of cases that are written elsewhere ---------------------------------------------------


def with_traces(suites: Sequence[Suite], paths: Sequence[Path], names: Sequence[str]) -> list[Suite]:
    """Return the suites with the conversations of some files as the recorded trials of their cases.

    A conversation belongs to the case whose id or ``metadata.session`` is its session; else to the case with an id or
    tag among its tags; else to the case that begins with the same words of the user. It must have as many turns, unless
    the agent failed. ``names``: the files' names in messages.

    Raises:
        ConfigError: a file cannot be read.
        MeasureError: no conversation belongs to any case.
    """
    index = _Index(suites)
    found: dict[tuple[int, str], list[RecordedTrial]] = defaultdict(list)
    notes: list[str] = []
    lost: list[tuple[str, str]] = []
    for path, where in zip(paths, names, strict=True):
        conversations, reader = _conversations_in(path, where)
        notes += note_unread(Document(None, where, ""), _contents(conversations, reader, where)).notes
        for conversation in conversations:
            if not conversation.turns:
                continue
            place = index.place_of(conversation)
            if isinstance(place, str):
                lost.append((conversation.session, place))
                continue
            number, case = place
            trials = found[number, case.id]
            trials.append(_trial(conversation, case, len(trials) + 1))
    if not found:
        raise _nothing(names, lost)
    notes += _unmatched(lost)
    done = []
    for number, suite in enumerate(suites):
        recorded: list[RecordedTrial] = []
        for case in suite.cases:
            recorded += found.get((number, case.id), ())
        done.append(replace(suite, recorded=tuple(recorded), notes=(*suite.notes, *notes)))
    return done


def _nothing(names: Sequence[str], lost: Sequence[tuple[str, str]]) -> MeasureError:
    where = ", ".join(names)
    if not lost:
        return MeasureError("no conversation in the traces", where=where, hint="are these traces of an agent?")
    session, why = lost[0]
    hint = f"the first, session {shorten(session, 80)}: {why}; name it under `metadata: {{session: …}}` of its case"
    return MeasureError(f"none of {len(lost):,} conversations belongs to a case", where=where, hint=hint)


def _unmatched(lost: Sequence[tuple[str, str]]) -> list[str]:
    if not lost:
        return []
    named = ", ".join(f"{shorten(session, 80)} ({why})" for session, why in lost[:MAX_NAMED])
    if len(lost) > MAX_NAMED:
        named += f" and {len(lost) - MAX_NAMED:,} more"
    return [f"{len(lost):,} conversations belong to no case and were not scored: {named}"]


_Place = tuple[int, Case]
"""The index of a suite, and one of its cases."""


_SESSION, _TAG, _WORDS = "its session", "a tag of it", "its first words"
"""The properties that a conversation shares with its case, in the order in which they are compared."""


class _Index:
    """The cases of all suites, indexed by the properties that match a conversation."""

    def __init__(self, suites: Sequence[Suite]) -> None:
        self._places: dict[tuple[str, str], list[_Place]] = defaultdict(list)
        for number, suite in enumerate(suites):
            for case in suite.cases:
                marks = {(_SESSION, one) for one in (case.id, *_sessions(case))}
                marks |= {(_TAG, one) for one in (case.id, *case.tags)}
                if case.turns:
                    marks.add((_WORDS, _folded(case.turns[0].user)))
                for mark in marks - {(_WORDS, "")}:
                    self._places[mark].append((number, case))

    def place_of(self, conversation: Conversation) -> _Place | str:
        """Return the case of a conversation, or the reason why it has none."""
        words = _folded(conversation.turns[0].invocation.user)
        for candidates, by in self._candidates(conversation, words):
            if not candidates:
                continue
            turns = len(conversation.turns)
            fitting = [place for place in candidates if len(place[1].turns) == turns]
            if len(fitting) == 1:
                return fitting[0]
            if conversation.error is not None and len(candidates) == 1:
                return candidates[0]  # the agent failed, so the number of turns may differ
            if fitting:
                return f"{len(fitting)} cases have {by}"
            _, case = candidates[0]
            return f"{turns} turns, case {shorten(case.id, 80)} has {len(case.turns)}"
        return "no case has its session, a tag of it, or its first words"

    def _candidates(self, conversation: Conversation, words: str) -> Iterator[tuple[Sequence[_Place], str]]:
        for by, values in ((_SESSION, [conversation.session]), (_TAG, sorted(conversation.tags)), (_WORDS, [words])):
            yield _unique(chain.from_iterable([self._places.get((by, one), ()) for one in values])), by


def _sessions(case: Case) -> list[str]:
    return [one for one in in_list(case.metadata.get(SESSION)) if isinstance(one, str)]


def _unique(places: Iterable[_Place]) -> list[_Place]:
    return list({(number, case.id): (number, case) for number, case in places}.values())


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


def check_paths(paths: Sequence[Path], names: Sequence[str]) -> None:
    """Raise `ConfigError` if a file of traces does not exist."""
    for path, name in zip(paths, names, strict=True):
        if not path.is_file():
            raise ConfigError(f"the file of traces {name!r} does not exist", where="agent.replay")
