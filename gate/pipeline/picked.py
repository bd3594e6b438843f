"""Other runs of the same commit and agent that lie beside a record: whoever picks one of them may pick the luckiest."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from gate.errors import GateError
from gate.pipeline.journal import newest_first
from gate.records import Header, read_header
from gate.records.model import difference

SEARCHED = 100
"""The newest files of a folder that are looked at."""


def beside(path: Path, header: Header, folder: Path, *, known: Collection[str] = ()) -> list[Path]:
    """Records of further runs of the same plan, criteria, commit and agent, in the record's folder or in ``folder``.

    ``known``: runs that are not meant, such as those that are stored already.
    """
    if header.commit is None or header.dirty:
        return []
    found, seen = [], {header.run_id, *known}
    for other in newest_first(*{path.parent.resolve(), folder.resolve()})[:SEARCHED]:
        with suppress(GateError, OSError):
            theirs = read_header(other)
            if theirs.run_id in seen or theirs.stripped or theirs.definition != header.definition:
                continue
            if difference(theirs, header):
                continue
            seen.add(theirs.run_id)
            found.append(other)
    return found
