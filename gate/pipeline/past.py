"""The pass rates of the default branch's stored runs, for the trend that a report shows. No verdict rests on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from gate.baselines import Store
from gate.baselines.pairing import Reference, pair, reference_to
from gate.decision.comparison import passed
from gate.decision.measured import EPOCHS
from gate.decision.verdict import COVERED
from gate.errors import BaselineError
from gate.model import Case, Criterion
from gate.pipeline.reference import GitContext
from gate.records import PlannedCase, Record

MOST = 20
"""Records that are looked at, the nearest."""
MOST_TRIALS = 20_000
"""Stored trials of them together, by those of the baseline: of a large suite fewer records are read, or none."""


def past_rates(
    store: Store | None,
    own: Reference,
    suite_id: str,
    where: GitContext,
    plan: Sequence[PlannedCase],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
) -> tuple[float, ...]:
    """The pass rate of each commit before the candidate's of which a record is stored, by its criteria, oldest first.

    Left out is a record that covers too few of the cases as they are now, or that cannot be read.
    """
    if store is None or not own.records or not where.ancestors:
        return ()
    most = min(MOST, MOST_TRIALS // max(1, len(own.records[0].trials)))
    place = {commit: distance for distance, commit in enumerate(where.ancestors)}
    near = [entry for entry in store.entries(suite_id) if not entry.dirty and entry.commit in place]
    near = sorted(near, key=lambda entry: place[entry.commit or ""])[:most]
    store.bring(near)
    found = []
    for entry in reversed(near):
        try:
            rate = _rate(store.read(entry), plan, cases, criteria)
        except BaselineError:
            continue
        found += [] if rate is None else [rate]
    return tuple(found)


def _rate(
    record: Record, plan: Sequence[PlannedCase], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> float | None:
    paired = pair(plan, criteria, reference_to([record], None, distance=None, source=""))
    blocking = {criterion.name for criterion in criteria if criterion.blocking}
    apart = {case_id for case_id, name in paired.not_comparable if name in blocking}
    by_case: dict[str, list[bool]] = {}
    for trial in paired.trials:
        case = cases.get(trial.case_id)
        if case is None or case.id in apart or trial.tag not in EPOCHS:
            continue
        outcome = passed(trial, case, criteria)
        if outcome is not None:
            by_case.setdefault(case.id, []).append(outcome)
    if not by_case or len(by_case) < COVERED * len(plan):
        return None
    return fmean(fmean(outcomes) for outcomes in by_case.values())
