"""Earlier measurements that a run builds on, rather than measuring the same again.

*Of this change.* An empty commit, a new commit message, an amended commit or a rebase must not be another chance. So a
run on a new commit continues the record of an earlier commit of the change with the same agent fingerprint, cases and
criteria, and reaches the verdict as if it had run those trials itself. A different fingerprint may mean a different
agent or just another comment, and without one nobody knows: then the measurement starts anew, and its reader is told of
the earlier ones.

*Of a release.* Its commit was measured when it reached the default branch. Measuring it again for its tag would cost
the same once more, and give a change that fell short a second chance. So all its stored trials count, in one look,
whatever they were run for; a case that has fewer trials than a baseline should have is run until it has enough. A
record of another agent, other cases or other criteria says nothing about this release: then it is measured like any
commit.

*Of the same agent.* A comment in the documentation cannot make an agent worse, and measuring it once more is another
chance to fail by bad luck. So if the agent's fingerprint, the cases and the criteria are those of the base's nearest
record, the trials of that record are the change's own, and every rule is applied to them. Nightly runs, runs on demand,
the default branch and releases exist to measure, so they do; and so does a run with an explicit number of trials.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.base import outage_in
from gate.baselines.fingerprint import with_tools
from gate.baselines.reference import Reference
from gate.baselines.union import run_ids, unite
from gate.config.load import Config
from gate.config.resolve import Plan
from gate.config.settings import wanted_trials
from gate.errors import GateError, MeasureError, UntrustedError
from gate.model import STORED, Side, Verdict
from gate.model.finding import Finding
from gate.pipeline.execute import Job
from gate.pipeline.identity import may_change, measures_alike
from gate.pipeline.journal import newest_first, path_of, records_folder, take_back
from gate.pipeline.references import References
from gate.pipeline.session import Session, check_version, unconfirmed
from gate.pipeline.terms import Terms
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import judge_record, load_to_judge
from gate.records import (
    Header,
    Record,
    RecordWriter,
    Run,
    read_closed_part,
    read_header,
    read_record,
    strip,
    write_record,
)
from gate.records.model import INTERRUPTED, difference, footer_of
from gate.reports.formatting import count, listing
from gate.security import files
from gate.security.environment import is_on_demand
from gate.security.escape import console
from gate.system.git import Git

MOST_TOLD = 5
"""The number of earlier measurements to judge again and report, and more until one passed or regressed: that one
decides if the change counts as regressed."""
DECISIVE = {Verdict.PASS, Verdict.REGRESSED}
MEASURED_BELOW = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
"""Verdicts of the base's record that a change with the same agent shares; other failures did not measure the agent."""


# --- earlier measurements of this change ----------------------------------------------------------


class EarlierDraws(Struct, frozen=True):
    """Earlier measurements of a change, judged again."""

    verdicts: tuple[Verdict, ...] = ()
    """The newest first."""
    notes: tuple[str | Finding, ...] = ()


def continue_earlier(session: Session, header: Header) -> str:
    """Copy the newest record of the same agent and plan to the path where this commit's run continues it.

    Return a description of that record; empty if there is none, or if the commit already has a record. An unreadable
    one is skipped, and everything is run. On the default branch each commit is a change of its own.
    """
    config = session.config
    path = path_of(config, header)
    if path is None or path.exists():
        return ""
    change = header
    if session.where.anchored:
        change = replace(header, branch="")
    for found, other in _of_this_change(config, change, session.git, []):
        if other.dirty:
            continue
        if other.agent != header.agent or difference(replace(other, commit=header.commit), header):
            continue
        with suppress(GateError):
            record = read_closed_part(found) if unconfirmed(session, other) else read_record(found, complete=False)
            if not record.trials:
                continue
            record = against_base(record, header.base_commit)
            here = replace(record.header, commit=header.commit)
            write_record(path, replace(record, header=here))
            return f"an earlier commit of this change ({(other.commit or '')[:12]})"
    return ""


def earlier_draws(
    config: Config, header: Header, references: Sequence[Reference], terms: Terms, git: Git, *, in_ci: bool
) -> EarlierDraws:
    """Return how often this change was measured before, and each measurement's verdict as judged now.

    The default branch has no earlier draws. A shard decides nothing, so its merged record reports them. Only the trials
    of those records are trusted. Outside CI, a work tree that differs from its commit is work in progress, and no
    measurement of a change.
    """
    if terms.anchored or (header.dirty and not in_ci) or header.shard != (1, 1):
        return EarlierDraws()
    alone = replace(terms, base=None, doubts=(), doubts_if_compared=(), notes=(), changes=(), earlier=())
    verdicts: list[Verdict] = []
    unread: list[str] = []
    seen = {header.run_id}  # a continued record carries the run id of the one it continues
    for found, other in _of_this_change(config, header, git, unread):
        if other.dirty and not in_ci:
            continue
        if other.run_id in seen:
            continue
        if not _is_same_branch(other, header) and git.is_elsewhere(other.commit or "", header.commit or ""):
            continue
        seen.add(other.run_id)
        if len(verdicts) < MOST_TOLD or DECISIVE.isdisjoint(verdicts):
            try:
                record = load_to_judge(found)
                verdicts.append(judge_record(record, references, alone).verdict)
            except GateError:
                if _is_damaged(found):
                    unread.append(found.name)
    notes: list[str | Finding] = []
    if verdicts:
        told = Finding.of(
            "measured_before", verdicts=tuple(verdicts), total=len(seen) - 1, fingerprinted=bool(header.agent)
        )
        notes.append(told)
    if unread:  # damage must not be another chance that nobody sees
        names = listing([console(name) for name in unread])
        here = f"{count(len(unread), 'record')} here cannot be read"
        notes.append(f"{here}, and may be of an earlier measurement of this change: {names}")
    return EarlierDraws(tuple(verdicts), tuple(notes))


def _is_damaged(path: Path) -> bool:
    """True unless the record was merely interrupted, and so decided nothing."""
    try:
        read_record(path, complete=False)
    except GateError:
        return True
    return False


def against_base(record: Record, base: str | None) -> Record:
    """Return a record of a change as measured against this base: without trials of another base's agent, and closed."""
    trials = record.trials
    if record.header.base_commit != base:
        trials = tuple(trial for trial in trials if trial.side is Side.CANDIDATE)
    footer = record.footer
    if footer is None:
        footer = replace(footer_of(trials), stopped=INTERRUPTED)
    elif len(trials) != len(record.trials):
        footer = replace(footer_of(trials), stopped=footer.stopped)
    return replace(record, header=replace(record.header, base_commit=base), trials=trials, footer=footer)


def _of_this_change(config: Config, header: Header, git: Git, unread: list[str]) -> Iterator[tuple[Path, Header]]:
    """Yield records of the change, of the same shard, newest first.

    They were measured against the same base, or on the same branch before its base moved. Trials that were taken from
    the store are no measurement of the change. The names of unreadable records are added to ``unread``.
    """
    if not header.base_commit:
        return
    for path in newest_first(records_folder(config, header.suite_id)):
        try:
            other = read_header(path)
        except (GateError, OSError):
            unread.append(path.name)
            continue
        same_suite = other.suite_id == header.suite_id and other.shard == header.shard
        if other.selected and other.scope != header.scope:
            continue  # a pass of one part is not a pass of the whole, or of another part
        if same_suite and not other.stripped and _is_of_change(other, header, git):
            yield path, other


def _is_of_change(other: Header, header: Header, git: Git) -> bool:
    """True if another record measured the change that ``header`` is of; its base may have moved since."""
    if other.base_commit == header.base_commit:
        return True
    return _is_same_branch(other, header) and not git.is_ancestor(other.commit or "", header.base_commit or "")


def _is_same_branch(other: Header, header: Header) -> bool:
    return bool(header.branch) and other.branch == header.branch


# --- stored trials in place of a run --------------------------------------------------------------


class StoredTrials(Struct, frozen=True):
    """Stored trials used as the record of this commit, and the references they are compared with."""

    record: Record
    path: Path
    """The file of the record."""
    found: References
    note: str = ""
    """A description of where the trials are from, for the reader; empty if `same_as` tells it."""
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
    of_release = await _of_release(session, plan, header, found)
    if of_release is not None:
        return of_release
    return _of_same_agent(session, plan, header, found)


# --- a release ------------------------------------------------------------------------------------


async def _of_release(session: Session, plan: Plan, header: Header, before: References) -> StoredTrials | None:
    """Return the record of the released commit, including the trials that it lacked; doubts about an anchor stay."""
    record = _record_of_release(session, header)
    if record is None:
        return None
    path = session.options.record_path or records_folder(session.config, header.suite_id) / f"{header.commit}-tag.jsonl"
    with suppress(GateError):  # an earlier attempt added trials here that were never stored
        record = _joined(record, read_record(path))
    runs = count(len(run_ids(record.header)), "run")
    note = f"decided on what was measured of this commit before, {count(len(record.trials), 'trial')} of {runs}"
    wanted = session.settings.exact_epochs or wanted_trials(session.config) or session.settings.max_epochs
    jobs = _missing_jobs(plan, record, wanted)
    done, short = "nothing new was run", ""
    if jobs:
        own = path.with_name(f"{path.stem}-{header.run_id[:8]}.jsonl")
        short = await _run_missing(session, plan, header, own, jobs, len(record.trials))
        added = read_record(own)
        record = _joined(record, added)
        write_record(path, record)
        files.remove(own)
        done = f"{count(len(added.trials), 'trial')} added where it was thin"
    else:
        write_record(path, record)
    found = session.baselines(plan, frozenset(run_ids(record.header)))
    doubts = list(found.doubts)
    if before.anchor:
        doubts += before.doubts
    found = replace(found, doubts=tuple(dict.fromkeys(doubts)))
    return StoredTrials(record, path, found, f"{note}; {done}", short)


async def _run_missing(
    session: Session, plan: Plan, header: Header, path: Path, jobs: Sequence[Job], stored: int
) -> str:
    """Run the trials that a released commit lacks into a record of their own, beside the ``stored`` ones: whole epochs,
    as many as the budget has room for.

    Return the reason why they ended early; empty if they did not.
    """
    budget, started, note = session.run_budget, time.monotonic(), ""
    budget.stopped = ""  # checked again before each trial
    wanted, done, short = len(jobs), 0, ""
    while jobs:
        lacking = budget.lacks(len(jobs))
        if not lacking:
            break
        short = f"{lacking} has no room for another whole epoch"
        jobs = [job for job in jobs if job.round < jobs[-1].round]
    session.progress.plan(plan.suite.id, len(jobs), f"adding to {count(stored, 'trial')} of this commit")
    is_one_version = not may_change(session.config)
    runner = TrialRunner(
        session.config, plan, session.environment, budget, run_id=header.run_id, version=session.version
    )
    with RecordWriter(path, header) as journal:
        try:
            async with runner:
                try:
                    async for trial in runner.record(jobs, journal):
                        session.progress.trial(trial)
                        done += 1
                except MeasureError as error:  # the verdict stands, and the next run on this branch continues
                    note = str(error)
            note = note or budget.stopped or short
            if note:
                runs = count(wanted, "run")
                note = f"{done:,} of {runs} that the commit was short of were made: {note}"
            await check_version(session)
            is_one_version = True
        finally:
            if is_one_version:
                spent = time.monotonic() - started
                journal.finish(duration=spent, judge_cost_usd=runner.judge_cost_usd, stopped=note)
            else:  # else a later run would continue from answers that may be another version's
                take_back(path)
    return note


def _missing_jobs(plan: Plan, record: Record, wanted: int) -> list[Job]:
    """Return the jobs, epoch by epoch, that bring each case in the record's shard up to ``wanted`` trials, numbered
    after its existing ones."""
    have, numbers, last = Counter[str](), Counter[str](), 0
    for trial in record.trials:
        last = max(last, trial.round)
        have[trial.case_id] += trial.is_of_epoch and trial.measured
        if trial.side is Side.CANDIDATE:
            numbers[trial.case_id] = max(numbers[trial.case_id], trial.number)
    jobs, cases = [], record.header.own_cases
    for n in range(1, wanted + 1):
        for case_id in cases:
            if have[case_id] + n <= wanted:
                jobs.append(Job(plan.cases[case_id], numbers[case_id] + n, last + n, STORED))
    return jobs


def _record_of_release(session: Session, header: Header) -> Record | None:
    """Return the stored record of this very commit, agent, cases and criteria, if its origin is known."""
    where, store = session.where, session.store
    if store is None or not where.release or not where.head or where.dirty:
        return None
    if session.options.is_shard or not header.agent or session.config.agent_kind == "replay":
        return None
    found = store.find(header.suite_id, (where.head,), pool=1)
    if found is None:
        return None
    record = found.records[0]
    if difference(record.header, replace(header, stripped=True)) or outage_in(record):
        return None
    if store.provenance is not None and store.provenance.trust(header.suite_id, [record]).unproven:
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
    if found.first.info.fell_short not in ("", *MEASURED_BELOW):
        return None
    stored = record.header
    runs = stored.runs or (Run(stored.run_id, stored.created, len(record.trials)),)
    own = replace(header, agent=stored.agent, run_id=stored.run_id, runs=runs, stripped=True)
    here = Record(own, record.trials, footer_of(record.trials))
    path = session.options.record_path or records_folder(session.config, own.suite_id) / f"{own.commit}-same.jsonl"
    write_record(path, here)
    nearest = found.first.with_records([record])
    return StoredTrials(here, path, replace(found, all=(nearest,)), same_as=commit)


def nearest_record(found: References) -> Record | None:
    """Return the base's nearest record, if it is known to be of this history and its origin is not in doubt."""
    info = found.first.info
    if not found.first.records or info.distance is None or info.provenance == "unproven" or found.doubts:
        return None
    record = found.first.records[0]
    if record.header.dirty:
        return None
    return record


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
    if options.resume or options.is_shard:
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
