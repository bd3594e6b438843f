"""Writes records: a locked journal that grows by one trial at a time, or a whole record at once.

A trial that `append` has returned for survives the end of the process, however it ends.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec.structs import replace

from gate.errors import ConfigError, MeasureError
from gate.model import Trial
from gate.records.lines import footer_line, header_lines, summed, trial_line
from gate.records.model import Footer, Header, Record, difference, footer_of
from gate.records.reader import RecordReader, Tally, closed_trials, lines_of
from gate.security import files

_BEGIN = b'{"gate_record":'
SUM_EVERY = 100
"""Number of trials between checksums in a record written at once, so that a reader never holds many unverified ones."""


class _TruncatedError(MeasureError):
    """The file ends before its first trial."""


def whole(trial: Trial) -> Trial:
    """Return the trial as it is recorded."""
    return trial


class RecordWriter:
    """A record being written, held under an exclusive lock until it is closed.

    Starts the file afresh, or with ``resume`` continues the existing one: a truncated last line is dropped, the stored
    header stays, with its seed, and `MeasureError` tells if the record is damaged, or has another plan, commit, agent,
    shard or set of criteria. Trials appended in one go end in a sum over everything before them, so that a later edit
    of an open record is detected.

    `finish` adds the closing line; leaving the ``with`` block without it leaves a record that can be resumed.
    """

    def __init__(
        self,
        path: Path,
        header: Header,
        *,
        resume: bool = False,
        keep: Callable[[Trial], Trial] = whole,
    ) -> None:
        self.path = path
        self.header = header
        self.keep = keep
        """Returns the part of a recorded trial that stays in memory."""
        self._known = frozenset(case.id for case in header.plan)
        if len(self._known) < len(header.plan):
            raise ValueError("a case is planned twice")
        self._tally = Tally()
        self._checksum = hashlib.sha256()
        self._end = 0
        self._footer: Footer | None = None
        self._before = Footer(0, 0, 0)
        self.resumed: tuple[Trial, ...] = ()
        """The trials already in the record, in the form returned by `keep`."""
        self._file = _locked(path)
        try:
            self._take_up() if resume else self._start()
        except BaseException:
            self.close()
            raise

    def append(self, trial: Trial) -> None:
        """Add one finished trial. Raises `MeasureError` if the disk is full; everything written before stays."""
        self.extend([(trial, trial_line(trial))])

    def extend(self, recorded: Sequence[tuple[Trial, bytes]]) -> None:
        """Add finished trials with their lines, all or none. Raises as `append`.

        Of a trial only its case, number, side, round and error are used.
        """
        for trial, _ in recorded:
            if trial.case_id not in self._known:
                raise ValueError(f"case {trial.case_id!r} is not in the plan")
            if trial in self._tally:
                raise ValueError(f"trial {trial.number} of case {trial.case_id!r} was recorded before")
        if not recorded:
            return
        self._write(b"".join([line for _, line in recorded]), chained=True)
        for trial, _ in recorded:
            self._tally.add(trial)
        self._footer = None

    def finish(
        self,
        *,
        duration: float = 0.0,
        judge_cost_usd: float | None = None,
        stopped: str = "",
        terms: Mapping[str, Any] | None = None,
    ) -> Footer:
        """Write the closing line and make sure that everything is on disk.

        ``duration`` (seconds) and ``judge_cost_usd`` cover this session so far and are added to those of earlier ones;
        ``stopped`` is the reason why the run ended before its schedule, ``terms`` are those of its verdict.
        """
        trials, errors, rounds = self._tally.counts
        costs = [cost for cost in (self._before.judge_cost_usd, judge_cost_usd) if cost is not None]
        total = sum(costs) if costs else None
        spent = self._before.duration + duration
        footer = Footer(trials, errors, rounds, spent, total, stopped, terms or {})
        if footer != self._footer:
            self._write(footer_line(footer, self._checksum.hexdigest()))
            self._footer = footer
        try:
            os.fsync(self._file.fileno())
        except OSError as problem:
            raise self._problem(problem) from None
        return footer

    @property
    def closed_trials(self) -> int:
        """Return the number of resumed trials present when a run last closed the record; they come first."""
        return closed_trials(self._before)

    @property
    def closed_terms(self) -> Mapping[str, Any]:
        """Return the terms that a run last closed the record with; empty if none did."""
        return self._before.terms

    @property
    def finished(self) -> bool:
        """True if the last line is a closing line of a run that was not stopped."""
        return self._footer is not None and not self._footer.stopped

    def close(self) -> None:
        """Release the file and its lock without writing anything."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self) -> None:
        if not _is_record(self._file):
            raise MeasureError("not a record, so not overwritten", where=str(self.path), hint="name another file")
        self._file.truncate(0)
        self._write(header_lines(self.header))

    def _take_up(self) -> None:
        where = str(self.path)
        try:
            lines = _lines_from_start(self._file)
            remedy = "move it away, or name another by --record"
            reader = RecordReader(
                lines, where=where, complete=False, error=MeasureError, truncated=_TruncatedError, remedy=remedy
            )
        except _TruncatedError:  # killed before the first trial: starting again loses nothing
            self._start()
            return
        different = difference(reader.header, self.header)
        if different:
            hint = "name another file, or delete this one: an existing file is continued"
            raise MeasureError(f"the record belongs to another run: {different}", where=where, hint=hint)
        self.resumed = tuple(map(self.keep, reader))
        self.header = reader.header
        self._tally, self._checksum, self._end = reader.tally, reader.checksum, reader.end
        self._footer = reader.footer
        self._before = reader.last_footer or self._before
        self._file.truncate(self._end)

    def _write(self, data: bytes, *, chained: bool = False) -> None:
        """Append whole lines, ``chained`` with a sum on the last one; on failure the file is cut back to its former
        end."""
        checksum = self._checksum.copy()
        if chained:
            data = summed(data, checksum)
        else:
            checksum.update(data)
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._file.fileno(), view) :]
        except OSError as problem:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise self._problem(problem) from None
        self._end += len(data)
        self._checksum = checksum

    def _problem(self, problem: OSError) -> MeasureError:
        return MeasureError(
            f"the record cannot be written: {problem.strerror}",
            where=str(self.path),
            hint="everything before this trial is kept: free disk space and continue with --resume",
        )


def write_record(path: Path, record: Record) -> Footer:
    """Write a whole, closed record, atomically replacing the file at ``path``. Raises `MeasureError`."""
    try:
        files.write_parts(path, record_lines(record))
    except OSError as problem:
        raise MeasureError(f"the record cannot be written: {problem.strerror}", where=str(path)) from None
    return _closed(record)


def record_lines(record: Record) -> Iterator[bytes]:
    """Yield the lines of a whole, closed record; its counts and checksum are computed anew."""
    checksum = hashlib.sha256()
    lines = header_lines(record.header)
    checksum.update(lines)
    yield lines
    for number, trial in enumerate(record.trials, 1):
        line = trial_line(trial)
        if number % SUM_EVERY:
            checksum.update(line)
            yield line
        else:
            yield summed(line, checksum)
    yield footer_line(_closed(record), checksum.hexdigest())


def _closed(record: Record) -> Footer:
    counts = footer_of(record.trials)
    said = record.footer or counts
    return replace(said, trials=counts.trials, errors=counts.errors, rounds=counts.rounds)


def _locked(path: Path) -> FileIO:
    """Return the file under an exclusive lock, created with its folders if missing."""
    try:
        file = files.open_to_append(path)
    except files.LinkError as problem:
        raise ConfigError(f"the record cannot be written: {problem.strerror}", where=str(path)) from None
    except OSError as problem:
        raise MeasureError(f"the record cannot be written: {problem.strerror}", where=str(path)) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as problem:
        file.close()
        if isinstance(problem, BlockingIOError):
            hint = "wait for it, or name another file for this one's record"
            raise MeasureError("another gate is writing this record", where=str(path), hint=hint) from None
        raise MeasureError(f"the record cannot be locked: {problem.strerror}", where=str(path)) from None
    return file


def _lines_from_start(file: FileIO) -> Iterator[bytes]:
    """Return the lines of the file from its start, through a separate buffer; the file and its lock stay open."""
    file.seek(0)
    with os.fdopen(os.dup(file.fileno()), "rb") as buffered:
        yield from lines_of(buffered)


def _is_record(file: FileIO) -> bool:
    """True if the file is empty or begins like a record."""
    file.seek(0)
    begin = file.read(len(_BEGIN)) or b""
    return _BEGIN.startswith(begin)
