"""Runs that are decided on stored trials: a release, and a change that leaves the agent as it was.

The commit of a release was measured when it reached the default branch. Measuring it again for its tag would cost the
same once more, and give a change that fell short a second chance. So all its stored trials count, in one look, whatever
they were run for; a case that has fewer trials than a baseline should have is run until it has enough. A record of
another agent, other cases or other criteria says nothing about this release: then it is measured like any commit.

A comment in the documentation cannot make an agent worse, and measuring it once more is another chance to fail by bad
luck. So if the agent's fingerprint, the cases and the criteria are those of the base's nearest record, the trials of
that record are the change's own, and every rule is applied to them. Nightly runs, runs on demand, the default branch
and releases exist to measure, so they do; and so does a run with an explicit number of trials.
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
from gate.baselines.fingerprint import with_tools
from gate.baselines.union import run_ids, unite
from gate.config.resolve import Plan
from gate.config.settings import wanted_trials
from gate.errors import GateError, MeasureError, UntrustedError
from gate.model import STORED, Side, Verdict
from gate.pipeline.base_agent import measures_alike
from gate.pipeline.budget import RunBudget
from gate.pipeline.execute import Job
from gate.pipeline.journal import records_folder, take_back
from gate.pipeline.references import References
from gate.pipeline.session import Session, check_version, may_change
from gate.pipeline.trials import TrialRunner
from gate.records import Header, Record, RecordWriter, Run, read_record, strip, write_record
from gate.records.model import count as counted
from gate.records.model import difference
from gate.reports.formatting import count
from gate.security import files
from gate.security.environment import is_on_demand

MEASURED_BELOW = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
"""Verdicts of the base's record that a change with the same agent shares; other failures did not measure the agent."""


class StoredTrials(Struct, frozen=True):
    """Stored trials used as the record of this commit, and the references they are compared with."""

    record: Record
    path: Path
    """The file of the record."""
    found: References
    note: str
    """A description of where the trials are from, for the reader."""
    doubt: str = ""
    """The reason why a case has fewer trials than it should have."""
    same_as: str = ""
    """The base's commit that the trials belong to; empty: they belong to this very commit."""


async def stored_trials(session: Session, plan: Plan, header: Header, found: References) -> StoredTrials | None:
    """Return the stored trials that decide this run; None if the suite has to be measured.

    Raises:
        BaselineError: the record of a release's commit is damaged.
        MeasureError: the agent's version changed while missing trials were run.
    """
    of_release = await _of_release(session, plan, header, found.doubts if found.anchor else ())
    if of_release is not None:
        return of_release
    return _of_same_agent(session, plan, header, found)


# --- a release ------------------------------------------------------------------------------------


async def _of_release(session: Session, plan: Plan, header: Header, doubts: tuple[str, ...]) -> StoredTrials | None:
    """Return the record of the released commit, including the trials that it lacked; the ``doubts`` stay."""
    record = _record_of_release(session, header)
    if record is None:
        return None
    path = session.options.record_path or records_folder(session.config, header.suite_id) / f"{header.commit}-tag.jsonl"
    with suppress(GateError):  # an earlier attempt added trials here that were never stored
        record = _joined(record, read_record(path))
    runs = count(len(run_ids(record)), "run")
    note = f"decided on what was measured of this commit before, {count(len(record.trials), 'trial')} of {runs}"
    have = Counter(trial.case_id for trial in record.trials if trial.is_of_epoch and trial.measured)
    wanted = session.settings.exact_epochs or wanted_trials(session.config) or session.settings.max_epochs
    epochs = _epochs_short_of(plan, record, have, wanted)
    if not epochs:
        write_record(path, record)
        found = _compared_with(session, plan, record, doubts)
        return StoredTrials(record, path, found, f"{note}; nothing new was run")
    further, started = _MissingTrials(session, plan, "that the commit was short of"), time.monotonic()
    own = path.with_name(f"{path.stem}-{header.run_id[:8]}.jsonl")
    is_one_version = not may_change(session.config)
    with RecordWriter(own, header) as journal:
        try:
            await further.run(epochs, journal, f"adding to {count(len(record.trials), 'trial')} of this commit")
            await check_version(session)
            is_one_version = True
        finally:
            if is_one_version:
                spent = time.monotonic() - started
                journal.finish(
                    duration=spent,
                    judge_cost_usd=further.judge_cost_usd,
                    stopped=further.note,
                )
            else:  # else a later run would continue from answers that may be another version's
                take_back(own)
    added = read_record(own)
    record = _joined(record, added)
    write_record(path, record)
    files.remove(own)
    found = _compared_with(session, plan, record, doubts)
    note = f"{note}; {count(len(added.trials), 'trial')} added where it was thin"
    return StoredTrials(record, path, found, note, further.note)


def _compared_with(session: Session, plan: Plan, record: Record, doubts: Sequence[str]) -> References:
    """Return the references of the record, with the ``doubts`` about what this run leaves out."""
    found = session.baselines(plan, frozenset(run_ids(record)))
    return replace(found, doubts=tuple(dict.fromkeys((*found.doubts, *doubts))))


class _MissingTrials:
    """Runs the trials that a released commit lacks; knows their cost and what ended them early."""

    def __init__(self, session: Session, plan: Plan, purpose: str) -> None:
        """Set up the runner; ``purpose`` follows "24 runs" in the note that they ended early."""
        self._session, self._plan, self._purpose = session, plan, purpose
        self.judge_cost_usd: float | None = None
        self.note = ""

    async def run(self, epochs: Sequence[Sequence[Job]], journal: RecordWriter, why: str) -> None:
        session = self._session
        session.run_budget.stopped = ""  # checked again before each trial
        runs, done = sum(map(len, epochs)), 0
        epochs, short = _affordable(epochs, session.run_budget)
        session.progress.plan(self._plan.suite.id, sum(map(len, epochs)), why)
        config, run_id = session.config, journal.header.run_id
        async with TrialRunner(
            config, self._plan, session.environment, session.run_budget, run_id=run_id, version=session.version
        ) as runner:
            try:
                async for trial in runner.record([job for jobs in epochs for job in jobs], journal):
                    session.progress.trial(trial)
                    done += 1
            except MeasureError as error:  # the verdict stands, and the next run on this branch continues
                self.note = str(error)
            finally:
                self.judge_cost_usd = runner.judge_cost_usd
        if ended := self.note or session.run_budget.stopped or short:
            self.note = f"{done:,} of {count(runs, 'run')} {self._purpose} were made: {ended}"


def _affordable(epochs: Sequence[Sequence[Job]], budget: RunBudget) -> tuple[Sequence[Sequence[Job]], str]:
    """Return the whole epochs that ``budget.runs`` can cover, and the reason why others are left out."""
    left = budget.runs_left
    for whole, jobs in enumerate(epochs):
        if left is not None and len(jobs) > left:
            return epochs[:whole], f"budget.runs ({budget.limits.runs}) has no room for another whole epoch"
        left = None if left is None else left - len(jobs)
    return epochs, ""


def _epochs_short_of(plan: Plan, record: Record, have: Counter[str], wanted: int) -> list[list[Job]]:
    """Return the jobs that bring each case in the record's shard up to ``wanted`` trials, numbered after its existing
    ones."""
    shard = record.header.shard[0]
    numbers = Counter[str]()
    for trial in record.trials:
        if trial.side is Side.CANDIDATE:
            numbers[trial.case_id] = max(numbers[trial.case_id], trial.number)
    last = max((trial.round for trial in record.trials), default=0)
    epochs: list[list[Job]] = []
    for case in record.header.plan:
        if case.shard != shard:
            continue
        for n in range(1, wanted - have[case.id] + 1):
            if n > len(epochs):
                epochs.append([])
            epochs[n - 1].append(Job(plan.cases[case.id], numbers[case.id] + n, last + n, STORED))
    return epochs


def _record_of_release(session: Session, header: Header) -> Record | None:
    """Return the stored record of this very commit, agent, cases and criteria, if its origin is known."""
    where, store = session.where, session.store
    if store is None or not where.release or not where.head or where.dirty:
        return None
    if session.options.shard != (1, 1) or not header.agent or session.config.agent_kind == "replay":
        return None
    found = store.find(header.suite_id, (where.head,), pool=1)
    if found is None:
        return None
    record = found.records[0]
    if difference(record.header, replace(header, stripped=True)) or outage_in(record):
        return None
    if store.trust(header.suite_id, [record]).unproven:
        return None
    return record


def _joined(stored: Record, more: Record) -> Record:
    """Return both records as one, or only the stored one if they do not fit together."""
    if difference(replace(more.header, stripped=True), stored.header):
        return stored
    united, _ = unite(stored, strip(more))
    return united


# --- a change of the same agent -------------------------------------------------------------------


def _of_same_agent(session: Session, plan: Plan, header: Header, found: References) -> StoredTrials | None:
    """Return the base's record under the header of this commit, if both commits have the same agent.

    It is written to the suite's records in the form of a stored one: no run continues it, and it does not count as a
    measurement of the change.
    """
    record, commit = nearest_record(found), found.first.commit
    if record is None or commit is None or commit == session.where.head:
        return None
    if not _may_skip(session) or not _is_same(record, header):
        return None
    covered = {trial.case_id for trial in record.trials if trial.is_of_epoch}
    if any(case.id not in covered for case in plan.suite.cases):
        return None
    if not measures_alike(session.config, session.git, commit):
        return None
    if found.fell_short and found.fell_short not in MEASURED_BELOW:
        return None
    stored = record.header
    runs = stored.runs or (Run(stored.run_id, stored.created, len(record.trials)),)
    own = replace(header, agent=stored.agent, run_id=stored.run_id, runs=runs, stripped=True)
    here = Record(own, record.trials, counted(record.trials))
    path = session.options.record_path or records_folder(session.config, own.suite_id) / f"{own.commit}-same.jsonl"
    write_record(path, here)
    nearest = found.first.with_records([record])
    note = f"nothing was run: the agent is the same as at {commit[:7]}, and its stored trials count"
    return StoredTrials(here, path, replace(found, all=(nearest,)), note, same_as=commit)


def nearest_record(found: References) -> Record | None:
    """Return the base's nearest record, if it is known to be of this history and its origin is not in doubt."""
    info = found.first.info
    if not found.first.records or info.distance is None or info.provenance == "unproven" or found.doubts:
        return None
    record = found.first.records[0]
    return None if record.header.dirty else record


def with_stored_trials(record: Record, found: References) -> Record:
    """Return a record of an untrusted run, with the store's trials if it says that nothing was run for it.

    Raises:
        UntrustedError: the store has no such record of the base.
    """
    header, stored = record.header, nearest_record(found)
    if not header.stripped:
        return record
    if stored is None or not header.agent or stored.header.agent != header.agent:
        what = "it says that nothing was run for it, and what is stored of its base is of another agent"
        raise UntrustedError(what, where=header.suite_id)
    return replace(record, header=replace(header, runs=stored.header.runs), trials=stored.trials)


def _may_skip(session: Session) -> bool:
    """True if this is the run of a change that leaves the number of trials to the gate."""
    options, where, rules = session.options, session.where, session.options.rules
    if options.resume or options.shard != (1, 1):
        return False
    if options.record_path is not None and options.record_path.exists():
        return False
    if session.settings.exact_epochs is not None or session.config.agent_kind == "replay":
        return False
    if where.anchored or where.release or where.dirty or not where.head or is_on_demand(session.environment):
        return False
    return rules is None or not (rules.redefines or rules.is_first or rules.doubts)


def _is_same(record: Record, header: Header) -> bool:
    """True if agent, cases and criteria are those of the record, however it was divided into shards."""
    agent = with_tools(header.agent, record.trials)
    if not header.agent or agent != record.header.agent:
        return False
    stored = replace(record.header, plan=tuple(replace(case, shard=1) for case in record.header.plan))
    here = replace(header, agent=agent, commit=stored.commit, stripped=stored.stripped)
    return not difference(stored, here)
