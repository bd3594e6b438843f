"""What of a record a history needs: scores, durations, usage and errors, without what was said.

Decodes a sixth of the time of `read_record`, since texts are stepped over. The closing line's checksum is held to every
byte as it is there; the sums of single lines, which protect a record that was never closed, are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, TypeVar

from msgspec import MsgspecError, Struct, field
from msgspec.json import Decoder

from gate.errors import BaselineError, GateError
from gate.model import FULL, ErrorKind, Invocation, Score, Side, Trial, TrialError
from gate.model.conversation import total_usage
from gate.records.lines import CLOSING, read_line
from gate.records.model import Footer, Header
from gate.records.reader import HINT_EDITED, HINT_TRUNCATED, RecordReader, lines_of
from gate.records.wire import Amount, ClosingLine, MalformedError, Ordinal, ScoreObject, UsageObject, to_footer
from gate.security.limits import MAX_LINE_BYTES

S = TypeVar("S", bound=Struct)


class _Turn(Struct, gc=False):
    usage: UsageObject | None = None


class _Line(Struct, gc=False):
    """Of a trial's line; other keys are stepped over."""

    case: str
    n: Ordinal
    tag: str | None = None
    side: Side = Side.CANDIDATE
    scores: dict[str, float | ScoreObject | None] = field(default_factory=dict)
    error: tuple[ErrorKind, str] | None = None
    duration: Amount | None = None
    turns: tuple[_Turn, ...] = ()


class _First(Struct, gc=False):
    """Of the first line of a record of any format."""

    gate_record: Ordinal
    created: Amount = 0.0


def created_in(first: bytes) -> float:
    """The time in a record's first line, to put records in order before they are read; 0 where it holds none."""
    try:
        return _FIRST.decode(first).created
    except (MsgspecError, ValueError, RecursionError):
        return 0.0


_FIRST = Decoder(_First)
_LINE = Decoder(_Line)


class MeasuredReader:
    """Iterates over the trials of a closed record; the header is there from the start, the footer at the end.

    A trial holds case, number, tag, side, scores (value and error alone), error, duration and the turns' usage
    in one. What was said and called is not there.

    Raises:
        GateError: the ``error`` kind, for bytes that are not a closed record, or were edited or cut short.
    """

    def __init__(self, file: BinaryIO, *, where: str, error: type[GateError] = BaselineError) -> None:
        self._lines = lines_of(file)
        self._where = where
        self._error = error
        opened = RecordReader(self._lines, where=where, complete=False, error=error)
        self.header: Header = opened.header
        self.footer: Footer | None = None
        self._checksum = opened.checksum
        self._known = frozenset(case.id for case in self.header.plan)
        self._ranges = {c.name: c.scale.range for c in self.header.criteria} if opened.chained else {}

    def __iter__(self) -> Iterator[Trial]:
        seen: set[tuple[str, int, Side]] = set()
        for raw in self._lines:
            if not raw.endswith(b"\n"):
                long = len(raw) > MAX_LINE_BYTES
                raise self._wrong("a line is too long" if long else "cut short", "" if long else HINT_TRUNCATED)
            if raw.startswith(CLOSING):
                self.footer = self._closed(raw, len(seen))
            else:
                self.footer = None
                yield self._trial(raw, seen)
            self._checksum.update(raw)
        if self.footer is None:
            raise self._wrong("not closed", HINT_TRUNCATED)

    def _trial(self, raw: bytes, seen: set[tuple[str, int, Side]]) -> Trial:
        try:
            line = _LINE.decode(raw)  # what is stepped over may nest as deep as it likes
        except (MsgspecError, ValueError, RecursionError):
            line = self._read(_Line, raw, "trial")
        key = (line.case, line.n, line.side)
        if line.case not in self._known or key in seen:
            what = "is there twice" if key in seen else "is of a case outside the plan"
            raise self._wrong(f"trial {line.n} of case {line.case[:60]!r} {what}", HINT_EDITED)
        seen.add(key)
        told = [turn.usage for turn in line.turns if turn.usage is not None]
        usage = total_usage(tuple(told)) if len(told) > 1 else told[0] if told else None
        return Trial(
            line.case,
            line.n,
            tag=FULL if line.tag is None else line.tag,
            side=line.side,
            invocations=() if usage is None else (Invocation(usage=usage),),
            scores=self._scores(line.scores),
            error=None if line.error is None else TrialError(*line.error),
            duration=line.duration,
        )

    def _scores(self, given: dict[str, float | ScoreObject | None]) -> dict[str, Score]:
        found = {}
        for name, score in given.items():
            made = Score(score.value, error=score.error) if isinstance(score, ScoreObject) else Score(score)
            ends = self._ranges.get(name)
            if ends is not None and made.value is not None and not ends[0] <= made.value <= ends[1]:
                raise self._wrong(f"the score {made.value:g} of {name[:60]!r} is outside its scale", HINT_EDITED)
            found[name] = made
        return found

    def _closed(self, raw: bytes, trials: int) -> Footer:
        footer, claimed = to_footer(self._read(ClosingLine, raw, "closing line"))
        if claimed != self._checksum.hexdigest():
            raise self._wrong("the checksum does not fit", HINT_EDITED)
        if footer.trials != trials:
            raise self._wrong("the counts do not fit", HINT_EDITED)
        return footer

    def _read(self, kind: type[S], raw: bytes, name: str) -> S:
        try:
            return read_line(kind, raw, name)
        except MalformedError as problem:
            raise self._wrong(str(problem), "") from None

    def _wrong(self, what: str, hint: str) -> GateError:
        return self._error(f"unreadable record: {what}", where=self._where, hint=hint)
