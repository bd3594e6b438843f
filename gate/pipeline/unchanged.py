"""A change that leaves the agent as it was is judged by what is stored of its base: nothing is run for it.

A comment in the documentation cannot make an agent worse, and to measure it once more is a further chance to fail by
bad luck. So where the agent's fingerprint, the cases and the criteria are those of the base's nearest record, the
trials of that record are the change's own. Every rule is applied to them; a record that fell short when it was stored
does so still. Nights, runs on demand, the default branch and releases are there to measure, and do; and so does whoever
says how many trials to run.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.fingerprint import with_tools
from gate.baselines.pairing import reference_to
from gate.config.resolve import Plan
from gate.errors import UntrustedError
from gate.model import FULL, STORED, Side, Verdict
from gate.pipeline.journal import records_folder
from gate.pipeline.reference import References
from gate.pipeline.session import Session
from gate.pipeline.surroundings import measures_alike
from gate.records import Header, Record, write_record
from gate.records.model import Run, count, difference
from gate.security.environment import is_on_demand

STAYS = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
"""What a record may have come to and still stand for a change."""


class BaseRecord(Struct, frozen=True):
    """What was measured of the base, as the record of a change that has the same agent."""

    record: Record
    path: Path
    found: References
    """The base's record alone, which it is compared with."""
    commit: str
    """That it was measured of."""
    note: str
    """For the reader."""


def unchanged(session: Session, plan: Plan, header: Header, found: References) -> BaseRecord | None:
    """The base's record under the ``header`` of this commit; None if the agent is to be run.

    It is written where the records of the suite are, in the form of what is stored: no run goes on with it, and it
    counts as no measurement of the change.
    """
    record, commit = nearest_of(found), found.first.info.commit
    if record is None or commit is None or commit == session.where.head:
        return None
    if not _is_asked(session, plan) or not _is_same(record, header):
        return None
    if not _is_whole(record, plan) or not measures_alike(session.config, session.git, commit):
        return None
    if found.fell_short and found.fell_short not in STAYS:  # what was not measured there is no measurement here
        return None
    stored = record.header
    runs = stored.runs or (Run(stored.run_id, stored.created, len(record.trials)),)
    own = replace(header, agent=stored.agent, run_id=stored.run_id, runs=runs, stripped=True)
    here = Record(own, record.trials, count(record.trials))
    path = session.options.record_path or records_folder(session.config, own.suite_id) / f"{own.commit}-same.jsonl"
    write_record(path, here)
    first = found.first
    alone = reference_to([record], commit, distance=first.info.distance, source=first.info.source)
    alone = replace(alone, info=replace(alone.info, provenance=first.info.provenance), of_change=first.of_change)
    note = f"nothing was run: the agent is the same as at {commit[:7]}, and its stored trials count"
    return BaseRecord(here, path, replace(found, all=(alone,)), commit, note)


def nearest_of(found: References) -> Record | None:
    """The base's nearest record, if it is known to be one of this history, and not known to be anybody's invention."""
    info = found.first.info
    if not found.first.records or info.distance is None or info.provenance == "unproven" or found.doubts:
        return None
    record = found.first.records[0]
    return None if record.header.dirty else record


def from_store(record: Record, found: References) -> Record:
    """A record of an untrusted run; if it says that nothing was run for it, with the trials that the store has.

    Raises:
        UntrustedError: the store has no such record of the base.
    """
    header, stored = record.header, nearest_of(found)
    if not header.stripped:
        return record
    if stored is None or not header.agent or stored.header.agent != header.agent:
        what = "it says that nothing was run for it, and what is stored of its base is of another agent"
        raise UntrustedError(what, where=header.suite_id)
    return replace(record, header=replace(header, runs=stored.header.runs), trials=stored.trials)


def _is_asked(session: Session, plan: Plan) -> bool:
    """True if this is the run of a change, which leaves it to the gate how often it runs the agent.

    Who plays the user of a scenario is part of no fingerprint.
    """
    options, where, rules = session.options, session.where, session.options.rules
    own = (
        options.resume or options.shard != (1, 1) or (options.record_path is not None and options.record_path.exists())
    )
    if own or session.settings.exact_epochs is not None or session.config.agent_kind == "replay":
        return False
    if where.anchored or where.release or where.dirty or not where.head or is_on_demand(session.environment):
        return False
    if rules is not None and (rules.redefines or rules.is_first or rules.doubts):
        return False
    return not any(case.scenario for case in plan.suite.cases)


def _is_same(record: Record, header: Header) -> bool:
    """True if agent, cases and criteria are those of the record; however it was divided into shards."""
    agent = with_tools(header.agent, record.trials)
    if not header.agent or agent != record.header.agent:
        return False
    stored = replace(record.header, plan=tuple(replace(case, shard=1) for case in record.header.plan))
    here = replace(header, agent=agent, commit=stored.commit, stripped=stored.stripped)
    return not difference(stored, here)


def _is_whole(record: Record, plan: Plan) -> bool:
    own = (trial for trial in record.trials if trial.side is Side.CANDIDATE and trial.tag in (FULL, STORED))
    return {trial.case_id for trial in own} >= {case.id for case in plan.suite.cases}
