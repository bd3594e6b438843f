"""Records in the folder of results: the newest, the one before it, and other runs of a commit.

Every command takes its arguments in one order: first the record that is judged, then the one it is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

from gate.config.load import load_config
from gate.config.schema import File
from gate.errors import GateError, MeasureError
from gate.pipeline.journal import newest_first
from gate.records import Header, is_closed, read_header
from gate.records.model import difference

MOST_LISTED = 400
"""The number of newest files in the results folder that are searched."""
MOST_BESIDE = 100
"""The number of a folder's newest files that are searched."""


def results_folder(config_path: Path) -> Path:
    """Return the folder that a run of this configuration writes to; the default folder if there is no configuration.

    Raises:
        ConfigError: the configuration exists but cannot be read.
    """
    if config_path.is_file():
        return load_config(config_path).output
    return config_path.parent / str(File.model_fields["output"].default)


def newest_record(config_path: Path) -> Path:
    """Return the newest finished record of all suites. Raises `MeasureError` if there is none."""
    found = next(_finished(config_path), None)
    if found is None:
        raise _no_record_in(config_path, "no finished record")
    return found[0]


def record_before(record: Path, config_path: Path) -> Path:
    """Return the newest finished record of the same suite, from another run that began before this one.

    Raises:
        MeasureError: there is none, or the record cannot be read.
    """
    header = read_header(record)
    for path, other in _finished(config_path):
        earlier = other.created < header.created and other.run_id != header.run_id
        if earlier and other.suite_id == header.suite_id:
            return path
    raise _no_record_in(config_path, f"no earlier record to compare {record} with")


def _no_record_in(config_path: Path, what: str) -> MeasureError:
    folder = results_folder(config_path) / "records"
    return MeasureError(what, where=str(folder), hint="`gate run` writes one; or name a record")


def _finished(config_path: Path) -> Iterator[tuple[Path, Header]]:
    """Yield the closed records of whole runs, newest first, skipping unreadable ones."""
    folder = results_folder(config_path) / "records"
    folders = [path for path in folder.glob("*") if path.is_dir()]
    for path in newest_first(*folders)[:MOST_LISTED]:
        with suppress(GateError, OSError):
            if is_closed(path):
                header = read_header(path)
                if header.shard == (1, 1):
                    yield path, header


def other_runs_beside(path: Path, header: Header, folder: Path, *, known: Collection[str] = ()) -> list[Path]:
    """Return records of further runs of the same plan, criteria, commit and agent, next to ``path`` or in ``folder``:
    whoever chooses among several may choose the luckiest.

    ``known``: runs to leave out, such as those already stored.
    """
    if header.commit is None or header.dirty:
        return []
    found, seen = [], {header.run_id, *known}
    for other in newest_first(*{path.parent.resolve(), folder.resolve()})[:MOST_BESIDE]:
        with suppress(GateError, OSError):
            theirs = read_header(other)
            if theirs.run_id in seen or theirs.stripped or theirs.definition != header.definition:
                continue
            if difference(theirs, header):
                continue
            seen.add(theirs.run_id)
            found.append(other)
    return found
