"""Baselines in a folder: one file per suite and commit, written at once or not at all, one writer at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from msgspec.structs import replace

from gate.baselines.base import (
    AGAIN,
    POOL,
    SUFFIX,
    Entry,
    Found,
    Say,
    Store,
    StoreOptions,
    StoreSettings,
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
from gate.errors import BaselineError, BaselineWriteError
from gate.records import Record, away, read_header, read_record, write_record
from gate.records.keys import Stored, commit_key, suite_key
from gate.records.measured import created_in
from gate.security import files
from gate.security.limits import MAX_LINE_BYTES

LOCK_SECONDS = 30.0
_ATTRIBUTES = f"*.jsonl -text linguist-generated\n{LEDGER} -text merge=union\n"
"""For folders that are committed: line ends are part of a record's checksum, and nobody reviews one line by line. The
lines of a ledger say when they were written, so that those of two branches may stand in any order."""


class FileOptions(StoreOptions):
    """Where the folder is."""

    path: str = ".gate/baselines"
    """Folder of the file store, relative to the configuration file."""


class FileStore(Store):
    """``FOLDER/<suite>/<commit>.jsonl``, and ``FOLDER/<suite>/ledger.ndjson``."""

    Options = FileOptions

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls(settings.root / FileOptions.model_validate(settings.options).path)

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
        path = self._path(suite_id, commit_key(kept.header))
        with self._lock(path.parent):
            whole = united(lambda: self._read(path, suite_id), kept, say) if path.is_file() else kept
            write_record(path, whole, error=BaselineWriteError)
            self._note(suite_id, lines)
        return str(path)

    def note(self, suite_id: str, lines: Iterable[Line]) -> None:
        with self._lock(self._folder(suite_id)):
            self._note(suite_id, lines)

    def ledger(self, suite_id: str) -> Ledger:
        path = self._folder(suite_id) / LEDGER
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return Ledger()
        except OSError as problem:
            what = f"the ledger of the baselines cannot be read: {problem.strerror}"
            raise BaselineError(what, where=str(path)) from None
        return read_ledger(data, suite_key(suite_id), str(path))

    def _note(self, suite_id: str, lines: Iterable[Line]) -> None:
        """Under the lock. The file is replaced whole, so that readers see all of it or nothing."""
        path = self._folder(suite_id) / LEDGER
        try:
            known = self.ledger(suite_id)
            more = known.add(lines)
            if more is not known:
                files.write_parts(path, [write_ledger(more)])
        except BaselineError as problem:
            raise BaselineWriteError(problem.what, where=problem.where, hint=problem.hint) from None
        except OSError as problem:
            what = f"the ledger of the baselines cannot be written: {problem.strerror}"
            raise BaselineWriteError(what, where=str(path)) from None

    def find(
        self, suite_id: str, commits: Sequence[str], *, exclude: Set[str] = frozenset(), pool: int = POOL
    ) -> Found | None:
        wanted = {commit: self._path(suite_id, commit) for commit in commits}
        stored = {commit: path for commit, path in wanted.items() if path.is_file()}
        hit = look_up(commits, stored, lambda path: self._read(path, suite_id), exclude=exclude, pool=pool)
        return None if hit is None else replace(hit[1], where=str(hit[0]))

    def entries(self, suite_id: str | None = None) -> list[Entry]:
        below = "*" if suite_id is None else suite_key(suite_id)
        found = []
        for path in self.folder.glob(f"{below}/*{SUFFIX}"):
            if path.name.startswith(".") or path.name == LEDGER:
                continue  # being written
            header = read_header(path, remedy=_remedy(path))
            if (path.parent.name, path.stem) != (suite_key(header.suite_id), commit_key(header)):
                raise misplaced(str(path))
            found.append(Entry(header.suite_id, header.commit, header.created, str(path), header.dirty))
        return newest_first(found)

    def _names(self) -> Iterable[tuple[str, str]]:
        return ((path.parent.name, path.stem) for path in self.folder.glob(f"*/*{SUFFIX}") if path.name != LEDGER)

    def read(self, entry: Entry) -> Record:
        return self._read(Path(entry.where), entry.suite_id)

    def contents(self) -> Iterator[Stored]:
        found = [path for path in self.folder.glob(f"*/*{SUFFIX}") if not path.name.startswith(".")]
        for path in sorted(found, key=lambda path: (-_created(path), str(path))):

            def opened(path: Path = path) -> BinaryIO:
                return path.open("rb")

            yield Stored(str(path), opened)

    def _path(self, suite_id: str, key: str) -> Path:
        return self._folder(suite_id) / f"{key}{SUFFIX}"

    def _folder(self, suite_id: str) -> Path:
        return self.folder / suite_key(suite_id)

    def _read(self, path: Path, suite_id: str) -> Record:
        return check_belongs(
            read_record(path, remedy=_remedy(path)), suite_id, path.name.removesuffix(SUFFIX), str(path)
        )

    @contextmanager
    def _lock(self, folder: Path) -> Iterator[None]:
        """Holds the suite's folder against other writers; readers need no lock, since files are replaced whole."""
        try:
            files.make_folder(folder)
            if not (self.folder / ".gitattributes").exists():
                files.write_text(self.folder / ".gitattributes", _ATTRIBUTES)
            descriptor = os.open(folder, os.O_RDONLY)
        except OSError as problem:
            what = f"the baseline cannot be written: {problem.strerror}"
            raise BaselineWriteError(what, where=str(folder)) from None
        try:
            _wait_for(descriptor, folder)
            yield
        finally:
            os.close(descriptor)


def _remedy(path: Path) -> str:
    return away(str(path), AGAIN)


def _created(path: Path) -> float:
    """The time in a record's first line."""
    try:
        with path.open("rb") as file:
            return created_in(file.readline(MAX_LINE_BYTES))
    except OSError:
        return 0.0


def _wait_for(descriptor: int, folder: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                what = f"another gate has held the baselines for {LOCK_SECONDS:g} s"
                raise BaselineWriteError(what, where=str(folder)) from None
            time.sleep(0.01)
        except OSError as problem:
            what = f"the baselines cannot be locked: {problem.strerror}"
            raise BaselineWriteError(what, where=str(folder)) from None
        else:
            return
