"""Reads the runs in many records, from a store of baselines, folders, files and archives, one record at a time.

A record that is unreadable or incomplete is counted and named; the others are still read.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from gate.errors import ConfigError, GateError, MeasureError
from gate.histories.runs import reduced, same_cases
from gate.histories.trends import Histories, PastRun, Unread, suite_history
from gate.hosts.artifact import record_members
from gate.model import Case, Criterion, MeasuredTrial
from gate.records import Header, cases_of
from gate.records import Run as StoredRun
from gate.records.keys import MISPLACED, Stored, commit_key
from gate.records.measured import MeasuredReader, created_in
from gate.security import files
from gate.security.limits import MAX_LINE_BYTES

if TYPE_CHECKING:
    from gate.baselines.blobs import BlobStore
    from gate.baselines.ledger import Ledger


MOST_FILES = 20_000
"""Maximum number of files to read in a folder."""
PATTERN = "*.jsonl"


def history_of(
    sources: Sequence[Path], config_path: Path, environment: Mapping[str, str], *, suite_id: str | None = None
) -> Histories:
    """Return the history in these files, folders and archives; without any, in the configured store and records.

    Raises:
        MeasureError: there is no readable record.
        ConfigError: a source does not exist, or there is neither a source nor a configuration.
        BaselineError: the store cannot be reached.
    """
    reading = _Reading(suite_id)
    if sources:
        for stored in _newest_first(_named(sources, reading)):
            reading.take(stored)
        named = ", ".join(map(str, sources[:3]))
        if len(sources) > 3:
            named += " …"
        return reading.result(named)
    from gate.config.load import load_config  # weight: only where no source is named
    from gate.pipeline.store import store_of

    config = load_config(config_path)
    folder = config.output / "records"
    own: list[Stored] = []
    if folder.is_dir():
        own = _newest_first(_named([folder], reading))
    store = store_of(config, environment)
    if store is None:
        for stored in own:
            reading.take(stored)
        return reading.result(str(folder))
    with store:
        kept = store.contents()  # not all at once: a git store holds a part of them
        newest = list(islice(kept, 1))
        own_first = bool(own and newest) and _created(own[0]) > _created(newest[0])
        if own_first:
            reading.take_all(own, None)
        reading.take_all(chain(newest, kept), store)
        if not own_first:
            reading.take_all(own, None)
    if not own:
        return reading.result("the stored baselines")
    return reading.result(f"the stored baselines and {folder}")


class _Reading:
    """The runs read so far, by suite."""

    def __init__(self, suite_id: str | None) -> None:
        self._wanted = suite_id
        self._runs: dict[str, list[PastRun]] = {}
        self._judges: dict[str, _Judge] = {}
        self._ledgers: dict[str, Ledger | None] = {}
        self._others: set[str] = set()
        self.unread: list[Unread] = []

    def leave_out(self, where: str, why: str) -> None:
        self.unread.append(Unread(where, why))

    def take_all(self, found: Iterable[Stored], store: BlobStore | None) -> None:
        """Read records, of which the first gives the criteria unless some were read before."""
        for stored in found:
            self.take(stored, store)

    def take(self, stored: Stored, store: BlobStore | None = None) -> None:
        """Read one record, or note the reason it cannot be read."""
        try:
            with stored.open() as file:
                reader = MeasuredReader(file, where=stored.where)
                header = reader.header
                if self._wanted is not None and header.suite_id != self._wanted:
                    self._others.add(header.suite_id)
                    return
                if header.shard != (1, 1):
                    raise MeasureError(f"shard {header.shard[0]} of {header.shard[1]}: merge the shards first")
                if stored.is_misplaced(header):
                    raise MeasureError(MISPLACED)
                judge = self._judges.get(header.suite_id) or _Judge(header)
                runs = _runs(reader, judge, self._ledger(store, header), stored.where)
        except GateError as problem:
            what = problem.what
            if problem.hint:
                what += f" ({problem.hint})"
            self.leave_out(stored.where, what)
        except OSError as problem:
            self.leave_out(stored.where, f"it cannot be read: {problem.strerror or type(problem).__name__}")
        else:
            self._judges.setdefault(header.suite_id, judge)
            self._runs.setdefault(header.suite_id, []).extend(runs)

    def _ledger(self, store: BlobStore | None, header: Header) -> Ledger | None:
        """Return the suite's ledger; None if none is readable."""
        if store is not None and header.suite_id not in self._ledgers:
            try:
                self._ledgers[header.suite_id] = store.ledger(header.suite_id)
            except GateError as problem:
                self._ledgers[header.suite_id] = None
                self.leave_out(problem.where or header.suite_id, problem.what)
        return self._ledgers.get(header.suite_id)

    def result(self, source: str) -> Histories:
        if not self._runs and self._others:
            hint = f"there are: {', '.join(sorted(self._others)[:5])}"
            raise MeasureError(f"no record of suite {self._wanted!r}", where=source, hint=hint)
        if not self._runs:
            what = "no finished record"
            if self.unread:
                first = self.unread[0]
                what += f" ({len(self.unread)} cannot be read; {first.where}: {first.why})"
            raise MeasureError(what, where=source, hint="`gate run` makes one, `gate baseline save` stores it")
        suites = []
        for suite_id, runs in sorted(self._runs.items()):
            suites.append(suite_history(suite_id, runs))
        return Histories(tuple(suites), tuple(self.unread), source)


# --- sources ----------------------------------------------------------------------------------------


def _named(sources: Sequence[Path], reading: _Reading) -> Iterator[Stored]:
    """Yield the records in these files, folders and archives."""
    for source in sources:
        if source.is_dir():
            paths = sorted(islice(source.rglob(PATTERN), MOST_FILES))
            yield from map(_file, files.plain(paths))
        elif not source.exists():
            raise ConfigError("no such file or folder", where=str(source))
        elif zipfile.is_zipfile(source):
            yield from _members(source, reading)
        else:
            yield _file(source)


def _file(path: Path) -> Stored:
    return Stored(str(path), lambda: path.open("rb"))


def _members(archive: Path, reading: _Reading) -> Iterator[Stored]:
    try:
        for name, content in record_members(archive):
            where = f"{archive}:{name}"
            if isinstance(content, GateError):
                reading.leave_out(where, content.what)
            else:
                yield Stored(where, lambda content=content: io.BytesIO(content))  # type: ignore[misc]
    except GateError as problem:
        reading.leave_out(str(archive), problem.what)


def _newest_first(found: Iterable[Stored]) -> list[Stored]:
    """Sort by the time in the first lines, the newest first: its criteria judge all records."""
    return sorted(found, key=lambda stored: -_created(stored))


def _created(stored: Stored) -> float:
    try:
        with stored.open() as file:
            return created_in(file.readline(MAX_LINE_BYTES))
    except (GateError, OSError):
        return 0.0


# --- one record -------------------------------------------------------------------------------------


class _Judge:
    """The terms for judging a suite's records: those of the newest, for records that measured the same in the same
    way."""

    def __init__(self, newest: Header) -> None:
        self._criteria = newest.criteria
        self._measured = _measured(newest)
        self._today = {case.id: case for case in cases_of(newest)}
        self._content = newest.contents
        self._plan = newest.plan

    def terms(self, header: Header) -> tuple[tuple[Criterion, ...], Mapping[str, Case]]:
        """Return the criteria and cases for a record."""
        if _measured(header) != self._measured:
            return header.criteria, {case.id: case for case in cases_of(header)}
        if header.plan == self._plan:
            return self._criteria, self._today
        same = frozenset(case.id for case in header.plan if self._content.get(case.id) == case.fingerprint)
        return self._criteria, same_cases(cases_of(header), self._today, same)


def _measured(header: Header) -> dict[str, tuple[str, bool]]:
    return {criterion.name: (criterion.fingerprint, criterion.blocking) for criterion in header.criteria}


def _runs(reader: MeasuredReader, judge: _Judge, ledger: Ledger | None, where: str) -> list[PastRun]:
    """Return the runs of a record, each with its own trials."""
    header = reader.header
    criteria, cases = judge.terms(header)
    key = commit_key(header)
    marks: dict[str, str] = {}
    releases: tuple[str, ...] = ()
    if ledger is not None:
        marks = {mark.run: mark.verdict for mark in ledger.marks if mark.key == key}
        releases = ledger.releases(key)
    fingerprints = header.contents
    tags = {case.id: frozenset(case.tags) for case in header.plan}
    trials, found = iter(reader), []
    for run in header.runs or (StoredRun(header.run_id or f"unnamed {header.created}", header.created, -1),):
        own: Iterator[MeasuredTrial] = trials
        if run.trials >= 0:
            own = islice(trials, run.trials)
        found.append(
            PastRun(
                run.id,
                run.created,
                reduced(own, criteria, cases),
                criteria,
                fingerprints,
                tags,
                header.commit,
                header.dirty,
                header.agent,
                header.subject,
                header.version,
                where,
                marks.get(run.id, ""),
                releases,
                header.created,
            )
        )
    if next(trials, None) is not None:
        raise MeasureError("its runs do not match its trials", where=where)
    return found
