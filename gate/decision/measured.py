"""Reduces the trials of one run to what a history needs of it: the sums of each case's values, by criterion. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.comparison import PASS_RATE, RATE_METRIC, marks, passed
from gate.model import (
    FULL,
    STORED,
    Case,
    Criterion,
    Direction,
    End,
    Estimate,
    MeasuredTrial,
    Scale,
    Score,
    Side,
    Trial,
    TrialError,
)
from gate.statistics.intervals import deviation, mean, t_quantile, wilson
from gate.statistics.trend import Sums

EPOCHS = (None, FULL, STORED)
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


def reduced(trials: Iterable[MeasuredTrial], criteria: Sequence[Criterion], cases: Mapping[str, Case]) -> RunValues:
    """The run of these trials, passed or failed by these criteria."""
    judged = [criterion for criterion in criteria if criterion.metric != RATE_METRIC]
    spent = spent_beside(criteria)
    counted: dict[str, list[MeasuredTrial]] = defaultdict(list)
    seen = failed = unmeasured = 0
    for trial in trials:
        if trial.side is not Side.CANDIDATE:
            continue
        seen += 1
        if trial.error is not None:
            if trial.end is End.UNMEASURED:
                unmeasured += 1
                continue
            failed += 1
        counted[trial.case_id].append(trial)
    values: dict[str, dict[str, Sums]] = defaultdict(dict)
    outcomes: dict[str, tuple[int, int]] = {}
    judge = _Judge(judged)
    for case_id, own in counted.items():
        if case_id in cases:
            passes = judge.passes(own, cases[case_id])
            known = [outcome for outcome in passes if outcome is not None]
            if known:
                outcomes[case_id] = sum(known), len(known)
            for name, found in _values(own, passes, spent).items():
                values[name][case_id] = _sums(found)
    return RunValues(seen, failed, unmeasured, dict(values), outcomes)


class _Judge:
    """Says which trials passed; as `passed`, which it asks where a score has no value."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self._criteria = criteria
        self._usual = marks(Case("", ()), criteria)
        """Of cases without thresholds of their own."""

    def passes(self, trials: Iterable[MeasuredTrial], case: Case) -> list[bool | None]:
        """Of each trial of a case."""
        held = marks(case, self._criteria) if case.thresholds else self._usual
        return [self._passes(trial, case, held) for trial in trials]

    def _passes(self, trial: MeasuredTrial, case: Case, held: Sequence[tuple[str, float, bool]]) -> bool | None:
        if trial.error is None and held:
            scores, found = trial.scores, True
            for name, limit, is_most in held:
                value = scores.get(name)
                if isinstance(value, Score):
                    value = value.value
                if value is None:
                    break
                if value > limit if is_most else value < limit:
                    found = False
            else:
                return found
        whole = {name: one if isinstance(one, Score) else Score(one) for name, one in trial.scores.items()}
        error = None if trial.error is None else TrialError(*trial.error)
        return passed(Trial(case.id, trial.number, scores=whole, error=error), case, self._criteria)


def spent_beside(criteria: Iterable[Criterion]) -> frozenset[str]:
    """What of `SPENT` no criterion measures."""
    measured = {criterion.metric for criterion in criteria}
    return frozenset(name for name, one in SPENT.items() if one.metric not in measured)


def _values(
    trials: Sequence[MeasuredTrial], passes: Sequence[bool | None], spent: frozenset[str]
) -> dict[str, list[float]]:
    """The values of one case's trials, by metric; without those of reruns."""
    counted = [trial for trial in trials if trial.tag in EPOCHS]
    found: dict[str, list[float]] = {}
    for name in dict.fromkeys([name for trial in counted for name in trial.scores]):
        scores = [trial.scores.get(name) for trial in counted]
        found[name] = [v for s in scores if (v := s.value if isinstance(s, Score) else s) is not None]
    outcomes = (
        passes if len(counted) == len(trials) else [o for o, t in zip(passes, trials, strict=True) if t.tag in EPOCHS]
    )
    found[PASS_RATE] = [1.0 if outcome else 0.0 for outcome in outcomes if outcome is not None]
    if DURATION in spent:
        found[DURATION] = [t.duration for t in counted if t.duration is not None and t.error is None]
    if COST in spent or TOKENS in spent:
        usages = [usage for trial in counted if (usage := trial.usage) is not None]
        if COST in spent:
            found[COST] = [usage.cost_usd for usage in usages if usage.cost_usd is not None]
        if TOKENS in spent:
            found[TOKENS] = [float(tokens) for usage in usages if (tokens := usage.tokens) is not None]
    return {name: values for name, values in found.items() if values}


def _sums(values: Sequence[float]) -> Sums:
    most = max(values)
    if most > MOST_VALUE:
        values = [min(value, MOST_VALUE) for value in values]
        most = MOST_VALUE
    return Sums(len(values), sum(values), sum([value * value for value in values]), min(values), most)


def together(sums: Sequence[Sums]) -> Sums:
    """The values of several runs of one case, one at least."""
    if len(sums) == 1:
        return sums[0]
    return Sums(
        sum([one.n for one in sums]),
        sum([one.total for one in sums]),
        sum([one.squares for one in sums]),
        min([one.least for one in sums]),
        max([one.most for one in sums]),
    )


def estimate_of(cases: Sequence[Sums], scale: Scale) -> Estimate:
    """The mean over cases with its 95 % interval, as `gate.decision.conclusions.estimate` has it of single values."""
    means = [one.total / one.n for one in cases]
    n = sum([one.n for one in cases])
    value = mean(means)
    if n == 1:
        return Estimate(value, value, value, 1, 1, level=0.0)
    total, squares = sum([one.total for one in cases]), sum([one.squares for one in cases])
    sd = (max(0.0, squares - total * total / n) / (n - 1)) ** 0.5
    if scale in (Scale.BINARY, Scale.UNIT) and total == squares:  # zeros and ones alone
        return Estimate(value, *wilson(value * n, n), len(means), n, sd=sd)
    spread, size = (deviation(means, value) or 0.0, len(means)) if len(means) > 1 else (sd, n)
    half = t_quantile(0.975, size - 1) * spread / math.sqrt(size)
    low, high = value - half, value + half
    least, most = scale.range
    return Estimate(value, max(low, least), min(high, most), len(means), n, sd=sd)


def same_cases(own: Iterable[Case], newest: Mapping[str, Case], unchanged: frozenset[str]) -> dict[str, Case]:
    """The cases of a run, those whose content is still the same with the thresholds that they have today."""
    return {
        case.id: replace(case, thresholds=newest[case.id].thresholds) if case.id in unchanged else case for case in own
    }
