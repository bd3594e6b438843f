"""The smallest drop that a suite can detect with a number of cases and trials, and what that costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, variance

from msgspec import Struct

from gate.decision.comparison import passed
from gate.decision.engine.evidence import CASES_SHARE
from gate.decision.engine.schedule import LONG_E, LONG_WAVES, WAVES
from gate.model import Case, Criterion, Side, Trial
from gate.statistics.evalues import case_log_e, suite_e
from gate.statistics.intervals import detectable_drop

CASE_COUNTS = (10, 30, 50, 100, 200, 300)
TRIAL_COUNTS = (1, 3, 5, 10)
MOST_RERUNS = 200


class PowerRow(Struct, frozen=True):
    """A design and what it finds."""

    cases: int
    trials: int
    """Epochs of the candidate."""
    baseline_trials: int
    detectable: float
    """The drop of the pass rate that is found with about 80 % power, 0–1."""
    runs: int
    """Agent runs of the candidate, without reruns of suspicious cases."""
    cost_usd: float | None
    reruns: int | None
    """Failing trials in a row that prove one broken case, where its baseline always passed; None: more than 200."""


class Power(Struct, frozen=True):
    """What the trials of a record say about designs."""

    within_sd: float
    """Spread of one case's pass or fail over its trials."""
    estimated: bool
    """Whether it is only bounded: no case was run twice."""
    cost_per_run: float | None
    rows: tuple[PowerRow, ...]


def power_table(
    trials: Sequence[Trial],
    criteria: Sequence[Criterion],
    *,
    cases: Mapping[str, Case] | None = None,
    alpha: float = 0.02,
    baseline_trials: int = 5,
) -> Power:
    """For this record's agent: cases × trials → detectable drop, agent runs and dollars.

    ``cases`` gives thresholds of single cases. The table holds the record's own number of cases too.
    """
    groups = outcomes_by_case(trials, criteria, cases)
    spread, estimated = _within_sd(list(groups.values()))
    costs = [u.cost_usd for t in trials if (u := t.usage) is not None and u.cost_usd is not None]
    cost = fmean(costs) if costs else None
    rows = tuple(
        PowerRow(
            n,
            k,
            baseline_trials,
            min(1.0, detectable_drop(spread, n, baseline_trials, k)),
            n * k,
            None if cost is None else n * k * cost,
            reruns_to_prove(n, baseline_trials, alpha),
        )
        for n in sorted({*CASE_COUNTS, len(groups)} - {0})
        for k in TRIAL_COUNTS
    )
    return Power(spread, estimated, cost, rows)


def outcomes_by_case(
    trials: Sequence[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case] | None = None
) -> dict[str, list[bool]]:
    """Whether each candidate trial passed, by case; trials that could not be measured are left out."""
    groups: dict[str, list[bool]] = {}
    known = cases or {}
    for trial in trials:
        case = known.get(trial.case_id) or Case(trial.case_id, ())
        outcome = passed(trial, case, criteria) if trial.side is Side.CANDIDATE else None
        if outcome is not None:
            groups.setdefault(trial.case_id, []).append(outcome)
    return groups


def _within_sd(groups: Sequence[Sequence[bool]]) -> tuple[float, bool]:
    """Pooled over the cases that were run more than once; else the most it can be, given the mean."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom:
        squares = sum(variance(map(float, g)) * (len(g) - 1) for g in groups if len(g) > 1)
        return math.sqrt(squares / freedom), False
    rate = fmean(float(o) for g in groups for o in g) if groups else 0.5
    return math.sqrt(rate * (1 - rate)), True


def provable(cases: int, baseline_trials: int, alpha: float = 0.02) -> bool:
    """Whether the schedule's reruns can prove that a case broke which always passed and now always fails."""
    few = 1 + sum(WAVES)
    long = case_log_e(baseline_trials, baseline_trials, 0, few) >= math.log(LONG_E)
    needed = reruns_to_prove(cases, baseline_trials, alpha)
    return needed is not None and needed <= few + (sum(LONG_WAVES) if long else 0)


def reruns_to_prove(cases: int, baseline_trials: int, alpha: float = 0.02) -> int | None:
    """Consecutive failing trials after which one of ``cases`` cases blocks, if all others pass as before."""
    quiet = case_log_e(baseline_trials, baseline_trials, 1, 1)
    for n in range(1, MOST_RERUNS + 1):
        broken = case_log_e(baseline_trials, baseline_trials, 0, n)
        if suite_e([broken, *[quiet] * (cases - 1)]) >= 1 / (alpha * CASES_SHARE):
            return n
    return None
