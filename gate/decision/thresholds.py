"""Absolute requirements: thresholds of the suite and of single cases, limits of single trials and of quantiles.

The suite's threshold is decided by the mean over epochs, once further epochs would hardly change the result. A case
with its own threshold does not count in that mean, and fails only beyond chance, since it has few trials.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import NormalDist

from msgspec import Struct, field
from msgspec.structs import replace

from gate.decision.all_pass import METRIC as ALL_PASS
from gate.decision.comparison import Comparison
from gate.decision.correction import Correction, mean_fallen
from gate.decision.outcomes import are_successes, mark, measured_values
from gate.model import FULL, NARROW, Case, Criterion, Direction, Score, Trial, Verdict
from gate.model.finding import Finding, HeldMean
from gate.statistics.intervals import (
    binomial_at_least,
    bounded_upper_bound,
    fisher_less,
    mean,
    mean_interval,
    mean_of_means,
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
    tests = 0
    for criterion in comparison.blocking:
        if not criterion.hard:
            tests += len(criterion.quantiles) + len(_with_own_threshold(comparison, criterion))
    return comparison.settings.own_threshold_alpha / max(1, tests) / comparison.settings.looks


def _with_own_threshold(comparison: Comparison, criterion: Criterion) -> list[Case]:
    """Return the judged cases whose own threshold applies to their mean: if lower is better, it limits each trial
    instead."""
    if criterion.hard or criterion.direction is Direction.LOWER:
        return []
    return [case for case in comparison.judged if criterion.name in case.thresholds]


class Group(Struct, frozen=True):
    """Values of epochs by case, including those that represent agent failures."""

    values: list[list[float]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    """Number of values that represent agent failures, by case."""

    def add(self, values: list[float], failed: int) -> None:
        """Add a case."""
        self.values.append(values)
        self.failed.append(failed)

    def mean(self, correction: Correction | None) -> float:
        """Return the mean over cases, corrected if the judge is calibrated."""
        plain = mean_of_means(self.values)
        if correction is None:
            return plain
        return correction.value(plain, mean_fallen(self.values, self.failed))

    @property
    def trials(self) -> list[float]:
        """The values of all cases."""
        return list(chain.from_iterable(self.values))


class Sample(Struct, frozen=True):
    """The values for one requirement: those of comparable cases, and those of the others."""

    kept: Group
    before: Group
    """The baseline's values, for the cases in ``kept``."""
    new: Group
    base: Group = field(default_factory=Group)
    """The baseline's values, for all of its judged cases, even if they were edited or removed."""
    correction: Correction | None = None
    """The correction of a calibrated judge's scores, for means and their bounds."""

    @property
    def all(self) -> Group:
        """All cases of the candidate."""
        return Group(self.kept.values + self.new.values, self.kept.failed + self.new.failed)

    @property
    def value(self) -> float:
        """The mean over all cases."""
        return self.all.mean(self.correction)


def _judged_sample(comparison: Comparison, criterion: Criterion) -> Sample:
    """Return the sample of all judged cases without their own threshold, computed once."""

    def sample() -> Sample:
        own = {case.id for case in _with_own_threshold(comparison, criterion)}
        cases = [case for case in comparison.judged if case.id not in own]
        found = _sample_of(comparison, criterion, cases)
        for case_id, trials in comparison.baseline.items():
            failed = _stand_ins(trials, criterion)
            values = [*measured_values(trials, criterion), *failed]
            if values and case_id not in own and case_id not in comparison.settings.quarantine:
                found.base.add(values, len(failed))
        return replace(found, correction=comparison.correction_of(criterion))

    return comparison.once(f"sample: {criterion.name}", sample)


def _sample_of(comparison: Comparison, criterion: Criterion, cases: Iterable[Case]) -> Sample:
    """Return the values that a requirement applies to. An agent failure counts as the worst value of a bounded
    scale."""
    sample = Sample(Group(), Group(), Group())
    values, stored = comparison.values(criterion), comparison.stored_values(criterion)
    for case in cases:
        failed_now: list[float] = []
        failed_then: list[float] = []
        if comparison.errors:
            failed_now = _stand_ins(comparison.measured(case.id, full=True), criterion)
        if (case.id, criterion.name) not in comparison.not_comparable:
            failed_then = _stand_ins(comparison.baseline.get(case.id, ()), criterion)
        now = [*values.get(case.id, ()), *failed_now]
        then = [*stored.get(case.id, ()), *failed_then]
        if now and then:
            sample.kept.add(now, len(failed_now))
            sample.before.add(then, len(failed_then))
        elif now:
            sample.new.add(now, len(failed_now))
    return sample


def _stand_ins(trials: Iterable[Trial], criterion: Criterion) -> list[float]:
    """Return the values that represent trials without a score because the agent failed."""
    worst = criterion.worst
    if worst is None or criterion.metric == ALL_PASS:  # the metric itself has counted them
        return []
    found = []
    for trial in trials:
        if trial.failed and trial.scores.get(criterion.name, NONE).does_not_apply:
            found.append(worst)
    return found


def can_fail(comparison: Comparison, criterion: Criterion) -> bool:
    """True if a threshold, a limit or a hard rule of a criterion can fail the suite without a baseline."""
    if criterion.hard or criterion.limit is not None or criterion.quantiles:
        return True
    thresholds = [case.thresholds.get(criterion.name) for case in comparison.judged]
    if len(_with_own_threshold(comparison, criterion)) < len(comparison.judged):
        thresholds.append(criterion.threshold)
    return any(threshold is not None and not criterion.is_idle(threshold) for threshold in thresholds)


def suite_threshold(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the finding on the mean over epochs against the suite's threshold; None without a threshold or values."""
    if criterion.threshold is None or criterion.hard:
        return None
    sample = _judged_sample(comparison, criterion)
    if not sample.all.values:
        return None
    held = _held(comparison, sample, criterion)
    if not criterion.direction.is_worse(held.value, held.threshold):
        return _without_new_cases(sample, held, criterion) or _holds(sample, held, criterion)
    if _is_excused(comparison, sample, held, criterion):
        return Finding.of("mean", mean=replace(held, before=sample.before.mean(sample.correction)))
    lost = _lost(comparison, criterion)
    if lost and not _misses_with_hits(sample, held, criterion, lost):
        return Finding.of("mean", Verdict.NOT_MEASURED, mean=held, lost=lost)
    return _misses(sample, held, sample.all, criterion)


def _misses(sample: Sample, held: HeldMean, group: Group, criterion: Criterion, *, base_cases: bool = False) -> Finding:
    """Return the finding that the mean of a group misses its threshold, with its standard error between runs."""
    return Finding.of(
        "mean",
        Verdict.BELOW_THRESHOLD,
        mean=held,
        trials=len(group.trials),
        error=standard_error(group.values),
        room=_with_room(sample, group, criterion),
        base_cases=base_cases,
    )


CLEAR = 1.645
"""Standard errors beyond which an agent exactly at a threshold misses it in at most 5 % of runs."""


def _with_room(sample: Sample, group: Group, criterion: Criterion) -> float | None:
    """Return the threshold that leaves room for chance: the base's agent would miss it in at most 5 % of runs with as
    many trials as the group; without a base, this agent would.

    None if the spread is unknown, or the base's mean leaves room at the present threshold: then this agent is worse,
    and a threshold that it meets would hide that.
    """
    known = group
    if sample.before.values:
        known = sample.before
    variance = _variance_within(known.values)
    if variance is None or criterion.threshold is None:
        return None
    error = math.sqrt(variance / len(group.trials))
    room = known.mean(sample.correction) - criterion.direction.sign * CLEAR * error
    if not criterion.direction.is_worse(room, criterion.threshold):
        return None
    return room


def _held(comparison: Comparison, sample: Sample, criterion: Criterion) -> HeldMean:
    assert criterion.threshold is not None
    everything = sample.all
    failed, measured = len(everything.trials), None
    if comparison.values(criterion):
        failed = sum(everything.failed)
    if sample.correction is not None:
        measured = mean_of_means(everything.values)
    cases, failed_as = len(everything.values), criterion.worst or 0.0
    return HeldMean(sample.value, criterion.threshold, cases, failed=failed, failed_as=failed_as, measured=measured)


def _without_new_cases(sample: Sample, held: HeldMean, criterion: Criterion) -> Finding | None:
    """Return a finding if the base's own cases miss the threshold and only cases new since then lift the mean over
    it."""
    if not sample.kept.values or not sample.new.values:
        return None
    value = sample.kept.mean(sample.correction)
    if not criterion.direction.is_worse(value, held.threshold) or _base_misses(sample, held, criterion):
        return None
    of_base = replace(held, value=value, cases=len(sample.kept.values), failed=sum(sample.kept.failed), measured=None)
    return _misses(sample, of_base, sample.kept, criterion, base_cases=True)


def _is_excused(comparison: Comparison, sample: Sample, held: HeldMean, criterion: Criterion) -> bool:
    """True if on changes the mean may be below the threshold because the base's was, too; new cases alone must meet
    it."""
    if not criterion.ratchet or not comparison.excuses or not sample.before.values:
        return False
    new = sample.new
    if new.values and criterion.direction.is_worse(new.mean(sample.correction), held.threshold):
        return False
    return _base_misses(sample, held, criterion)


def _base_misses(sample: Sample, held: HeldMean, criterion: Criterion) -> bool:
    """True if the base's mean misses the threshold, both over all its cases and over those that are left of them."""
    means = [group.mean(sample.correction) for group in (sample.base, sample.before)]
    return all(criterion.direction.is_worse(one, held.threshold) for one in means)


def _lost(comparison: Comparison, criterion: Criterion) -> int:
    """Return the number of trials in epochs that could not be measured by the criterion.

    A case that should have run but did not counts as one.
    """
    found = 0
    for case in comparison.judged:
        trials = [trial for trial in comparison.candidate.get(case.id, ()) if trial.tag in (FULL, NARROW)]
        if not trials:
            found += 1
        found += len(comparison.lost(trials))
        for trial in trials:
            if trial.answered and trial.scores.get(criterion.name, NONE).unmeasured:
                found += 1
    return found


def _misses_with_hits(sample: Sample, held: HeldMean, criterion: Criterion, lost: int) -> bool:
    """True if the mean misses its threshold even if every lost trial counts as the best value."""
    if criterion.best is None:
        return False
    trials = len(sample.all.trials)
    value = (held.value * trials + criterion.best * lost) / (trials + lost)
    return criterion.direction.is_worse(value, held.threshold)


def standard_error(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the standard error of the mean over epochs of an unchanged agent, or None if it is unknown.

    The cases stay the same from run to run, so only the spread within cases counts.
    """
    variance = _variance_within(groups)
    if variance is None:
        return None
    return math.sqrt(variance / sum(map(len, groups)))


def chance_of_miss(groups: Sequence[Sequence[float]], criterion: Criterion, epochs: int = 0) -> float | None:
    """Return how often an unchanged agent misses the suite's threshold, 0 to 1, in a run of ``epochs`` epochs.

    0 epochs means a run with as many trials as these. The true mean is known only as precisely as from these trials, so
    the mean of that run differs from theirs by a normal deviate with the variance of both. None if the spread of the
    trials is unknown or zero: then nothing shows how often another answer occurs.
    """
    groups = [group for group in groups if group]
    variance = _variance_within(groups)
    if criterion.threshold is None or criterion.is_idle(criterion.threshold) or not variance:
        return None
    trials = sum(map(len, groups))
    spread = math.sqrt(variance * (1 / trials + 1 / (epochs * len(groups) or trials)))
    room = criterion.direction.sign * (mean_of_means(groups) - criterion.threshold)
    return NormalDist().cdf(-room / spread)


def _holds(sample: Sample, held: HeldMean, criterion: Criterion) -> Finding:
    """Return the finding that a mean holds, with the chance that an unchanged agent misses it if that is not rare."""
    found = Finding.of("mean", mean=held)
    if not criterion.blocking or sample.correction is not None:
        return found
    chance = chance_of_miss(sample.all.values, criterion)
    if chance is None or chance < CLOSE:
        return found
    return found.but(chance=chance)


CLOSE = 0.05
"""A threshold that an unchanged agent misses in at least this share of runs is reported."""


def _variance_within(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the variance of trials within a case, averaged over the cases, however often each ran; after a single
    epoch the larger variance of all trials."""
    values = list(chain.from_iterable(groups))
    if len(values) < 2:
        return None
    freedom = len(values) - len(groups)
    if freedom >= len(groups):
        return mean([_squares(group) / (len(group) - 1) for group in groups if len(group) > 1])
    return _squares(values) / (len(values) - 1)


def _squares(values: Sequence[float]) -> float:
    middle = mean(values)
    return math.fsum([(value - middle) ** 2 for value in values])


def may_turn(comparison: Comparison, criterion: Criterion, most: int) -> bool:
    """Return True if further epochs, up to ``most`` in all, may still change the result for the suite's threshold.

    The mean after all epochs differs from the present one by a normal deviate with variance s²/n · r/(e·(e + r)), for n
    cases, e epochs so far, r further ones, and the variance s² of trials within a case.
    """
    done = comparison.epochs
    if criterion.threshold is None or criterion.hard or not criterion.blocking or not 0 < done < most:
        return False
    sample = _judged_sample(comparison, criterion)
    groups = sample.all.values
    if not groups:
        return False
    if not _is_within_reach(sample, criterion, done / most):
        return False
    held = _held(comparison, sample, criterion)
    if not sample.new.values and _is_excused(comparison, sample, held, criterion):
        return False
    distance = abs(sample.value - criterion.threshold)
    variance = _variance_within(groups)
    if variance is None and criterion.scale.is_bounded:  # a single trial
        low, high = criterion.scale.range
        variance = ((high - low) / 2) ** 2
    if not variance:
        return False
    spread = math.sqrt(variance / len(groups) * (most - done) / (done * most))
    return NormalDist().cdf(-distance / spread) >= TURNS


def _is_within_reach(sample: Sample, criterion: Criterion, share: float) -> bool:
    """True if the best or the worst values in all further epochs would change the result. ``share``: that of the epochs
    done among all."""
    assert criterion.threshold is not None
    is_missed = criterion.direction.is_worse(sample.value, criterion.threshold)
    extreme = criterion.best if is_missed else criterion.worst
    if extreme is None or sample.correction is not None:
        return True
    return criterion.direction.is_worse(sample.value * share + extreme * (1 - share), criterion.threshold) != is_missed


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
    variance = _variance_within(groups)
    if not criterion.scale.is_bounded or variance is None:
        return None
    low, high = criterion.scale.range
    if set(chain.from_iterable(groups)) <= {low, high}:
        share = (trials + 1) / (trials + 2)
        variance = max(variance, share * (1 - share) * (high - low) ** 2)
    freedom = trials - 1
    if trials > len(groups):
        freedom = trials - len(groups)
    epochs = trials / len(groups)
    room = t_quantile(1 - QUIET, freedom) * math.sqrt(variance / len(groups) * (1 / epochs + 1))
    value = mean_of_means(groups) - criterion.direction.sign * room
    return min(high, max(low, value))


def own_thresholds(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the finding on the cases with their own threshold, each judged by its own trials; None if there are
    none."""
    error = error_of_tests(comparison)
    held = excused = short = 0
    missed: list[tuple[HeldMean, int]] = []
    for case in _with_own_threshold(comparison, criterion):
        sample, least = _sample_of(comparison, criterion, [case]), case.thresholds[criterion.name]
        groups = sample.all.values
        if not groups:
            continue
        held += 1
        value = mean_of_means(groups)
        if not _misses_own(sample, least, criterion, error):
            short += criterion.direction.is_worse(value, least)
        elif criterion.ratchet and comparison.excuses and _was_below(sample, least, criterion):
            excused += 1
        else:
            missed.append((HeldMean(value, least, len(groups), case.id), len(sample.all.trials)))
    if not held:
        return None
    found = Finding.of("own_thresholds", cases=held, excused=excused, short=short)
    if not missed:
        return found
    first, trials = missed[0]
    found = found.but(missed=first, trials=trials, more=len(missed) - 1)
    return replace(found, verdict=Verdict.BELOW_THRESHOLD)


def _was_below(sample: Sample, least: float, criterion: Criterion) -> bool:
    """True if the case was below its own threshold at the baseline."""
    before = sample.before.values
    return bool(before) and criterion.direction.is_worse(mean_of_means(before), least)


def _misses_own(sample: Sample, least: float, criterion: Criterion, error: float) -> bool:
    """True if a case misses its own threshold: beyond chance, or in every one of a few trials."""
    values, is_worse = sample.all.trials, criterion.direction.is_worse
    if len(values) >= FEWEST_TRIALS and all(is_worse(value, least) for value in values):
        return True
    reach = _upper_bound(values, criterion, error)
    return reach is not None and is_worse(reach, least)


def _upper_bound(values: Sequence[float], criterion: Criterion, error: float) -> float | None:
    """Return the one-sided upper bound of the mean of one case; None with too little data.

    Exact for 0/1 scores, Chernoff's for other bounded scores, else Student's over the trials.
    """
    low, high = criterion.scale.range
    if are_successes(values, criterion.scale):
        return share_upper_bound(round(sum(values)), len(values), error)
    if criterion.scale.is_bounded and low <= min(values) <= max(values) <= high:
        share = (mean(values) - low) / (high - low)
        return low + (high - low) * bounded_upper_bound(share, len(values), error)
    if len(values) < 2:
        return None
    return mean_interval(values, 1 - 2 * error)[1]


def trial_limit(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return a finding if a trial is above the maximum for single trials, unless its case was as far above before."""
    if criterion.direction is Direction.HIGHER:
        return None
    if criterion.limit is None and not any(criterion.name in case.thresholds for case in comparison.judged):
        return None
    over = _trials_over(comparison, criterion)
    if not over:
        return Finding.of("limit")
    beyond = [(value, case) for value, case in over if not _was_above(comparison, criterion, value, case)]
    verdict = Verdict.PASS
    if beyond:
        verdict = Verdict.BELOW_THRESHOLD
    value, case = max(beyond or over, key=lambda one: one[0])
    return Finding.of("limit", verdict, case_id=case.id, value=value, limit=mark(criterion, case), over=len(beyond))


def _trials_over(comparison: Comparison, criterion: Criterion) -> list[tuple[float, Case]]:
    """Return the values of trials above their case's limit, each with the case."""
    found = []
    for case in comparison.judged:
        limit = mark(criterion, case)
        if limit is None:
            continue
        for value in measured_values(comparison.measured(case.id), criterion):
            if value > limit:
                found.append((value, case))
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
    if criterion.scale.is_relative:
        return value * (1 + criterion.margin_or_default)
    return value + criterion.margin_or_default


def quantile_limits(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the findings on quantiles over all trials of epochs; a binomial test shows if too many exceed a limit."""
    if not criterion.quantiles:
        return []
    sample = _judged_sample(comparison.in_epochs, criterion)
    if not sample.all.values:
        return []
    return [_quantile(comparison, criterion, sample, q, limit) for q, limit in criterion.quantiles]


def _quantile(comparison: Comparison, criterion: Criterion, sample: Sample, q: float, limit: float) -> Finding:
    error = error_of_tests(comparison)
    values, before = sample.all.trials, sample.before.trials
    found = Finding.of("limit", q=q, value=quantile(values, q), limit=limit)
    if found["value"] <= limit:
        return found
    if criterion.ratchet and comparison.excuses and before and _base_exceeds(sample, q, limit):
        if _risen(sample, q, criterion, error):
            return replace(found.but(before=quantile(before, q)), verdict=Verdict.BELOW_THRESHOLD)
        values = sample.new.trials  # the others are excused
        if not values or quantile(values, q) <= limit:
            return found
    over = sum([value > limit for value in values])
    if binomial_at_least(over, len(values), 1 - q) <= error:
        return replace(found.but(over=over, trials=len(values)), verdict=Verdict.BELOW_THRESHOLD)
    too_few = len(values) < FEWEST_TRIALS
    return replace(found.but(trials=len(values), too_few=too_few), verdict=Verdict.INCONCLUSIVE)


def _base_exceeds(sample: Sample, q: float, limit: float) -> bool:
    """True if the base's quantile exceeds the limit, both over all its cases and over those that are left of them."""
    return min(quantile(sample.base.trials, q), quantile(sample.before.trials, q)) > limit


def _risen(sample: Sample, q: float, criterion: Criterion, error: float) -> bool:
    """True if more trials exceed the baseline's quantile plus margin than an unchanged agent's would.

    Exceeding an order statistic of the baseline depends only on ranks, so Fisher's test is always exact.
    """
    now, before = sample.kept.trials, sample.before.trials
    reached = quantile(before, q)
    most = _with_margin(reached, criterion)
    within = sum([value <= most for value in now])
    within_before = sum([value <= reached for value in before])
    return fisher_less(within, len(now), within_before, len(before)) <= error
