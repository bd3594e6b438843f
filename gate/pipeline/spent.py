"""What trials cost, as far as it is known: as the agent reports it, else its tokens by list price, as criteria do."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from gate.model import Trial
from gate.system.prices import turn_cost


class Spent(Struct, frozen=True):
    """A sum of money and where it is from."""

    cost_usd: float | None
    """None where nothing is known of any trial."""
    cost_basis: Literal["", "reported", "list price", "partly list price"]
    cost_unknown: int
    """Trials that were measured and do not tell all of their cost."""


def spent_on(trials: Iterable[Trial]) -> Spent:
    """What the trials cost, without what was answered from recordings."""
    usd, known, listed, reported, unknown = 0.0, False, False, False, 0
    for trial in trials:
        usages = [invocation.usage for invocation in trial.invocations]
        costs = [turn_cost(usage) for usage in usages]
        told = [cost for cost in costs if cost is not None]
        replayed = trial.replay is not None and trial.replay.whole
        unknown += trial.measured and not replayed and (not told or None in costs)
        if not told:
            continue
        known = True
        stated = [usage is not None and usage.cost_usd is not None for usage in usages]
        reported = reported or any(stated)
        listed = listed or any(cost is not None and not own for cost, own in zip(costs, stated, strict=True))
        usd += 0.0 if replayed else max(0.0, sum(told) - (trial.saved_usd or 0.0))
    if not known:
        return Spent(None, "", unknown)
    return Spent(usd, ("partly list price" if reported else "list price") if listed else "reported", unknown)
