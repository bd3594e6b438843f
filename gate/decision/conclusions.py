"""The findings on a criterion, hard failures first; its estimates; and the exit code table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gate.decision.comparison import (
    PASS_RATE,
    Comparison,
    full_values,
)
from gate.decision.findings import change_of, natural, natural_margin
from gate.decision.thresholds import (
    own_thresholds,
    quantile_limits,
    suite_threshold,
    trial_limit,
)
from gate.model import (
    Criterion,
    Estimate,
    MetricChange,
    Outcome,
    Scale,
    Score,
    StageKind,
    Trial,
    Verdict,
)
from gate.model.finding import CaseTally, Change, Finding, WhyOpen
from gate.statistics.intervals import deviation, mean, mean_interval, quantile, quantile_interval, wilson

MAX_ERROR_CHARS = 120
"""Characters of an error that stand in a finding."""


def findings_of(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> list[Finding]:
    """Return all findings on one criterion; its verdict is the worst of them."""
    if _applies_elsewhere(comparison, criterion):
        return [Finding.of("applies_to_none", Verdict.NOT_APPLIED)]
    findings = [
        *_hard(comparison, criterion),
        *_unmeasured(comparison, criterion),
        *suite_threshold(comparison, criterion),
        *own_thresholds(comparison, criterion),
        *trial_limit(comparison, criterion),
        *quantile_limits(comparison, criterion),
        *regression(criterion, outcome),
    ]
    return findings or [Finding.of("nothing_held")]


# --- hard failures and what could not be measured -------------------------------------------------


def _hard(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """One failing trial of any case fails, quarantine or not, in any round."""
    if not criterion.hard:
        return []
    failed = {t.case_id: t.scores[criterion.name].reason for t in comparison.hard_failures[criterion.name]}
    if not failed:
        return [Finding.of("hard_rule")] if comparison.answers else []
    case_id, reason = next(iter(failed.items()))
    return [Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id=case_id, more=len(failed) - 1, reason=reason)]


def _applies_elsewhere(comparison: Comparison, criterion: Criterion) -> bool:
    """True if a selection left out every case that a criterion applies to: then it decides nothing."""
    if not comparison.selected or criterion.name == PASS_RATE:
        return False
    answered = [t for case in comparison.cases for t in comparison.measured(case.id) if t.scores]
    return bool(answered) and all(_applies_not(trial.scores.get(criterion.name)) for trial in answered)


def _applies_not(score: Score | None) -> bool:
    return score is not None and score.value is None and not score.error


def _unmeasured(comparison: Comparison, criterion: Criterion) -> list[Finding]:
    """A case of which no trial could be measured, or no score at all: not measured."""
    if comparison.has_failed_hard:
        return []  # the verdict does not wait for what was not computed
    if any(error_of(t, criterion) for t in comparison.answers) and (lost := _lost(comparison, criterion)):
        error = next((e for t in comparison.measured(lost[0]) if (e := error_of(t, criterion))), "no score")
        return [
            Finding.of("cases_not_scored", case_id=lost[0], cases=len(lost), of=len(comparison.judged), error=error)
        ]
    trials = comparison.answers
    if found := _largely_lost(trials, criterion, comparison.settings.max_error_rate):
        return [found]
    if trials and not full_values(trials, criterion):
        gone = criterion.name in comparison.without_cases  # the base's rules may name what went with its cases
        return [Finding.of("applies_to_none", Verdict.NOT_COMPARED if gone else Verdict.NOT_MEASURED)]
    return []


def _largely_lost(trials: Sequence[Trial], criterion: Criterion, most: float) -> Finding | None:
    """Too many scores that ended in an error, where the criterion blocks: what is left is no fair sample."""
    scores = [score for t in trials if (score := t.scores.get(criterion.name)) is not None]
    errors = [score.error for score in scores if score.value is None and score.error]
    known = len(errors) + sum(score.value is not None for score in scores)
    if not criterion.blocking or len(errors) <= most * known:
        return None
    return Finding.of("scores_lost", lost=len(errors), of=known, most=most, error=errors[0])


def _lost(comparison: Comparison, criterion: Criterion) -> list[str]:
    """The cases that were answered, and of which no trial has a score."""
    groups = {case.id: [t for t in comparison.measured(case.id) if t.answered] for case in comparison.judged}
    return [case_id for case_id, trials in groups.items() if trials and all(error_of(t, criterion) for t in trials)]


def error_of(trial: Trial, criterion: Criterion) -> str | None:
    """Return the reason why a trial has no score of a criterion; None if it has one, or none is due: the criterion does
    not apply, or the agent failed."""
    if not trial.answered:
        return None
    score = trial.scores.get(criterion.name)
    if score is None:
        return "was not scored"
    return (score.error or None) if score.value is None else None


# --- the engine's answer, criterion by criterion --------------------------------------------------


def regression(criterion: Criterion, outcome: Outcome | None) -> list[Finding]:
    """Return the metrics that are worse when the engine says so: those whose own adjusted p rejects; success, if cases
    broke."""
    if outcome is None or criterion.hard:
        return []
    found = outcome.evidence.metrics.get(criterion.name)
    if found is None:
        open_ = criterion.name == PASS_RATE and outcome.verdict == "INCONCLUSIVE"
        return [Finding.of("not_tested", stage=outcome.stage)] if open_ else []
    change = change_of(found, criterion)
    if not found.blocks_regression or outcome.verdict == "PASS":
        return [Finding.of("change", change=change)]
    if outcome.verdict == "INCONCLUSIVE":
        return [_not_proven(outcome, criterion, found)]
    if criterion.name not in regressed_metrics(outcome):  # the run ended at the proof, whatever this one came to
        return [Finding.of("change", change=change) if found.holds else undecided(found, change, criterion)]
    broken = outcome.cases if criterion.name == PASS_RATE else ()
    return [Finding.of("change", Verdict.REGRESSED, change=change, broken=broken)]


def _not_proven(outcome: Outcome, criterion: Criterion, found: MetricChange) -> Finding:
    """Return the finding on one metric in an inconclusive comparison."""
    change = change_of(found, criterion)
    moved: Mapping[StageKind, WhyOpen] = {StageKind.DRIFTED: "drifted", StageKind.MOVED_BEFORE: "moved_before"}
    if outcome.stage.kind in moved and criterion.name in regressed_metrics(outcome):
        return Finding.of("change", Verdict.INCONCLUSIVE, change=change, why=moved[outcome.stage.kind])
    if criterion.name == PASS_RATE and (never := never_pass(outcome)):
        return Finding.of("never_pass", cases=never)
    if criterion.name not in undecided_metrics(outcome):
        return Finding.of("change", change=change)
    return undecided(found, change, criterion)


def never_pass(outcome: Outcome) -> tuple[CaseTally, ...]:
    """Return the cases that always passed and never do now, and are not proven broken."""
    seen = ((case_id, outcome.evidence.cases[case_id]) for case_id in outcome.evidence.unproven)
    return tuple(CaseTally(i, c.passed, c.trials, c.baseline_passed, c.baseline_trials) for i, c in seen)


def regressed_metrics(outcome: Outcome) -> set[str]:
    """The metrics that carry a proven regression."""
    found = set()
    for look in outcome.evidence.looks:
        if look.blocks:
            tests = look.metrics
            proven = {name for name, t in tests.items() if t.p_adjusted <= look.threshold}
            found |= proven or set(sorted(tests, key=lambda name: tests[name].p_adjusted)[:1])
    return found if found and not outcome.stage.of_cases else found | {PASS_RATE}


def undecided_metrics(outcome: Outcome) -> set[str]:
    """The metrics that stand in the way of PASS; success where it is the whole that does."""
    metrics, look = outcome.evidence.metrics, outcome.evidence.last_look
    loose = {name for name, found in metrics.items() if found.blocks_regression and not found.holds}
    if look is not None and look.p <= 0.05:
        tests = look.metrics
        loose.add(min(tests, key=lambda name: tests[name].p_adjusted))
    return loose or {PASS_RATE}


def undecided(found: MetricChange, change: Change, criterion: Criterion) -> Finding:
    """Return the finding that stands in the way of a pass."""
    if found.holds:
        return Finding.of("change", Verdict.INCONCLUSIVE, change=change, why="suggests_drop")
    if found.low is None:
        return Finding.of("change", Verdict.INCONCLUSIVE, change=change, why="unbounded")
    return Finding.of(
        "change",
        Verdict.INCONCLUSIVE,
        change=change,
        why="beyond_margin",
        worst=natural(found.low, criterion),
        margin=natural_margin(found.margin, criterion),
    )


# --- estimates ------------------------------------------------------------------------------------


def estimate(means: Sequence[float], values: Sequence[float], scale: Scale) -> Estimate | None:
    """The mean over cases with its 95 % interval; level 0 where a single value has none."""
    if not means:
        return None
    value = mean(means)
    if len(values) == 1:
        return Estimate(value, value, value, 1, 1, level=0.0)
    if scale.is_zero_to_one and set(values) <= {0.0, 1.0}:
        low, high = wilson(value * len(values), len(values))
        return _spread(Estimate(value, low, high, len(means), len(values)), means, values)
    sample = means if len(means) > 1 else values
    if len(sample) < 2:
        return Estimate(value, value, value, len(means), len(values), level=0.0)
    low, high = mean_interval(sample)
    least, most = scale.range
    found = Estimate(value, max(low, least), min(high, most), len(means), len(values))
    return _spread(found, means, values)


def _spread(found: Estimate, means: Sequence[float], values: Sequence[float]) -> Estimate:
    """With the standard deviations of cases and trials: √(Σ(x − x̄)² / (n − 1))."""
    return replace(found, sd=deviation(values), sd_cases=deviation(means))


def change_estimate(found: MetricChange | None, criterion: Criterion) -> Estimate | None:
    """The paired change with the interval whose bad end is what the certificate bounds."""
    if found is None:
        return None
    value = natural(found.change, criterion)
    if found.low is None or found.high is None or found.trials < 2:
        return Estimate(value, value, value, found.cases, found.trials, level=0.0)
    low, high = sorted((natural(found.low, criterion), natural(found.high, criterion)))
    return Estimate(value, low, high, found.cases, found.trials, level=0.9)


def quantile_estimates(criterion: Criterion, values: Sequence[float]) -> tuple[tuple[float, Estimate], ...]:
    found = []
    for q, _ in criterion.quantiles if values else ():
        low, high = quantile_interval(values, q)
        ends = max(low, min(values)), min(high, max(values))
        level = 0.95 if (low, high) == ends else 0.0
        found.append((q, Estimate(quantile(values, q), *ends, len(values), len(values), level)))
    return tuple(found)
