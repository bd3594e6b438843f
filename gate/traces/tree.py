"""Groups the spans of one trace into drafts of turns, and merges calls that are reported twice.

Rules:

* A turn is an agent or workflow that is not inside another agent, workflow or tool. A root that contains model calls
  but no agent is also a turn.
* Nested model calls are one call: wrappers around a provider's span.
* Nested tool spans with the same name or call id are one call: the spans of the framework, an MCP client and an MCP
  server. The outermost counts, because it is what the agent saw.

All walks are iterative, and a span whose parent is missing, or is its own descendant, becomes a root.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from gate.traces.dialects import AGENTIC, Kind, Operation, kind_of
from gate.traces.said import Message
from gate.traces.span import Event, Piece, Span
from gate.traces.values import first

MAX_SPANS = 20_000
"""Most spans of one trace; the conversation counts those left out."""


class ModelCall:
    """One call of a model, with its innermost span first. Messages are read once."""

    __slots__ = ("_inputs", "_outputs", "own", "steps")

    def __init__(self, steps: Sequence[Operation], own: bool) -> None:
        self.steps = steps
        self.own = own
        """True if the agent that speaks to the user made it, and not an agent used as a tool."""
        self._inputs: tuple[Message, ...] | None = None
        self._outputs: tuple[Message, ...] | None = None

    @property
    def order(self) -> tuple[int, int, str]:
        return self.steps[0].span.order

    @property
    def end(self) -> int:
        return self.steps[0].span.end

    @property
    def error(self) -> str:
        """The error of the call; empty on success."""
        return first(step.error for step in self.steps)

    def inputs(self) -> tuple[Message, ...]:
        if self._inputs is None:
            self._inputs = next(filter(None, (step.inputs() for step in self.steps)), ())
        return self._inputs

    def outputs(self) -> tuple[Message, ...]:
        if self._outputs is None:
            self._outputs = next(filter(None, (step.outputs() for step in self.steps)), ())
        return self._outputs

    @property
    def tells_calls(self) -> bool:
        """True if calls requested by the model would be visible here."""
        return bool(self.outputs()) or self.came_to_nothing or any(step.ends_without_calls for step in self.steps)

    @property
    def came_to_nothing(self) -> bool:
        """True if it failed without any output: then it requested no call, and has no usage to count."""
        return bool(self.error) and not self.outputs()


class Draft(Struct):
    """The operations of one turn."""

    anchor: Operation
    models: list[ModelCall] = field(default_factory=list)
    tools: list[list[Operation]] = field(default_factory=list)
    """The spans of each call, the outermost first."""
    metered: list[Operation] = field(default_factory=list)
    """The spans whose usage counts."""
    root: Operation | None = None
    """The outermost span around the anchor; None if it is the anchor."""

    @property
    def is_a_turn(self) -> bool:
        anchor = self.anchor
        if self.models or self.tools:
            return True
        if anchor.kind not in AGENTIC:
            return False
        return bool(anchor.error or anchor.inputs() or anchor.outputs() or (self.root is not None and self.root.error))


class Trace:
    """The pieces of one trace; the result does not depend on their order or repetition."""

    def __init__(self, trace_id: str) -> None:
        self.trace_id = trace_id
        self.left_out = 0
        self._spans: dict[str, Span] = {}
        self._sorted: list[Span] = []
        self._logs: dict[str, dict[EventKey, Event]] = defaultdict(dict)

    def add(self, piece: Piece) -> None:
        self._sorted = []
        if isinstance(piece, Event):
            self._logs[piece.span_id].setdefault((piece.time, piece.name, repr(piece.attributes)), piece)
        elif piece.span_id in self._spans:
            known = self._spans[piece.span_id]
            if piece is not known and _weight(piece) > _weight(known):
                self._spans[piece.span_id] = piece
        elif len(self._spans) >= MAX_SPANS:
            self.left_out += 1
        else:
            self._spans[piece.span_id] = piece

    def spans(self) -> list[Span]:
        """Return the spans, ordered by start."""
        if not self._sorted:
            self._sorted = sorted(self._spans.values(), key=lambda span: span.order)
        return self._sorted

    def drafts(self) -> list[Draft]:
        """Return the turns of the trace."""
        home = self._home()
        steps = {span.span_id: Operation(span, self._logs_of(span, home)) for span in self.spans()}
        drafts: dict[str, Draft] = {}
        inside: dict[str, _Place] = {}
        models: dict[str, tuple[Operation, _Place]] = {}
        nested: dict[str, int] = defaultdict(int)  # the model calls directly inside each model call
        chains: dict[str, list[Operation]] = {}  # for each tool span, the spans of its call
        for span_id, parent in _walk(steps):
            step, place = steps[span_id], inside.get(parent) or _Place(span_id, span_id)
            if step.kind in AGENTIC and not place.covered:
                place = _Place(place.root, span_id, used=place.used)
            inside[span_id] = _inside(step, place)
            if place.anchor not in drafts:
                drafts[place.anchor] = Draft(steps[place.anchor])
                if place.root != place.anchor:
                    drafts[place.anchor].root = steps[place.root]
            if step.kind is Kind.MODEL:
                models[span_id] = step, place
                nested[place.model] += 1
            elif step.kind is Kind.TOOL:
                chain = chains.get(place.tool)
                if chain is None or not _is_same_call(chain, step):
                    chain = []
                    drafts[place.anchor].tools.append(chain)
                chain.append(step)
                chains[span_id] = chain
        metered: set[str] = set()
        for span_id, (step, place) in reversed(models.items()):  # children before parents
            draft = drafts[place.anchor]
            if not nested[span_id]:  # the innermost are calls, with the spans around a single one
                layers, outer = [step], place.model
                while outer and nested[outer] == 1:
                    layers.append(models[outer][0])
                    outer = models[outer][1].model
                draft.models.append(ModelCall(layers, own=not place.used))
            if span_id in metered or step.usage is not None:
                if span_id not in metered:
                    draft.metered.append(step)
                metered.add(place.model)
        found = [draft for draft in drafts.values() if draft.is_a_turn]
        for draft in found:
            draft.models.sort(key=lambda call: call.order)
            draft.tools.sort(key=lambda chain: chain[0].span.order)
        return found

    def _logs_of(self, span: Span, home: str) -> Sequence[Event]:
        """Return a span's log records; those without a span belong to the one with the id ``home``."""
        if not self._logs:
            return ()
        if span.span_id in self._logs:
            return tuple(self._logs[span.span_id].values())
        if span.span_id == home:
            return tuple(self._logs[""].values())
        return ()

    def _home(self) -> str:
        """Return the only model call or only span: log records without a span belong to it. Empty if there are
        several."""
        if "" not in self._logs:
            return ""
        spans = self.spans()
        found = [span for span in spans if kind_of(span) is Kind.MODEL] or spans
        if len(found) != 1:
            return ""
        return found[0].span_id


EventKey = tuple[int, str, str]


def _weight(span: Span) -> tuple[bool, int, int, str]:
    """Return what decides between spans with the same id: one that ended or holds more counts; order never matters."""
    return span.end > 0, len(span.attributes) + len(span.events), span.end, repr(span)


class _Place(Struct, frozen=True, gc=False):
    """The surroundings of a span; the ids are of other spans."""

    root: str
    anchor: str
    """The span that makes the turn."""
    covered: bool = False
    """True inside an agent, a workflow or a tool."""
    used: bool = False
    """True inside a tool: texts are not said to the user."""
    model: str = ""
    """The enclosing model call, without an agent or tool in between."""
    tool: str = ""
    """The enclosing tool, without an agent or model call in between."""


def _inside(step: Operation, place: _Place) -> _Place:
    """Return the surroundings of a span's children."""
    if step.kind in AGENTIC:
        return _Place(place.root, place.anchor, covered=True, used=place.used)
    if step.kind is Kind.TOOL:
        return _Place(place.root, place.anchor, covered=True, used=True, tool=step.span.span_id)
    if step.kind is Kind.MODEL:
        return _Place(place.root, place.anchor, place.covered, place.used, model=step.span.span_id)
    return place


def _walk(steps: Mapping[str, Operation]) -> Iterator[tuple[str, str]]:
    """Yield the ids of every span and its parent once, parents before children and children by start.

    The parent of a root is empty.
    """
    children: dict[str, list[str]] = defaultdict(list)
    roots = []
    for span_id, step in steps.items():
        parent = step.span.parent_id
        if parent in steps and parent != span_id:
            children[parent].append(span_id)
        else:
            roots.append(span_id)
    seen: set[str] = set()
    for root in (*roots, *steps):  # spans in a cycle have no root: the first one is used
        waiting = [(root, "")]
        while waiting:
            span_id, parent = waiting.pop()
            if span_id in seen:
                continue
            seen.add(span_id)
            yield span_id, parent
            for child in reversed(children.get(span_id, ())):
                waiting.append((child, span_id))


def _is_same_call(chain: Sequence[Operation], step: Operation) -> bool:
    """True if the names or ids are equal; different ids prove nothing, since each layer has its own."""
    return any(step.name == other.name or (step.id and step.id == other.id) for other in chain)
