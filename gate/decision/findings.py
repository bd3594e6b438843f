"""The findings on one criterion: hard failures, missing scores, thresholds and limits, and the sequential test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from gate.decision.cases import worst_wording
from gate.decision.comparison import Comparison
from gate.decision.estimates import change_of, natural, natural_margin
from gate.decision.gaps import without_cases
from gate.decision.outcomes import PASS_RATE, measured_values
from gate.decision.thresholds import own_thresholds, quantile_limits, suite_threshold, trial_limit
from gate.model import CaseCounts, CaseResult, Criterion, MetricTest, Outcome, StageKind, Trial, Verdict
from gate.model.finding import CaseTally, Finding, WhyOpen

NO_YARDSTICK = Finding.of("not_judged", why="no_yardstick")
MOVED: Mapping[StageKind, WhyOpen] = {StageKind.DRIFTED: "drifted", StageKind.MOVED_BEFORE: "moved_before"}
"""The stages at which a drop shows only against the record, and the reason to give."""


def findings_of(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> list[Finding]:
    """Return all findings on one criterion; its verdict is the worst of them."""
    if _applies_elsewhere(comparison, criterion):
        return [Finding.of("not_judged", Verdict.NOT_APPLIED, why="not_selected")]
    lost = scores_lost(comparison, criterion)
    findings = [
        _hard_rule(comparison, criterion),
        _not_measured(comparison, criterion, lost),
        suite_threshold(comparison, criterion),
        own_thresholds(comparison, criterion),
        trial_limit(comparison, criterion),
        *quantile_limits(comparison, criterion),
        change_against_base(comparison, criterion, outcome),
    ]
    judged = [finding for finding in findings if finding is not None] or [NO_YARDSTICK]
    if lost is not None and not any(finding.kind == "trials_lost" for finding in judged):
        judged.append(replace(lost, verdict=Verdict.PASS))
    return judged


# --- hard failures and missing scores -------------------------------------------------------------


def _hard_rule(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the failures of a hard criterion: one failing trial of any case, quarantined or not, in any round."""
    if not criterion.hard:
        return None
    reasons = {}
    for trial in comparison.hard_failures[criterion.name]:
        reasons[trial.case_id] = trial.scores[criterion.name].reason
    if not reasons:
        return Finding.of("hard_rule") if comparison.answers else None
    case_id, reason = next(iter(reasons.items()))
    return Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id=case_id, more=len(reasons) - 1, reason=reason)


def _applies_elsewhere(comparison: Comparison, criterion: Criterion) -> bool:
    """True if a selection left out every case to which a criterion applies: the criterion then decides nothing."""
    if not comparison.selected or criterion.name == PASS_RATE:
        return False
    answered = False
    for case in comparison.cases:
        for trial in comparison.measured(case.id):
            if not trial.scores:
                continue
            answered = True
            score = trial.scores.get(criterion.name)
            if score is None or score.value is not None or score.error:
                return False
    return answered


def _not_measured(comparison: Comparison, criterion: Criterion, lost: Finding | None) -> Finding | None:
    """Return the reason a criterion could not be measured: a case without scores, too many lost, or nothing to
    check."""
    if comparison.has_failed_hard:
        return None  # the verdict does not wait for scores that were not computed
    unscored = _unscored_cases(comparison, criterion)
    if unscored:
        errors = list(chain.from_iterable(unscored.values()))
        cases = tuple(unscored)
        if len(cases) == len(comparison.judged):
            cases = ()
        return _not_scored(errors, len(errors), cases=cases)
    if lost is not None and lost.verdict is Verdict.NOT_MEASURED:
        return lost
    if not comparison.answers or measured_values(comparison.answers, criterion):
        return None
    if without_cases(comparison, criterion) is not None:  # the base's rules may still name it
        return Finding.of("not_judged", Verdict.NOT_COMPARED, why="no_longer_applies")
    return Finding.of("not_judged", Verdict.NOT_MEASURED, why="applies_to_none")


def _unscored_cases(comparison: Comparison, criterion: Criterion) -> dict[str, list[str]]:
    """Return the answered cases of which no trial has a required score, each with the reasons."""
    errors: dict[str, list[str]] = {}
    scored = set()
    for trial in comparison.answers:
        error = error_of(trial, criterion)
        if error:
            errors.setdefault(trial.case_id, []).append(error)
        else:
            scored.add(trial.case_id)
    return {case_id: reasons for case_id, reasons in errors.items() if case_id not in scored}


def scores_lost(comparison: Comparison, criterion: Criterion) -> Finding | None:
    """Return the scores that ended in errors. If a blocking criterion lost too many, the rest is no fair sample."""
    errors, values = [], 0
    for trial in comparison.answers:
        score = trial.scores.get(criterion.name)
        if score is not None and score.value is not None:
            values += 1
        elif score is not None and score.error:
            errors.append(score.error)
    if not errors:
        return None
    most, known = comparison.settings.max_error_rate, len(errors) + values
    if criterion.blocking and len(errors) > most * known:
        return _not_scored(errors, known, most=most)
    return replace(_not_scored(errors, known), verdict=Verdict.PASS)


def _not_scored(errors: Sequence[str], of: int, *, cases: tuple[str, ...] = (), most: float | None = None) -> Finding:
    lost, error = len(errors), errors[0]
    return Finding.of(
        "trials_lost", Verdict.NOT_MEASURED, by="scoring", lost=lost, of=of, cases=cases, most=most, error=error
    )


def error_of(trial: Trial, criterion: Criterion) -> str | None:
    """Return the reason a trial has no score of a criterion; None if it has one or needs none because the criterion
    does not apply or the agent failed."""
    if not trial.answered:
        return None
    score = trial.scores.get(criterion.name)
    if score is None:
        return "was not scored"
    return (score.error or None) if score.value is None else None


# --- the engine's answer, criterion by criterion --------------------------------------------------


def change_against_base(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> Finding | None:
    """Return the result of the sequential test for a criterion.

    In a proven regression, the criteria whose own adjusted p rejects are worse, and so is the pass rate if cases broke.
    """
    if outcome is None or criterion.hard:
        return None
    found = outcome.evidence.metrics.get(criterion.name)
    if found is None:
        if criterion.name == PASS_RATE and outcome.verdict == "INCONCLUSIVE":
            return Finding.of("not_judged", Verdict.INCONCLUSIVE, why="not_tested")
        return None
    change = change_of(found, criterion)
    if not found.blocks_regression:
        is_worse = found.high is not None and found.high < 0 and found.change < -found.margin
        wording = None
        if is_worse and criterion.lexical:
            wording = worst_wording(comparison, criterion)
        return Finding.of("change", change=change, only_warns=is_worse, wording=wording)
    is_open = False
    if outcome.verdict == "INCONCLUSIVE":
        moved = MOVED.get(outcome.stage.kind)
        if moved is not None and criterion.name in regressed_metrics(outcome):
            return Finding.of("change", Verdict.INCONCLUSIVE, change=change, why=moved)
        fail = cases_fail(outcome)
        if fail is not None and criterion.name == PASS_RATE:
            return fail
        is_open = criterion.name in _undecided_metrics(outcome)
    elif outcome.verdict == "REGRESSION":
        if criterion.name in regressed_metrics(outcome):
            broken = outcome.cases if criterion.name == PASS_RATE else ()
            return Finding.of("change", Verdict.REGRESSED, change=change, broken=broken)
        is_open = not found.holds  # the run ended at the proof, whatever this criterion's result
    if not is_open:
        return Finding.of("change", change=change)
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


def cases_fail(outcome: Outcome | None) -> Finding | None:
    """Return the finding on cases that always passed and now never do, but are not proven broken."""
    if outcome is None or outcome.verdict != "INCONCLUSIVE":
        return None
    counts = outcome.evidence.cases
    found = tuple([tally(case_id, counts[case_id]) for case_id in outcome.evidence.unproven])
    return Finding.of("cases_fail", cases=found, why="thin_baseline") if found else None


def tally(case_id: str, counts: CaseCounts | CaseResult) -> CaseTally:
    """Return how often a case passed on both sides."""
    return CaseTally(case_id, counts.passed, counts.trials, counts.baseline_passed, counts.baseline_trials)


def regressed_metrics(outcome: Outcome) -> set[str]:
    """Return the metrics that carry a proven regression."""
    found: set[str] = set()
    for look in outcome.evidence.looks:
        if not look.blocks:
            continue
        proven = {name for name, test in look.metrics.items() if test.p_adjusted <= look.threshold}
        if not proven and look.metrics:
            proven = {_clearest(look.metrics)}
        found |= proven
    return found if found and not outcome.stage.of_cases else found | {PASS_RATE}


def _undecided_metrics(outcome: Outcome) -> set[str]:
    """Return the metrics that prevent PASS; the pass rate if the suite as a whole does."""
    metrics, look = outcome.evidence.metrics, outcome.evidence.last_look
    found = {name for name, change in metrics.items() if change.blocks_regression and not change.holds}
    if look is not None and look.p <= 0.05:
        found.add(_clearest(look.metrics))
    return found or {PASS_RATE}


def _clearest(tests: Mapping[str, MetricTest]) -> str:
    """Return the metric whose test is closest to a proof."""
    return min(tests, key=lambda name: tests[name].p_adjusted)
