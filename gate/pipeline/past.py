"""The knowledge of the past about the record that a run is compared with.

The ledger tells who accepted it, and how it fell short; records of the same agent show if the provider has moved since;
the default branch's records give the trend that a report shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from statistics import fmean

from gate.baselines import Store
from gate.baselines.ledger import LAPSED, Ledger, Mark
from gate.baselines.pairing import pair
from gate.baselines.reference import Reference, reference_to
from gate.baselines.union import RunPart, parts_of, without
from gate.decision.outcomes import passed
from gate.errors import BaselineError
from gate.histories.moves import newest_move
from gate.model import Case, Trial
from gate.model.finding import Finding
from gate.pipeline.git_context import GitContext
from gate.records import Header, Record, cases_of
from gate.records.keys import key_of
from gate.reports.formatting import count
from gate.security.limits import shorten
from gate.system.clock import now

# --- the ledger -----------------------------------------------------------------------------------

LUCKY = "if it was picked for its result, an unchanged agent is blocked more often than `gate.alpha` says"


def acceptance_of(ledger: Ledger, where: GitContext, runs: Set[str]) -> str:
    """Return who accepted these very runs, and when. Other runs of the commit were not seen, so they are not
    accepted."""
    key = key_of(where.head)
    found = ledger.accepted(key) if where.anchored else None
    if found is None or not runs:
        return ""
    seen = {mark.run for mark in ledger.marks if mark.key == key and mark.at <= found.at}
    if not runs <= seen:
        return ""
    return f"{found.by} at {datetime.fromtimestamp(found.at, UTC).isoformat(timespec='seconds')}"


def ended_acceptance(ledger: Ledger, where: GitContext) -> str:
    """Return a description of the newest acceptance of a record of this history that does not count; empty if there is
    none."""
    near = {key_of(commit) for commit in where.ancestors}
    if where.head is not None:
        near.add(where.head)
    for found in reversed(ledger.ended):
        if found.key in near:
            fault = found.fault(now().timestamp())
            return f"the acceptance of {found.key[:12]} by {shorten(found.by, 60)} {fault}"
    return ""


def note_of_shortfall(mark: Mark, own: Reference, where: GitContext) -> str:
    """Return a note on how the record that a change is compared with fell short, which the comparison does not show.

    It may have been compared with earlier runs of the same commit.
    """
    commit = (own.commit or "")[:12]
    if own.commit == where.base:
        base = f"the base commit {commit}"
    elif own.commit in where.ancestors:
        base = f"{commit}, which the base commit comes from,"
    else:
        base = f"{commit}, which was saved last,"
    is_its_own = key_of(mark.anchor) == mark.key
    came_out = f"{mark.verdict.replace('_', ' ')} on {datetime.fromtimestamp(mark.at, UTC):%Y-%m-%d}"
    if mark.verdict == LAPSED:
        held = "its own earlier runs" if is_its_own else mark.anchor[:12]
        fell = f"{base} passed only against {held}, whose acceptance has ended"
    elif is_its_own:
        fell = f"{base} was run again, and held to its own earlier runs came out {came_out}"
    else:
        held = f", compared with {mark.anchor[:12]}" if mark.anchor else ""
        fell = f"{base} itself came out {came_out}{held}"
    return f"{fell}; this change is compared with it all the same"


def note_of_picked_run(ledger: Ledger, own: Reference) -> str:
    """Return a note if the record of the base was picked from several runs; else empty."""
    mark = ledger.newest_mark(key_of(own.commit))
    if mark is None or not mark.left_out:
        return ""
    others = count(mark.left_out, "other run")
    return f"the baseline was picked by hand, {others} of its commit left out: {LUCKY}"


def note_of_lost_record(ledger: Ledger, store: Store, suite_id: str, where: GitContext) -> str:
    """Return a note if the ledger names a record of this history that is gone; else empty."""
    marked = {mark.key for mark in ledger.marks} - {entry.key for entry in store.entries(suite_id)}
    for key in map(key_of, where.ancestors):
        if key in marked:
            lost = "deleted, renamed, or no plain file any more"
            return f"a baseline was stored: the ledger names a record of {key[:12]}, which is gone ({lost})"
    return ""


# --- moves of the provider ------------------------------------------------------------------------

LATER = 6
"""Number of newer records of the same agent to read, to see if it moved after the record that a change is compared
with."""


def without_drift(reference: Reference, store: Store) -> tuple[Reference, Finding | None]:
    """Return the reference without runs from before the provider moved, and a note of the move.

    A change is compared with its own base even if that was measured before the move; then there is only the note.
    """
    if not reference.records:
        return reference, None
    kept, move = since_last_move(reference.records)
    if move is not None:
        return reference.with_records(kept), move
    nearest = reference.records[0]
    _, move = since_last_move([*reference.records, *_newer_records(store, nearest)])
    if move is None or move["since"] <= nearest.header.created:
        return reference, None
    return reference, move.but(baseline_is_older=True)


def since_last_move(records: Sequence[Record]) -> tuple[Sequence[Record], Finding | None]:
    """Return the records without the runs from before the latest move, and that move.

    The first record, the nearest, defines which trials are comparable. All records are kept if nothing moved, and at
    least the nearest if all were measured before the move.
    """
    if not records:
        return records, None
    nearest = records[0].header
    runs: list[tuple[RunPart, Header]] = []
    for record in records:
        if _alike(record.header, nearest):
            runs += [(part, record.header) for part in parts_of(record)]
    runs.sort(key=lambda one: one[0].run.age)
    content = nearest.contents
    cases = {case.id: Case(case.id, (), thresholds=case.thresholds) for case in nearest.plan}
    found = newest_move([_comparable(part, header, content) for part, header in runs], cases, nearest.criteria)
    if found is None:
        return records, None
    criterion, move = found
    first, header = runs[move.run]
    before = frozenset(part.run.id for part, _ in runs[: move.run])
    fact = Finding.of(
        "provider_moved",
        since=first.run.created,
        commit=header.commit,
        metric=criterion.name,
        scale=criterion.scale,
        change=move.change,
        p=move.p,
        runs=len(runs),
    )
    kept = []
    for record in records:
        left = without(record, before)
        if left is not None:
            kept.append(left)
    return kept or records[:1], fact


def _newer_records(store: Store, than: Record) -> list[Record]:
    """Return newer records of the same agent, such as nightly runs and merges leave, newest first."""
    header = than.header
    if not header.agent:
        return []
    newer = [entry for entry in store.entries(header.suite_id) if entry.created > header.created]
    others = [entry for entry in newer[:LATER] if entry.commit != header.commit]
    return [record for record in store.read_sound(others) if record.header.agent == header.agent]


def _alike(header: Header, nearest: Header) -> bool:
    """True if both measured the same criteria, on the same agent or at the same commit."""
    if header != nearest and not (header.agent and header.agent == nearest.agent):
        return False
    return header.measures == nearest.measures


def _comparable(part: RunPart, header: Header, content: Mapping[str, str]) -> list[Trial]:
    """Return the trials of cases whose ``content`` is the same in the nearest record."""
    same = {case.id for case in header.plan if content.get(case.id) == case.fingerprint}
    return [trial for trial in part.trials if trial.case_id in same]


# --- the trend ------------------------------------------------------------------------------------

MOST_PAST = 20
"""The number of nearest records to read."""
COVERED = 0.9
"""Minimum share of the current cases that a record covers to be a point of the trend."""
MOST_PAST_TRIALS = 20_000
"""The most stored trials to read, estimated from the baseline's; for a large suite fewer records are read, or none."""


def past_rates(store: Store | None, own: Reference, where: GitContext, header: Header) -> tuple[float, ...]:
    """Return the pass rates of stored commits before this one, oldest first, by the criteria in ``header``.

    Records that cover too few of the current cases, or cannot be read, are left out.
    """
    if store is None or not own.records or not where.ancestors:
        return ()
    most = min(MOST_PAST, MOST_PAST_TRIALS // max(1, len(own.records[0].trials)))
    place = {commit: distance for distance, commit in enumerate(where.ancestors)}
    near = [entry for entry in store.entries(header.suite_id) if entry.commit in place]
    near.sort(key=lambda entry: place[entry.commit or ""])
    del near[most:]
    store.prefetch(near)
    cases = {case.id: case for case in cases_of(header)}
    found = []
    for entry in reversed(near):
        try:
            rate = _rate(store.read(entry), header, cases)
        except BaselineError:
            continue
        if rate is not None:
            found.append(rate)
    return tuple(found)


def _rate(record: Record, header: Header, cases: Mapping[str, Case]) -> float | None:
    """Return the pass rate over the cases in ``header``, or None if the record covers too few of them."""
    paired = pair(header.plan, header.criteria, reference_to([record]))
    blocking = {criterion.name for criterion in header.criteria if criterion.blocking}
    apart = {case_id for case_id, name in paired.not_comparable if name in blocking}
    by_case: dict[str, list[bool]] = {}
    for trial in paired.stored:
        case = cases.get(trial.case_id)
        if case is None or case.id in apart or not trial.is_of_epoch:
            continue
        outcome = passed(trial, case, header.criteria)
        if outcome is not None:
            by_case.setdefault(case.id, []).append(outcome)
    if not by_case or len(by_case) < COVERED * len(header.plan):
        return None
    return fmean(fmean(outcomes) for outcomes in by_case.values())
