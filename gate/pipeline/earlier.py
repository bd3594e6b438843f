"""Earlier measurements of a change, found among the records: continued if the agent is the same, otherwise counted.

An empty commit, a new commit message, an amended commit or a rebase must not be another chance. So a run on a new
commit continues the record of an earlier commit of the change with the same agent fingerprint, cases and criteria, and
reaches the verdict as if it had run those trials itself. A different fingerprint may mean a different agent or just
another comment, and without one nobody knows: then the measurement starts anew, and its reader is told of the earlier
ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.config.load import Config
from gate.errors import GateError
from gate.model import Side, Verdict
from gate.model.finding import Finding
from gate.pipeline.journal import newest_first, path_of, records_folder
from gate.pipeline.session import may_change
from gate.pipeline.terms import Terms
from gate.pipeline.verdict import judge_record, load_to_judge
from gate.records import (
    Header,
    Record,
    read_closed_part,
    read_header,
    read_record,
    write_record,
)
from gate.records.model import INTERRUPTED, difference
from gate.records.model import count as counted
from gate.reports.formatting import count, listing
from gate.security.escape import console
from gate.system.git import Git

SEARCHED = 50
"""The number of a suite's newest records that are searched."""
MOST_TOLD = 5
"""The number of earlier measurements to judge again and report, and more until one passed or regressed: that one
decides if the change counts as regressed."""
DECISIVE = {Verdict.PASS, Verdict.REGRESSED}


class EarlierDraws(Struct, frozen=True):
    """Earlier measurements of a change, judged again."""

    verdicts: tuple[Verdict, ...] = ()
    """The newest first."""
    notes: tuple[str | Finding, ...] = ()


def continue_earlier(config: Config, header: Header, git: Git, *, anchored: bool) -> str:
    """Copy the newest record of the same agent and plan to the path where this commit's run continues it.

    Return a description of that record; empty if there is none, or if the commit already has a record. An unreadable
    one is skipped, and everything is run. ``anchored``: the commit is on the default branch, where each commit is a
    change of its own.
    """
    path = path_of(config, header)
    if path is None or path.exists():
        return ""
    for found, other in _of_this_change(config, replace(header, branch="") if anchored else header, git, []):
        if other.agent != header.agent or difference(replace(other, commit=header.commit), header):
            continue
        with suppress(GateError):
            unsure = may_change(config)  # of the version that answered, until it is looked up again
            record = read_closed_part(found) if unsure else read_record(found, complete=False)
            if not record.trials:
                continue
            record = against_base(record, header.base_commit)
            here = replace(record.header, commit=header.commit)
            write_record(path, replace(record, header=here))
            return f"an earlier commit of this change ({(other.commit or '')[:12]})"
    return ""


def earlier_draws(
    config: Config, header: Header, references: Sequence[Reference], terms: Terms, git: Git
) -> EarlierDraws:
    """Return how often this change was measured before, and each measurement's verdict as judged now.

    The default branch has no earlier draws. A shard decides nothing, so its merged record reports them. Only the trials
    of those records are trusted.
    """
    if terms.design.anchored or header.dirty or header.shard != (1, 1):
        return EarlierDraws()
    alone = replace(terms, base=None, doubts=(), doubts_if_compared=(), notes=(), changes=())
    alone = alone.with_design(earlier=())
    verdicts: list[Verdict] = []
    unread: list[str] = []
    seen = {header.run_id}  # a continued record carries the run id of the one it continues
    for found, other in _of_this_change(config, header, git, unread):
        if other.run_id in seen or git.is_elsewhere(other.commit or "", header.commit or ""):
            continue
        seen.add(other.run_id)
        if len(verdicts) < MOST_TOLD or DECISIVE.isdisjoint(verdicts):
            try:
                record = against_base(load_to_judge(found), header.base_commit)
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
        footer = replace(counted(trials), stopped=INTERRUPTED)
    elif len(trials) != len(record.trials):
        footer = replace(counted(trials), stopped=footer.stopped)
    return replace(record, header=replace(record.header, base_commit=base), trials=trials, footer=footer)


def _of_this_change(config: Config, header: Header, git: Git, unread: list[str]) -> Iterator[tuple[Path, Header]]:
    """Yield records of the change from clean trees, of the same shard, newest first.

    They were measured against the same base, or on the same branch before its base moved. Trials that were taken from
    the store are no measurement of the change. The names of unreadable records are added to ``unread``.
    """
    if not header.base_commit:
        return
    for path in newest_first(records_folder(config, header.suite_id))[:SEARCHED]:
        try:
            other = read_header(path)
        except (GateError, OSError):
            unread.append(path.name)
            continue
        same_suite = other.suite_id == header.suite_id and other.shard == header.shard
        if other.selected and other.scope != header.scope:
            continue  # a pass of one part is not a pass of the whole, or of another part
        if same_suite and not other.stripped and not other.dirty and _is_of_change(other, header, git):
            yield path, other


def _is_of_change(other: Header, header: Header, git: Git) -> bool:
    """True if another record measured the change that ``header`` is of; its base may have moved since."""
    if other.base_commit == header.base_commit:
        return True
    is_same_branch = bool(header.branch) and other.branch == header.branch
    return is_same_branch and not git.is_ancestor(other.commit or "", header.base_commit or "")
