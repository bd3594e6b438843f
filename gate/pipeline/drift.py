"""Excludes runs from before the provider changed: the same agent has scored differently since, so they are not
pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gate.baselines import Store
from gate.baselines.reference import Reference
from gate.baselines.union import RunPart, parts_of, without
from gate.histories.moves import newest_move
from gate.model import Case, Trial
from gate.model.finding import Finding
from gate.records import Header, Record

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
    content = {case.id: case.fingerprint for case in nearest.plan}
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
    own = {criterion.name: criterion.fingerprint for criterion in header.criteria}
    return own == {criterion.name: criterion.fingerprint for criterion in nearest.criteria}


def _comparable(part: RunPart, header: Header, content: Mapping[str, str]) -> list[Trial]:
    """Return the trials of cases whose ``content`` is the same in the nearest record."""
    same = {case.id for case in header.plan if content.get(case.id) == case.fingerprint}
    return [trial for trial in part.trials if trial.case_id in same]
