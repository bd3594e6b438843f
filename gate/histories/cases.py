"""Cases over several records: pass rates, and cases that flip."""

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
    """Lower end of Wilson's 95 % interval of the pass rate; ``high`` is the upper end."""
    high: float
    by_record: tuple[tuple[int, int], ...]
    """(passed, trials) per record, oldest first; (0, 0) if the case was not run."""

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
        """True if the same agent both passed and failed within a record, or outcomes alternated between records."""
        seen = [passed > 0 for passed, trials in self.by_record if trials]
        turns = sum(one != other for one, other in pairwise(seen))
        return turns > 1 or any(0 < passed < trials for passed, trials in self.by_record)
