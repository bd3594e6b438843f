"""Decides: pass, regressed or inconclusive, at a stated error rate. Pure: no network, clock, environment or disk.

`engine` is the rule on plain numbers, `suite` the same on the trials of a suite; `protocol` opens the former to anyone.
"""

from gate.decision.comparison import PASS_RATE, Settings
from gate.decision.conclusions import exit_code
from gate.decision.engine.state import CONCURRENT, Request
from gate.decision.next_step import More, Situation, confirmation, next_step, spoiled, verdict_on

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
    "spoiled",
    "verdict_on",
]
