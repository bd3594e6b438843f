"""Cases over several records: how often each passes, and which flip."""

from __future__ import annotations

from itertools import pairwise

from msgspec import Struct

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

    @classmethod
    def of(cls, case_id: str, by_record: tuple[tuple[int, int], ...]) -> CaseHistory | None:
        """Return the history of a case; None if it was never measured."""
        passed = sum(passed for passed, _ in by_record)
        trials = sum(trials for _, trials in by_record)
        return cls(case_id, passed, trials, *wilson(passed, trials), by_record) if trials else None

    @property
    def rate(self) -> float:
        return self.passed / self.trials

    @property
    def flaky(self) -> bool:
        """True if one agent gave both answers within a record, or the answer went back and forth between records."""
        seen = [passed > 0 for passed, trials in self.by_record if trials]
        turns = sum(one != other for one, other in pairwise(seen))
        return turns > 1 or any(0 < passed < trials for passed, trials in self.by_record)
