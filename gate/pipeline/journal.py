"""Files of records: which one a run writes to, what it continues, and which other runs lie beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from msgspec.structs import replace

from gate.config.load import Config, load_config
from gate.config.schema import File
from gate.errors import ConfigError, GateError, MeasureError
from gate.model import Trial
from gate.records import (
    Header,
    Record,
    RecordWriter,
    is_closed,
    read_closed_part,
    read_header,
    read_record,
    write_record,
)
from gate.records.keys import suite_key
from gate.records.model import count as count_trials
from gate.records.model import difference
from gate.security import files
from gate.security.escape import one_line
from gate.security.redact import Redactor
from gate.system.git import Git

SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)
"""Environment variables whose values are masked wherever they appear."""


def redactor_of(environment: Mapping[str, str]) -> Redactor:
    """Return what masks the values of all variables whose name says that they are secret."""
    return Redactor(value for name, value in environment.items() if SECRET_NAME.search(name))


def open_journal(
    config: Config,
    header: Header,
    now: datetime,
    *,
    path: Path | None,
    resume: bool,
    by_commit: bool = False,
    remember: Callable[[Trial], Trial] | None = None,
) -> RecordWriter:
    """Return the record to write to, under its lock.

    A run of the same agent on the same clean commit continues the record of that commit: repeating it until it is green
    would defeat the gate. ``by_commit``: so does one of an agent without a fingerprint. ``resume`` continues the newest
    record of the suite, ``path`` that file where it exists. What was measured before is kept in the form that
    ``remember`` gives it.

    Raises:
        MeasureError: nothing to resume, a record of another run, another gate writing it, no room.
    """
    folder = records_folder(config, header.suite_id)
    if path is not None:
        return _open_writer(path, header, resume=path.exists(), remember=remember)
    if resume:
        return _open_writer(_newest(folder), header, resume=True, remember=remember)
    path = path_of(config, header, by_commit=by_commit)
    if path is not None and (not path.exists() or _continues(path, header)):
        return RecordWriter(path, header, resume=path.exists(), remember=remember)
    return RecordWriter(_free(folder, f"{now:%Y%m%dT%H%M%S}{_part(header)}"), header)


def without(
    journal: RecordWriter,
    left_out: Collection[Trial],
    why: str,
    remember: Callable[[Trial], Trial] | None = None,
) -> RecordWriter:
    """Return the journal, resumed without these trials of an earlier session; ``why``: what ended it.

    The file is replaced atomically, so the trials that count survive a crash at any point.
    """
    gone = {(t.case_id, t.side, t.number) for t in left_out}
    if not gone:
        return journal
    record = read_record(journal.path, complete=False)
    kept = tuple(t for t in record.trials if (t.case_id, t.side, t.number) not in gone)
    footer = replace(record.footer or count_trials(kept), stopped=why, terms={})
    write_record(journal.path, replace(record, trials=kept, footer=footer))
    journal.close()
    return RecordWriter(journal.path, journal.header, resume=True, remember=remember)


def anew(journal: RecordWriter, header: Header, folder: Path, now: datetime) -> RecordWriter:
    """Begin the journal anew, under the run of ``header``; its record stays among those of earlier measurements."""
    record = read_record(journal.path, complete=False)
    write_record(_free(folder, f"{now:%Y%m%dT%H%M%S}{_part(header)}"), record)
    journal.close()
    return RecordWriter(journal.path, header)


def take_back(path: Path) -> None:
    """Cut a record back to where a run last closed it, or remove it if no run has."""
    closed = read_closed_part(path, error=MeasureError)
    if closed.footer is None:
        files.remove(path)
    else:
        write_record(path, closed)


def close_again(path: Path, record: Record, terms: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Close the record again with the terms of its verdict, so that a later report reaches the same."""
    stopped = record.footer.stopped if record.footer is not None else ""
    with RecordWriter(path, record.header, resume=True, remember=only_number) as writer:
        writer.finish(stopped=stopped, terms=redactor_of(environment).redact_json(terms))


def only_number(trial: Trial) -> Trial:
    """Return the trial's number without its content, for a record that is only added to."""
    return Trial(trial.case_id, trial.number)


def path_of(config: Config, header: Header, *, by_commit: bool = False) -> Path | None:
    """Return the path of a commit's record; None if the agent may have changed since, unless ``by_commit``."""
    if not (header.commit and (header.agent or by_commit)) or header.dirty:
        return None
    return records_folder(config, header.suite_id) / f"{header.commit}{_part(header)}.jsonl"


def records_folder(config: Config, suite_id: str) -> Path:
    """Return the folder of a suite's records, unless a run names another file."""
    return config.output / "records" / suite_key(suite_id)


def check_untracked(config: Config, git: Git, suite_id: str) -> None:
    """Raise ConfigError if records came with the commit: nothing shows that they were measured."""
    found = git.tracked_in(records_folder(config, suite_id))
    if found is not None:
        hint = f"git rm --cached {one_line(found, 200)}, and name the folder in .gitignore"
        raise ConfigError("a committed record is not a measurement", where=one_line(found, 200), hint=hint)


def newest_first(*folders: Path) -> list[Path]:
    """Return the record files of some folders by the time of their last line, without any that vanish meanwhile."""
    dated = []
    for folder in folders:
        for path in files.plain(folder.glob("*.jsonl")):
            with suppress(OSError):
                dated.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(dated, reverse=True)]


def _part(header: Header) -> str:
    return "" if header.shard[1] == 1 else f"-{header.shard[0]}of{header.shard[1]}"


def _open_writer(
    path: Path, header: Header, *, resume: bool, remember: Callable[[Trial], Trial] | None
) -> RecordWriter:
    """Return the writer. A finished record is not resumed if the agent's source is unknown: it may have changed."""
    writer = RecordWriter(path, header, resume=resume, remember=remember)
    if resume and not header.agent and writer.finished:
        writer.close()
        what = "the record is finished, and the agent may have changed since"
        raise MeasureError(what, where=str(path), hint="name another file; `gate report` shows this one again")
    return writer


def _newest(folder: Path) -> Path:
    records = newest_first(folder)
    if not records:
        raise MeasureError("no record to resume", where=str(folder), hint="run once without --resume")
    return records[0]


def _continues(path: Path, header: Header) -> bool:
    """True if the record of this commit belongs to the same run; one of another selection or shard is left alone."""
    try:
        return not difference(read_header(path), header)
    except GateError:
        return False


def _free(folder: Path, stem: str) -> Path:
    """Create an empty file under a new name: two runs may start at the same moment."""
    try:
        files.make_folder(folder)  # a file in its place would make every name look taken
        for name in chain([stem], (f"{stem}-{number}" for number in count(2))):
            with suppress(FileExistsError):
                files.create(folder / f"{name}.jsonl")
                return folder / f"{name}.jsonl"
    except files.LinkError as problem:
        raise ConfigError(f"the record cannot be written: {problem.strerror}", where=str(folder)) from None
    except OSError as problem:
        raise MeasureError(f"the record cannot be written: {problem.strerror}", where=str(folder)) from None
    raise AssertionError("there is always a further name")


# --- records of earlier runs ----------------------------------------------------------------------
# The order of arguments is the same for every command: first the record that is judged, then what it is compared with.


MOST_LISTED = 400
"""The newest files of the results folder that are looked at."""


def results_folder(config_path: Path) -> Path:
    """Return the folder that a run of this configuration writes to; without one, the default beside it.

    Raises:
        ConfigError: the configuration is there, and cannot be read.
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


def no_record(path: Path, error: type[GateError]) -> GateError:
    """Return the error for a path at which there is no file."""
    if path.is_dir():
        hint = "name a file in it, or none: then it is the newest of the results folder"
        return error("this is a folder, and a record is a file", where=str(path), hint=hint)
    return error("no such record", where=str(path))


def record_before(record: Path, config_path: Path) -> Path:
    """Return the newest finished record of the same suite that was begun before this one, of another run.

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
    raise _no_record_in(config_path, f"no earlier record to compare {record} with")


def _no_record_in(config_path: Path, what: str) -> MeasureError:
    folder = results_folder(config_path) / "records"
    return MeasureError(what, where=str(folder), hint="`gate run` writes one; or name a record")


def _finished(config_path: Path) -> Iterator[tuple[Path, Header]]:
    """Yield the closed records of whole runs, the newest first, without those that cannot be read."""
    folder = results_folder(config_path) / "records"
    folders = [path for path in folder.glob("*") if path.is_dir()]
    for path in newest_first(*folders)[:MOST_LISTED]:
        with suppress(GateError, OSError):
            if is_closed(path):
                header = read_header(path)
                if header.shard == (1, 1):
                    yield path, header


# --- other runs of one commit ---------------------------------------------------------------------
# Whoever picks one of several runs of the same commit and agent may pick the luckiest.


MOST_BESIDE = 100
"""The newest files of a folder that are looked at."""


def other_runs_beside(path: Path, header: Header, folder: Path, *, known: Collection[str] = ()) -> list[Path]:
    """Return records of further runs of the same plan, criteria, commit and agent, beside it or in ``folder``.

    ``known``: runs that are not meant, such as those that are stored already.
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
