"""What to do about a verdict, in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model import CriterionResult, OnTradeoff, SuiteResult, Verdict
from gate.model.facts import (
    CacheOrBroken,
    CasesNotCompared,
    ControlFell,
    CouldNotMeasure,
    Course,
    CriteriaNotCompared,
    Doubt,
    Doubted,
    LostDecide,
    Outage,
    ShardMeasured,
    Stated,
    TradedOff,
    UnexplainedFailures,
)
from gate.model.findings import CaseTally, FailuresGone, NoLongerMeasured, ScorerChanged
from gate.reports.explanation import headline
from gate.reports.headline import LOOK_AT_ERRORS, next_step
from gate.reports.markdown import Place, render_suite

from .samples import FAILED, INCONCLUSIVE, PASSED, REGRESSED, result

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


STORE_AGAIN = "run the default branch's job again, which stores what its agent does now; then this one"
ACCEPT = "(gate baseline accept, once it is merged)"
GONE = replace(INCONCLUSIVE.criteria[0], not_compared=NoLongerMeasured())


@pytest.mark.parametrize(
    ("doubts", "criteria", "said"),
    [
        (
            (CasesNotCompared(10, 2, 24),),
            (),
            f"bring back the removed and edited cases as they were, or accept that they are not compared {ACCEPT}",
        ),
        (
            (CasesNotCompared(3, 0, 24),),
            (),
            f"bring back the removed cases as they were, or accept that they are not compared {ACCEPT}",
        ),
        (
            (CriteriaNotCompared(("pass_rate",)),),
            (GONE,),
            f"bring back what pass_rate measured, or accept that it is gone {ACCEPT}",
        ),
        (
            (CriteriaNotCompared(("pass_rate",)), CasesNotCompared(0, 5, 24)),
            (replace(GONE, not_compared=ScorerChanged()),),
            "score the baseline's own record again (gate rescore), or bring back what was compared; "
            f"bring back the edited cases as they were, or accept that they are not compared {ACCEPT}",
        ),
        ((UnexplainedFailures(1), FailuresGone(24)), (), LOOK_AT_ERRORS),
        ((Stated("the suite is gone"),), (), "settle what the headline names: it is no matter of trials"),
        ((ControlFell(("a",)),), (), STORE_AGAIN),
        ((CacheOrBroken(("a",)),), (), STORE_AGAIN),
        ((LostDecide(3),), (), "fix what prevented the measurement, then run the job again"),
    ],
)
def test_what_no_further_trial_settles_is_not_asked_for_in_trials(
    doubts: tuple[Doubt, ...], criteria: tuple[CriterionResult, ...], said: str
) -> None:
    suite = replace(INCONCLUSIVE, cause=Doubted(), doubts=doubts, criteria=criteria)
    assert next_step(suite) == said
    assert "more" not in said
    gone = any(isinstance(one, Stated | CriteriaNotCompared | CasesNotCompared) for one in doubts)
    shown = render_suite(suite, result(suite), place=Place(accept_label="gate:accept"))
    assert ("or someone with write access sets `gate:accept`" in shown) is gone


def test_what_is_not_compared_and_what_wants_trials_are_both_said() -> None:
    waits = replace(INCONCLUSIVE, criteria=(*INCONCLUSIVE.criteria, GONE))
    said = next_step(waits)
    assert said.startswith(
        f"bring back what pass_rate measured, or accept that it is gone {ACCEPT}; look at the cases "
    )
    assert "to decide" in said


def test_a_headline_names_what_stopped_a_run_that_could_not_measure() -> None:
    stopped = replace(FAILED, course=Course(stopped="the budget of 5 minutes is spent"))
    assert headline(stopped) == f"{headline(FAILED)} (stopped: the budget of 5 minutes is spent)"


def test_a_trade_against_the_reference_that_decided_is_what_to_look_at() -> None:
    anchor = replace(traded("warn"), reference="anchor")
    suite = replace(INCONCLUSIVE, further=(anchor,), decided_by="anchor")
    assert next_step(suite) == "look at what was lost (a, b): fix it, or accept the trade"
