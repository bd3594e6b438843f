"""A release is decided on the record of its own commit: what was measured at the merge, and what that is short of.

The commit was measured when it became one of the default branch. To measure it again for its tag would cost the same
once more, and give a change that fell short there a second chance. So everything that is stored of it counts, in one
look, whatever it was run for; a case that has fewer trials than a baseline should have is run until it has them. A
record of another agent, other cases or other criteria says nothing of this release: then it is measured as any commit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.base import outage_in
from gate.baselines.union import run_ids, unite
from gate.config.resolve import Plan
from gate.config.settings import wanted_trials
from gate.errors import GateError
from gate.model import FULL, STORED, Side
from gate.pipeline.journal import records_folder, take_back
from gate.pipeline.session import Session, check_version, may_change
from gate.pipeline.top_up import FurtherTrials, epochs_short_of
from gate.records import Header, Record, RecordWriter, read_record, strip, write_record
from gate.records.model import difference
from gate.reports.formatting import count
from gate.security import files


class OwnRecord(Struct, frozen=True):
    """What was measured of a release's commit."""

    record: Record
    path: Path
    runs: frozenset[str]
    """The runs that it is of: no yardstick for itself."""
    note: str
    """Where it is from, for the reader."""
    doubt: str = ""
    """Why it is thinner than it should be."""


async def own_record(session: Session, plan: Plan, header: Header) -> OwnRecord | None:
    """The record of the commit that is released, with what it was short of; None if there is none to decide on.

    Raises:
        BaselineError: it is damaged.
        MeasureError: the agent's version changed meanwhile.
    """
    found = _stored(session, header)
    if found is None:
        return None
    path = session.options.record_path or records_folder(session.config, header.suite_id) / f"{header.commit}-tag.jsonl"
    with suppress(GateError):  # what an earlier attempt added here, and nobody stored
        found = _with(found, read_record(path))
    note = f"decided on what was measured of this commit before, {_runs(found)}"
    epochs = epochs_short_of(plan, found, _have(found), _wanted(session))
    if not epochs:
        write_record(path, found)
        return OwnRecord(found, path, frozenset(run_ids(found)), f"{note}; nothing new was run")
    further, started = FurtherTrials(session, plan, "that the commit was short of"), time.monotonic()
    own = path.with_name(f"{path.stem}-{header.run_id[:8]}.jsonl")
    is_one_version = not may_change(session.config)
    with RecordWriter(own, header) as journal:
        try:
            await further.run(epochs, journal, f"adding to {count(len(found.trials), 'trial')} of this commit")
            await check_version(session)
            is_one_version = True
        finally:
            if is_one_version:
                spent = time.monotonic() - started
                journal.finish(duration=spent, judge_cost_usd=further.judge_cost_usd, stopped=further.note)
            else:  # or a later run would go on from what another version may have answered
                take_back(own)
    added = read_record(own)
    whole = _with(found, added)
    write_record(path, whole)
    files.remove(own)
    said = f"{note}; {count(len(added.trials), 'trial')} added where it was thin"
    return OwnRecord(whole, path, frozenset(run_ids(whole)), said, further.note)


def _stored(session: Session, header: Header) -> Record | None:
    """The stored record of this very commit, agent, cases and criteria; none of which nothing shows who measured it."""
    where, options = session.where, session.options
    whole = where.release and where.head and not where.dirty and options.shard == (1, 1) and header.agent
    if session.store is None or not whole or session.config.agent_kind == "replay":
        return None
    found = session.store.find(header.suite_id, (str(where.head),), pool=1)
    if found is None:
        return None
    record = found.records[0]
    if difference(record.header, replace(header, stripped=True)) or outage_in(record):
        return None
    if session.store.trust(header.suite_id, [record]).unproven:
        return None
    return record


def _with(stored: Record, more: Record) -> Record:
    """Both, if they fit together; what was stored otherwise."""
    if difference(replace(more.header, stripped=True), stored.header):
        return stored
    return unite(stored, strip(more)).record


def _wanted(session: Session) -> int:
    return session.settings.exact_epochs or wanted_trials(session.config) or session.settings.max_epochs


def _have(record: Record) -> Counter[str]:
    own = [trial for trial in record.trials if trial.side is Side.CANDIDATE and trial.tag in (FULL, STORED)]
    return Counter(trial.case_id for trial in own if trial.measured)


def _runs(record: Record) -> str:
    runs: Sequence[str] = run_ids(record)
    return f"{count(len(record.trials), 'trial')} of {count(len(runs), 'run')}"
