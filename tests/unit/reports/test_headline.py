"""What to do about a verdict, in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model import OnTradeoff, SuiteResult, Verdict
from gate.model.facts import CouldNotMeasure, Course, Outage, ShardMeasured, TradedOff
from gate.model.findings import CaseTally
from gate.reports.explanation import headline
from gate.reports.headline import next_step

from .samples import FAILED, INCONCLUSIVE, PASSED, REGRESSED

LOST = (CaseTally("a", 0, 4, 5, 5), CaseTally("b", 0, 4, 5, 5))


def traded(policy: OnTradeoff, *waits: str, verdict: Verdict = Verdict.INCONCLUSIVE) -> SuiteResult:
    found = TradedOff(LOST, (CaseTally("c", 5, 5, 0, 5),), named=True, gained_named=True, policy=policy, waits=waits)
    return replace(INCONCLUSIVE, verdict=verdict, cause=found, trade=found)


@pytest.mark.parametrize(
    ("suite", "said"),
    [
        (PASSED, ""),
        (REGRESSED, "fix it; a missed threshold cannot be accepted"),
        (replace(REGRESSED, criteria=REGRESSED.criteria[:1]), "fix it"),
        (traded("block", verdict=Verdict.REGRESSED), "fix what was lost, or accept the trade"),
        (traded("warn"), "look at what was lost (a, b): fix it, or accept the trade"),
        (
            traded("warn", "pass rate"),
            "look at what was lost (a, b): fix it, or accept the trade; to decide pass rate: more cases or trials",
        ),
        (traded("accept", "pass rate"), "to decide pass rate: more cases or trials"),
        (replace(INCONCLUSIVE, cause=ShardMeasured(1, 2, 36, 12)), ""),
        (FAILED, "fix what prevented the measurement, then run the job again"),
        (
            replace(FAILED, cause=CouldNotMeasure(Outage(12, 12, compared=True, error="crash: boom"))),
            "look at the error: if it is the agent's own, fix it; if what it depends on was down, run the job again",
        ),
        (
            replace(FAILED, course=Course(stopped="the budget of 5 minutes is spent")),
            "give the run what it was short of, then run the job again",
        ),
    ],
)
def test_what_to_do(suite: SuiteResult, said: str) -> None:
    assert next_step(suite) == said


def test_a_headline_names_what_stopped_a_run_that_could_not_measure() -> None:
    stopped = replace(FAILED, course=Course(stopped="the budget of 5 minutes is spent"))
    assert headline(stopped) == f"{headline(FAILED)} (stopped: the budget of 5 minutes is spent)"


def test_a_trade_against_the_reference_that_decided_is_what_to_look_at() -> None:
    anchor = replace(traded("warn"), reference="anchor")
    suite = replace(INCONCLUSIVE, further=(anchor,), decided_by="anchor")
    assert next_step(suite) == "look at what was lost (a, b): fix it, or accept the trade"
