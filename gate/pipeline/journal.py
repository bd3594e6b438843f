"""The file of a run's record: the one that it writes, and the one that it continues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path

from msgspec.structs import replace

from gate.config.load import Config
from gate.errors import ConfigError, GateError, MeasureError
from gate.model import Trial
from gate.records import (
    Header,
    Record,
    RecordWriter,
    read_closed_part,
    read_header,
    read_record,
    write_record,
)
from gate.records.keys import suite_key
from gate.records.model import difference, footer_of
from gate.records.writer import whole
from gate.security import files
from gate.security.environment import may_be_secret
from gate.security.escape import one_line
from gate.security.redact import Redactor
from gate.system.git import Git


def redactor_of(environment: Mapping[str, str]) -> Redactor:
    """Return a redactor that masks the values of all variables whose names look secret."""
    return Redactor(value for name, value in environment.items() if may_be_secret(name))


def open_journal(
    config: Config,
    header: Header,
    now: datetime,
    *,
    path: Path | None,
    resume: bool,
    by_commit: bool = False,
    keep: Callable[[Trial], Trial] = whole,
) -> RecordWriter:
    """Return the record to write to, under its lock.

    A run of the same agent on the same clean commit continues that commit's record: repeating it until it passes would
    defeat the gate. ``by_commit`` does so for an agent without a fingerprint too. ``resume`` continues the suite's
    newest record, ``path`` that file if it exists. Earlier trials are kept in the form that ``keep`` returns.

    Raises:
        MeasureError: there is nothing to resume, the record is of another run, another gate writes it, or the disk is
            full.
    """
    folder = records_folder(config, header.suite_id)
    if path is not None:
        return _open_writer(path, header, resume=path.exists(), keep=keep)
    if resume:
        return _open_writer(_newest(folder), header, resume=True, keep=keep)
    path = path_of(config, header, by_commit=by_commit)
    if path is not None and (not path.exists() or _continues(path, header)):
        return RecordWriter(path, header, resume=path.exists(), keep=keep)
    return RecordWriter(free_path(folder, header, now), header, keep=keep)


def without(journal: RecordWriter, left_out: Collection[Trial], why: str) -> RecordWriter:
    """Return the resumed journal without these trials of an earlier session; ``why``: the reason they are left out.

    The file is replaced atomically, so the trials that count survive a crash at any point.
    """
    gone = {(t.case_id, t.side, t.number) for t in left_out}
    if not gone:
        return journal
    record = read_record(journal.path, complete=False)
    kept = tuple(t for t in record.trials if (t.case_id, t.side, t.number) not in gone)
    footer = replace(record.footer or footer_of(kept), stopped=why, terms={})
    write_record(journal.path, replace(record, trials=kept, footer=footer))
    journal.close()
    return RecordWriter(journal.path, journal.header, resume=True, keep=journal.keep)


def anew(journal: RecordWriter, header: Header, folder: Path, now: datetime) -> RecordWriter:
    """Begin the journal anew under the run of ``header``; its old record is kept among the earlier measurements."""
    record = read_record(journal.path, complete=False)
    write_record(free_path(folder, header, now), record)
    journal.close()
    return RecordWriter(journal.path, header, keep=journal.keep)


def uncommitted(journal: RecordWriter, path: Path) -> RecordWriter:
    """Continue the journal at ``path`` as one of a work tree with uncommitted changes.

    The commit's record, if it is another file, keeps what earlier runs have closed.
    """
    record = read_record(journal.path, complete=False)
    header = replace(journal.header, dirty=True)
    write_record(path, replace(record, header=header))
    if path != journal.path:
        take_back(journal.path)
    journal.close()
    moved = RecordWriter(path, header, resume=True, keep=journal.keep)
    moved.resumed = journal.resumed
    return moved


def take_back(path: Path) -> None:
    """Truncate a record to where a run last closed it, or remove it if none has."""
    closed = read_closed_part(path)
    if closed.footer is None:
        files.remove(path)
    else:
        write_record(path, closed)


def close_again(path: Path, record: Record, terms: Mapping[str, object], environment: Mapping[str, str]) -> None:
    """Close the record again with the terms of its verdict, so that a later report reaches the same verdict."""
    stopped = record.footer.stopped if record.footer is not None else ""
    with RecordWriter(path, record.header, resume=True, keep=only_number) as writer:
        writer.finish(stopped=stopped, terms=redactor_of(environment).redact_json(terms))


def only_number(trial: Trial) -> Trial:
    """Return the trial's number without its content, for a record that only gets appended to."""
    return Trial(trial.case_id, trial.number)


def path_of(config: Config, header: Header, *, by_commit: bool = False) -> Path | None:
    """Return the path of a commit's record; None if the agent may have changed, unless ``by_commit``."""
    if not (header.commit and (header.agent or by_commit)) or header.dirty:
        return None
    return records_folder(config, header.suite_id) / f"{header.commit}{_part(header)}.jsonl"


def records_folder(config: Config, suite_id: str) -> Path:
    """Return the default folder of a suite's records."""
    return config.output / "records" / suite_key(suite_id)


def check_untracked(config: Config, git: Git, suite_id: str) -> None:
    """Raise ConfigError if records were committed: nothing shows that they were measured."""
    found = git.tracked_in(records_folder(config, suite_id))
    if found is not None:
        hint = f"git rm --cached {one_line(found, 200)}, and name the folder in .gitignore"
        raise ConfigError("a committed record is not a measurement", where=one_line(found, 200), hint=hint)


def newest_first(*folders: Path) -> list[Path]:
    """Return the record files of the folders by the time of their last line, skipping any that vanish meanwhile."""
    dated = []
    for folder in folders:
        for path in files.plain(folder.glob("*.jsonl")):
            with suppress(OSError):
                dated.append((path.stat().st_mtime, path))
    return [path for _, path in sorted(dated, reverse=True)]


def _part(header: Header) -> str:
    return "" if header.shard[1] == 1 else f"-{header.shard[0]}of{header.shard[1]}"


def _open_writer(path: Path, header: Header, *, resume: bool, keep: Callable[[Trial], Trial]) -> RecordWriter:
    """Return the writer. A finished record is not resumed if the agent's source is unknown, as it may have changed."""
    writer = RecordWriter(path, header, resume=resume, keep=keep)
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
    """True if this commit's record belongs to the same run; one of another selection or shard is left alone."""
    try:
        return not difference(read_header(path), header)
    except GateError:
        return False


def free_path(folder: Path, header: Header, now: datetime) -> Path:
    """Create an empty file under a new name, as two runs may start at the same moment."""
    stem = f"{now:%Y%m%dT%H%M%S}{_part(header)}"
    try:
        files.make_folder(folder)  # a file in the folder's place would make every name look taken
        for name in chain([stem], (f"{stem}-{number}" for number in count(2))):
            with suppress(FileExistsError):
                files.create(folder / f"{name}.jsonl")
                return folder / f"{name}.jsonl"
    except files.LinkError as problem:
        raise ConfigError(f"the record cannot be written: {problem.strerror}", where=str(folder)) from None
    except OSError as problem:
        raise MeasureError(f"the record cannot be written: {problem.strerror}", where=str(folder)) from None
    raise AssertionError("there is always a further name")
