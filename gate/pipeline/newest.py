"""Which records a command is about where none is named: the newest of the results folder.

The order of arguments is the same for every command: first the record that is judged, then what it is compared with.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from gate.config.load import load_config
from gate.config.schema import File
from gate.errors import GateError, MeasureError
from gate.pipeline.journal import newest_first
from gate.pipeline.verdict import no_record
from gate.records import Header, is_closed, read_header

SEARCHED = 400
"""The newest files of the results folder that are looked at."""


def results_folder(config_path: Path) -> Path:
    """Where a run of this configuration leaves its records and reports; without a configuration, the default beside it.

    Raises:
        ConfigError: the configuration is there, and cannot be read.
    """
    if config_path.is_file():
        return load_config(config_path).output
    return config_path.parent / str(File.model_fields["output"].default)


def newest_record(config_path: Path) -> Path:
    """The newest finished record of all suites. Raises `MeasureError` if there is none."""
    found = next(_finished(config_path), None)
    if found is None:
        raise _none(config_path, "no finished record")
    return found[0]


def newest_records(config_path: Path, most: int) -> list[Path]:
    """Up to ``most`` finished records of the suite that was measured last, the newest first.

    Raises:
        MeasureError: there is none.
    """
    paths: list[Path] = []
    suite_id = None
    for path, header in _finished(config_path):
        suite_id = header.suite_id if suite_id is None else suite_id
        if header.suite_id == suite_id:
            paths.append(path)
        if len(paths) == most:
            break
    if not paths:
        raise _none(config_path, "no finished record")
    return paths


def record_before(record: Path, config_path: Path) -> Path:
    """The newest finished record of the same suite that was begun before this one, of another run.

    Raises:
        MeasureError: there is none, or the record cannot be read.
    """
    if not record.is_file():
        raise no_record(record, MeasureError)
    header = read_header(record, error=MeasureError)
    for path, other in _finished(config_path):
        earlier = other.created < header.created and other.run_id != header.run_id
        if earlier and other.suite_id == header.suite_id:
            return path
    raise _none(config_path, f"no earlier record to compare {record} with")


def _none(config_path: Path, what: str) -> MeasureError:
    folder = results_folder(config_path) / "records"
    return MeasureError(what, where=str(folder), hint="`gate run` makes one; or name a record")


def _finished(config_path: Path) -> Iterator[tuple[Path, Header]]:
    """The closed records of whole runs, the newest first; what cannot be read is passed over."""
    folder = results_folder(config_path) / "records"
    folders = [path for path in folder.glob("*") if path.is_dir()] if folder.is_dir() else []
    for path in newest_first(*folders)[:SEARCHED]:
        with suppress(GateError, OSError):
            if is_closed(path) and (header := read_header(path)).shard == (1, 1):
                yield path, header
