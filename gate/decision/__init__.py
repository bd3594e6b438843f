"""Decides: pass, regressed or inconclusive, at a stated error rate. Pure: no network, clock, environment or disk.

A `Comparison` is one suite against one reference. `next_step` returns the trials to run next, or the verdict; `wanted`
only the trials to run next; `verdict_on` the verdict on the trials so far. To get there, `prepare` completes the
scores, `sequential` runs the test in `engine`, `rows` hold the results of each criterion, and the first rule in `rules`
that applies gives the verdict.
"""

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT, More, Request
from gate.decision.next_step import confirmation, next_step, trials_in_outage, verdict_on, wanted
from gate.decision.outcomes import PASS_RATE
from gate.decision.rules import exit_code
from gate.decision.settings import Settings

__all__ = [
    "CONCURRENT",
    "PASS_RATE",
    "Comparison",
    "More",
    "Request",
    "Settings",
    "confirmation",
    "exit_code",
    "next_step",
    "trials_in_outage",
    "verdict_on",
    "wanted",
]
