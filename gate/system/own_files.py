"""Recognises files that a run of the gate wrote, by their content: they are neither the agent's nor a change."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

MARK = "<!-- written by Agent Gate -->"
"""The last line of reports in formats that allow comments."""
_RECORD = b'{"gate_record":'
_METRICS = b"# TYPE gate_passed "
_STATEMENT = b'{"_type":"https://in-toto.io/Statement/v1","predicate":{"configuration":[{"name":"agent-gate",'
_NEAR_THE_TOP = (b'"gate_version":', b'"generatedBy": "Agent Gate"')
"""Keys of the JSON report and of CTRF."""
_ENDINGS = (".html", ".json", ".jsonl", ".md", ".txt", ".xml", ".ipynb")
"""Usual endings of the names of records and reports."""
_LOOKED_AT = 200
"""Bytes to read at either end of a file."""
_MOST_FILES = 50
"""The most files in a folder to look at; a larger folder counts as the user's."""


def is_record(path: Path) -> bool:
    """True if this file is the record of a run."""
    return path.suffix == ".jsonl" and _ends_of(path)[0].startswith(_RECORD)


def is_own_file(path: Path) -> bool:
    """True if a run of the gate wrote this file: a record or a report."""
    top, end = _ends_of(path)
    if top.startswith((_RECORD, _METRICS, _STATEMENT)) or end.rstrip().endswith(MARK.encode()):
        return True
    return top.startswith(b"{") and any(key in top for key in _NEAR_THE_TOP)


def own_files_in(root: Path) -> Iterator[Path]:
    """Yield the files in and below a folder that runs of the gate wrote, except in virtual environments."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        if "pyvenv.cfg" in names:
            folders.clear()
            continue
        for name in names:
            if name.endswith(_ENDINGS) and is_own_file(Path(folder, name)):
                yield Path(folder, name)


def _ends_of(path: Path) -> tuple[bytes, bytes]:
    """Return the beginning and the end of a file; empty if it cannot be read or is not a file."""
    if path.is_symlink() or not path.is_file():
        return b"", b""
    try:
        with path.open("rb") as file:
            top = file.read(_LOOKED_AT)
            file.seek(max(0, path.stat().st_size - _LOOKED_AT))
            return top, file.read(_LOOKED_AT)
    except OSError:
        return b"", b""


def holds_only_own_files(folder: Path) -> bool:
    """True if a folder holds files of the gate and nothing else."""
    found = list(islice((path for path in folder.rglob("*") if not path.is_dir()), _MOST_FILES + 1))
    return 0 < len(found) <= _MOST_FILES and all(map(is_own_file, found))
