"""Assembles lines into the conversations of the sample: rows at once, traces when all their spans seem to be there.

The spans of a trace come in any order, over several lines and files. They wait, bounded in number and size, until the
time in the files is `idle` seconds past the trace's last span. Waiting spans are stored nowhere else: a restart reads
their lines again, so a file is settled only up to the first line of the oldest waiting trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Any

from msgspec import Struct, field
from msgspec.json import Decoder
from msgspec.structs import replace

from gate.formats import messages
from gate.formats.messages import FormatError
from gate.formats.reading import carried, kind_of, unread, with_read_marks
from gate.monitor.model import Counts, WatchedTrace
from gate.monitor.sampling import concerns_sample, is_sampled, sampled_in, trace_key
from gate.monitor.sources import Line
from gate.monitor.spans import TelemetryTraces
from gate.security.limits import MAX_ID_CHARS, shorten
from gate.suites.base import is_answered
from gate.suites.messages import FieldPaths, ignored_in, value_at
from gate.traces import Piece

MOST_BYTES = 128 * 2**20
"""Approximate limit on the bytes of lines with waiting spans; beyond it the oldest trace is scored incomplete."""
MOST_PIECES = 20_000
"""Most pieces of one trace; further ones are dropped and counted as late."""
AHEAD_SECONDS = 86_400.0
"""Spans that end more than this after now are ignored when the time is estimated."""
NO_ANSWER = "the row holds no answer"
"""The reason why the agent failed in a row that ends with a question: a row holds the whole conversation."""
_DECODER = Decoder()


class _Waiting(Struct):
    """A trace whose spans are still coming."""

    source: str
    start: int
    """The offset of its first line in the file where it appeared first."""
    pieces: list[Piece] = field(default_factory=list)
    size: int = 0
    last: float = 0.0
    arrived: float = 0.0
    """When its last span was read."""
    others: dict[str, int] = field(default_factory=dict)
    """The offsets of its first lines in further files."""


class Intake:
    """Takes lines, and yields complete conversations."""

    def __init__(
        self,
        rate: float,
        fields: FieldPaths,
        traces: TelemetryTraces,
        is_stored: Callable[[str], bool],
        *,
        idle: float,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._rate, self._fields, self._traces, self._is_stored = rate, fields, traces, is_stored
        self._idle, self._most_bytes = idle, most_bytes
        self._waiting: dict[str, _Waiting] = {}
        self._size = 0
        self._counts: Counter[str] = Counter()
        self._unread: Counter[str] = Counter()
        """For rows."""
        self.problem = ""
        """The problem of the last line that could not be read."""

    def take_counts(self) -> Counts:
        """Return the counts since the last call."""
        counts, self._counts = Counts(**self._counts), Counter()
        return counts

    @property
    def unread(self) -> Mapping[str, int]:
        """The number of times that each kind of key was not read, except keys that are ignored on purpose."""
        return {**self._traces.unread, **self._unread}

    @property
    def waiting(self) -> int:
        """The number of traces whose spans may still be coming."""
        return len(self._waiting)

    def add(self, source: str, line: Line, *, counted: bool) -> list[WatchedTrace]:
        """Return the conversations that this line completes.

        ``counted``: the line was already counted by an earlier process.
        """
        data = line.data
        if data is not None and not data.strip():
            return []
        self._counts["lines"] += not counted
        try:
            if data is None:
                raise FormatError("a line that is too long")
            if not concerns_sample(data, self._rate):
                return []
            return self._read(source, line, data, counted=counted)
        except FormatError as error:
            problem = str(error)
        except (ValueError, RecursionError) as error:
            problem = f"a line that is not JSON: {error}"
        if not counted:
            self._counts["bad"] += 1
            self._counts["lost"] += max(1, sampled_in(data or b"", self._rate))
        self.problem = shorten(problem, 200)
        return []

    def _read(self, source: str, line: Line, data: bytes, *, counted: bool) -> list[WatchedTrace]:
        value = _DECODER.decode(data)
        if _may_hold_traces(value):
            pieces = self._traces.pieces(value)
            if pieces:
                return self._add_pieces(source, line, pieces, counted=counted)
        ignored = ignored_in(self._fields.messages)
        marked = with_read_marks(value, ignored)
        row = self._row(marked)
        if row is None:
            return []
        for key in unread(marked, ignored):
            self._unread[kind_of(key.path, self._unread)] += key.count
        return [row]

    def ready(self, at: float) -> Iterator[WatchedTrace]:
        """Yield the conversations whose last span ended at least `idle` seconds before ``at``."""
        done = [trace for trace, waiting in self._waiting.items() if waiting.last + self._idle <= at]
        return self._released(done)

    def ready_ahead(self, now: float) -> Iterator[WatchedTrace]:
        """Yield the conversations with a clock ahead of ours that are complete by the newest of such clocks."""
        ahead = self._ahead(now)
        newest = max(ahead.values(), default=0.0)
        return self._released([trace for trace, last in ahead.items() if last + self._idle <= newest])

    def ahead(self, now: float) -> int:
        """Return the number of waiting traces that end too far in the future to be complete at ``now``."""
        return len(self._ahead(now))

    def _ahead(self, now: float) -> dict[str, float]:
        """Return the ends of the waiting traces that end too far in the future."""
        found = {}
        for trace, waiting in self._waiting.items():
            if waiting.last > now + self._idle:
                found[trace] = waiting.last
        return found

    def arrived_before(self, at: float) -> Iterator[WatchedTrace]:
        """Yield the conversations of which no span was read after ``at``."""
        return self._released([trace for trace, waiting in self._waiting.items() if waiting.arrived <= at])

    def settled(self, source: str, offset: int) -> int:
        """Return the offset from which a restart must read a file that was read up to ``offset``."""
        first = offset
        for waiting in self._waiting.values():
            start = waiting.others.get(source, offset)
            if waiting.source == source:
                start = waiting.start
            first = min(first, start)
        return first

    # --- spans ------------------------------------------------------------------------------------

    def _add_pieces(self, source: str, line: Line, pieces: Sequence[Piece], *, counted: bool) -> list[WatchedTrace]:
        share, now = (line.end - line.start) // len(pieces), time()
        by_trace: dict[str, list[Piece]] = {}
        for piece in pieces:
            by_trace.setdefault(piece.trace_id, []).append(piece)
        for trace, own in by_trace.items():
            if is_sampled(trace, self._rate):
                self._add_to(trace, own, source, line, share, now, counted=counted)
        found: list[WatchedTrace] = []
        while self._size > self._most_bytes and self._waiting:
            self._counts["cut"] += 1
            found.extend(self._released([next(iter(self._waiting))]))
        return found

    def _add_to(
        self,
        trace: str,
        pieces: Sequence[Piece],
        source: str,
        line: Line,
        size: int,
        now: float,
        *,
        counted: bool,
    ) -> None:
        """Add pieces to their trace. ``size``: bytes of each piece."""
        waiting = self._waiting.get(trace)
        if waiting is None:
            if self._is_stored(trace):
                if not counted:
                    self._counts["late"] += len(pieces)
                return
            waiting = self._waiting[trace] = _Waiting(source, line.start)
        kept = pieces[: MOST_PIECES - len(waiting.pieces)]
        if not counted:
            self._counts["late"] += len(pieces) - len(kept)
        if not kept:
            return
        if waiting.source != source:
            waiting.others.setdefault(source, line.start)
        waiting.pieces += kept
        waiting.size += size * len(kept)
        self._size += size * len(kept)
        waiting.arrived = now
        waiting.last = max(waiting.last, self._traces.last(kept, now + AHEAD_SECONDS) or 0.0)

    def _released(self, traces: Iterable[str]) -> Iterator[WatchedTrace]:
        for trace in traces:
            waiting = self._waiting.pop(trace)
            self._size -= waiting.size
            found = self._traces.conversation(trace, waiting.pieces)
            if found is None:
                self._counts["empty"] += 1
            else:
                yield found

    # --- rows -------------------------------------------------------------------------------------

    def _row(self, value: Any) -> WatchedTrace | None:
        """Return the conversation in a row of messages; None if it is not in the sample. Raises `FormatError`."""
        if not isinstance(value, Mapping):
            raise FormatError("neither a trace nor a row of messages")
        fields = self._fields
        identifier = value_at(value, fields.id)
        if isinstance(identifier, bool) or not isinstance(identifier, str | int) or identifier == "":
            raise FormatError(f"neither a trace nor a row with an id at {fields.id!r}")
        trace = shorten(trace_key(str(identifier)), MAX_ID_CHARS)
        if not is_sampled(trace, self._rate):
            return None
        error = _optional(value, fields.error)
        found = value_at(value, fields.messages)
        if found is None and error is None:
            raise FormatError(f"no messages at {fields.messages!r}")
        if found is None:
            found = []
        invocation = messages.to_invocation(found)
        own = messages.to_usage(_optional(value, fields.usage), cost_usd=_optional(value, fields.cost_usd))
        duration = messages.number(_optional(value, fields.duration), "duration")
        said = None
        if error is not None:
            said = shorten(str(error), 1000)
        elif not _is_answered(found):
            said = NO_ANSWER
        invocation = replace(invocation, usage=own or invocation.usage, duration=duration)
        return WatchedTrace(trace, (carried(invocation),), said)


def _optional(value: Any, path: str | None) -> Any:
    """Return the value at a path; None if no path is set."""
    return value_at(value, path) if path else None


def _is_answered(said: Sequence[Any]) -> bool:
    """True if the agent said or called anything after the user's last message, as far as it can be read."""
    spoken = [message for message in said if not _is_blank(message)]
    return is_answered([messages.to_invocation(messages.after_last_question(spoken))])


def _is_blank(message: Any) -> bool:
    """True if the user says nothing in a message."""
    if not messages.is_from_user(message):
        return False
    content = messages.unwrapped(message).get("content")
    return not (content.strip() if isinstance(content, str) else content)


def _may_hold_traces(value: Any) -> bool:
    """True if the value is worth parsing for traces; a row of messages is not."""
    return isinstance(value, list) or (isinstance(value, dict) and "messages" not in value)
