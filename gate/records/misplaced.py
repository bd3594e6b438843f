"""Stored records whose file name gives another suite or commit than their content."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gate.errors import GateError, MeasureError
from gate.records.keys import Stored, commit_key, suite_key
from gate.records.measured import MeasuredReader
from gate.records.model import Header

MISPLACED = "it belongs to another suite or commit than its name says (save it again from a run of this suite)"
_NAME = re.compile(r"(?:\d{8}T\d{6}-)?((?:[0-9a-f]{40,64}|uncommitted)(?:-dirty)?)(?:-[0-9a-f]{12}|-unknown)?\.jsonl")
"""The commit in the file name of a stored record; other naming schemes do not state it."""
_FOLDER = re.compile(r".*[0-9a-f]{12}")
"""The folder of a suite in a store."""


def misplaced_in(contents: Iterable[Stored]) -> list[str]:
    """Return the places of misplaced records, which are never compared with. Unreadable records are skipped."""
    return [stored.where for stored in contents if _is_stored_wrong(stored)]


def _is_stored_wrong(stored: Stored) -> bool:
    try:
        with stored.open() as file:
            header = MeasuredReader(file, where=stored.where, error=MeasureError).header
    except (GateError, OSError):
        return False
    return is_misplaced(stored.where, header)


def is_misplaced(where: str, header: Header) -> bool:
    """True if a file that is named in the stores' form has the name of another record."""
    folder, _, name = where.rpartition("/")
    suite = folder.replace(":", "/").rpartition("/")[2]
    named = _NAME.fullmatch(name)
    if named is None or not _FOLDER.fullmatch(suite):
        return False
    return (suite, named[1]) != (suite_key(header.suite_id), commit_key(header))
