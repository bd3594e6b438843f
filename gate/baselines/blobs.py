"""The base class of stores that keep bytes by key: a folder, a bucket, a git branch, or a plugin's.

A store defines how to read, write and list bytes. Records, ledgers, unions and look-ups are the same for all of them.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import BinaryIO, TypeVar

from gate.baselines.base import AGAIN, POOL, POOL_SEARCH, SUFFIX, Entry, Say, Store, misplaced, silent, storable
from gate.baselines.ledger import LEDGER, Ledger, Line
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.baselines.reference import Reference, reference_to
from gate.baselines.union import is_sound, unite
from gate.errors import BaselineError, BaselineWriteError, GateError
from gate.records import Header, Record, RecordReader, away, lines_of, parse_record, record_lines
from gate.records.keys import Stored, commit_key, suite_key
from gate.records.measured import created_in
from gate.security.limits import described

TRIES = 30
"""Attempts to write before giving way to other writers."""
Writes = dict[str, tuple[bytes | None, bytes]]
"""Key → the bytes that were read there, and the bytes to write."""
T = TypeVar("T")


class BlobStore(Store):
    """Keeps records at ``<suite>/<commit>.jsonl`` and ledgers at ``<suite>/ledger.ndjson``, using `get`, `put` and
    `keys`.

    Any exception from these ends the run with one line: exit code 4 for reading, 6 for writing.
    """

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

    def refresh(self, attempt: int) -> None:
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

    # --- writing ----------------------------------------------------------------------------------

    def save(
        self,
        record: Record,
        lines: Iterable[Line] = (),
        *,
        scope: Set[str] | None = None,
        say: Say = silent,
    ) -> str:
        kept, more = storable(record, scope), tuple(lines)
        suite_id = kept.header.suite_id
        return self.shown(self._change(suite_id, lambda: self._with_record(kept, more, say)))

    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
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
        return self._read_ledger(suite_id)[1]

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Reference | None:
        stored = {self.commit_in(key): key for key in self._records(suite_key(suite_id))}
        return self._nearest(suite_id, commits, stored, exclude, pool)

    def _nearest(
        self, suite_id: str, commits: Sequence[str], stored: Mapping[str, str], exclude: Set[str], pool: int
    ) -> Reference | None:
        """Return the result of `find`; ``stored``: commit → key of the eligible records."""
        hits = [distance for distance, commit in enumerate(commits) if commit in stored and commit not in exclude]
        if not hits:
            return None
        key = stored[commits[hits[0]]]
        records = [self._read(key, suite_id)]
        agent = records[0].header.agent
        for distance in hits[1:POOL_SEARCH]:
            if not agent or len(records) >= pool:
                break
            earlier = self._read(stored[commits[distance]], suite_id)
            if earlier.header.agent == agent:
                records.append(earlier)
        return reference_to(records, distance=hits[0], source=self.shown(key))

    def entries(self, suite_id: str | None = None, *, but: Container[str] = ()) -> list[Entry]:
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

    def names(self) -> Iterable[tuple[str, str]]:
        for key in self._records(""):
            yield key.partition("/")[0], self.commit_in(key)

    def contents(self) -> Iterator[Stored]:
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
        return self._read(entry.where, entry.suite_id)

    def place(self, entry: Entry) -> str:
        return self.shown(entry.where)

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
