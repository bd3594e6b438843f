"""Absolute demands: thresholds of the suite and of single cases, limits of single trials, limits of quantiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.comparison import (
    Comparison,
    correction_of,
    full_values,
    mark,
    passes,
)
from gate.decision.correction import Correction, mean_fallen, worst_trials
from gate.model import Case, Criterion, Direction, Scale, Score, Trial, Verdict
from gate.model.findings import (
    AnyFinding,
    HeldMean,
    MeanExcused,
    MeanHolds,
    MeanMisses,
    MeanOpen,
    MeanProvenShort,
    NoTrialBeyond,
    NoTrialReached,
    OwnThresholdsHold,
    QuantileExcused,
    QuantileHolds,
    QuantileOpen,
    QuantileOver,
    QuantileRisen,
    TrialBeyond,
    TrialExcused,
)
from gate.statistics.intervals import (
    binomial_at_least,
    bounded_upper_bound,
    fisher_less,
    mean,
    mean_interval,
    quantile,
    share_upper_bound,
)

NONE = Score(None)
FEWEST_TRIALS = 3
"""If at least this many trials ran and none reached a threshold, it counts as missed once the schedule has ended."""


def threshold_error(comparison: Comparison) -> float:
    """What each statistical threshold may err by at this look, so that all together stay within their budget.

    Where the schedule may be extended, half is kept for the single look after that.
    """
    settings = comparison.settings
    error = _error_of_test(comparison)
    if not settings.extends:
        return error / settings.looks
    return error / 2 if passes(comparison) > settings.max_epochs else error / 2 / settings.looks


def _error_of_test(comparison: Comparison) -> float:
    """The budget of one threshold over all looks: those of the suite, of quantiles and of single cases count alike."""
    tests = sum(
        (c.threshold is not None and not c.strict) + len(c.quantiles) + len(_with_own_threshold(comparison, c))
        for c in comparison.criteria
        if c.blocking and not c.hard
    )
    return comparison.settings.own_threshold_alpha / max(1, tests)


def _with_own_threshold(comparison: Comparison, criterion: Criterion) -> list[Case]:
    """The judged cases whose own threshold is about their mean: where lower is better, it limits each trial instead."""
    if criterion.hard or (criterion.direction is Direction.LOWER and not criterion.strict):
        return []
    return [case for case in comparison.judged if criterion.name in case.thresholds]


class Sample(Struct, frozen=True):
    """Values of epochs by case; of the cases that the baseline can be compared with, and of the others."""

    kept: Sequence[Sequence[float]]
    before: Sequence[Sequence[float]]
    """The baseline's, of the cases in ``kept``."""
    new: Sequence[Sequence[float]]
    fell: tuple[Sequence[int], Sequence[int], Sequence[int]] = ((), (), ())
    """By case of ``kept``, ``before`` and ``new``: how many of the values stand for a failure of the agent."""
    correction: Correction | None = None
    """Of a calibrated judge's scores: what means and their bounds are corrected by."""

    @property
    def all(self) -> list[Sequence[float]]:
        return [*self.kept, *self.new]

    @property
    def all_fell(self) -> list[int]:
        return [*self.fell[0], *self.fell[2]]

    def mean(self, groups: Sequence[Sequence[float]], fell: Sequence[int]) -> float:
        """The mean over cases, corrected where the judge is calibrated."""
        plain = mean_of(groups)
        return plain if self.correction is None else self.correction.value(plain, mean_fallen(groups, fell))

    @property
    def value(self) -> float:
        """The mean of all."""
        return self.mean(self.all, self.all_fell)

    @property
    def value_before(self) -> float:
        return self.mean(self.before, self.fell[1])

    @property
    def value_of_new(self) -> float:
        return self.mean(self.new, self.fell[2])


def _judged_sample(comparison: Comparison, criterion: Criterion) -> Sample:
    """That of all judged cases, worked out once."""
    found: Sample | None = comparison.samples.get(criterion.name)
    if found is None:
        found = comparison.samples[criterion.name] = sample_of(comparison, criterion, comparison.judged)
    return found


def sample_of(comparison: Comparison, criterion: Criterion, cases: Iterable[Case]) -> Sample:
    """What a demand is held to: where the agent failed, the worst value of a scale that has one."""
    kept, before, new = [], [], []
    fell: tuple[list[int], list[int], list[int]] = ([], [], [])
    values, stored, worst = comparison.values(criterion), comparison.stored_values(criterion), worst_of(criterion)
    for case in cases:
        scored = case.id in values or case.id in stored  # else nobody knows whether the criterion applies to it
        failed = comparison.measured(case.id, full=True) if scored and comparison.errors else ()
        fallen = _fallen(failed, criterion, worst) if failed else []
        if now := [*values.get(case.id, ()), *fallen]:
            fell_before = comparison.baseline.get(case.id, ()) if case.id in stored else ()
            fallen_before = _fallen(fell_before, criterion, worst) if fell_before else []
            if then := [*stored.get(case.id, ()), *fallen_before]:
                kept.append(now)
                before.append(then)
                fell[0].append(len(fallen))
                fell[1].append(len(fallen_before))
            else:
                new.append(now)
                fell[2].append(len(fallen))
    return Sample(kept, before, new, fell)


def _fallen(trials: Iterable[Trial], criterion: Criterion, worst: float | None) -> list[float]:
    """What stands for the trials that have no score because the agent failed."""
    if worst is None:
        return []
    return [
        worst for t in trials if t.failed and (s := t.scores.get(criterion.name, NONE)).value is None and not s.error
    ]


def _ends(criterion: Criterion) -> tuple[float, float] | None:
    """Of a scale that has both; else None."""
    return criterion.scale.range if criterion.scale.is_bounded else None


def worst_of(criterion: Criterion) -> float | None:
    """The worst value of a criterion's scale; None where nothing bounds it (seconds, dollars)."""
    better_high = criterion.direction is Direction.HIGHER
    ends = _ends(criterion)
    if ends is None:
        return 0.0 if better_high else None
    return ends[0] if better_high else ends[1]


def failures(trials: Iterable[Trial]) -> int:
    """In how many of the trials the agent failed."""
    return sum(trial.failed for trial in trials)


def suite_threshold(comparison: Comparison, criterion: Criterion, *, final: bool = False) -> list[AnyFinding]:
    """The suite mean over epochs against the threshold, for either direction."""
    if criterion.threshold is None or criterion.hard:
        return []
    sample = _judged_sample(comparison, criterion)
    if not sample.all:
        return []
    sample = replace(sample, correction=correction_of(comparison, criterion))
    failed = sum(map(len, sample.all)) - sum(map(len, comparison.values(criterion).values()))
    held = HeldMean(
        sample.value,
        criterion.threshold,
        len(sample.all),
        failed=failed,
        failed_as=worst_of(criterion) or 0.0,
        measured=None if sample.correction is None else mean_of(sample.all),
    )
    return [_held_to(sample, held, criterion, threshold_error(comparison), final=final)]


def own_thresholds(comparison: Comparison, criterion: Criterion, *, final: bool = False) -> list[AnyFinding]:
    """Each case that has a threshold of its own, on its own trials alone."""
    found: dict[Verdict, list[MeanFinding]] = {}
    error = threshold_error(comparison)
    for case in _with_own_threshold(comparison, criterion):
        sample, least = sample_of(comparison, criterion, [case]), case.thresholds[criterion.name]
        if sample.all:
            held = HeldMean(mean_of(sample.all), least, len(sample.all), case.id)
            finding = _held_to(sample, held, criterion, error, final=final)
            found.setdefault(finding.verdict, []).append(finding)
    return [_in_one(findings) for findings in found.values()]


MeanFinding = MeanHolds | MeanExcused | MeanMisses | MeanProvenShort | NoTrialReached | MeanOpen


def _in_one(findings: Sequence[MeanFinding]) -> AnyFinding:
    """What single cases were found to be, in one finding."""
    first = findings[0]
    if isinstance(first, MeanHolds | MeanExcused):
        return OwnThresholdsHold(len(findings), sum(isinstance(one, MeanExcused) for one in findings))
    return replace(first, more=len(findings) - 1)


def _held_to(sample: Sample, held: HeldMean, criterion: Criterion, error: float, *, final: bool) -> MeanFinding:
    """A mean against a threshold: held, missed as it was at the baseline, proven short of it, or open."""
    least = held.threshold
    if not _short_of(held.value, least, criterion):
        return MeanHolds(held)
    if criterion.strict:
        return MeanMisses(held)
    if criterion.ratchet and sample.before and _short_of(sample.value_before, least, criterion):
        held = replace(held, before=sample.value_before)
        if not sample.new or not _short_of(sample.value_of_new, least, criterion):
            return MeanExcused(held)
        held = replace(held, new_cases=len(sample.new), new_value=sample.value_of_new)
        sample = replace(sample, kept=(), before=(), fell=((), (), sample.fell[2]))
    if (reach := _proven(sample, least, criterion, error)) is not None:
        return MeanProvenShort(held, reach)
    n = sum(map(len, sample.all))
    if final and n >= FEWEST_TRIALS and _none_reached(sample, least, criterion, error):
        return NoTrialReached(held, n)
    return MeanOpen(held, n, n < FEWEST_TRIALS)


def _proven(sample: Sample, least: float, criterion: Criterion, error: float) -> float | None:
    """The most that the mean can be, where that is short of the threshold.

    Where an unchanged agent may well have been above with the baseline's trials and below with these, the cases
    without a baseline alone can prove it. Matters at a threshold of 1.0, which a single failing trial misses for
    certain: zeros and ones only.
    """
    groups, fell = sample.all, sum(sample.all_fell)
    zeros_and_ones = {v for group in (*sample.kept, *sample.before) for v in group} <= {0.0, 1.0}
    if criterion.ratchet and zeros_and_ones and _by_chance(sample, 1.0, criterion, error):
        groups, fell = list(sample.new), sum(sample.fell[2])
    if not groups:
        return None
    correction = sample.correction
    share = error if correction is None else error / 2
    reach = best_case([mean(g) for g in groups], [v for g in groups for v in g], criterion, share)
    reach = reach if correction is None else correction.best(groups, fell, error, reach)
    return reach if reach is not None and _short_of(reach, least, criterion) else None


def _none_reached(sample: Sample, least: float, criterion: Criterion, error: float) -> bool:
    """Whether every single trial is short of the threshold, and the baseline's were not so by chance alone.

    Of a calibrated judge's trials it says nothing: the judge may fail all of a few that people would pass.
    """
    if sample.correction is not None:
        return False
    if not all(_short_of(v, least, criterion) for group in sample.all for v in group):
        return False
    return not (criterion.ratchet and _by_chance(sample, least, criterion, error))


def _by_chance(sample: Sample, mark: float, criterion: Criterion, error: float) -> bool:
    """Whether the cases of the baseline may reach a mark as rarely as now though nothing changed (Fisher's test)."""
    if not sample.before:
        return False
    if criterion.direction is Direction.LOWER and mark == 1.0:
        mark = 0.0
    now, then = ([v for group in side for v in group] for side in (sample.kept, sample.before))
    held = [sum(not _short_of(v, mark, criterion) for v in side) for side in (now, then)]
    return fisher_less(held[0], len(now), held[1], len(then)) > error


def never_reached(comparison: Comparison, criterion: Criterion) -> bool:
    """Whether the suite's threshold is open although no trial so far is on its right side."""
    least = criterion.threshold
    if least is None or not any(f.verdict is Verdict.INCONCLUSIVE for f in suite_threshold(comparison, criterion)):
        return False
    values = case_values(comparison, criterion)[1]
    return all(_short_of(value, least, criterion) for value in values)


def epochs_to_prove(comparison: Comparison, criterion: Criterion) -> int:
    """Epochs after which the worst possible scores would prove a mean short of its threshold; 0 if no number would.

    It follows from the number of cases and the threshold t alone, so the look after it is fixed in advance:
    (1 − t)^n ≤ error, with t on a scale from 0, the worst, to 1.
    """
    cases, ends = len(case_values(comparison, criterion)[0]), _ends(criterion)
    if ends is None or criterion.threshold is None or not cases:
        return 0
    share = (criterion.threshold - ends[0]) / (ends[1] - ends[0])
    share = share if criterion.direction is Direction.HIGHER else 1 - share
    error, correction = _error_of_test(comparison) / 2, correction_of(comparison, criterion)
    trials = worst_trials(share, error) if correction is None else correction.trials_to_prove(share, error)
    return math.ceil(trials / cases)


def _short_of(value: float, threshold: float, criterion: Criterion) -> bool:
    return value < threshold if criterion.direction is Direction.HIGHER else value > threshold


def mean_of(groups: Sequence[Sequence[float]]) -> float:
    """The mean over cases, each by its own mean."""
    return mean([mean(group) for group in groups])


def case_values(comparison: Comparison, criterion: Criterion) -> tuple[list[float], list[float]]:
    """The mean of each judged case over epochs, and all the values behind them."""
    groups = comparison.values(criterion).values()
    return [mean(group) for group in groups], [value for group in groups for value in group]


def baseline_groups(comparison: Comparison, criterion: Criterion) -> list[Sequence[float]]:
    """The baseline's values that can be compared, by case."""
    stored = comparison.stored_values(criterion)
    return [stored[case.id] for case in comparison.judged if case.id in stored]


def best_case(means: Sequence[float], values: Sequence[float], criterion: Criterion, error: float) -> float | None:
    """The one-sided bound of the mean on its good side; None if there is too little data to bound it.

    Exact for 0/1 scores. Else the tighter of Student's over case means and, for bounded scores, Chernoff's over all
    trials, at half the error each; a single case has no spread over cases, and leaves Chernoff's alone.
    """
    better = criterion.direction is Direction.HIGHER
    if criterion.scale in (Scale.BINARY, Scale.UNIT) and set(values) <= {0.0, 1.0}:
        ones = round(sum(values))
        n = len(values)
        return share_upper_bound(ones, n, error) if better else 1 - share_upper_bound(n - ones, n, error)
    ends = _ends(criterion)
    if ends is None or not all(ends[0] <= v <= ends[1] for v in values):
        return _student(means if len(means) > 1 else values, error, better=better)
    student = _student(means, error / 2, better=better)
    chernoff = _chernoff(values, ends, error if student is None else error / 2, better=better)
    return chernoff if student is None else (min if better else max)(student, chernoff)


def _student(sample: Sequence[float], error: float, *, better: bool) -> float | None:
    if len(sample) < 2:
        return None
    low, high = mean_interval(sample, 1 - 2 * error)
    return high if better else low


def _chernoff(values: Sequence[float], ends: tuple[float, float], error: float, *, better: bool) -> float:
    """On the scale's own ends; ``better``: the upper bound, else the lower."""
    worst, best = ends if better else ends[::-1]
    share = (mean(values) - worst) / (best - worst)
    return worst + (best - worst) * bounded_upper_bound(share, len(values), error)


def trial_limit(comparison: Comparison, criterion: Criterion) -> list[AnyFinding]:
    """Any trial above the most that a single trial may reach, unless its own case was as far above before."""
    if criterion.limit is None and not any(criterion.name in c.thresholds for c in comparison.judged):
        return []
    if criterion.direction is Direction.HIGHER:
        return []
    over = [
        (value, case, limit)
        for case in comparison.judged
        if (limit := mark(criterion, case)) is not None
        for value in full_values(comparison.measured(case.id), criterion)
        if value > limit
    ]
    if not over:
        return [NoTrialBeyond()]
    beyond = [found for found in over if not _was_above(comparison, criterion, *found)]
    value, case, limit = max(beyond or over, key=lambda found: found[0])
    if not beyond:
        return [TrialExcused(case.id, value, limit)]
    return [TrialBeyond(case.id, value, limit, len(beyond))]


def _was_above(comparison: Comparison, criterion: Criterion, value: float, case: Case, limit: float) -> bool:
    """Whether this very case broke its limit at the baseline, and is not beyond the margin of its highest trial."""
    if not criterion.ratchet or (case.id, criterion.name) in comparison.not_comparable:
        return False
    highest = max(full_values(comparison.baseline.get(case.id, ()), criterion), default=limit)
    return highest > limit and value <= _with_margin(highest, criterion)


def _with_margin(value: float, criterion: Criterion) -> float:
    """The largest value still called unchanged, where lower is better."""
    margin = criterion.scale.default_margin if criterion.margin is None else criterion.margin
    return value * (1 + margin) if criterion.scale.is_relative else value + margin


def quantile_limits(comparison: Comparison, criterion: Criterion) -> list[AnyFinding]:
    """Limits on quantiles over all trials of epochs: too many above the limit is a binomial matter."""
    if not criterion.quantiles:
        return []
    sample = _judged_sample(comparison, criterion)
    if not sample.all:
        return []
    return [_quantile(comparison, criterion, sample, q, limit) for q, limit in criterion.quantiles]


def _quantile(comparison: Comparison, criterion: Criterion, sample: Sample, q: float, limit: float) -> AnyFinding:
    error = threshold_error(comparison)
    values = [v for group in sample.all for v in group]
    found = quantile(values, q)
    if found <= limit:
        return QuantileHolds(q, found, limit)
    before = [v for group in sample.before for v in group]
    if criterion.ratchet and before and quantile(before, q) > limit:
        if _risen(sample, before, q, criterion, error):
            return QuantileRisen(q, found, limit, quantile(before, q))
        values = [v for group in sample.new for v in group]
        if not values or quantile(values, q) <= limit:
            return QuantileExcused(q, found, limit)
    over = sum(value > limit for value in values)
    if binomial_at_least(over, len(values), 1 - q) <= error:
        return QuantileOver(q, found, limit, over, len(values))
    return QuantileOpen(q, found, limit, len(values), len(values) < FEWEST_TRIALS)


def _risen(sample: Sample, before: Sequence[float], q: float, criterion: Criterion, error: float) -> bool:
    """Whether more trials are beyond the margin of the baseline's quantile than an unchanged agent's would be.

    Trials above an order statistic of the baseline are a matter of ranks, so Fisher's test is exact in any case.
    """
    now = [v for group in sample.kept for v in group]
    reached = quantile(before, q)
    within = sum(value <= _with_margin(reached, criterion) for value in now)
    return fisher_less(within, len(now), sum(value <= reached for value in before), len(before)) <= error
