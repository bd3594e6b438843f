"""Earlier measurements of a change, found among the records: continued if they are of the same agent, else counted.

An empty commit, a new commit message or an amended one must be no further chance. So a run on a new commit continues
the record of an earlier commit that was measured against the same base, with the same fingerprint of the agent, the
same cases and the same criteria, and reaches the verdict as if it had run those trials itself. Another fingerprint may
be another agent or a comment more, and without one nobody knows: then the measurement starts anew, and its reader is
told of those before.
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
from gate.model import Verdict
from gate.model.finding import Finding
from gate.pipeline.journal import newest_first, path_of, records_folder
from gate.pipeline.session import may_change
from gate.pipeline.terms import Terms
from gate.pipeline.verdict import judge_record, load_to_judge
from gate.records import (
    Header,
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
"""The newest records of a suite that are looked at."""
MOST_TOLD = 5
"""Earlier measurements whose verdicts are told; each is judged again."""


class EarlierDraws(Struct, frozen=True):
    """Earlier measurements of a change, judged again."""

    verdicts: tuple[Verdict, ...] = ()
    """The newest first, at most `MOST_TOLD`."""
    notes: tuple[str | Finding, ...] = ()


def continue_earlier(config: Config, header: Header) -> str:
    """Copy the newest record of the same agent and plan to where this commit's run continues it.

    Returns whose it is, in words; empty if there is none, or the commit has a record of its own. One that cannot be
    read is passed over: then everything is run.
    """
    path = path_of(config, header)
    if path is None or path.exists():
        return ""
    for found, other in _of_this_base(config, header, []):
        if other.agent != header.agent or difference(replace(other, commit=header.commit), header):
            continue
        with suppress(GateError):
            unsure = may_change(config)  # of the version that answered, until the run looked it up again and closed it
            record = read_closed_part(found) if unsure else read_record(found, complete=False)
            if not record.trials:
                continue
            unfinished = replace(counted(record.trials), stopped=INTERRUPTED)
            here = replace(record.header, commit=header.commit)
            write_record(path, replace(record, header=here, footer=record.footer or unfinished))
            return f"an earlier commit of this change ({(other.commit or '')[:12]})"
    return ""


def earlier_draws(
    config: Config, header: Header, references: Sequence[Reference], terms: Terms, git: Git
) -> EarlierDraws:
    """Return how often this change was measured before, and what each measurement comes to as it is judged now.

    The default branch has no earlier draws. A shard decides nothing, so its joined record tells them. Of those records
    nothing is believed but their trials.
    """
    if terms.design.anchored or header.dirty or header.shard != (1, 1):
        return EarlierDraws()
    alone = replace(terms, base=None, doubts=(), doubts_if_compared=(), notes=(), changes=())
    alone = alone.with_design(earlier=())
    verdicts: list[Verdict] = []
    unread: list[str] = []
    seen = {header.run_id}  # a continued record has the run of the one that it continues
    for found, other in _of_this_base(config, header, unread):
        if other.run_id in seen or git.is_elsewhere(other.commit or "", header.commit or ""):
            continue
        seen.add(other.run_id)
        if len(verdicts) < MOST_TOLD:
            try:
                verdicts.append(judge_record(load_to_judge(found), references, alone).verdict)
            except GateError:
                if _is_damaged(found):
                    unread.append(found.name)
    notes: list[str | Finding] = []
    if verdicts:
        told = Finding.of(
            "measured_before", verdicts=tuple(verdicts), total=len(seen) - 1, fingerprinted=bool(header.agent)
        )
        notes.append(told)
    if unread:  # damage must not be a further chance that nobody sees
        names = listing([console(name) for name in unread])
        here = f"{count(len(unread), 'record')} here cannot be read"
        notes.append(f"{here}, and may be of an earlier measurement of this change: {names}")
    return EarlierDraws(tuple(verdicts), tuple(notes))


def _is_damaged(path: Path) -> bool:
    """True unless the record is merely one that was interrupted, which decided nothing."""
    try:
        read_record(path, complete=False)
    except GateError:
        return True
    return False


def _of_this_base(config: Config, header: Header, unread: list[str]) -> Iterator[tuple[Path, Header]]:
    """Yield records that were measured against the same base under clean trees, of the same shard, the newest first.

    Trials that were taken from the store are no measurement of the change. ``unread`` is given the names of records
    that cannot be read.
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
            continue  # a pass of a part is none of the whole, or of another part
        if same_suite and not other.stripped and not other.dirty and other.base_commit == header.base_commit:
            yield path, other
