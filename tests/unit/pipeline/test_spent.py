"""The money that a report names is the money that criteria and budgets count."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.config.schema import BudgetSection
from gate.judges.meter import Budget
from gate.model import Replay, Trial, Usage
from gate.model.conversation import Invocation
from gate.pipeline.budget import RunBudget, Spent, spent_on
from gate.system.prices import turn_cost

LISTED = Usage(1000, 100, model="gpt-4o-mini")
REPORTED = Usage(1000, 100, cost_usd=0.01)


def trial(*usages: Usage | None, replay: Replay | None = None) -> Trial:
    return Trial("a", 1, invocations=tuple(Invocation(usage=usage) for usage in usages), replay=replay)


def price() -> float:
    found = turn_cost(LISTED)
    assert found
    return found


def test_tokens_of_a_known_model_are_priced_as_the_budget_prices_them() -> None:
    trials = [trial(LISTED), trial(LISTED, LISTED)]
    found = spent_on(trials)
    assert found == Spent(price() + 2 * price(), "list price", 0)
    budget = RunBudget(BudgetSection(usd=10.0), Budget())
    for one in trials:
        budget.charge(one)
    assert budget.usd == pytest.approx(found.cost_usd)


def test_what_is_reported_goes_before_the_list() -> None:
    assert spent_on([trial(REPORTED)]) == Spent(0.01, "reported", 0)
    assert spent_on([trial(REPORTED), trial(LISTED)]) == Spent(0.01 + price(), "partly list price", 0)


def test_what_is_not_known_is_no_zero() -> None:
    assert spent_on([]) == Spent(None, "", 0)
    assert spent_on([trial(None), trial(Usage(5, 5))]) == Spent(None, "", 2)
    assert spent_on([trial(REPORTED), trial(REPORTED, None), trial()]) == Spent(0.02, "reported", 2)


def test_a_replayed_trial_took_nothing() -> None:
    whole, partly = Replay("base:1", 3, 0), Replay("base:1", 1, 2, saved_usd=0.004)
    assert spent_on([trial(LISTED, replay=whole), trial(None, replay=whole)]) == Spent(0.0, "list price", 0)
    assert spent_on([trial(REPORTED, replay=partly)]) == Spent(0.006, "reported", 0)


def test_an_attempt_that_was_run_again_was_paid_for() -> None:
    """As far as it is known: a turn that failed often reports nothing."""
    earlier = ((Invocation(usage=REPORTED), Invocation()), (Invocation(usage=REPORTED),))
    again = replace(trial(REPORTED), earlier=earlier)
    assert spent_on([again]) == Spent(0.03, "reported", 0)
    budget = RunBudget(BudgetSection(usd=10.0, tokens=10_000), Budget())
    budget.charge(again)
    assert (budget.usd, budget.tokens) == (pytest.approx(0.03), 3_300)
