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
    sample_variance,
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

    correction: Correction | None
    """The correction of a calibrated judge's scores, for means and their bounds."""
    values: list[list[float]] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    """Number of values that represent agent failures, by case."""

    def add(self, values: list[float], failed: int) -> None:
        """Add a case."""
        self.values.append(values)
        self.failed.append(failed)

    @property
    def mean(self) -> float:
        """The mean over cases, corrected if the judge is calibrated."""
        plain = mean_of_means(self.values)
        if self.correction is None:
            return plain
        return self.correction.value(plain, mean_fallen(self.values, self.failed))

    @property
    def trials(self) -> list[float]:
        """The values of all cases."""
        return list(chain.from_iterable(self.values))


class Sample(Struct, frozen=True):
    """The values for the suite's requirements, without cases that have their own threshold."""

    all: Group
    """All judged cases of the candidate: those in ``kept`` and in ``new``."""
    kept: Group
    """The cases that can be compared with the baseline."""
    before: Group
    """The baseline's values, for the cases in ``kept``."""
    new: Group
    base: Group
    """The baseline's values, for all of its judged cases, even if they were edited or removed."""

    def base_misses(self, criterion: Criterion) -> bool:
        """True if the base's mean misses the threshold, both over all its cases and over those that are left of
        them."""
        assert criterion.threshold is not None
        is_worse = criterion.direction.is_worse
        return is_worse(self.base.mean, criterion.threshold) and is_worse(self.before.mean, criterion.threshold)


def _sample(comparison: Comparison, criterion: Criterion) -> Sample:
    """Return the sample of a criterion, computed once."""

    def sample() -> Sample:
        by = comparison.correction_of(criterion)
        found = Sample(Group(by), Group(by), Group(by), Group(by), Group(by))
        own = {case.id for case in _with_own_threshold(comparison, criterion)}
        for case in comparison.judged:
            if case.id in own:
                continue
            now, failed_now = _values_now(comparison, criterion, case.id)
            before, failed_before = _values_before(comparison, criterion, case.id)
            if now:
                found.all.add(now, failed_now)
            if now and before:
                found.kept.add(now, failed_now)
                found.before.add(before, failed_before)
            elif now:
                found.new.add(now, failed_now)
        for case_id, trials in comparison.baseline.items():
            values, failed = _with_failures(measured_values(trials, criterion), trials, criterion)
            if values and case_id not in own and case_id not in comparison.settings.quarantine:
                found.base.add(values, failed)
        return found

    return comparison.once(f"sample: {criterion.name}", sample)


def _values_now(comparison: Comparison, criterion: Criterion, case_id: str) -> tuple[list[float], int]:
    """Return the candidate's values of a case in its epochs, and how many of them represent agent failures."""
    trials: Sequence[Trial] = ()
    if comparison.errors:
        trials = comparison.measured(case_id, full=True)
    return _with_failures(comparison.values(criterion).get(case_id, ()), trials, criterion)


def _values_before(comparison: Comparison, criterion: Criterion, case_id: str) -> tuple[list[float], int]:
    """Return the baseline's values that can be compared with those."""
    trials: Sequence[Trial] = ()
    if (case_id, criterion.name) not in comparison.not_comparable:
        trials = comparison.baseline.get(case_id, ())
    return _with_failures(comparison.stored_values(criterion).get(case_id, ()), trials, criterion)


def _with_failures(values: Sequence[float], trials: Iterable[Trial], criterion: Criterion) -> tuple[list[float], int]:
    """Return the values, with the worst of a bounded scale for each trial without a score because the agent failed,
    and the number of those."""
    worst, failed = criterion.worst, 0
    if worst is None or criterion.metric == ALL_PASS:  # the metric itself has counted them
        return [*values], 0
    for trial in trials:
        failed += trial.failed and trial.scores.get(criterion.name, NONE).does_not_apply
    return [*values, *[worst] * failed], failed


def can_fail(comparison: Comparison, criterion: Criterion) -> bool:
    """True if a threshold, a limit or a hard rule of a criterion can fail the suite without a baseline."""
    if criterion.hard or criterion.limit is not None or criterion.quantiles:
        return True
    thresholds = [case.thresholds.get(criterion.name) for case in comparison.judged]
    if len(_with_own_threshold(comparison, criterion)) < len(comparison.judged):
        thresholds.append(criterion.threshold)
    return any(threshold is not None and not criterion.is_idle(threshold) for threshold in thresholds)


CLEAR = 1.645
"""Standard errors beyond which an agent exactly at a threshold misses it in at most 5 % of runs."""
CLOSE = 0.05
"""A threshold that an unchanged agent misses in at least this share of runs is reported."""


def suite_threshold(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the finding on the mean over epochs against the suite's threshold; None without a threshold or values."""
    if criterion.threshold is None or criterion.hard:
        return None
    sample = _sample(comparison, criterion)
    values, kept = sample.all.values, sample.kept
    if not values:
        return None
    failed, measured = len(sample.all.trials), None
    if comparison.values(criterion):
        failed = sum(sample.all.failed)
    if sample.all.correction is not None:
        measured = mean_of_means(values)
    failed_as = criterion.worst or 0.0
    held = HeldMean(
        sample.all.mean, criterion.threshold, len(values), failed=failed, failed_as=failed_as, measured=measured
    )
    if criterion.direction.is_worse(held.value, criterion.threshold):
        if _is_excused(comparison, sample, criterion):
            return Finding.of("mean", mean=replace(held, before=sample.before.mean))
        lost = _lost(comparison, criterion)
        if lost and not _misses_with_hits(sample, criterion, lost):
            return Finding.of("mean", Verdict.NOT_MEASURED, mean=held, lost=lost)
        return _misses(sample, held, sample.all, criterion)
    is_lifted = bool(kept.values and sample.new.values) and criterion.direction.is_worse(kept.mean, criterion.threshold)
    if is_lifted and not sample.base_misses(criterion):  # only cases new since then lift the mean over it
        of_base = replace(held, value=kept.mean, cases=len(kept.values), failed=sum(kept.failed), measured=None)
        return _misses(sample, of_base, kept, criterion)
    found = Finding.of("mean", mean=held)
    if criterion.blocking and sample.all.correction is None:
        chance = chance_of_miss(values, criterion)
        if chance is not None and chance >= CLOSE:
            return found.but(chance=chance)
    return found


def _misses(sample: Sample, held: HeldMean, group: Group, criterion: Criterion) -> Finding:
    """Return the finding that the mean of a group misses its threshold, with its standard error between runs."""
    return Finding.of(
        "mean",
        Verdict.BELOW_THRESHOLD,
        mean=held,
        trials=len(group.trials),
        error=standard_error(group.values),
        room=_with_room(sample, group, criterion),
        base_cases=group is sample.kept,
    )


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
    room = known.mean - criterion.direction.sign * CLEAR * math.sqrt(variance / len(group.trials))
    if not criterion.direction.is_worse(room, criterion.threshold):
        return None
    return room


def _is_excused(comparison: Comparison, sample: Sample, criterion: Criterion) -> bool:
    """True if on changes the mean may be below the threshold because the base's was, too; new cases alone must meet
    it."""
    assert criterion.threshold is not None
    if not criterion.ratchet or not comparison.excuses or not sample.before.values:
        return False
    if sample.new.values and criterion.direction.is_worse(sample.new.mean, criterion.threshold):
        return False
    return sample.base_misses(criterion)


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


def _misses_with_hits(sample: Sample, criterion: Criterion, lost: int) -> bool:
    """True if the mean misses its threshold even if every lost trial counts as the best value."""
    if criterion.best is None or criterion.threshold is None:
        return False
    trials = len(sample.all.trials)
    value = (sample.all.mean * trials + criterion.best * lost) / (trials + lost)
    return criterion.direction.is_worse(value, criterion.threshold)


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


def _variance_within(groups: Sequence[Sequence[float]]) -> float | None:
    """Return the variance of trials within a case, averaged over the cases, however often each ran; after a single
    epoch the larger variance of all trials."""
    values = list(chain.from_iterable(groups))
    if len(values) < 2:
        return None
    if len(values) - len(groups) >= len(groups):
        return mean([sample_variance(group) for group in groups if len(group) > 1])
    return sample_variance(values)


def may_turn(comparison: Comparison, criterion: Criterion, most: int) -> bool:
    """Return True if further epochs, up to ``most`` in all, may still change the result for the suite's threshold.

    The mean after all epochs differs from the present one by a normal deviate with variance s²/n · r/(e·(e + r)), for n
    cases, e epochs so far, r further ones, and the variance s² of trials within a case.
    """
    done, threshold = comparison.epochs, criterion.threshold
    if threshold is None or criterion.hard or not criterion.blocking or not 0 < done < most:
        return False
    sample = _sample(comparison, criterion)
    groups = sample.all.values
    if not groups:
        return False
    value = sample.all.mean
    is_missed = criterion.direction.is_worse(value, threshold)
    extreme = criterion.worst
    if is_missed:
        extreme = criterion.best
    if extreme is not None and sample.all.correction is None:  # as far as all further epochs can move the mean
        furthest = value * (done / most) + extreme * (1 - done / most)
        if criterion.direction.is_worse(furthest, threshold) == is_missed:
            return False
    if not sample.new.values and _is_excused(comparison, sample, criterion):
        return False
    within = _variance_within(groups)
    if within is None and criterion.scale.is_bounded:  # a single trial
        low, high = criterion.scale.range
        within = ((high - low) / 2) ** 2
    if not within:
        return False
    spread = math.sqrt(within / len(groups) * (most - done) / (done * most))
    return NormalDist().cdf(-abs(value - threshold) / spread) >= TURNS


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
    error, is_worse = error_of_tests(comparison), criterion.direction.is_worse
    held = excused = short = 0
    missed: list[tuple[HeldMean, int]] = []
    for case in _with_own_threshold(comparison, criterion):
        values, _ = _values_now(comparison, criterion, case.id)
        if not values:
            continue
        held += 1
        least = case.thresholds[criterion.name]
        before, _ = _values_before(comparison, criterion, case.id)
        if not _misses_own(values, least, criterion, error):
            short += is_worse(mean(values), least)
        elif criterion.ratchet and comparison.excuses and before and is_worse(mean(before), least):
            excused += 1
        else:
            missed.append((HeldMean(mean(values), least, 1, case.id), len(values)))
    if not held:
        return None
    found = Finding.of("own_thresholds", cases=held, excused=excused, short=short)
    if not missed:
        return found
    first, trials = missed[0]
    found = found.but(missed=first, trials=trials, more=len(missed) - 1)
    return replace(found, verdict=Verdict.BELOW_THRESHOLD)


def _misses_own(values: Sequence[float], least: float, criterion: Criterion, error: float) -> bool:
    """True if a case misses its own threshold: beyond chance, or in every one of a few trials."""
    is_worse = criterion.direction.is_worse
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
    over: list[tuple[float, float, str]] = []
    beyond = []
    for case in comparison.judged:
        limit = mark(criterion, case)
        if limit is None:
            continue
        for value in measured_values(comparison.measured(case.id), criterion):
            if value > limit:
                over.append((value, limit, case.id))
                if value > _most_excused(comparison, criterion, case.id, limit):
                    beyond.append(over[-1])
    if not over:
        return Finding.of("limit")
    verdict = Verdict.PASS
    if beyond:
        verdict = Verdict.BELOW_THRESHOLD
    value, limit, case_id = max(beyond or over, key=lambda one: one[0])
    return Finding.of("limit", verdict, case_id=case_id, value=value, limit=limit, over=len(beyond))


def _most_excused(comparison: Comparison, criterion: Criterion, case_id: str, limit: float) -> float:
    """Return the largest value that is excused: the limit, or if the case exceeded it at the baseline, the highest
    trial there and the margin."""
    if not (criterion.ratchet and comparison.excuses) or (case_id, criterion.name) in comparison.not_comparable:
        return limit
    highest = max(measured_values(comparison.baseline.get(case_id, ()), criterion), default=limit)
    if highest <= limit:
        return limit
    return _with_margin(highest, criterion)


def _with_margin(value: float, criterion: Criterion) -> float:
    """Return the largest value still called unchanged, if lower is better."""
    if criterion.scale.is_relative:
        return value * (1 + criterion.margin_or_default)
    return value + criterion.margin_or_default


def quantile_limits(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """Return the findings on quantiles over all trials of epochs; a binomial test shows if too many exceed a limit."""
    found: list[Finding] = []
    if not criterion.quantiles:
        return found
    sample = _sample(comparison.in_epochs, criterion)
    if sample.all.values:
        may_excuse = criterion.ratchet and comparison.excuses and bool(sample.before.values)
        for q, limit in criterion.quantiles:
            found.append(_quantile(sample, q, limit, criterion, error_of_tests(comparison), may_excuse=may_excuse))
    return found


def _quantile(
    sample: Sample, q: float, limit: float, criterion: Criterion, error: float, *, may_excuse: bool
) -> Finding:
    values, before = sample.all.trials, sample.before.trials
    found = Finding.of("limit", q=q, value=quantile(values, q), limit=limit)
    if found["value"] <= limit:
        return found
    # The base may exceed the limit, too, both over all its cases and over those that are left of them.
    if may_excuse and quantile(sample.base.trials, q) > limit and quantile(before, q) > limit:
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
