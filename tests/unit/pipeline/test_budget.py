"""What replayed trials take of a budget; tests/acceptance/test_budgets.py has budgets as a whole."""

from __future__ import annotations

import pytest

from gate.config.schema import BudgetSection
from gate.errors import MeasureError
from gate.judges.meter import Budget
from gate.model import Replay, Trial, Usage
from gate.model.conversation import Invocation
from gate.pipeline.budget import RunBudget


def trial(replay: Replay | None, cost: float | None = 0.5) -> Trial:
    usage = Usage(input_tokens=100, output_tokens=10, cost_usd=cost)
    return Trial("refund", 1, invocations=(Invocation(usage=usage if cost is not None else None),), replay=replay)


def charged(*trials: Trial) -> RunBudget:
    budget = RunBudget(BudgetSection(usd=10.0, tokens=1_000), Budget())
    for one in trials:
        budget.charge(one)
        budget.check_told(one)
    return budget


def test_a_trial_that_was_answered_wholly_from_a_recording_takes_a_run_and_nothing_else() -> None:
    spent = charged(trial(Replay("base:1", 3, 0)), trial(Replay("base:2", 3, 0), cost=None))
    assert (spent.runs, spent.usd, spent.tokens, spent.judge.agent_usd) == (2, 0, 0, 0)


def test_a_trial_that_went_live_takes_what_its_replayed_calls_did_not_save() -> None:
    assert charged(trial(Replay("base:1", 1, 2, saved_usd=0.2))).usd == pytest.approx(0.3)
    assert charged(trial(Replay("base:1", 0, 2))).usd == 0.5
    assert charged(trial(None)).usd == 0.5


def test_an_agent_that_tells_no_cost_is_not_excused_by_a_claim_without_a_source() -> None:
    with pytest.raises(MeasureError):
        charged(trial(Replay("", 3, 0), cost=None))


def test_a_budget_has_room_for_further_runs_at_what_those_before_took() -> None:
    spent = charged(trial(None), trial(None), trial(None), trial(None))  # $2, 440 tokens
    assert spent.lacks(5) == ""
    assert spent.lacks(6) == "budget.tokens (1000)"
    bounded = RunBudget(BudgetSection(runs=10), Budget(), launched=4)
    assert (bounded.lacks(6), bounded.lacks(7)) == ("", "budget.runs (10)")
    assert charged(trial(None, cost=9.0)).lacks(1) == "budget.usd (10)"
    assert charged().lacks(1_000) == "", "nobody knows what a run takes"
