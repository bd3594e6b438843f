"""Cases over several records: pass rates, and cases that flip."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

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
    def of(cls, case_id: str, by_record: Sequence[tuple[int, int]]) -> CaseHistory | None:
        """Return the history of a case; None if it was never measured."""
        passed, trials = map(sum, zip(*by_record, strict=True))
        if not trials:
            return None
        low, high = wilson(passed, trials)
        return cls(case_id, passed, trials, low, high, tuple(by_record))

    @property
    def rate(self) -> float:
        return self.passed / self.trials

    @property
    def flaky(self) -> bool:
        """True if the same agent both passed and failed within a record, or outcomes alternated between records."""
        seen = []
        for passed, trials in self.by_record:
            if 0 < passed < trials:
                return True
            if trials:
                seen.append(passed > 0)
        return len(list(groupby(seen))) > 2
