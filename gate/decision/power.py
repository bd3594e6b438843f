"""Estimates how large a change of an agent the rule finds with the stored trials, without a simulation.

Each case's rate is one of those its trials leave possible, under a prior fitted to all cases, so that steady cases fail
now and then, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import mul
from statistics import NormalDist, fmean

from msgspec import Struct

from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.schedule import LONG_E, LONG_WAVES, WAVES
from gate.decision.engine.state import Metric, margin_of
from gate.decision.outcomes import outcomes_by_case
from gate.decision.settings import MOST_STORED, Goal, Settings
from gate.model import Case, Criterion, Trial
from gate.model.defaults import ALPHA, POWER_FIND, STORED_TRIALS
from gate.statistics.evalues import case_log_e, suite_e

GRID = (0.0, 0.02, 0.05, *(n / 20 for n in range(2, 19)), 0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 1.0)
"""The possible pass rates of a case."""
FIRST = (2.0, *[1.0] * (len(GRID) - 2), 10.0)
"""Initial weights of the fit: in most suites many cases always pass and some never do. With equal weights the steady
cases of a stable suite would fail twice as often as they do."""
STEPS = 40
"""Number of iterations of the fit. More would put all steady cases at exactly 1, which a few trials do not show."""
WANTED = POWER_FIND
"""Share of changes that a design should find."""
PASSES = 0.94
"""Share of unchanged agents that should pass with the stored trials."""
MOST_RERUNS = 200

_NORMAL = NormalDist()


class Rates(Struct, frozen=True, dict=True):
    """The pass rates of the cases, estimated from their trials."""

    counts: tuple[tuple[int, int], ...]
    """(passed, trials) by case. Empty if nothing is known."""

    @cached_property
    def posteriors(self) -> tuple[tuple[float, ...], ...]:
        """The weights of the rates on the grid, by case."""
        whole = sum(FIRST)
        weights = [weight / whole for weight in FIRST]
        distinct = Counter(self.counts)
        for _ in range(STEPS):
            total = [0.0] * len(GRID)
            for count, cases in distinct.items():
                for place, share in enumerate(_posterior(weights, *count)):
                    total[place] += cases * share
            weights = [sum_of_shares / len(self.counts) for sum_of_shares in total]
        known = {count: _posterior(weights, *count) for count in distinct}
        return tuple([known[count] for count in self.counts])


def _posterior(weights: Sequence[float], passed_trials: int, trials: int) -> tuple[float, ...]:
    found = []
    for weight, rate in zip(weights, GRID, strict=True):
        found.append(weight * rate**passed_trials * (1 - rate) ** (trials - passed_trials))
    total = sum(found)
    if not total:
        return tuple(weights)
    return tuple([share / total for share in found])


def rates_of(trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case]) -> Rates:
    """Return the pass rates of the candidate's trials in a record; ``cases`` provide the thresholds of single cases."""
    outcomes = outcomes_by_case(trials, criteria, cases)
    return Rates(tuple([(sum(of_case), len(of_case)) for of_case in outcomes.values()]))


# --- how many trials to store ---------------------------------------------------------------------


LEVEL_SHARE, LEVEL_SHARE_OF_FEW, FEW = 0.52, 0.2, 15
"""Share of alpha at which one test of the mean finds about as much as the whole rule: the first number, or the second
with fewer cases than the third. Fitted to simulations: docs/evidence/decision.md."""


def stored_wanted(rates: Rates, goal: Goal, settings: Settings) -> int:
    """Return the stored trials per case that find the goal's drop as often as the goal demands, between 5 and 25."""
    for stored in range(STORED_TRIALS, MOST_STORED):
        if chance_of_finding(rates, goal.drop, stored, settings) >= goal.find:
            return stored
    return MOST_STORED


def stored_enough(rates: Rates, goal: Goal, settings: Settings) -> int:
    """Return the stored trials per case that reach the goal and let an unchanged agent pass, between 5 and 25."""
    for stored in range(stored_wanted(rates, goal, settings), MOST_STORED):
        if chance_of_passing(rates, stored, settings) >= PASSES:
            return stored
    return MOST_STORED


def chance_of_passing(rates: Rates, stored: int, settings: Settings) -> float:
    """Return the approximate probability that the bad end of an unchanged suite's interval lies within the pass-rate
    margin."""
    cases = len(rates.counts)
    if not cases:
        return 0.0
    spread = 0.0
    for weights in rates.posteriors:
        for weight, rate in zip(weights, GRID, strict=True):
            spread += weight * rate * (1 - rate)
    sd = math.sqrt(spread * (1 / settings.most_epochs + 1 / stored)) / cases
    if sd == 0:
        return 1.0
    room = margin_of(Metric("success", "binary", margin=settings.pass_rate_margin), cases)
    return _NORMAL.cdf(room / sd - _NORMAL.inv_cdf(0.95))


def smallest_found(rates: Rates, stored: float, settings: Settings) -> float | None:
    """Return the smallest drop in whole points, 0 to 1, that is found in four of five changes; None if none is."""
    for points in range(1, 100):
        if chance_of_finding(rates, points / 100, stored, settings) >= WANTED:
            return points / 100
    return None


def chance_of_finding(rates: Rates, drop: float, stored: float, settings: Settings) -> float:
    """Return the approximate probability of finding a drop of the pass rate that all cases share, without a simulation.

    Uses one test of the mean, at a level that accounts for the other tests of the rule. The spread of a case is
    computed over the rates its trials leave possible; under "unchanged" the trials of both sides are pooled.
    """
    cases, epochs = len(rates.counts), settings.most_epochs
    if not cases:
        return 0.0
    mean = fmean([sum(map(mul, weights, GRID)) for weights in rates.posteriors])
    if mean <= 0:
        return 0.0
    left = max(0.0, 1 - drop / mean)
    unchanged = changed = 0.0
    for weights, number in Counter(rates.posteriors).items():
        for weight, before in zip(weights, GRID, strict=True):
            now = before * left
            pooled = (epochs * now + stored * before) / (epochs + stored)
            unchanged += number * weight * pooled * (1 - pooled) * (1 / epochs + 1 / stored)
            changed += number * weight * (now * (1 - now) / epochs + before * (1 - before) / stored)
    share = LEVEL_SHARE
    if cases < FEW:
        share = LEVEL_SHARE_OF_FEW
    beyond = cases * min(drop, mean) - _NORMAL.inv_cdf(1 - share * settings.own_alpha) * math.sqrt(unchanged)
    if changed == 0:
        return float(beyond > 0)
    return _NORMAL.cdf(beyond / math.sqrt(changed))


# --- one broken case ------------------------------------------------------------------------------


def provable(cases: int, baseline_trials: int, alpha: float = ALPHA, *, recorded: bool = False) -> bool:
    """True if the schedule's reruns can prove that a case broke if it always passed and now always fails."""
    most = 1 + sum(WAVES)
    if case_log_e(baseline_trials, baseline_trials, 0, most) >= math.log(LONG_E):
        most += sum(LONG_WAVES)
    needed = reruns_to_prove(cases, baseline_trials, alpha, recorded=recorded)
    return needed is not None and needed <= most


def reruns_to_prove(cases: int, baseline_trials: int, alpha: float = ALPHA, *, recorded: bool = False) -> int | None:
    """Return the number of consecutive failing trials after which one of ``cases`` cases blocks if all others still
    pass."""
    quiet = case_log_e(baseline_trials, baseline_trials, 1, 1)

    def proves(n: int) -> bool:
        broken = case_log_e(baseline_trials, baseline_trials, 0, n)
        return suite_e([broken, *[quiet] * (cases - 1)], recorded=recorded) >= 1 / (alpha * CASES_SHARE)

    least = 1 + bisect_left(range(1, MOST_RERUNS + 1), True, key=proves)  # each failure adds evidence
    if least > MOST_RERUNS:
        return None
    return least
