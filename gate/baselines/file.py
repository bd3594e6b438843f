"""Baselines in a folder: one file per suite and commit, written atomically, by one writer at a time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self

from gate.baselines.base import AGAIN, StoreOptions, StoreSettings
from gate.baselines.blobs import BlobStore
from gate.baselines.ledger import LEDGER
from gate.errors import BaselineError, BaselineWriteError
from gate.records import away
from gate.security import files

LOCK_SECONDS = 30.0
_ATTRIBUTES = f"*.jsonl -text linguist-generated\n{LEDGER} -text merge=union\n"
"""For committed folders: line ends are part of a record's checksum, and nobody reviews records line by line. Ledger
lines carry their times, so those of two branches may be merged in any order."""


class FileOptions(StoreOptions):
    """The place of the folder."""

    path: str = f"{files.OWN_FOLDER}/baselines"
    """Folder of the file store, relative to the configuration file."""


class FileStore(BlobStore):
    """`BlobStore` in a folder. Readers need no lock, since files are replaced whole."""

    Options = FileOptions

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, settings: StoreSettings) -> Self:
        return cls(settings.root / FileOptions.model_validate(settings.options).path)

    def get(self, key: str) -> bytes | None:
        """Return the bytes of a file, or None. Raises `BaselineError`."""
        try:
            return (self.folder / key).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as problem:
            raise _unreadable(self.folder / key, problem) from None

    def put(self, key: str, data: bytes, before: bytes | None) -> bool:  # noqa: ARG002 - `writing` locks
        """Replace a file. Raises `BaselineWriteError`; then the file is as it was."""
        try:
            files.write_parts(self.folder / key, [data])
        except OSError as problem:
            what = f"the baseline cannot be written: {problem.strerror}"
            raise BaselineWriteError(what, where=self.shown(key)) from None
        return True

    def keys(self, prefix: str) -> Iterable[str]:
        """Return the files in the folders of suites, except those being written."""
        for path in self.folder.glob(f"{prefix}*" if prefix else "*/*"):
            if not path.name.startswith("."):
                yield f"{path.parent.name}/{path.name}"

    def open_blob(self, key: str) -> BinaryIO:
        try:
            return (self.folder / key).open("rb")
        except OSError as problem:
            raise _unreadable(self.folder / key, problem) from None

    def shown(self, key: str) -> str:
        return str(self.folder / key)

    @property
    def remedy(self) -> str:
        return away(AGAIN)

    @contextmanager
    def writing(self, folder: str) -> Iterator[None]:
        """Lock a suite's folder against other writers."""
        path = self.folder / folder
        try:
            files.make_folder(path)
            if not (self.folder / ".gitattributes").exists():
                files.write_text(self.folder / ".gitattributes", _ATTRIBUTES)
            descriptor = os.open(path, os.O_RDONLY)
        except OSError as problem:
            what = f"the baseline cannot be written: {problem.strerror}"
            raise BaselineWriteError(what, where=str(path)) from None
        try:
            _wait_for(descriptor, path)
            yield
        finally:
            os.close(descriptor)


def _unreadable(path: Path, problem: OSError) -> BaselineError:
    return BaselineError(f"the record cannot be read: {problem.strerror}", where=str(path))


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
