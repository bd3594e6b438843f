"""Reduces the trials of one run to what a history needs of it: the sums of each case's values, by criterion. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.comparison import PASS_RATE, RATE_METRIC, passed
from gate.model import FULL, STORED, Case, Criterion, Direction, Estimate, Scale, Side, Trial
from gate.statistics.intervals import deviation, mean, t_quantile, wilson
from gate.statistics.trend import Sums

EPOCHS = (FULL, STORED)
"""Tags of trials that count: reruns were picked by outcomes."""
MOST_VALUE = 1e12
"""No honest cost, time or number of tokens is larger; the square of such a one can still be added up."""
COST = "cost of a trial"
DURATION = "duration of a trial"
TOKENS = "tokens of a trial"
SPENT = {
    COST: Criterion(COST, "cost", Scale.USD, Direction.LOWER, blocking=False),
    DURATION: Criterion(DURATION, "latency", Scale.SECONDS, Direction.LOWER, blocking=False),
    TOKENS: Criterion(TOKENS, "tokens", Scale.COUNT, Direction.LOWER, blocking=False),
}
"""What is followed beside the criteria, where trials tell it."""


class RunValues(Struct, frozen=True):
    """One run in numbers."""

    trials: int
    """Of the candidate, reruns included."""
    failed: int
    """Those in which the agent failed."""
    unmeasured: int
    """Those that infrastructure lost."""
    values: Mapping[str, Mapping[str, Sums]]
    """Of each metric, by case."""
    outcomes: Mapping[str, tuple[int, int]]
    """Of each case (passed, trials), reruns included."""


def reduced(trials: Iterable[Trial], criteria: Sequence[Criterion], cases: Mapping[str, Case]) -> RunValues:
    """The run of these trials, passed or failed by these criteria; trials are looked at one at a time."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    outcomes: dict[str, tuple[int, int]] = {}
    judged = [criterion for criterion in criteria if criterion.metric != RATE_METRIC]
    spent = spent_beside(criteria)
    seen = failed = unmeasured = 0
    for trial in trials:
        if trial.side is not Side.CANDIDATE:
            continue
        seen, failed, unmeasured = seen + 1, failed + trial.failed, unmeasured + (not trial.measured)
        case_id = trial.case_id
        if not trial.measured or case_id not in cases:
            continue
        outcome = passed(trial, cases[case_id], judged)
        if outcome is not None:
            held, n = outcomes.get(case_id, (0, 0))
            outcomes[case_id] = held + outcome, n + 1
        if trial.tag in EPOCHS:
            for name, value in _values(trial, outcome, spent):
                values[name][case_id].append(value)
    sums = {name: {case_id: _sums(held) for case_id, held in found.items()} for name, found in values.items()}
    return RunValues(seen, failed, unmeasured, sums, outcomes)


def spent_beside(criteria: Iterable[Criterion]) -> frozenset[str]:
    """What of `SPENT` no criterion measures."""
    measured = {criterion.metric for criterion in criteria}
    return frozenset(name for name, one in SPENT.items() if one.metric not in measured)


def _values(trial: Trial, outcome: bool | None, spent: frozenset[str]) -> list[tuple[str, float]]:
    found = [(name, score.value) for name, score in trial.scores.items() if score.value is not None]
    if outcome is not None:
        found.append((PASS_RATE, float(outcome)))
    if trial.duration is not None and trial.answered and DURATION in spent:
        found.append((DURATION, trial.duration))
    if COST in spent or TOKENS in spent:
        turns = trial.invocations
        usage = turns[0].usage if len(turns) == 1 else trial.usage
        if usage is not None:
            told = ((COST, usage.cost_usd), (TOKENS, usage.tokens))
            found += [(name, float(value)) for name, value in told if value is not None and name in spent]
    return found


def _sums(values: Sequence[float]) -> Sums:
    if max(values) > MOST_VALUE:
        values = [min(value, MOST_VALUE) for value in values]
    return Sums(len(values), sum(values), sum([value * value for value in values]), min(values), max(values))


def together(sums: Iterable[Sums]) -> Sums:
    """The values of several runs of one case."""
    n, total, squares, least, most = 0, 0.0, 0.0, float("inf"), float("-inf")
    for one in sums:
        n, total, squares = n + one.n, total + one.total, squares + one.squares
        least, most = min(least, one.least), max(most, one.most)
    return Sums(n, total, squares, least, most)


def estimate_of(cases: Sequence[Sums], scale: Scale) -> Estimate:
    """The mean over cases with its 95 % interval, as `gate.decision.conclusions.estimate` has it of single values."""
    means = [one.total / one.n for one in cases]
    n = sum(one.n for one in cases)
    value = mean(means)
    if n == 1:
        return Estimate(value, value, value, 1, 1, level=0.0)
    total, squares = sum(one.total for one in cases), sum(one.squares for one in cases)
    sd = (max(0.0, squares - total * total / n) / (n - 1)) ** 0.5
    if scale in (Scale.BINARY, Scale.UNIT) and total == squares:  # zeros and ones alone
        return Estimate(value, *wilson(value * n, n), len(means), n, sd=sd)
    spread, size = (deviation(means) or 0.0, len(means)) if len(means) > 1 else (sd, n)
    half = t_quantile(0.975, size - 1) * spread / math.sqrt(size)
    low, high = value - half, value + half
    least, most = scale.range
    return Estimate(value, max(low, least), min(high, most), len(means), n, sd=sd)


def same_cases(own: Iterable[Case], newest: Mapping[str, Case], unchanged: frozenset[str]) -> dict[str, Case]:
    """The cases of a run, those whose content is still the same with the thresholds that they have today."""
    return {
        case.id: replace(case, thresholds=newest[case.id].thresholds) if case.id in unchanged else case for case in own
    }
