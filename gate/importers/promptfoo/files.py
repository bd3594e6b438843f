"""Reads the files that a promptfoo configuration refers to, within its repository and bounded. Never runs them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gate.formats.documents import parse_csv, parse_document, read_json_lines, read_text
from gate.formats.reading import with_read_marks
from gate.importers.promptfoo.ignored import IGNORED
from gate.security.limits import shorten
from gate.suites.base import Document
from gate.system.git import repository_above

SCHEME = "file://"
CODE = (".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".py", ".rb", ".go")
"""File extensions of programs, which are never run."""
_FUNCTION = re.compile(r"(\.\w+):\w+$")
"""A function named after its file: ``checks.py:polite``."""
MAX_FILES = 1_000
MAX_BYTES = 100_000_000
"""Most bytes of all files together to which one configuration refers."""


class NotReadError(Exception):
    """A reference that is never followed, with the reason; the caller reports the loss."""


class Folder:
    """The files that a configuration may refer to."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._read: dict[Path, str] = {}

    def value(self, reference: str) -> Any:
        """Return the content of a file: the value of JSON and YAML, the rows of CSV and JSON Lines, else the text.

        Raises:
            NotReadError: a program, a spreadsheet or an address.
            ConfigError: the file is missing, outside the repository, too large, or invalid.
        """
        path = self._path(reference)
        where = self._where(path)
        if path.suffix in (".json", ".yaml", ".yml"):
            return self._remembering(reference, parse_document(self._text(path), where))
        if path.suffix == ".jsonl":
            self._text(path)
            return self._remembering(reference, [row for _, row in read_json_lines(path, where=where)])
        if path.suffix == ".csv":
            return parse_csv(self._text(path), where)[0]
        return self._text(path)

    def _remembering(self, reference: str, value: Any) -> Any:
        """Return the value of a file with read marks, so that its unread keys are listed like the configuration's."""
        found = with_read_marks(value, IGNORED)
        self._document.referred.append((reference, found))
        return found

    def matching(self, reference: str) -> list[str]:
        """Return the sorted references that match a pattern; a reference without a pattern is returned unchanged.

        Raises:
            NotReadError: no file matches.
        """
        name, folder = reference.removeprefix(SCHEME), self._document.folder
        if "://" in name or folder is None or not any(sign in name for sign in "*?["):
            return [reference]
        try:
            found = sorted(path for path in folder.glob(name) if path.is_file())
        except (ValueError, NotImplementedError):
            found = []
        if not found:
            raise NotReadError(f"no file matches {name}")
        return [path.relative_to(folder).as_posix() for path in found]

    def text(self, reference: str) -> str:
        """Return the text of a file. Raises as `value`."""
        return self._text(self._path(reference))

    def _path(self, reference: str) -> Path:
        name = reference.removeprefix(SCHEME)
        if "://" in name:
            raise NotReadError(f"{name.split('://')[0]} addresses are not fetched")
        if Path(_FUNCTION.sub(r"\1", name)).suffix in CODE:
            raise NotReadError(f"{name} is a program, which the gate never runs")
        if name.endswith((".xlsx", ".xls")):
            raise NotReadError(f"{name} is a spreadsheet; save it as CSV")
        folder = self._document.folder
        if folder is None:
            raise self._document.error(f"{reference}: a reference has no folder to start from")
        path = folder / name
        if not path.resolve().is_relative_to(repository_above(folder.resolve())):
            raise self._document.error(f"{name} lies outside the repository of the configuration")
        if not path.exists():
            raise self._document.error(f"it refers to {shorten(name, 80)}, which does not exist")
        return path

    def _text(self, path: Path) -> str:
        if path not in self._read:
            if len(self._read) >= MAX_FILES:
                raise self._document.error(f"more than {MAX_FILES:,} files are referred to")
            self._read[path] = read_text(path, self._where(path))
            if sum(len(text) for text in self._read.values()) > MAX_BYTES:
                raise self._document.error(f"the files referred to hold more than {MAX_BYTES:,} characters")
        return self._read[path]

    def _where(self, path: Path) -> str:
        return f"{Path(self._document.where).parent / path.name}"
