"""Absolute demands: thresholds of the suite and of single cases, limits of single trials, limits of quantiles.

The suite's threshold is decided by the mean over epochs, once further epochs would hardly turn the answer. A case with
a threshold of its own stands outside that mean, and fails only beyond chance: it has few trials.
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
"""If at least this many trials of a case ran and none reached its own threshold, it counts as missed."""
TURNS = 0.05
"""From this chance down that further epochs turn the answer, a threshold needs none."""


def error_of_tests(comparison: Comparison) -> float:
    """Return what each test of a case's own threshold or of a quantile may err by at one look."""
    blocking = [c for c in comparison.criteria if c.blocking and not c.hard]
    tests = sum(len(c.quantiles) + len(_with_own_threshold(comparison, c)) for c in blocking)
    return comparison.settings.own_threshold_alpha / max(1, tests) / comparison.settings.looks


def _with_own_threshold(comparison: Comparison, criterion: Criterion) -> list[Case]:
    """Return the judged cases whose own threshold is about their mean: if lower is better, it limits each trial."""
    if criterion.hard or criterion.direction is Direction.LOWER:
        return []
    return [case for case in comparison.judged if criterion.name in case.thresholds]


class Group(Struct, frozen=True):
    """Values of epochs by case, with what stands for failures of the agent."""

    values: Sequence[Sequence[float]] = ()
    failed: Sequence[int] = ()
    """By case: how many of its values represent agent failures."""

    def mean(self, correction: Correction | None) -> float:
        """Return the mean over cases, corrected where the judge is calibrated."""
        plain = mean_of(self.values)
        return plain if correction is None else correction.value(plain, mean_fallen(self.values, self.failed))

    @property
    def trials(self) -> list[float]:
        """The values of all cases."""
        return [value for group in self.values for value in group]

    def and_also(self, other: Group) -> Group:
        """Return the cases of both."""
        return Group([*self.values, *other.values], [*self.failed, *other.failed])


class Sample(Struct, frozen=True):
    """The values for one requirement: those of comparable cases, and the others."""

    kept: Group
    before: Group
    """The baseline's, of the cases in ``kept``."""
    new: Group
    correction: Correction | None = None
    """The correction of a calibrated judge's scores: of means and their bounds."""

    @property
    def all(self) -> Group:
        """All cases of the candidate."""
        return self.kept.and_also(self.new)

    @property
    def value(self) -> float:
        """The mean of all."""
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
    """Return what a demand is held to. An agent failure counts as the worst value of a scale that has one."""
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
    """Return the values that stand for trials without a score because the agent failed."""
    if worst is None or criterion.metric == ALL_PASS:  # which has counted them
        return []
    found = []
    for trial in trials:
        score = trial.scores.get(criterion.name, NONE)
        if trial.failed and score.does_not_apply:
            found.append(worst)
    return found


def _ends(criterion: Criterion) -> tuple[float, float] | None:
    """Return the ends of a scale that has both; else None."""
    return criterion.scale.range if criterion.scale.is_bounded else None


def worst_of(criterion: Criterion) -> float | None:
    """Return the worst value of a criterion's scale, or None if nothing bounds it (seconds, dollars)."""
    return _end(criterion, is_high=criterion.direction is Direction.LOWER)


def best_of(criterion: Criterion) -> float | None:
    """Return the best value of a criterion's scale, or None if nothing bounds it."""
    return _end(criterion, is_high=criterion.direction is Direction.HIGHER)


def _end(criterion: Criterion, *, is_high: bool) -> float | None:
    least, most = criterion.scale.range
    if not is_high:
        return least
    return most if math.isfinite(most) else None


def suite_threshold(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return what the mean over epochs is against the threshold, in either direction; nothing if there is neither."""
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
    """Return that a mean misses its threshold, and how far it moves from run to run."""
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
    """Return that the base's own cases miss the threshold, if only cases that the base lacks lift the mean over it."""
    if not sample.kept.values or not sample.new.values:
        return None
    value, before = sample.kept.mean(sample.correction), sample.before.mean(sample.correction)
    if not _short_of(value, held.threshold, criterion) or _short_of(before, held.threshold, criterion):
        return None
    of_base = replace(held, value=value, cases=len(sample.kept.values), failed=sum(sample.kept.failed), measured=None)
    return _misses(of_base, sample.kept, base_cases=True)


def _is_excused(comparison: Comparison, sample: Sample, held: HeldMean, criterion: Criterion) -> bool:
    """True if the mean is below as the base's was, on changes; cases that the base lacks have to hold it alone."""
    if not criterion.ratchet or not comparison.excuses or not sample.before.values:
        return False
    if not _short_of(sample.before.mean(sample.correction), held.threshold, criterion):
        return False
    new = sample.new
    return not new.values or not _short_of(new.mean(sample.correction), held.threshold, criterion)


def _lost(comparison: Comparison, criterion: Criterion) -> int:
    """Return the number of trials of epochs that have no score of the criterion because it could not be measured.

    A case that was to be run, and was not, is one.
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
    """True if the mean misses its threshold even if every lost trial is counted as the best there is."""
    best = best_of(criterion)
    if best is None:
        return False
    trials = len(sample.all.trials)
    value = (held.value * trials + best * lost) / (trials + lost)
    return _short_of(value, held.threshold, criterion)


def standard_error(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard error of the mean over epochs of an unchanged agent, or None if it is not known.

    The cases stay the same from run to run, so only the spread within cases counts.
    """
    variance = _variance_within(groups)
    return None if variance is None else math.sqrt(variance / sum(map(len, groups)))


def chance_of_miss(groups: Sequence[Sequence[float]], criterion: Criterion, epochs: int = 0) -> float | None:
    """Return how often an unchanged agent misses the suite's threshold, 0 to 1, in a run of so many epochs.

    0: in a run of as many trials as these. The true mean is known only as well as these trials tell it, so the mean of
    that run differs from theirs by a normal deviate with the variance of both. None if the spread of the trials is not
    known, or if they have none: then nothing shows how often another answer comes.
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
    """Return the thresholds that hold now, and that an unchanged agent misses in more than a few runs."""
    found = []
    for criterion in comparison.demanding:
        if criterion.hard or criterion.threshold is None or comparison.correction_of(criterion) is not None:
            continue
        groups = _judged_sample(comparison, criterion).all.values
        chance = chance_of_miss(groups, criterion) if groups else None
        if chance is not None and chance >= CLOSE and not _short_of(mean_of(groups), criterion.threshold, criterion):
            found.append(Finding.of("threshold_close", criterion=criterion.name, chance=chance))
    return found


CLOSE = 0.05
"""A threshold that an unchanged agent misses in at least this share of runs is one to be told of."""


def _variance_within(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the variance of one case's trials, pooled; after a single epoch that of all trials, which is larger."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom >= len(groups):
        return sum(_squares(group) for group in groups) / freedom
    values = [value for group in groups for value in group]
    return _squares(values) / (len(values) - 1) if len(values) > 1 else None


def _squares(values: Sequence[float]) -> float:
    middle = mean(values)
    return math.fsum((value - middle) ** 2 for value in values)


def may_turn(comparison: Comparison, criterion: Criterion, most: int) -> bool:
    """Return whether further epochs, up to ``most`` in all, may still turn the answer to the suite's threshold.

    The mean after all epochs differs from the present one by a normal deviate with variance s²/n · r/(e·(e + r)), for n
    cases, e epochs so far, r further ones, and the variance s² of one case's trials.
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
"""The tail that a proposed threshold leaves. Scores of few cases are skewed: of typical suites of 5 to 100 cases, with
1 to 5 epochs behind the proposal, about 1 % of runs of a single epoch at most miss it."""


def quiet_threshold(groups: Sequence[Sequence[float]], criterion: Criterion) -> float | None:
    """Return the strictest threshold that an unchanged agent misses in at most 1 % of runs, or None if it is not known.

    For a run of a single epoch, which is the noisiest, and with the error of the trials that it is computed from:
    m − t·√(s²/n · (1/e + 1)), for the mean m of n cases, e epochs, and the variance s² of one case's trials. Of hits
    and misses that is at least the variance of all trials hitting but one more that misses: no spread at all is not
    believed of so few.
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
    """Return the findings on cases with their own threshold, each from its own trials."""
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
    """True if a case is below a threshold of its own, and further epochs may show that it misses it."""
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
    """The mean over cases, each by its own mean."""
    return mean([mean(group) for group in groups])


def best_case(means: Sequence[float], values: Sequence[float], criterion: Criterion, error: float) -> float | None:
    """The one-sided bound of the mean on its good side; None if there is too little data to bound it.

    Exact for 0/1 scores. Else the tighter of Student's over case means and, for bounded scores, Chernoff's over all
    trials, at half the error each; a single case has no spread over cases, and leaves Chernoff's alone.
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
    """On the scale's own ends; ``better``: the upper bound, else the lower."""
    worst, best = ends if better else ends[::-1]
    share = (mean(values) - worst) / (best - worst)
    return worst + (best - worst) * bounded_upper_bound(share, len(values), error)


def trial_limit(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return any trial above the most that a single trial may reach, unless its own case was as far above before."""
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
    """Return the values above the most that a trial of their case may reach."""
    found = []
    for case in comparison.judged:
        limit = mark(criterion, case)
        if limit is None:
            continue
        values = measured_values(comparison.measured(case.id), criterion)
        found += [(value, case) for value in values if value > limit]
    return found


def _was_above(comparison: Comparison, criterion: Criterion, value: float, case: Case) -> bool:
    """True if this very case broke its limit at the baseline, and is not beyond the margin of its highest trial."""
    if not (criterion.ratchet and comparison.excuses) or (case.id, criterion.name) in comparison.not_comparable:
        return False
    limit = mark(criterion, case)
    before = measured_values(comparison.baseline.get(case.id, ()), criterion)
    if limit is None or not before:
        return False
    return max(before) > limit and value <= _with_margin(max(before), criterion)


def _with_margin(value: float, criterion: Criterion) -> float:
    """The largest value still called unchanged, where lower is better."""
    margin = criterion.scale.default_margin if criterion.margin is None else criterion.margin
    return value * (1 + margin) if criterion.scale.is_relative else value + margin


def quantile_limits(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the quantiles over all trials of epochs beside their limits: too many above one is a binomial matter."""
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
    """True if more trials are beyond the margin of the baseline's quantile than an unchanged agent's would be.

    Trials above an order statistic of the baseline are a matter of ranks, so Fisher's test is exact in any case.
    """
    now, before = sample.kept.trials, sample.before.trials
    reached = quantile(before, q)
    within = sum(value <= _with_margin(reached, criterion) for value in now)
    return fisher_less(within, len(now), sum(value <= reached for value in before), len(before)) <= error
