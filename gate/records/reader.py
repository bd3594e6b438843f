"""Reads records, streaming in constant memory or whole; rejects truncated, edited and duplicated ones.

Checks how lines fit together; single lines are left to `lines`. Input may be untrusted: any mistake raises the caller's
`GateError`, naming the line.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from msgspec.structs import replace

from gate.errors import BaselineError, GateError, MeasureError
from gate.model import Side, Trial
from gate.records import wire
from gate.records.lines import CLOSING, SUM_BYTES, SUM_DIGITS, NotJSONError, read_header_line, read_line
from gate.records.model import INTERRUPTED, Footer, Header, PlannedCase, Record
from gate.records.wire import MalformedError
from gate.security.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

S = TypeVar("S")
T = TypeVar("T")

_PLAN: Callable[[bytes], wire.PlanLine] = partial(read_line, wire.PlanLine, name="plan line")
_TRIAL: Callable[[bytes], wire.TrialLine] = partial(read_line, wire.TrialLine, name="trial")
_CLOSING: Callable[[bytes], wire.ClosingLine] = partial(read_line, wire.ClosingLine, name="closing line")


def _read_entry(raw: bytes) -> wire.TrialLine | wire.ClosingLine:
    return _CLOSING(raw) if raw.startswith(CLOSING) else _TRIAL(raw)


HINT_TRUNCATED = "continue its run with --resume, or save it again"


def away(then: str = "measure again") -> str:
    """Return the hint for a damaged file: nothing continues or replaces it, so its owner has to move it away."""
    return f"move it away, then {then}"


class RecordReader:
    """Iterates over the trials of a record, given as lines of bytes; the header is available from the start.

    With ``complete`` the last line must be a closing line that agrees with everything before it. Without it, a record
    that was never closed is read as far as possible, and a truncated last line is left out. ``truncated`` is raised
    instead of ``error`` if the lines merely end too early. ``remedy`` is the hint for damage; by default, `away`.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        *,
        where: str,
        complete: bool = True,
        error: type[GateError] = BaselineError,
        truncated: type[GateError] | None = None,
        remedy: str = "",
    ) -> None:
        self._lines = iter(lines)
        self._remedy = remedy or away()
        self._where = where
        self._complete = complete
        self._error = error
        self._truncated = truncated or error
        self._line_number = 0
        self.checksum = hashlib.sha256()
        """The checksum of everything up to `end`."""
        self.end = 0
        """Number of bytes up to the end of the last good line."""
        self.tally = Tally()
        self.footer: Footer | None = None
        """The footer, if the last line read is a closing line."""
        self.last_footer: Footer | None = None
        """The newest closing line, whether or not trials follow it."""
        self.header = self._read_header()
        self._known = {case.id: case.id for case in self.header.plan}
        self._ranges = {criterion.name: criterion.scale.range for criterion in self.header.criteria}

    def __iter__(self) -> Iterator[Trial]:
        if self._complete:
            return filter(None, map(itemgetter(0), self._read_trials()))
        return self._proven()

    def _proven(self) -> Iterator[Trial]:
        """Yield the trials up to the last sum or closing line. Anything later was never written completely, and is left
        out."""
        held: list[Trial] = []
        state = self._state()
        for trial, proven in self._read_trials():
            if trial is not None:
                held.append(trial)
            if proven:
                yield from held
                held.clear()
                state = self._state()
        if held:
            self.tally.remove(held)
            self.checksum, self.end, self.tally.rounds, self.footer = state

    def _state(self) -> tuple[Hash, int, int, Footer | None]:
        return self.checksum.copy(), self.end, self.tally.rounds, self.footer

    def _read_trials(self) -> Iterator[tuple[Trial | None, bool]]:
        """Yield each trial, or None for a closing line, and True if its line proves everything before it unchanged."""
        held: GateError | None = None
        for raw in self._lines:
            if held is not None:
                raise held
            line = self._line(raw, _read_entry)
            if isinstance(line, GateError):
                held = line  # fatal, unless it is the truncated last line of a record that may be incomplete
                continue
            trial, claimed = self._take(line)
            if claimed is None:
                self._advance(raw)
            else:
                self._check_sum(raw, claimed)
            yield trial, trial is None or claimed is not None
        if held is not None and self._complete:
            raise held
        if self.footer is None and self._complete:
            raise self._cut("not closed")

    def _check_sum(self, raw: bytes, claimed: str) -> None:
        """Read past a line that ends in a sum. Raises an error unless the sum matches everything before it."""
        body, end = raw[:-SUM_BYTES], raw[-SUM_BYTES:]
        self._advance(body)
        found = self.checksum.hexdigest()[:SUM_DIGITS]
        if claimed != found or end != b',"sum":"%b"}\n' % found.encode():
            raise self._problem("the sum does not fit this line or one before it", damaged=True)
        self._advance(end)

    def _read_header(self) -> Header:
        line = self._next(read_header_line)
        header = self._believed(wire.to_header, line)
        plan: list[PlannedCase] = []
        while len(plan) < line.cases:
            part = self._believed(wire.to_plan, self._next(_PLAN))
            if not part:
                raise self._problem("an empty plan line", damaged=True)
            plan += part
        if len(plan) != line.cases or len({case.id for case in plan}) != line.cases:
            raise self._problem("the plan does not hold the cases that the header says", damaged=True)
        return replace(header, plan=tuple(plan))

    def _next(self, read: Callable[[bytes], T]) -> T:
        raw = next(self._lines, b"")
        if not raw:
            raise self._cut("cut short before its first trial" if self.end else "empty")
        line = self._line(raw, read)
        if isinstance(line, GateError):
            raise line
        self._advance(raw)
        return line

    def _line(self, raw: bytes, read: Callable[[bytes], T]) -> T | GateError:
        """Return the line, or the error if it may never have been written completely. Raises any other error."""
        self._line_number += 1
        if not raw.endswith(b"\n"):
            return self._problem("a line is too long") if len(raw) > MAX_LINE_BYTES else self._cut("cut short")
        try:
            return read(raw)
        except NotJSONError as problem:
            return self._problem(str(problem), perhaps_damaged=True)
        except MalformedError as problem:
            raise self._problem(str(problem), perhaps_damaged=bool(self.end)) from None

    def _believed(self, convert: Callable[[S], T], line: S) -> T:
        try:
            return convert(line)
        except MalformedError as problem:
            raise self._problem(str(problem)) from None

    def _advance(self, raw: bytes) -> None:
        self.checksum.update(raw)
        self.end += len(raw)

    def _take(self, line: wire.TrialLine | wire.ClosingLine) -> tuple[Trial | None, str | None]:
        """Return the trial, or None for a closing line, and the sum stated in the line."""
        if isinstance(line, wire.ClosingLine):
            self._close(*wire.to_footer(line))
            return None, None
        case_id = self._known.get(line.case)  # one text for all its trials
        if case_id is None:
            raise self._problem(f"a trial of a case outside the plan: {line.case[:60]!r}", damaged=True)
        trial = wire.to_trial(line, case_id)
        if trial in self.tally:
            raise self._problem(f"trial {trial.number} of case {trial.case_id[:60]!r} is there twice", damaged=True)
        self._check_scores(trial)
        self.tally.add(trial)
        self.footer = None
        return trial, line.sum

    def _check_scores(self, trial: Trial) -> None:
        """Raise an error for a score outside its scale."""
        for name, score in trial.scores.items():
            ends = self._ranges.get(name)
            if ends is not None and score.value is not None and not ends[0] <= score.value <= ends[1]:
                raise self._problem(f"the score {score.value:g} of {name[:60]!r} is outside its scale", damaged=True)

    def _close(self, footer: Footer, checksum: str) -> None:
        if checksum != self.checksum.hexdigest():
            raise self._problem("the checksum does not fit", damaged=True)
        if (footer.trials, footer.errors, footer.rounds) != self.tally.counts:
            raise self._problem("the counts do not fit", damaged=True)
        self.footer = self.last_footer = footer

    def _problem(self, what: str, *, damaged: bool = False, perhaps_damaged: bool = False) -> GateError:
        if damaged:
            return self._error(f"damaged: {what}", where=self._place(), hint=self._remedy)
        hint = f"if damaged: {self._remedy}" if perhaps_damaged else ""
        return self._error(f"unreadable record: {what}", where=self._place(), hint=hint)

    def _cut(self, what: str) -> GateError:
        return self._truncated(f"truncated record: {what}", where=self._place(), hint=HINT_TRUNCATED)

    def _place(self) -> str:
        return f"{self._where}:{self._line_number}" if self._line_number else self._where


class Tally:
    """Counts trials and detects duplicates, in a few bytes per case."""

    _MASKED = 512
    """Trial numbers up to this are bits of an integer per case and side; higher ones, which are rare, are in a set."""

    def __init__(self) -> None:
        self.trials = self.errors = self.rounds = 0
        self._masks: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self._high: set[tuple[str, bool, int]] = set()

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.trials, self.errors, self.rounds

    def __contains__(self, trial: Trial) -> bool:
        """True if a trial of the same number, case and side was added."""
        baseline = trial.side is Side.BASELINE
        if trial.number > self._MASKED:
            return (trial.case_id, baseline, trial.number) in self._high
        return bool(self._masks[baseline].get(trial.case_id, 0) >> trial.number & 1)

    def add(self, trial: Trial) -> None:
        baseline = trial.side is Side.BASELINE
        if trial.number > self._MASKED:
            self._high.add((trial.case_id, baseline, trial.number))
        else:
            masks = self._masks[baseline]
            masks[trial.case_id] = masks.get(trial.case_id, 0) | 1 << trial.number
        self.trials += 1
        self.errors += trial.error is not None
        self.rounds = max(self.rounds, trial.round)

    def remove(self, trials: Sequence[Trial]) -> None:
        """Take back trials that were added; the caller resets ``rounds``."""
        for trial in trials:
            baseline = trial.side is Side.BASELINE
            if trial.number > self._MASKED:
                self._high.discard((trial.case_id, baseline, trial.number))
            else:
                self._masks[baseline][trial.case_id] ^= 1 << trial.number
            self.trials -= 1
            self.errors -= trial.error is not None


def parse_record(
    data: bytes,
    *,
    where: str = "record",
    complete: bool = True,
    error: type[GateError] = BaselineError,
    remedy: str = "",
) -> Record:
    """Return the record in these bytes. Raises ``error`` for any bytes that are not a record."""
    lines = lines_of(io.BytesIO(data))
    return _whole(RecordReader(lines, where=where, complete=complete, error=error, remedy=remedy))


def read_record(path: Path, *, complete: bool = True, error: type[GateError] = MeasureError) -> Record:
    """Return the whole record in a file. Raises ``error`` if it is missing, or cannot be read or trusted."""
    with _reading(path, complete=complete, error=error) as reader:
        return _whole(reader)


def read_closed_part(path: Path) -> Record:
    """Return the record as it was when a run last closed it. Raises as `read_record`.

    It has no trials and no footer if no run ever did.
    """
    with _reading(path, complete=False) as reader:
        trials = tuple(reader)
        closed = closed_trials(reader.last_footer)
        return Record(reader.header, trials[:closed], reader.last_footer if closed else None)


def closed_trials(footer: Footer | None) -> int:
    """Return the number of trials when a run last closed its record; ``footer`` is the newest closing line.

    A closed copy of a record that was never closed also has a closing line.
    """
    return 0 if footer is None or footer.stopped == INTERRUPTED else footer.trials


def fold_record(path: Path, keeper: Callable[[Header], Callable[[Trial], Trial]]) -> Record:
    """Return the closed record in a file, with each trial as kept by ``keeper(header)``. Raises as `read_record`."""
    with _reading(path) as reader:
        trials = tuple(map(keeper(reader.header), reader))
        return Record(reader.header, trials, reader.footer)


def iter_trials(path: Path) -> Iterator[Trial]:
    """Yield the trials of a record one at a time, with the errors of `read_record` once their place is reached."""
    with _reading(path) as reader:
        yield from reader


def is_closed(path: Path) -> bool:
    """True if the last line of a file is a closing line, even one that disagrees with the rest."""
    size, read = path.stat().st_size, 1 << 16
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - read))
            last = file.read().rstrip(b"\n").rpartition(b"\n")
            if last[1] or read >= size:
                return last[2].startswith(CLOSING)
            read *= 16


def read_header(path: Path) -> Header:
    """Return only the header and plan, without reading any trial. Raises as `read_record`."""
    with _reading(path, complete=False) as reader:
        return reader.header


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """Return the lines of a file; an overlong line comes in pieces, of which all but the last lack a line end."""
    return iter(lambda: file.readline(MAX_LINE_BYTES + 1), b"")


def _whole(reader: RecordReader) -> Record:
    trials = tuple(reader)
    return Record(reader.header, trials, reader.footer)


@contextmanager
def _reading(path: Path, *, complete: bool = True, error: type[GateError] = MeasureError) -> Iterator[RecordReader]:
    try:
        if path.is_dir():
            hint = "name a file in it, or none: then it is the newest of the results folder"
            raise error("this is a folder, and a record is a file", where=str(path), hint=hint)
        if not path.is_file():
            raise error("no such record", where=str(path))
        file = path.open("rb")
    except OSError as problem:
        raise error(f"the record cannot be read: {problem.strerror}", where=str(path)) from None
    with file:
        try:
            yield RecordReader(lines_of(file), where=str(path), complete=complete, error=error)
        except OSError as problem:
            raise error(f"the record cannot be read: {problem.strerror}", where=str(path)) from None
