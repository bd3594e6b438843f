"""The base class of stores of baselines: a folder, a bucket, a git branch, or a plugin's.

A store defines how to read, write and list bytes by key, in a separate file. Records, ledgers, unions, look-ups, the
search for the anchor and the check of proofs are the same for all of them.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import islice
from time import time
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Self, TypeVar

from msgspec.structs import replace

from gate.baselines.base import (
    AGAIN,
    ANCHOR_SEARCH,
    ENOUGH_TRIALS,
    POOL,
    SUFFIX,
    Entry,
    RewrittenError,
    Say,
    StoreOptions,
    StoreSettings,
    misplaced,
    silent,
    storable,
    thickness,
)
from gate.baselines.ledger import LEDGER, Ledger, Line, anchors
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.baselines.reference import Reference, reference_to
from gate.baselines.union import is_sound, unite, without
from gate.errors import BaselineError, BaselineWriteError, GateError
from gate.records import Header, Record, RecordReader, away, lines_of, parse_record, record_lines
from gate.records.keys import Stored, commit_key, key_of, suite_key
from gate.records.measured import created_in
from gate.security.limits import described

if TYPE_CHECKING:
    from gate.baselines.proven import Provenance

POOL_SEARCH = 20
"""Number of stored ancestors to read in search of records to pool."""
TRIES = 30
"""Attempts to write before giving way to other writers."""
Writes = dict[str, tuple[bytes | None, bytes]]
"""Key → the bytes that were read there, and the bytes to write."""
T = TypeVar("T")


class BlobStore(ABC):
    """Keeps one record per suite and commit, and a ledger per suite. Close it after use, best with ``with``.

    Records are at ``<suite>/<commit>.jsonl`` and ledgers at ``<suite>/ledger.ndjson``, using `get`, `put` and `keys`.
    Any exception from these ends the run with one line: exit code 4 for reading, 6 for writing.
    """

    Options: ClassVar[type[StoreOptions]] = StoreOptions
    provenance: Provenance | None = None
    """Finds the proofs of the records, so that unproven ones do not count; None: no proofs are looked up."""

    @classmethod
    @abstractmethod
    def open(cls, settings: StoreSettings) -> Self:
        """Return the store for these settings; ``settings.options`` are those that `Options` has accepted."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """Return the bytes under a key, or None if there are none."""

    @abstractmethod
    def put(self, key: str, data: bytes, before: bytes | None) -> bool:
        """Write the data under a key, whole or not at all.

        Args:
            key: letters, digits, ``-``, ``.`` and one ``/``.
            data: the bytes to keep.
            before: the result of `get`. If the stored bytes differ from it by now, nothing may be written.

        Returns:
            False if the stored bytes differ from ``before``; the write is then repeated on top of them.
        """

    @abstractmethod
    def keys(self, prefix: str) -> Iterable[str]:
        """Return the keys that begin with a prefix, in any order; all keys if it is empty."""

    # --- optional improvements of the built-in stores --------------------------------------------------

    def put_all(self, writes: Writes, gone: Sequence[str]) -> bool:  # noqa: ARG002
        """Write several keys and remove the keys in ``gone``, which is empty unless the store prunes."""
        return all(self.put(key, data, before) for key, (before, data) in writes.items())

    def open_blob(self, key: str) -> BinaryIO:
        """Open the bytes under a key, to read their beginning or all of them."""
        return io.BytesIO(self._get(key) or b"")

    def writing(self, folder: str) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return a context in which only this process writes to a suite's folder, if the store can lock."""
        return nullcontext()

    def refresh(self, attempt: int) -> None:  # noqa: B027
        """Forget the listed keys, before the nth attempt to write."""

    def shown(self, key: str) -> str:
        """Return a key's place, for display."""
        return key

    @property
    def remedy(self) -> str:
        """Return the hint for a damaged record."""
        return f"remove the object, then {AGAIN}"

    def key_of_record(self, header: Header) -> str:
        """Return the key that a record is kept under."""
        return f"{suite_key(header.suite_id)}/{commit_key(header)}{SUFFIX}"

    def commit_in(self, key: str) -> str:
        """Return the commit in a record's key, in the form of `commit_key`."""
        return key.rpartition("/")[2].removesuffix(SUFFIX)

    def keys_of_commit(self, header: Header) -> list[str]:
        """Return the possible keys of records of the same suite and commit."""
        return [self.key_of_record(header)]

    def prune(self, key: str, ledger: Ledger) -> tuple[list[str], Ledger]:  # noqa: ARG002
        """Return the records to remove when this one is saved, and the ledger without their marks."""
        return [], ledger

    def fetch(self, keys: Sequence[str]) -> None:  # noqa: B027
        """Fetch these records in one go, since they are about to be read; most stores read one as fast as many."""

    def may_be_pooled(self, key: str, other: str) -> bool:  # noqa: ARG002
        """True unless the names of two records show that they are of different agents."""
        return True

    def close(self) -> None:  # noqa: B027  # most stores hold nothing
        """Close any resources that the store holds open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.provenance is not None:
            self.provenance.close()
        self.close()

    # --- writing ----------------------------------------------------------------------------------

    def save(
        self,
        record: Record,
        lines: Iterable[Line] = (),
        *,
        scope: Set[str] | None = None,
        say: Say = silent,
    ) -> str:
        """Store the stripped form of a complete record, united with the stored record of its suite and commit.

        ``lines`` are added to the suite's ledger along with it. ``scope``: the cases that the configuration runs; a
        record of a selection is complete if it has them all, and never without a scope. ``say`` is told which parts
        were not added.

        Return the record's place. Raises `BaselineWriteError`; the stored record then stays as it was.
        """
        kept, more = storable(record, scope), tuple(lines)
        suite_id = kept.header.suite_id
        return self.shown(self._change(suite_id, lambda: self._with_record(kept, more, say)))

    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
        """Add lines to the ledger of a suite. Raises `BaselineWriteError`."""
        more = tuple(lines)
        if more:
            self._change(suite_id, lambda: self._with_lines(suite_id, more))

    def _change(self, suite_id: str, made: Callable[[], tuple[Writes, list[str]]]) -> str:
        """Write a change on top of the stored state, retrying if others write first; return its first key."""
        with self.writing(suite_key(suite_id)):
            for attempt in range(TRIES):
                self._asked(lambda n=attempt: self.refresh(n), BaselineWriteError)  # type: ignore[misc]
                writes, gone = self._asked(made, BaselineWriteError)
                fresh = {key: write for key, write in writes.items() if write[0] != write[1]}
                if not (fresh or gone) or self._asked(partial(self.put_all, fresh, gone), BaselineWriteError):
                    return next(iter(writes), "")
        raise BaselineWriteError(f"{TRIES} other writers were faster", where=suite_id, hint="save the record again")

    def _with_record(self, kept: Record, lines: Sequence[Line], say: Say) -> tuple[Writes, list[str]]:
        """Return the writes that unite a record with the stored one of its commit, and add lines to the ledger."""
        suite_id = kept.header.suite_id
        before: dict[str, bytes | None] = {}
        for key in self.keys_of_commit(kept.header):
            data = before[key] = self._get(key)
            if data is None:
                continue
            try:
                stored = self._record(key, data, suite_id)
            except BaselineError as error:  # it may be of a newer format, or can be restored
                what = f"not saved: {error.what}"
                raise BaselineWriteError(
                    what, where=error.where, hint="restore or remove it, then save again"
                ) from None
            kept, note = unite(stored, kept)
            if note:
                say(note)
        key = self.key_of_record(kept.header)
        writes: Writes = {key: (before.get(key), b"".join(record_lines(kept)))}
        noted, known = self._read_ledger(suite_id)
        gone, ledger = self.prune(key, known.add(lines))
        if ledger is not known:
            writes[_ledger_key(suite_id)] = (noted, write_ledger(ledger))
        gone += [old for old, data in before.items() if old != key and data is not None]
        return writes, gone

    def _with_lines(self, suite_id: str, lines: Sequence[Line]) -> tuple[Writes, list[str]]:
        noted, known = self._read_ledger(suite_id)
        ledger = known.add(lines)
        return ({} if ledger is known else {_ledger_key(suite_id): (noted, write_ledger(ledger))}), []

    def _read_ledger(self, suite_id: str) -> tuple[bytes | None, Ledger]:
        key = _ledger_key(suite_id)
        data = self._get(key)
        return data, read_ledger(data or b"", suite_key(suite_id), self.shown(key))

    # --- reading ----------------------------------------------------------------------------------

    def ledger(self, suite_id: str) -> Ledger:
        """Return the findings on a suite's records. Raises `BaselineError` if the ledger is damaged or belongs to
        another suite."""
        stored = self.stored_ledger(suite_id)
        return stored if self.provenance is None else self.provenance.ledger(suite_id, stored)

    def stored_ledger(self, suite_id: str) -> Ledger:
        """Return the ledger as it is stored, proven or not."""
        return self._read_ledger(suite_id)[1]

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Reference | None:
        """Return the record of the first of these commits that has one, with up to ``pool - 1`` more of the same agent.

        ``commits`` are in order of preference: a commit and its first-parent ancestors. None if none has a record.
        Raises `BaselineError` if one is damaged or misplaced: it is never skipped.
        """
        if self.provenance is None:
            return self._nearest(suite_id, commits, exclude, pool)
        return self.provenance.find(suite_id, commits, exclude, partial(self._nearest, pool=pool))

    def _nearest(self, suite_id: str, commits: Sequence[str], exclude: Set[str], pool: int) -> Reference | None:
        """Return the result of `find` among all records, proven or not."""
        stored: dict[str, str] = {}
        for key in self._records(suite_key(suite_id)):
            stored.setdefault(self.commit_in(key), key)
        hits = [(distance, stored[one]) for distance, one in enumerate(commits) if one in stored and one not in exclude]
        if not hits:
            return None
        distance, key = hits[0]
        others = [other for _, other in hits[1:] if self.may_be_pooled(key, other)]
        self.fetch([key, *others][:pool])
        records = [self._read(key, suite_id)]
        agent = records[0].header.agent
        for other in others[: POOL_SEARCH - 1]:
            if not agent or len(records) >= pool:
                break
            earlier = self._read(other, suite_id)
            if earlier.header.agent == agent:
                records.append(earlier)
        return reference_to(records, distance=distance, source=self.shown(key))

    def latest(self, suite_id: str, *, exclude: Set[str] = frozenset()) -> Reference | None:
        """Return the newest record of the suite at any commit, except for the keys in ``exclude``.

        Callers say so in their output, since its commit may not be an ancestor.
        """
        for entry in self.entries(suite_id):
            if entry.key not in exclude:
                for record in self.read_sound([entry]):
                    return reference_to([record], source=self.shown(entry.where))
        return None

    def entries(self, suite_id: str | None = None, *, but: Container[str] = ()) -> list[Entry]:
        """Return the stored baselines of one suite or of all, newest first, without those whose place is in ``but``.

        If proofs are looked up, those of one suite have any; of all suites, every stored one is returned. Raises
        `BaselineError` if one of them is misplaced.
        """
        found = self.stored_entries(suite_id, but=but)
        if suite_id is None or self.provenance is None:
            return found
        return self.provenance.entries(suite_id, found)

    def stored_entries(self, suite_id: str | None = None, *, but: Container[str] = ()) -> list[Entry]:
        """Return the entries as they are stored, proven or not."""
        found = []
        for key in self._records("" if suite_id is None else suite_key(suite_id)):
            if self.shown(key) in but:
                continue
            header = self._asked(partial(self._header, key), BaselineError)
            if header.dirty or key != self.key_of_record(header):
                raise misplaced(self.shown(key))
            found.append(Entry(header.suite_id, header.commit, header.created, key))
        return sorted(found, key=lambda entry: (-entry.created, entry.where))

    def _header(self, key: str) -> Header:
        with self.open_blob(key) as file:
            reader = RecordReader(lines_of(file), where=self.shown(key), complete=False, remedy=self.remedy)
            return reader.header

    def suites_at(self, commits: Sequence[str]) -> frozenset[str]:
        """Return the folder names of the suites that have records at the nearest of these commits."""
        found: dict[str, set[str]] = {}
        for key in self._records(""):
            found.setdefault(self.commit_in(key), set()).add(key.partition("/")[0])
        for commit in commits:
            if key_of(commit) in found:
                return frozenset(found[key_of(commit)])
        return frozenset()

    def contents(self) -> Iterator[Stored]:
        """Yield every record of every suite, newest first as far as the store can tell without reading them.

        Unlike `entries` it does not fail for a single damaged record; opening that record does.
        """
        if self.provenance is None:
            return self.stored_contents()
        return map(self.provenance.proven_content, self.stored_contents())

    def stored_contents(self) -> Iterator[Stored]:
        """Yield the contents as they are stored, proven or not."""
        times = {}
        for key in self._records(""):
            try:
                with self.open_blob(key) as file:
                    times[key] = created_in(file.readline())
            except GateError:
                times[key] = 0.0
        for key in sorted(times, key=lambda key: (-times[key], key)):
            yield Stored(self.shown(key), partial(self.open_blob, key), (key.partition("/")[0], self.commit_in(key)))

    def read(self, entry: Entry) -> Record:
        """Return the record of an entry. Raises `BaselineError` if it is damaged."""
        record = self.read_stored(entry)
        return record if self.provenance is None else self.provenance.read(record, self.shown(entry.where))

    def read_stored(self, entry: Entry) -> Record:
        """Return the record of an entry as it is stored, proven or not."""
        return self._read(entry.where, entry.suite_id)

    def read_sound(self, entries: Iterable[Entry]) -> Iterator[Record]:
        """Yield the records of these entries, skipping those that somebody has put in the place of others.

        Raises `BaselineError` if one is damaged.
        """
        for entry in entries:
            with suppress(RewrittenError):
                yield self.read(entry)

    def anchor(
        self,
        suite_id: str,
        *,
        is_near: Callable[[str | None], bool] = lambda _commit: True,
        suits: Callable[[Record], bool] = lambda _record: True,
        series: str | None = None,
        runs: Set[str] = frozenset(),
        at: float | None = None,
    ) -> Reference | None:
        """Return the record to compare with as the best: the last accepted release, else see `anchors`.

        Of the first `ANCHOR_SEARCH` candidates that suit, it is the first with enough trials per case, else the one
        with the most trials; if none suits, the first candidate. None if there is no candidate.

        ``is_near`` says which commits are eligible, ``suits`` which records still cover the suite, ``series`` which
        releases. ``runs`` are those being compared, which do not count. ``at`` is the time (Unix; None: now) at which
        acceptances have to be valid.
        """
        at = time() if at is None else at
        found = None
        while True:
            with suppress(RewrittenError):  # a rewritten record is noted, and is no longer among the entries
                found = self._anchor(suite_id, is_near, suits, series, runs, at)
                break
        if self.provenance is not None:
            self.provenance.miss_anchor(suite_id, found, is_near, series, at)
        return found

    def _anchor(
        self,
        suite_id: str,
        is_near: Callable[[str | None], bool],
        suits: Callable[[Record], bool],
        series: str | None,
        runs: Set[str],
        at: float,
    ) -> Reference | None:
        entries = {entry.key: entry for entry in self.entries(suite_id)}
        times = {key: entry.created for key, entry in entries.items()}
        ledger = self.ledger(suite_id).at(at)
        first: Reference | None = None
        thickest: Reference | None = None
        near = (one for one in anchors(ledger, times, series=series) if is_near(entries[one.key].commit))
        for candidate in islice(near, ANCHOR_SEARCH):
            entry = entries[candidate.key]
            proven = without(self.read(entry), candidate.without | runs)
            if proven is None:
                continue
            source = f"{self.shown(entry.where)} ({candidate.why})"
            found = replace(reference_to([proven], source=source), name="anchor")
            first = first or found
            if not suits(proven):
                continue
            if candidate.is_chosen or thickness(proven) >= ENOUGH_TRIALS:
                return found
            if thickest is None or thickness(proven) > thickness(thickest.records[0]):
                thickest = found
        return thickest or first

    # --- bytes as records -------------------------------------------------------------------------

    def _records(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        listed = self._asked(lambda: list(self.keys(prefix)), BaselineError)
        # Deeper keys are no records, for instance a copy that somebody put aside: its name says the same commit.
        return [key for key in listed if key.endswith(SUFFIX) and key.count("/") == 1]

    def _get(self, key: str) -> bytes | None:
        return self._asked(partial(self.get, key), BaselineError)

    def _read(self, key: str, suite_id: str) -> Record:
        data = self._get(key)
        if data is None:
            raise BaselineError("the stored baseline is gone", where=self.shown(key))
        return self._record(key, data, suite_id)

    def _record(self, key: str, data: bytes, suite_id: str) -> Record:
        """Return the record in these bytes. Raises `BaselineError` if it is damaged or misplaced."""
        where = self.shown(key)
        record = parse_record(data, where=where, remedy=self.remedy)
        header = record.header
        is_here = header.suite_id == suite_id and commit_key(header) == self.commit_in(key)
        if header.dirty or not is_here or key != self.key_of_record(header):
            raise misplaced(where)
        if not is_sound(record):
            what = "the stored baseline is damaged: its runs do not match its trials"
            raise BaselineError(what, where=where, hint=away(AGAIN))
        return record

    def _asked(self, ask: Callable[[], T], kind: type[GateError]) -> T:
        try:
            return ask()
        except GateError as error:
            if isinstance(error, kind) or kind is BaselineError:
                raise
            raise kind(error.what, where=error.where, hint=error.hint) from None
        except (Exception, SystemExit) as error:  # a plugin's code may raise anything
            raise kind(f"the store raised {described(error)}", where=type(self).__name__) from error


def _ledger_key(suite_id: str) -> str:
    return f"{suite_key(suite_id)}/{LEDGER}"
