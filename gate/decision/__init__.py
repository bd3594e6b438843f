"""Decides: pass, regressed or inconclusive, at a stated error rate. Pure: no network, clock, environment or disk.

A `Comparison` is one suite beside one reference. `next_step` says what to run next, or the verdict; `wanted` what to
run next alone; `verdict_on` the verdict on what there is. On the way to it: `prepare` completes the scores,
`sequential` asks the test in `engine`, `rows` hold what was found of each criterion, and the first rule in `rules` that
applies is the verdict.
"""

from gate.decision.comparison import Comparison
from gate.decision.engine.state import CONCURRENT, Request
from gate.decision.next_step import More, confirmation, next_step, trials_in_outage, verdict_on, wanted
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
