"""Pairs the trials of a baseline with a record: cases by content, criteria by fingerprint."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from gate.baselines.reference import Reference
from gate.baselines.union import parts_of
from gate.decision.comparison import Comparison, Incomparable
from gate.decision.outcomes import RATE_METRIC
from gate.decision.own_models import OwnModels, moved, own_models_of
from gate.decision.settings import Settings
from gate.decision.unseen import shows_calls
from gate.model import FULL, STORED, Criterion, Side, Trial
from gate.records import Header, PlannedCase, Record


def reported_before(header: Header, reference: Reference) -> bool:
    """True if a baseline of the same agent definition shows that the agent reports its tool calls."""
    for record in reference.records:
        if header.definition and record.header.definition == header.definition and shows_calls(record.trials):
            return True
    return False


def pair(
    plan: Sequence[PlannedCase],
    criteria: Sequence[Criterion],
    reference: Reference,
    *,
    deselected: Set[str] = frozenset(),
    models: OwnModels | None = None,
) -> Comparison:
    """Return the reference's part of a comparison, without the candidate's cases and trials.

    The reference's trials get the ids that their cases have in the ``plan``. Cases are paired by content: a renamed
    case is the same case. The nearest record decides which parts are comparable; an earlier record that is pooled
    counts only if it matches in everything. Cases that are ``deselected`` are left out on both sides: they do not count
    as removed. ``models``: the models that measured the candidate, as `own_models_of` returns them.
    """
    if not reference.records:
        return Comparison((), criteria, (), (), Settings())
    nearest, *earlier = reference.records
    before = nearest.header.criteria
    match = match_cases(plan, nearest.header.plan)
    answered = models or {}
    compared = [trial for trial in _under(match.ids, nearest) if trial.case_id not in deselected]
    stored = _of_the_same_models(compared, answered)
    answered_before = own_models_of(stored)
    known = {criterion.name: criterion.fingerprint for criterion in before}
    excluded: dict[tuple[str, str], Incomparable] = {}
    for criterion in criteria:
        why = None
        if criterion.name not in known:
            why = Incomparable.NEW
        elif known[criterion.name] != criterion.fingerprint:
            why = Incomparable.CHANGED
        elif moved(answered.get(criterion.name, ()), answered_before.get(criterion.name, ())):
            why = Incomparable.OTHER_MODEL
        if why is not None:
            excluded |= {(case.id, criterion.name): why for case in plan}
        for case_id in match.edited:
            excluded[case_id, criterion.name] = Incomparable.EDITED
    for record in earlier:
        if _measured_alike(record, criteria, answered):
            stored += _under(match_cases(plan, record.header.plan).unchanged, record)
    renamed = {new: old for old, new in match.unchanged.items() if old != new}
    return Comparison(
        (),
        criteria,
        (),
        tuple(stored),
        Settings(),
        not_comparable=excluded,
        removed=() if reference.beside else _removed(criteria, before),  # the base ran under all of this run's
        renamed=renamed,
        stored_runs=_by_age(reference.records) if reference.of_change else (),
        base_ran_now=reference.beside,
    )


def excuses(reference: Reference, header: Header) -> bool:
    """True if a change's record need not meet a threshold that the reference misses: this is the record of its own base
    commit, and its origin is not in doubt."""
    if not reference.records or reference.beside or reference.info.provenance == "unproven":
        return False
    return reference.commit == header.base_commit


def _measured_alike(record: Record, criteria: Sequence[Criterion], models: OwnModels) -> bool:
    """True if the record has every criterion in its current form, measured by the same models."""
    known = record.header.measures
    before = own_models_of(record.trials)
    for criterion in criteria:
        if known.get(criterion.name) != criterion.fingerprint:
            return False
        if moved(models.get(criterion.name, ()), before.get(criterion.name, ())):
            return False
    return True


def _of_the_same_models(stored: list[Trial], models: OwnModels) -> list[Trial]:
    """Return the trials of the runs that the candidate's models measured, if these runs cover every case.

    When an alias moved, later runs of the same commit are added to its record. They are a baseline, and the earlier
    ones no longer are; without them nothing can be compared.
    """
    runs: dict[str, list[Trial]] = {}
    for trial in stored:
        runs.setdefault(trial.run, []).append(trial)
    kept = []
    for trials in runs.values():
        before = own_models_of(trials)
        if not any(moved(models.get(name, ()), before[name]) for name in before):
            kept += trials
    if {trial.case_id for trial in kept} != {trial.case_id for trial in stored}:
        return stored
    return kept


def _by_age(records: Sequence[Record]) -> tuple[str, ...]:
    ages = {}
    for record in records:
        for part in parts_of(record):
            ages[part.run.id] = part.run.age
    return tuple(sorted(ages, key=ages.__getitem__))


def _removed(criteria: Sequence[Criterion], before: Sequence[Criterion]) -> list[Criterion]:
    """Return the criteria of the baseline that this record lacks."""
    names = {criterion.name for criterion in criteria}
    return [c for c in before if c.name not in names and c.metric != RATE_METRIC]


class Match(Struct, frozen=True):
    """The pairs of cases between a stored plan and another."""

    ids: Mapping[str, str]
    """Stored id → the current id for its trials: that of the same case, or an unused one."""
    same: frozenset[str]
    """The stored ids of cases that still exist with the same content."""
    edited: frozenset[str]
    """The ids of cases that still exist with different content."""

    @property
    def unchanged(self) -> dict[str, str]:
        """The stored id → the current id of each case that still exists with the same content."""
        return {old: new for old, new in self.ids.items() if old in self.same}


def match_cases(plan: Sequence[PlannedCase], stored: Sequence[PlannedCase]) -> Match:
    """Pair cases by content: first those with the same id, the others in the order of their files."""
    now = {case.id: case.fingerprint for case in plan}
    ids = {case.id: case.id for case in stored if now.get(case.id) == case.fingerprint}
    free: dict[str, deque[str]] = {}
    for case in plan:
        if case.id not in ids:
            free.setdefault(case.fingerprint, deque()).append(case.id)
    for case in stored:
        if case.id not in ids and free.get(case.fingerprint):
            ids[case.id] = free[case.fingerprint].popleft()
    same, taken = frozenset(ids), set(ids.values())
    edited = set()
    for case in stored:
        if case.id in same:
            continue
        if case.id in taken:  # another case has this id now
            ids[case.id] = f"{case.id} (at the baseline)"
        else:
            ids[case.id] = case.id
            edited |= {case.id} & now.keys()
    return Match(ids, same, frozenset(edited))


def _under(ids: Mapping[str, str], record: Record) -> Iterable[Trial]:
    """Yield the record's own trials under the current ids, without those of the baseline it was compared with."""
    for part in parts_of(as_baseline(record)):
        for trial in part.trials:
            now = ids.get(trial.case_id)
            if trial.side is Side.CANDIDATE and now is not None:
                yield replace(trial, case_id=now, run=part.run.id)


def as_baseline(record: Record) -> Record:
    """Return the record with the epochs that were run for later changes turned into normal epochs."""
    if not any(trial.tag == STORED for trial in record.trials):
        return record
    trials = []
    for trial in record.trials:
        if trial.tag == STORED:
            trials.append(replace(trial, tag=FULL))
        else:
            trials.append(trial)
    return replace(record, trials=tuple(trials))
