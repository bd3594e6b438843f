"""Whether a drop of the whole suite is the change's, or both sides moved since the baseline was stored."""

from __future__ import annotations

from msgspec import Struct

from gate.decision.engine.evidence import Evidence
from gate.decision.engine.state import CONCURRENT, Config, Request
from gate.model import Side


class Check(Struct, frozen=True):
    """One step of the check: so many more trials of every case on each side, and what they are tested at."""

    candidate: int
    baseline: int
    share: float
    """Of the check's error budget; the shares add up to 1."""
    futile: float
    """From this p-value on a drop of the candidate alone is out of sight, and no further step is run."""


CHECKS = (Check(0, 1, 0.4, 0.35), Check(1, 1, 0.3, 0.2), Check(2, 2, 0.3, 0.0))
LEVEL = 2.0
"""In shares of alpha: the most often that a change is blocked which is no worse than the baseline's agent is *now*,
whatever happened since the baseline was stored. With nothing happened a block has to come through both tests."""


def next_check(evidence: Evidence, config: Config) -> tuple[Request, ...]:
    """The trials of the next step; empty where none can be run, or is affordable."""
    done = len(evidence.checks)
    if not config.can_run or config.rerun != "match" or done >= len(CHECKS):
        return ()
    step, cases = CHECKS[done], tuple(evidence.cases)
    sides = ((Side.BASELINE, step.baseline), (Side.CANDIDATE, step.candidate))
    requests = tuple(Request(side, CONCURRENT, cases, n) for side, n in sides if n)
    affordable = config.runs_left is None or sum(r.runs for r in requests) <= config.runs_left
    return requests if affordable else ()


def answers_now(evidence: Evidence) -> bool:
    """Whether the baseline's agent was measured in this job in most cases: one that is down says nothing of a drift."""
    return 2 * sum(bool(case.now) for case in evidence.cases.values()) > len(evidence.cases)


def confirmed(evidence: Evidence) -> bool | None:
    """Whether the drop shows against what the baseline's agent does now; None while that is open."""
    level = LEVEL * evidence.state.config.alpha
    for check, test in zip(CHECKS, evidence.checks, strict=False):
        if test.p <= level * check.share:
            return True
        if test.p >= check.futile:
            return False
    return None
