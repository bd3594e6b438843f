"""The base commit's agent, run now, as a control: whether it still does what was stored of it.

Where it fails what it always passed, in a case that the change fails, too, it cannot clear the change. The provider may
have moved; or what runs as the base's agent is another, as behind a wrong address or in an environment of the change's.
"""

from __future__ import annotations

from gate.decision.comparison import Comparison
from gate.decision.crashes import earlier
from gate.model import Side
from gate.model.finding import Finding

LEAST = 3
"""Trials of each kind: of an unchanged case that passed each time, three failures in a row come in 2 % at most."""


def control_fell(comparison: Comparison) -> Finding | None:
    """The judged cases in which each stored trial passed, and none does now, neither the base's nor the change's."""
    if not any(trial.side is Side.BASELINE for trial in comparison.trials):
        return None
    stored = {id(trial) for trial in comparison.stored}
    found = []
    for case in comparison.judged:
        trials = earlier(comparison, case.id) if case.id in comparison.with_baseline else ()
        before = [comparison.passes(t) for t in trials if id(t) in stored]
        base = [comparison.passes(t) for t in trials if id(t) not in stored]
        now = [comparison.passes(t) for t in comparison.measured(case.id)]
        if min(len(before), len(base), len(now)) >= LEAST and all(before) and not any(base) and not any(now):
            found.append(case.id)
    return Finding.of("cases_fail", cases=tuple(found)) if found else None
