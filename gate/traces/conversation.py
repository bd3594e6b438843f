"""Builds conversations from pieces of traces: turns with calls, texts, usage and errors, and which parts were recorded.

Content that instrumentation does not record is unseen, never empty or 0: `Invocation.unseen` names the parts that the
trace would not show.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from gate.formats.messages import FormatError, usage_of
from gate.model import ARGUMENTS, CALLS, RESPONSE, RESULTS, Invocation, Part, ToolCall, Usage
from gate.traces import said
from gate.traces.dialects import AGENTIC, Operation, session_of
from gate.traces.said import Call
from gate.traces.span import Piece, Span
from gate.traces.tree import Draft, ModelCall, Trace
from gate.traces.values import first, first_recorded, listed

MAX_TAGS = 50
_TAGS = ("tag.tags", "langfuse.trace.tags", "ai.telemetry.metadata.tags")


class TracedTurn(Struct, frozen=True):
    """One turn of a conversation, built from its spans."""

    invocation: Invocation
    error: str | None = None
    """The error that ended the turn, if it failed: from the turn's span or, without an answer, from its last model call
    or the trace's root. A failed tool does not fail the turn, nor does a failed model call if a later one succeeded."""


class Conversation(Struct, frozen=True):
    """The turns of one session, in order."""

    session: str
    """The session's id; the trace's id if no span names a session."""
    turns: tuple[TracedTurn, ...] = ()
    tags: frozenset[str] = frozenset()
    left_out: int = 0
    """Spans beyond the limit for a trace."""

    @property
    def error(self) -> str | None:
        """The error of the first failed turn."""
        return next((turn.error for turn in self.turns if turn.error is not None), None)


def conversations_of(pieces: Iterable[Piece]) -> list[Conversation]:
    """Return the conversations in some pieces: one per session, ordered by the time of their first span."""
    sessions: dict[str, list[Trace]] = defaultdict(list)
    for trace in _traces(pieces):
        sessions[_session(trace) or trace.trace_id].append(trace)
    return [_conversation(session, traces) for session, traces in sessions.items()]


def conversation_of(pieces: Iterable[Piece], session: str = "") -> Conversation:
    """Return the conversation in the pieces of one session or trace."""
    traces = _traces(pieces)
    named = session or first(map(_session, traces)) or first(trace.trace_id for trace in traces)
    return _conversation(named, traces)


def failure_of(pieces: Iterable[Piece]) -> str:
    """Return the error of a trace's outermost span, or of the first if there are several; empty on success."""
    traces = _traces(pieces)
    if not traces:
        return ""
    spans = traces[0].spans()
    known = {span.span_id for span in spans}
    for span in spans:
        if span.parent_id not in known:
            return Operation(span).error
    return Operation(spans[0]).error


def _traces(pieces: Iterable[Piece]) -> list[Trace]:
    """Return the traces, ordered by the start of their first span."""
    found: dict[str, Trace] = {}
    for piece in pieces:
        trace = found.get(piece.trace_id)
        if trace is None:
            trace = found[piece.trace_id] = Trace(piece.trace_id)
        trace.add(piece)
    with_spans = [trace for trace in found.values() if trace.spans()]
    return sorted(with_spans, key=lambda trace: (trace.spans()[0].order, trace.trace_id))


def _session(trace: Trace) -> str:
    spans = trace.spans()
    named = first(session_of(span.attributes) for span in spans)
    if named:
        return named
    resources = {id(span.resource): span.resource for span in spans}  # most often there is only one
    return first(map(session_of, resources.values()))


def _conversation(session: str, traces: Sequence[Trace]) -> Conversation:
    drafts: list[Draft] = []
    tags: set[str] = set()
    for trace in traces:
        drafts += trace.drafts()
        for span in trace.spans():
            tags.update(_tags(span))
    drafts.sort(key=lambda draft: draft.anchor.span.order)
    turns = [_turn(draft) for draft in _joined(drafts)]
    return Conversation(session, tuple(turns), frozenset(tags), sum(trace.left_out for trace in traces))


def _tags(span: Span) -> list[str]:
    found: list[str] = []
    for key in _TAGS:
        if key in span.attributes:
            found += [tag for tag in listed(span.attributes[key]) if isinstance(tag, str)][:MAX_TAGS]
    return found


def _joined(drafts: Sequence[Draft]) -> list[Draft]:
    """Merge drafts into turns: a model call that only receives results of tools continues the turn before it."""
    found: list[Draft] = []
    for draft in drafts:
        if found and _continues(found[-1], draft):
            found[-1].models += draft.models
            found[-1].tools += draft.tools
            found[-1].metered += draft.metered
        else:
            found.append(draft)
    return found


def _continues(before: Draft, draft: Draft) -> bool:
    if draft.anchor.kind in AGENTIC or not draft.models or not before.models:
        return False
    inputs = draft.models[0].inputs()
    if not said.answers_tools(inputs):
        return False
    asked = said.calls_in(before.models[-1].outputs())
    asked_ids = {call.id for call in asked if call.id}
    answered_ids = {one.id for one in said.results_in(inputs) if one.id}
    if asked_ids and answered_ids:
        return not asked_ids.isdisjoint(answered_ids)
    return bool(asked)


# --- one turn -------------------------------------------------------------------------------------


def _turn(draft: Draft) -> TracedTurn:
    anchor, is_agent = draft.anchor, draft.anchor.kind in AGENTIC
    # The model calls of agents that speak to the user, in the order of their ends, and the answer in the turn's span.
    own = sorted([call for call in draft.models if call.own], key=lambda call: (call.end, call.order))
    final = tuple(said.texts_in([one for one in anchor.outputs() if one.role == "assistant"]))
    texts = []
    for call in own:
        spoken = _said(call)
        if spoken:
            texts.append(spoken)
    if final and (not texts or (is_agent and _folded(texts[-1]) != _folded(final))):
        texts.append(final)
    calls = _calls(draft)
    # Every call would be seen: there are spans of tools, or all outputs of the models are known.
    knows_calls = bool(draft.tools) or (bool(draft.models) and all(call.tells_calls for call in draft.models))
    known = {
        RESPONSE: bool(texts) or (bool(own) and bool(own[-1].outputs())),
        CALLS: knows_calls,
        ARGUMENTS: all(call.args is not UNSET for call in calls),
        RESULTS: all(call.result is not UNSET for call in calls),
    }
    asked: list[Operation | ModelCall] = [*draft.models, anchor]
    if is_agent:
        asked = [anchor, *draft.models]
    *before, answer = texts or [()]
    end = max([anchor.span.end, *(call.end for call in draft.models)])
    invocation = Invocation(
        user=first(said.user_text(step.inputs()) for step in asked),
        response=tuple(map(Part, answer)),
        tool_calls=tuple(map(_plain, calls)),
        intermediate=tuple(map(Part, chain.from_iterable(before))),
        usage=_usage(draft),
        duration=max(0, end - anchor.span.start) / 1e9,
        reports_calls=knows_calls,
        unseen=tuple([part for part, is_known in known.items() if not is_known]),
    )
    error = anchor.error
    if not error and own and _ends_the_turn(own[-1], own[:-1]) and not _concludes(final, own):
        error = own[-1].error
    elif not error and draft.root is not None and not texts:
        error = draft.root.error
    return TracedTurn(invocation, error or None)


def _ends_the_turn(call: ModelCall, earlier: Sequence[ModelCall]) -> bool:
    """True if a turn's last model call came to nothing and no other one beside it succeeded: agents retry calls, and
    ask other models."""
    start = call.steps[0].span.start
    return call.came_to_nothing and all(other.came_to_nothing for other in earlier if other.end > start)


def _concludes(final: Sequence[str], own: Sequence[ModelCall]) -> bool:
    """True if the turn's span holds an answer: other words than those said along with a call."""
    for call in own:
        if said.calls_in(call.outputs()) and _folded(_said(call)) == _folded(final):
            return False
    return bool(_folded(final))


def _said(call: ModelCall) -> tuple[str, ...]:
    return tuple(said.texts_in(call.outputs()))


def _folded(texts: Sequence[str]) -> str:
    return "".join("".join(texts).split())


def _usage(draft: Draft) -> Usage | None:
    """Return the total usage of the model calls, except those that failed without output."""
    found: list[Usage | None] = [step.usage for step in draft.metered if step.usage is not None]
    expected = 0
    for call in draft.models:
        expected += not call.came_to_nothing or any(step.usage for step in call.steps)
    found += [None] * (expected - len(found))
    try:
        total = usage_of(found)
    except FormatError:
        return None
    if total is None:
        return None
    return replace(total, model_calls=len(draft.models))


# --- its tool calls -------------------------------------------------------------------------------


def _plain(call: Call) -> ToolCall:
    args, result = call.args, call.result
    if args is UNSET:
        args = None
    if result is UNSET:
        result = None
    return ToolCall(call.name, args, call.id or None, result, call.error or None, call.duration)


def _calls(draft: Draft) -> list[Call]:
    """Return the trajectory: calls with spans by start; a call without a span follows the one requested before it."""
    spanned = list(map(_spanned, draft.tools))
    asked = []
    for place, model in enumerate(draft.models):
        for one in said.calls_in(model.outputs()):
            asked.append((place, one))
    if not asked:
        return spanned
    claims = _Claims(spanned)
    behind: dict[int, list[Call]] = defaultdict(list)
    wanting, previous = [], -1
    for place, one in asked:
        index = claims.take(one)
        if index is None:
            call = Call(one.name, one.id, one.args)
            behind[previous].append(call)
        else:
            call, previous = spanned[index], index
            if call.args is UNSET:
                call.args = one.args
        if call.result is UNSET:
            wanting.append((place, one, call))
    _fill_results(draft.models, wanting)
    found = list(behind[-1])
    for index, call in enumerate(spanned):
        found += [call, *behind[index]]
    return found


def _spanned(spans: Sequence[Operation]) -> Call:
    """Return one call from its spans, given the outermost first."""
    outermost, span = spans[0], spans[0].span
    seconds = None
    if span.end:
        seconds = max(0, span.end - span.start) / 1e9
    return Call(
        outermost.name,
        first(step.id for step in spans),
        first_recorded(step.arguments for step in spans),
        first_recorded(step.result for step in spans),
        first(step.error for step in spans),
        seconds,
    )


class _Claims:
    """Calls with spans, each to be matched with one request of a model: by id, else by name in order."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._free = [True] * len(calls)
        self._by_id: dict[str, int] = {}
        self._by_name: dict[str, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            self._by_name[call.name].append(index)
            if call.id:
                self._by_id.setdefault(call.id, index)

    def take(self, one: Call) -> int | None:
        index = self._by_id.get(one.id)
        if index is not None and self._free[index]:
            self._free[index] = False
            return index
        queue = self._by_name.get(one.name)
        while queue:
            index = queue.popleft()
            if self._free[index]:
                self._free[index] = False
                return index
        return None


def _fill_results(models: Sequence[ModelCall], wanting: Sequence[tuple[int, Call, Call]]) -> None:
    """Fill in results from the inputs of later model calls: by id, else in order by name."""
    if not wanting:
        return
    by_id: dict[str, Any] = {}
    in_order: list[tuple[int, str, Any]] = []
    known = {one.id for _, one, _ in wanting if one.id}
    told: set[tuple[str, str, str]] = set()
    for place, model in enumerate(models):
        own = [one for one in said.results_in(model.outputs()) if one.id in known]  # of tools that the provider ran
        for given in (*said.results_in(model.inputs()), *own):
            key = (given.id, given.name, "" if given.id else repr(given.result))
            if given.result is UNSET or key in told:
                continue
            told.add(key)
            if given.id in known:
                by_id[given.id] = given.result
            else:
                in_order.append((place, given.name, given.result))
    waiting = deque(in_order)
    for place, one, call in wanting:
        if one.id in by_id:
            call.result = by_id[one.id]
        elif waiting and waiting[0][0] > place and waiting[0][1] in ("", one.name):
            call.result = waiting.popleft()[2]
