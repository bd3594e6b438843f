"""Cases over several records: how often each passes, and which flip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from gate.decision.power import outcomes_by_case
from gate.model import Case, Criterion, Trial
from gate.statistics.intervals import wilson


class CaseHistory(Struct, frozen=True):
    """One case over time."""

    id: str
    passed: int
    trials: int
    low: float
    """Wilson's 95 % interval of the pass rate."""
    high: float
    by_record: tuple[tuple[int, int], ...]
    """(passed, trials) of each record, oldest first; (0, 0) where it was not run."""

    @property
    def rate(self) -> float:
        return self.passed / self.trials

    @property
    def flaky(self) -> bool:
        """True if one agent gave both answers within a record, or the answer went back and forth between records."""
        seen = [passed > 0 for passed, trials in self.by_record if trials]
        turns = sum(one != other for one, other in pairwise(seen))
        return turns > 1 or any(0 < passed < trials for passed, trials in self.by_record)


def case_history(
    records: Sequence[Sequence[Trial]], criteria: Sequence[Criterion], cases: Mapping[str, Case] | None = None
) -> tuple[CaseHistory, ...]:
    """Every case that was measured, by id. ``records`` hold the trials of each record, oldest first."""
    groups = [outcomes_by_case(trials, criteria, cases) for trials in records]
    found = []
    for case_id in sorted({case_id for group in groups for case_id in group}):
        counts = tuple((sum(group.get(case_id, ())), len(group.get(case_id, ()))) for group in groups)
        passed, trials = sum(p for p, _ in counts), sum(n for _, n in counts)
        found.append(CaseHistory(case_id, passed, trials, *wilson(passed, trials), counts))
    return tuple(found)
