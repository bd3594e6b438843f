"""The trend that a report shows: the pass rates of earlier commits of the default branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

from gate.baselines import Store
from gate.baselines.pairing import pair
from gate.baselines.reference import Reference, reference_to
from gate.decision.course import COVERED
from gate.decision.outcomes import passed
from gate.errors import BaselineError
from gate.model import Case, Criterion
from gate.pipeline.git_context import GitContext
from gate.records import PlannedCase, Record

MOST_PAST = 20
"""The number of nearest records to read."""
MOST_PAST_TRIALS = 20_000
"""The most stored trials to read, estimated from the baseline's; for a large suite fewer records are read, or none."""


def past_rates(
    store: Store | None,
    own: Reference,
    suite_id: str,
    where: GitContext,
    plan: Sequence[PlannedCase],
    cases: Mapping[str, Case],
    criteria: Sequence[Criterion],
) -> tuple[float, ...]:
    """Return the pass rates of stored commits before this one, by its criteria, oldest first.

    Records that cover too few of the current cases, or cannot be read, are left out.
    """
    if store is None or not own.records or not where.ancestors:
        return ()
    most = min(MOST_PAST, MOST_PAST_TRIALS // max(1, len(own.records[0].trials)))
    place = {commit: distance for distance, commit in enumerate(where.ancestors)}
    near = [entry for entry in store.entries(suite_id) if entry.commit in place]
    near.sort(key=lambda entry: place[entry.commit or ""])
    del near[most:]
    store.prefetch(near)
    found = []
    for entry in reversed(near):
        try:
            rate = _rate(store.read(entry), plan, cases, criteria)
        except BaselineError:
            continue
        if rate is not None:
            found.append(rate)
    return tuple(found)


def _rate(
    record: Record, plan: Sequence[PlannedCase], cases: Mapping[str, Case], criteria: Sequence[Criterion]
) -> float | None:
    """Return the pass rate over the cases of the plan, or None if the record covers too few of them."""
    paired = pair(plan, criteria, reference_to([record]))
    blocking = {criterion.name for criterion in criteria if criterion.blocking}
    apart = {case_id for case_id, name in paired.not_comparable if name in blocking}
    by_case: dict[str, list[bool]] = {}
    for trial in paired.stored:
        case = cases.get(trial.case_id)
        if case is None or case.id in apart or not trial.is_of_epoch:
            continue
        outcome = passed(trial, case, criteria)
        if outcome is not None:
            by_case.setdefault(case.id, []).append(outcome)
    if not by_case or len(by_case) < COVERED * len(plan):
        return None
    return fmean(fmean(outcomes) for outcomes in by_case.values())
