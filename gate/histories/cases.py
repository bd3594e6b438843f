"""Cases over several records: pass rates, and cases that flip although the agent is the same."""

from __future__ import annotations

from collections.abc import Sequence

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
    flaky: bool = False
    """True if the same version of the agent both passed and failed."""

    @classmethod
    def of(cls, case_id: str, by_record: Sequence[tuple[int, int]], versions: Sequence[str]) -> CaseHistory | None:
        """Return the history of a case; None if it was never measured.

        ``versions``: the version of the agent in each record; an empty one is like no other.
        """
        passed, trials = map(sum, zip(*by_record, strict=True))
        if not trials:
            return None
        low, high = wilson(passed, trials)
        return cls(case_id, passed, trials, low, high, tuple(by_record), _flips(by_record, versions))

    @property
    def rate(self) -> float:
        return self.passed / self.trials


def _flips(by_record: Sequence[tuple[int, int]], versions: Sequence[str]) -> bool:
    counts: dict[str | int, tuple[int, int]] = {}
    for number, ((passed, trials), version) in enumerate(zip(by_record, versions, strict=True)):
        before = counts.get(version or number, (0, 0))
        counts[version or number] = (before[0] + passed, before[1] + trials)
    return any(0 < passed < trials for passed, trials in counts.values())
