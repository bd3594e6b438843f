"""Absolute requirements: thresholds of the suite and of single cases, limits of single trials and of quantiles.

The suite's threshold is decided by the mean over epochs, once further epochs would hardly change the result. A case
with its own threshold does not count in that mean, and fails only beyond chance, since it has few trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import NormalDist

from msgspec import Struct
from msgspec.structs import replace

from gate.decision.all_pass import METRIC as ALL_PASS
from gate.decision.comparison import Comparison
from gate.decision.correction import Correction, mean_fallen
from gate.decision.outcomes import are_successes, mark, measured_values
from gate.model import FULL, Case, Criterion, Direction, Score, Trial, Verdict
from gate.model.finding import Finding, HeldMean
from gate.statistics.intervals import (
    binomial_at_least,
    bounded_upper_bound,
    fisher_less,
    mean,
    mean_interval,
    quantile,
    share_upper_bound,
    t_quantile,
)

NONE = Score(None)
FEWEST_TRIALS = 3
"""If at least this many trials of a case ran and none reached its own threshold, the case misses it."""
TURNS = 0.05
"""A threshold needs no further epochs if the probability that they change its result is below this."""


def error_of_tests(comparison: Comparison) -> float:
    """Return the error probability allowed for each test of a case's own threshold or of a quantile at one look."""
    blocking = [c for c in comparison.criteria if c.blocking and not c.hard]
    tests = sum(len(c.quantiles) + len(_with_own_threshold(comparison, c)) for c in blocking)
    return comparison.settings.own_threshold_alpha / max(1, tests) / comparison.settings.looks


def _with_own_threshold(comparison: Comparison, criterion: Criterion) -> list[Case]:
    """Return the judged cases whose own threshold applies to their mean: if lower is better, it limits each trial
    instead."""
    if criterion.hard or criterion.direction is Direction.LOWER:
        return []
    return [case for case in comparison.judged if criterion.name in case.thresholds]


class Group(Struct, frozen=True):
    """Values of epochs by case, including those that represent agent failures."""

    values: Sequence[Sequence[float]] = ()
    failed: Sequence[int] = ()
    """Number of values that represent agent failures, by case."""

    def mean(self, correction: Correction | None) -> float:
        """Return the mean over cases, corrected if the judge is calibrated."""
        plain = mean_of(self.values)
        return plain if correction is None else correction.value(plain, mean_fallen(self.values, self.failed))

    @property
    def trials(self) -> list[float]:
        """The values of all cases."""
        return [value for group in self.values for value in group]

    def and_also(self, other: Group) -> Group:
        """Return the cases of both groups."""
        return Group([*self.values, *other.values], [*self.failed, *other.failed])


class Sample(Struct, frozen=True):
    """The values for one requirement: those of comparable cases, and those of the others."""

    kept: Group
    before: Group
    """The baseline's values, for the cases in ``kept``."""
    new: Group
    correction: Correction | None = None
    """The correction of a calibrated judge's scores, for means and their bounds."""

    @property
    def all(self) -> Group:
        """All cases of the candidate."""
        return self.kept.and_also(self.new)

    @property
    def value(self) -> float:
        """The mean over all cases."""
        return self.all.mean(self.correction)


def _judged_sample(comparison: Comparison, criterion: Criterion) -> Sample:
    """Return the sample of all judged cases without their own threshold, computed once."""
    found: Sample | None = comparison.samples.get(criterion.name)
    if found is None:
        own = {case.id for case in _with_own_threshold(comparison, criterion)}
        cases = [case for case in comparison.judged if case.id not in own]
        found = comparison.samples[criterion.name] = sample_of(comparison, criterion, cases)
    return found


def sample_of(comparison: Comparison, criterion: Criterion, cases: Iterable[Case]) -> Sample:
    """Return the values that a requirement applies to. An agent failure counts as the worst value of a bounded
    scale."""
    kept: tuple[list[list[float]], list[int]] = ([], [])
    before: tuple[list[list[float]], list[int]] = ([], [])
    new: tuple[list[list[float]], list[int]] = ([], [])
    values, stored, worst = comparison.values(criterion), comparison.stored_values(criterion), worst_of(criterion)
    for case in cases:
        failed = comparison.measured(case.id, full=True) if comparison.errors else ()
        failed_now = _stand_ins(failed, criterion, worst)
        now = [*values.get(case.id, ()), *failed_now]
        if not now:
            continue
        is_comparable = (case.id, criterion.name) not in comparison.not_comparable
        failed_then = _stand_ins(comparison.baseline.get(case.id, ()) if is_comparable else (), criterion, worst)
        then = [*stored.get(case.id, ()), *failed_then]
        side = kept if then else new
        side[0].append(now)
        side[1].append(len(failed_now))
        if then:
            before[0].append(then)
            before[1].append(len(failed_then))
    return Sample(Group(*kept), Group(*before), Group(*new))


def _stand_ins(trials: Iterable[Trial], criterion: Criterion, worst: float | None) -> list[float]:
    """Return the values that represent trials without a score because the agent failed."""
    if worst is None or criterion.metric == ALL_PASS:  # the metric itself has counted them
        return []
    found = []
    for trial in trials:
        score = trial.scores.get(criterion.name, NONE)
        if trial.failed and score.does_not_apply:
            found.append(worst)
    return found


def _ends(criterion: Criterion) -> tuple[float, float] | None:
    """Return the ends of a scale that has both, else None."""
    return criterion.scale.range if criterion.scale.is_bounded else None


def worst_of(criterion: Criterion) -> float | None:
    """Return the worst value of a criterion's scale, or None if it is unbounded (seconds, dollars)."""
    return _end(criterion, is_high=criterion.direction is Direction.LOWER)


def best_of(criterion: Criterion) -> float | None:
    """Return the best value of a criterion's scale, or None if it is unbounded."""
    return _end(criterion, is_high=criterion.direction is Direction.HIGHER)


def _end(criterion: Criterion, *, is_high: bool) -> float | None:
    least, most = criterion.scale.range
    if not is_high:
        return least
    return most if math.isfinite(most) else None


def suite_threshold(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the finding on the mean over epochs against the suite's threshold; none without a threshold or values."""
    if criterion.threshold is None or criterion.hard:
        return []
    sample = _judged_sample(comparison, criterion)
    if not sample.all.values:
        return []
    sample = replace(sample, correction=comparison.correction_of(criterion))
    held = _held(comparison, sample, criterion)
    if not _short_of(held.value, held.threshold, criterion):
        return [_without_new_cases(sample, held, criterion) or Finding.of("mean", mean=held)]
    if _is_excused(comparison, sample, held, criterion):
        return [Finding.of("mean", mean=replace(held, before=sample.before.mean(sample.correction)))]
    lost = _lost(comparison, criterion)
    if lost and not _misses_with_hits(sample, held, criterion, lost):
        return [Finding.of("mean", Verdict.NOT_MEASURED, mean=held, lost=lost)]
    return [_misses(held, sample.all)]


def _misses(held: HeldMean, group: Group, *, base_cases: bool = False) -> Finding:
    """Return the finding that a mean misses its threshold, with its standard error between runs."""
    trials, error = len(group.trials), standard_error(group.values)
    return Finding.of("mean", Verdict.BELOW_THRESHOLD, mean=held, trials=trials, error=error, base_cases=base_cases)


def _held(comparison: Comparison, sample: Sample, criterion: Criterion) -> HeldMean:
    assert criterion.threshold is not None
    has_scores = bool(comparison.values(criterion))
    return HeldMean(
        sample.value,
        criterion.threshold,
        len(sample.all.values),
        failed=sum(sample.all.failed) if has_scores else len(sample.all.trials),
        failed_as=worst_of(criterion) or 0.0,
        measured=None if sample.correction is None else mean_of(sample.all.values),
    )


def _without_new_cases(sample: Sample, held: HeldMean, criterion: Criterion) -> Finding | None:
    """Return a finding if the base's own cases miss the threshold and only cases new since then lift the mean over
    it."""
    if not sample.kept.values or not sample.new.values:
        return None
    value, before = sample.kept.mean(sample.correction), sample.before.mean(sample.correction)
    if not _short_of(value, held.threshold, criterion) or _short_of(before, held.threshold, criterion):
        return None
    of_base = replace(held, value=value, cases=len(sample.kept.values), failed=sum(sample.kept.failed), measured=None)
    return _misses(of_base, sample.kept, base_cases=True)


def _is_excused(comparison: Comparison, sample: Sample, held: HeldMean, criterion: Criterion) -> bool:
    """True if on changes the mean may be below the threshold because the base's was, too; new cases alone must meet
    it."""
    if not criterion.ratchet or not comparison.excuses or not sample.before.values:
        return False
    if not _short_of(sample.before.mean(sample.correction), held.threshold, criterion):
        return False
    new = sample.new
    return not new.values or not _short_of(new.mean(sample.correction), held.threshold, criterion)


def _lost(comparison: Comparison, criterion: Criterion) -> int:
    """Return the number of trials in epochs that could not be measured by the criterion.

    A case that should have run but did not counts as one.
    """
    found = 0
    for case in comparison.judged:
        trials = [trial for trial in comparison.candidate.get(case.id, ()) if trial.tag == FULL]
        found += len(comparison.lost(trials)) if trials else 1
        for trial in trials:
            score = trial.scores.get(criterion.name, NONE)
            found += trial.answered and score.unmeasured
    return found


def _misses_with_hits(sample: Sample, held: HeldMean, criterion: Criterion, lost: int) -> bool:
    """True if the mean misses its threshold even if every lost trial counts as the best value."""
    best = best_of(criterion)
    if best is None:
        return False
    trials = len(sample.all.trials)
    value = (held.value * trials + best * lost) / (trials + lost)
    return _short_of(value, held.threshold, criterion)


def standard_error(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard error of the mean over epochs of an unchanged agent, or None if it is unknown.

    The cases stay the same from run to run, so only the spread within cases counts.
    """
    variance = _variance_within(groups)
    return None if variance is None else math.sqrt(variance / sum(map(len, groups)))


def chance_of_miss(groups: Sequence[Sequence[float]], criterion: Criterion, epochs: int = 0) -> float | None:
    """Return how often an unchanged agent misses the suite's threshold, 0 to 1, in a run of ``epochs`` epochs.

    0 epochs means a run with as many trials as these. The true mean is known only as precisely as from these trials, so
    the mean of that run differs from theirs by a normal deviate with the variance of both. None if the spread of the
    trials is unknown or zero: then nothing shows how often another answer occurs.
    """
    groups = [group for group in groups if group]
    variance = _variance_within(groups)
    if criterion.threshold is None or not variance:
        return None
    trials = sum(map(len, groups))
    spread = math.sqrt(variance * (1 / trials + 1 / (epochs * len(groups) or trials)))
    room = mean([mean(group) for group in groups]) - criterion.threshold
    return NormalDist().cdf((-room if criterion.direction is Direction.HIGHER else room) / spread)


def close_thresholds(comparison: Comparison) -> list[Finding]:
    """Return the thresholds that hold now but that an unchanged agent would miss in more than a few runs."""
    found = []
    for criterion in comparison.blocking:
        if criterion.hard or criterion.threshold is None or comparison.correction_of(criterion) is not None:
            continue
        groups = _judged_sample(comparison, criterion).all.values
        chance = chance_of_miss(groups, criterion) if groups else None
        if chance is not None and chance >= CLOSE and not _short_of(mean_of(groups), criterion.threshold, criterion):
            found.append(Finding.of("threshold_close", criterion=criterion.name, chance=chance))
    return found


CLOSE = 0.05
"""A threshold that an unchanged agent misses in at least this share of runs is reported."""


def _variance_within(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the pooled variance of trials within a case; after a single epoch the larger variance of all trials."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom >= len(groups):
        return sum(_squares(group) for group in groups) / freedom
    values = [value for group in groups for value in group]
    return _squares(values) / (len(values) - 1) if len(values) > 1 else None


def _squares(values: Sequence[float]) -> float:
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values)


def may_turn(comparison: Comparison, criterion: Criterion, most: int) -> bool:
    """Return True if further epochs, up to ``most`` in all, may still change the result for the suite's threshold.

    The mean after all epochs differs from the present one by a normal deviate with variance s²/n · r/(e·(e + r)), for n
    cases, e epochs so far, r further ones, and the variance s² of trials within a case.
    """
    done = comparison.epochs
    if criterion.threshold is None or criterion.hard or not criterion.blocking or not 0 < done < most:
        return False
    sample = replace(_judged_sample(comparison, criterion), correction=comparison.correction_of(criterion))
    groups = sample.all.values
    if not groups:
        return False
    distance = abs(sample.value - criterion.threshold)
    variance = _variance_within(groups)
    if variance is None:  # a single trial
        low, high = _ends(criterion) or (0.0, 0.0)
        variance = ((high - low) / 2) ** 2
    if variance == 0.0:
        return False
    spread = math.sqrt(variance / len(groups) * (most - done) / (done * most))
    return NormalDist().cdf(-distance / spread) >= TURNS


QUIET = 0.003
"""The tail probability of a proposed threshold. Scores of few cases are skewed: in typical suites of 5 to 100 cases,
with 1 to 5 epochs behind the proposal, at most about 1 % of runs of a single epoch miss it."""


def quiet_threshold(groups: Sequence[Sequence[float]], criterion: Criterion) -> float | None:
    """Return the strictest threshold that an unchanged agent misses in at most 1 % of runs, or None if it is unknown.

    Computed for a run of a single epoch, which is the noisiest, including the error of the trials behind it: m −
    t·√(s²/n · (1/e + 1)), for the mean m of n cases, e epochs, and the variance s² of trials within a case. For hits
    and misses the variance is at least that of all hits and one added miss, since a few trials without any spread do
    not prove that there is none.
    """
    groups = [group for group in groups if group]
    trials = sum(map(len, groups))
    ends = _ends(criterion)
    variance = _variance_within(groups)
    if ends is None or variance is None:
        return None
    if all(value in ends for group in groups for value in group):
        share = (trials + 1) / (trials + 2)
        variance = max(variance, share * (1 - share) * (ends[1] - ends[0]) ** 2)
    freedom = max(1, trials - len(groups)) if trials > len(groups) else trials - 1
    epochs = trials / len(groups)
    room = t_quantile(1 - QUIET, freedom) * math.sqrt(variance / len(groups) * (1 / epochs + 1))
    value = mean_of(groups)
    return max(ends[0], value - room) if criterion.direction is Direction.HIGHER else min(ends[1], value + room)


def own_thresholds(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the findings on cases with their own threshold, each based on its own trials."""
    error = error_of_tests(comparison)
    held = excused = short = 0
    missed: list[tuple[HeldMean, int]] = []
    for case in _with_own_threshold(comparison, criterion):
        sample, least = sample_of(comparison, criterion, [case]), case.thresholds[criterion.name]
        groups = sample.all.values
        if not groups:
            continue
        held += 1
        value = mean_of(groups)
        if not _misses_own(sample, least, criterion, error):
            short += _short_of(value, least, criterion)
        elif criterion.ratchet and comparison.excuses and _was_below(sample, least, criterion):
            excused += 1
        else:
            missed.append((HeldMean(value, least, len(groups), case.id), len(sample.all.trials)))
    if not held:
        return []
    if not missed:
        return [Finding.of("own_thresholds", cases=held, excused=excused, short=short)]
    first, trials = missed[0]
    return [
        Finding.of(
            "own_thresholds",
            Verdict.BELOW_THRESHOLD,
            cases=held,
            excused=excused,
            short=short,
            missed=first,
            trials=trials,
            more=len(missed) - 1,
        )
    ]


def _was_below(sample: Sample, least: float, criterion: Criterion) -> bool:
    """True if the case was below its own threshold at the baseline."""
    return bool(sample.before.values) and _short_of(mean_of(sample.before.values), least, criterion)


def own_is_open(comparison: Comparison, criterion: Criterion) -> bool:
    """True if a case is below its own threshold and further epochs may show that it misses it."""
    if not criterion.blocking:
        return False
    found = own_thresholds(comparison, criterion)
    return any(finding.verdict is Verdict.PASS and finding["short"] for finding in found)


def _misses_own(sample: Sample, least: float, criterion: Criterion, error: float) -> bool:
    """True if a case misses its own threshold: beyond chance, or in every one of a few trials."""
    values = sample.all.trials
    if len(values) >= FEWEST_TRIALS and all(_short_of(value, least, criterion) for value in values):
        return True
    reach = best_case([mean(group) for group in sample.all.values], values, criterion, error)
    return reach is not None and _short_of(reach, least, criterion)


def _short_of(value: float, threshold: float, criterion: Criterion) -> bool:
    return value < threshold if criterion.direction is Direction.HIGHER else value > threshold


def mean_of(groups: Sequence[Sequence[float]]) -> float:
    """Return the mean over cases, each represented by its own mean."""
    return mean([mean(group) for group in groups])


def best_case(means: Sequence[float], values: Sequence[float], criterion: Criterion, error: float) -> float | None:
    """Return the one-sided bound of the mean on its good side; None with too little data.

    Exact for 0/1 scores. Otherwise the tighter of Student's bound over case means and, for bounded scores, Chernoff's
    over all trials, each at half the error; a single case has no spread over cases, which leaves only Chernoff's.
    """
    better = criterion.direction is Direction.HIGHER
    if are_successes(values, criterion.scale):
        ones = round(sum(values))
        n = len(values)
        return share_upper_bound(ones, n, error) if better else 1 - share_upper_bound(n - ones, n, error)
    ends = _ends(criterion)
    if ends is None or not all(ends[0] <= v <= ends[1] for v in values):
        return _student(means if len(means) > 1 else values, error, better=better)
    student = _student(means, error / 2, better=better)
    chernoff = _chernoff(values, ends, error if student is None else error / 2, better=better)
    if student is None:
        return chernoff
    return min(student, chernoff) if better else max(student, chernoff)


def _student(sample: Sequence[float], error: float, *, better: bool) -> float | None:
    if len(sample) < 2:
        return None
    low, high = mean_interval(sample, 1 - 2 * error)
    return high if better else low


def _chernoff(values: Sequence[float], ends: tuple[float, float], error: float, *, better: bool) -> float:
    """Return Chernoff's bound on the scale itself; ``better``: the upper bound, else the lower."""
    worst, best = ends if better else ends[::-1]
    share = (mean(values) - worst) / (best - worst)
    return worst + (best - worst) * bounded_upper_bound(share, len(values), error)


def trial_limit(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return a finding if a trial is above the maximum for single trials, unless its case was as far above before."""
    if criterion.direction is Direction.HIGHER:
        return []
    if criterion.limit is None and not any(criterion.name in case.thresholds for case in comparison.judged):
        return []
    over = _trials_over(comparison, criterion)
    if not over:
        return [Finding.of("trial_limit")]
    beyond = [(value, case) for value, case in over if not _was_above(comparison, criterion, value, case)]
    value, case = max(beyond or over, key=lambda one: one[0])
    return [
        Finding.of(
            "trial_limit",
            Verdict.BELOW_THRESHOLD if beyond else Verdict.PASS,
            case_id=case.id,
            value=value,
            limit=mark(criterion, case),
            trials=len(beyond),
        )
    ]


def _trials_over(comparison: Comparison, criterion: Criterion) -> list[tuple[float, Case]]:
    """Return the values above the maximum for trials of their case."""
    found = []
    for case in comparison.judged:
        limit = mark(criterion, case)
        if limit is None:
            continue
        values = measured_values(comparison.measured(case.id), criterion)
        found += [(value, case) for value in values if value > limit]
    return found


def _was_above(comparison: Comparison, criterion: Criterion, value: float, case: Case) -> bool:
    """True if this case exceeded its limit at the baseline, and the value is within the margin of its highest trial
    there."""
    if not (criterion.ratchet and comparison.excuses) or (case.id, criterion.name) in comparison.not_comparable:
        return False
    limit = mark(criterion, case)
    before = measured_values(comparison.baseline.get(case.id, ()), criterion)
    if limit is None or not before:
        return False
    return max(before) > limit and value <= _with_margin(max(before), criterion)


def _with_margin(value: float, criterion: Criterion) -> float:
    """Return the largest value still called unchanged, if lower is better."""
    margin = criterion.scale.default_margin if criterion.margin is None else criterion.margin
    return value * (1 + margin) if criterion.scale.is_relative else value + margin


def quantile_limits(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the findings on quantiles over all trials of epochs; a binomial test shows if too many exceed a limit."""
    if not criterion.quantiles:
        return []
    sample = _judged_sample(comparison, criterion)
    if not sample.all.values:
        return []
    return [_quantile(comparison, criterion, sample, q, limit) for q, limit in criterion.quantiles]


def _quantile(comparison: Comparison, criterion: Criterion, sample: Sample, q: float, limit: float) -> Finding:
    error = error_of_tests(comparison)
    values, before = sample.all.trials, sample.before.trials
    found = Finding.of("quantile", q=q, value=quantile(values, q), limit=limit)
    if found["value"] <= limit:
        return found
    if criterion.ratchet and comparison.excuses and before and quantile(before, q) > limit:
        if _risen(sample, q, criterion, error):
            return replace(found.but(before=quantile(before, q)), verdict=Verdict.BELOW_THRESHOLD)
        values = sample.new.trials  # the others are excused
        if not values or quantile(values, q) <= limit:
            return found
    over = sum(value > limit for value in values)
    if binomial_at_least(over, len(values), 1 - q) <= error:
        return replace(found.but(over=over, trials=len(values)), verdict=Verdict.BELOW_THRESHOLD)
    too_few = len(values) < FEWEST_TRIALS
    return replace(found.but(trials=len(values), too_few=too_few), verdict=Verdict.INCONCLUSIVE)


def _risen(sample: Sample, q: float, criterion: Criterion, error: float) -> bool:
    """True if more trials exceed the baseline's quantile plus margin than an unchanged agent's would.

    Exceeding an order statistic of the baseline depends only on ranks, so Fisher's test is always exact.
    """
    now, before = sample.kept.trials, sample.before.trials
    reached = quantile(before, q)
    within = sum(value <= _with_margin(reached, criterion) for value in now)
    return fisher_less(within, len(now), sum(value <= reached for value in before), len(before)) <= error
