"""Decides: pass, regressed or inconclusive, at a stated error rate. Pure: no network, clock, environment or disk.

`next_step` is asked after each round: what to run next, or the verdict; `wanted`: what to run next alone. `comparison`
makes numbers of a suite's trials, `engine` decides on plain numbers, `verdict` says what follows for each criterion and
case.
"""

from gate.decision.comparison import PASS_RATE, Settings
from gate.decision.engine.state import CONCURRENT, Request
from gate.decision.exits import exit_code
from gate.decision.next_step import More, Situation, confirmation, next_step, trials_in_outage, verdict_on, wanted

__all__ = [
    "CONCURRENT",
    "PASS_RATE",
    "More",
    "Request",
    "Settings",
    "Situation",
    "confirmation",
    "exit_code",
    "next_step",
    "trials_in_outage",
    "verdict_on",
    "wanted",
]
