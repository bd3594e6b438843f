"""The base of a store that keeps bytes by key, such as a bucket: records, ledgers and look-ups are settled here.

A plugin says how bytes are read, written and listed; everything that a store promises is the same for all of them.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import partial
from typing import BinaryIO, TypeVar

from msgspec.structs import replace

from gate.baselines.base import (
    AGAIN,
    POOL,
    SUFFIX,
    Entry,
    Found,
    Say,
    Store,
    check_belongs,
    look_up,
    misplaced,
    newest_first,
    storable,
    united,
)
from gate.baselines.ledger import LEDGER, Ledger, Line
from gate.baselines.ledger import read as read_ledger
from gate.baselines.ledger import write as write_ledger
from gate.errors import BaselineError, BaselineWriteError, GateError
from gate.records import Record, parse_record, record_lines
from gate.records.keys import Stored, commit_key, suite_key
from gate.records.measured import created_in
from gate.security.limits import described

TRIES = 30
"""How often a write is made again that another writer came before."""
T = TypeVar("T")


class BlobStore(Store):
    """Records under ``<suite>/<commit>.jsonl`` and ledgers under ``<suite>/ledger.ndjson``, by `get`, `put` and `keys`.

    Any exception that these raise ends the run with one line: exit code 4 for reading, 6 for writing.
    """

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """What is kept under a key; None if nothing is."""

    @abstractmethod
    def put(self, key: str, data: bytes, before: bytes | None) -> bool:
        """Keeps the data under a key, whole or not at all.

        Args:
            key: letters, digits, ``-``, ``.`` and one ``/``.
            data: what to keep.
            before: what `get` gave. If something else is kept by now, nothing may be written.

        Returns:
            False if something else than ``before`` is kept; the write is then made again on top of that.
        """

    @abstractmethod
    def keys(self, prefix: str) -> Iterable[str]:
        """The keys that begin with a prefix, in any order; with an empty one, all."""

    def save(
        self,
        record: Record,
        lines: Iterable[Line] = (),
        *,
        scope: Set[str] | None = None,
        say: Say = lambda _line: None,
    ) -> str:
        kept = storable(record, scope)
        suite_id = kept.header.suite_id
        key = f"{suite_key(suite_id)}/{commit_key(kept.header)}{SUFFIX}"

        def added(before: bytes | None) -> bytes:
            whole = kept if before is None else united(lambda: self._record(key, before, suite_id), kept, say)
            return b"".join(record_lines(whole))

        self._change(key, added)
        self.note(suite_id, lines)
        return key

    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
        more = tuple(lines)
        if more:
            folder = suite_key(suite_id)
            key = f"{folder}/{LEDGER}"
            self._change(key, lambda before: write_ledger(read_ledger(before or b"", folder, key).add(more)))

    def ledger(self, suite_id: str) -> Ledger:
        folder = suite_key(suite_id)
        key = f"{folder}/{LEDGER}"
        return read_ledger(self._get(key) or b"", folder, key)

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Found | None:
        stored = {key.rpartition("/")[2].removesuffix(SUFFIX): key for key in self._records(suite_key(suite_id))}
        hit = look_up(commits, stored, lambda key: self._read(key, suite_id), exclude=exclude, pool=pool)
        return None if hit is None else replace(hit[1], where=hit[0])

    def entries(self, suite_id: str | None = None) -> list[Entry]:
        found = []
        for key in self._records("" if suite_id is None else suite_key(suite_id)):
            header = parse_record(self._get(key) or b"", where=key, remedy=_remedy(key)).header
            if key != f"{suite_key(header.suite_id)}/{commit_key(header)}{SUFFIX}":
                raise misplaced(key)
            found.append(Entry(header.suite_id, header.commit, header.created, key, header.dirty))
        return newest_first(found)

    def _names(self) -> Iterable[tuple[str, str]]:
        for key in self._records(""):
            folder, _, name = key.removesuffix(SUFFIX).partition("/")
            yield folder, name

    def contents(self) -> Iterator[Stored]:
        def opened(key: str) -> BinaryIO:
            return io.BytesIO(self._get(key) or b"")

        times = {key: created_in(opened(key).readline()) for key in self._records("")}
        for key in sorted(times, key=lambda key: (-times[key], key)):
            yield Stored(key, partial(opened, key))

    def read(self, entry: Entry) -> Record:
        return self._read(entry.where, entry.suite_id)

    def _records(self, folder: str) -> list[str]:
        prefix = f"{folder}/" if folder else ""
        listed = self._asked(lambda: list(self.keys(prefix)), BaselineError)
        # What lies deeper is nobody's record, such as a copy that somebody put aside: its name says the same commit.
        return [key for key in listed if key.endswith(SUFFIX) and key.count("/") == 1]

    def _get(self, key: str) -> bytes | None:
        return self._asked(lambda: self.get(key), BaselineError)

    def _read(self, key: str, suite_id: str) -> Record:
        data = self._get(key)
        if data is None:
            raise BaselineError("the stored baseline is gone", where=key)
        return self._record(key, data, suite_id)

    def _record(self, key: str, data: bytes, suite_id: str) -> Record:
        name = key.rpartition("/")[2].removesuffix(SUFFIX)
        return check_belongs(parse_record(data, where=key, remedy=_remedy(key)), suite_id, name, key)

    def _change(self, key: str, changed: Callable[[bytes | None], bytes]) -> None:
        for _ in range(TRIES):
            before = self._asked(lambda: self.get(key), BaselineWriteError)
            data = self._asked(lambda before=before: changed(before), BaselineWriteError)  # type: ignore[misc]
            if data == before or self._asked(lambda d=data, b=before: self.put(key, d, b), BaselineWriteError):  # type: ignore[misc]
                return
        raise BaselineWriteError(f"{TRIES} other writers came before", where=key, hint="save the record again")

    def _asked(self, ask: Callable[[], T], kind: type[GateError]) -> T:
        try:
            return ask()
        except GateError as error:
            if isinstance(error, kind) or kind is BaselineError:
                raise
            raise kind(error.what, where=error.where, hint=error.hint) from None
        except (Exception, SystemExit) as error:  # somebody else's code may raise anything
            raise kind(f"the store raised {described(error)}", where=type(self).__name__) from error


def _remedy(key: str) -> str:
    return f"remove the object {key}, then {AGAIN}"
