"""Whether the provider moved: the stored runs of one agent over time, and what of them is still comparable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from gate.baselines import Store
from gate.baselines.union import RunPart, parts_of, without
from gate.decision.comparison import PASS_RATE
from gate.decision.drift import Moved, newest_move
from gate.model import Case, Criterion, Scale, Trial
from gate.model.finding import Finding
from gate.records import Header, Record

LATER = 6
"""Newer records of the same agent that are read to see whether it moved after the one that a change is held to."""


class Drift(Struct, frozen=True):
    """A point at which the same agent began to score otherwise."""

    since: float
    """Unix time of the first run after it."""
    commit: str | None
    moved: Moved
    scale: Scale
    before: frozenset[str]
    """The runs before it."""
    runs: int

    @property
    def fact(self) -> Finding:
        """What a reader should know of it."""
        moved = self.moved
        return Finding.of(
            "provider_moved",
            since=self.since,
            commit=self.commit,
            metric=moved.metric,
            scale=self.scale,
            change=moved.change,
            p=moved.p,
            runs=self.runs,
        )


def drift_in(records: Sequence[Record]) -> Drift | None:
    """The newest point at which the runs of these records moved; the first record says what is comparable."""
    if not records:
        return None
    nearest = records[0].header
    parts = sorted(
        ((part, record.header) for record in records if _alike(record.header, nearest) for part in parts_of(record)),
        key=lambda one: one[0].run.age,
    )
    known = {case.id: case.fingerprint for case in nearest.plan}
    cases = {case.id: Case(case.id, (), thresholds=case.thresholds) for case in nearest.plan}
    moved = newest_move([_comparable(part, header, known) for part, header in parts], cases, nearest.criteria)
    if moved is None:
        return None
    first, header = parts[moved.run]
    before = frozenset(part.run.id for part, _ in parts[: moved.run])
    return Drift(first.run.created, header.commit, moved, _scale(moved.metric, nearest.criteria), before, len(parts))


def since(records: Sequence[Record], drift: Drift | None) -> tuple[Record, ...]:
    """The records without the runs from before the point; the nearest stays as it is if nothing else is left."""
    if drift is None:
        return tuple(records)
    kept = tuple(left for record in records if (left := without(record, drift.before)) is not None)
    return kept or tuple(records[:1])


def later(store: Store, suite_id: str, than: Record) -> list[Record]:
    """Newer records of the same agent, as nightly runs and merges leave them, the newest first."""
    if not than.header.agent:
        return []
    entries = [e for e in store.entries(suite_id) if not e.dirty and e.created > than.header.created]
    found = store.read_sound(entry for entry in entries[:LATER] if entry.commit != than.header.commit)
    return [record for record in found if record.header.agent == than.header.agent]


def _alike(header: Header, nearest: Header) -> bool:
    """Whether what was measured is measured alike: the same criteria, of the same agent or at the same commit."""
    same = bool(header.agent) and header.agent == nearest.agent
    fingerprints = {c.name: c.fingerprint for c in header.criteria}
    return (same or header == nearest) and fingerprints == {c.name: c.fingerprint for c in nearest.criteria}


def _comparable(part: RunPart, header: Header, known: Mapping[str, str]) -> list[Trial]:
    """The trials of cases that are the same in the nearest record."""
    same = {case.id for case in header.plan if known.get(case.id) == case.fingerprint}
    return [trial for trial in part.trials if trial.case_id in same]


def _scale(metric: str, criteria: Sequence[Criterion]) -> Scale:
    return Scale.BINARY if metric == PASS_RATE else next(c.scale for c in criteria if c.name == metric)
