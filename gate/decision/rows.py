"""The rows of a decided suite: the pass rate and each criterion, with its findings and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.correction import calibrated_judge
from gate.decision.estimates import (
    change_estimate,
    detectable_drop,
    estimate,
    estimate_of,
    quantile_estimates,
)
from gate.decision.findings import change_against_base, error_of, findings_of
from gate.decision.gaps import silent_criteria
from gate.decision.outcomes import PASS_RATE, as_values, outcomes_of
from gate.decision.tags import Pairs, outcomes, scores
from gate.model import Criterion, CriterionResult, Estimate, EvidenceSummary, Outcome, Scale, Trial, Verdict, worst
from gate.model.finding import Finding
from gate.statistics.intervals import all_pass, mean

BothSides = tuple[Estimate | None, Estimate | None]
"""The estimates of the candidate and the baseline."""
NOTHING_DECIDES = Finding.of("nothing_decides")


def rows_of(
    comparison: Comparison, outcome: Outcome | None, *, failures_prove: float | None = None
) -> tuple[CriterionResult, ...]:
    """Return the pass rate and then each criterion; criteria that only the base has come last.

    ``failures_prove``: the p-value at which recurring agent failures prove a loss of the pass rate.
    """
    judged = [criterion for criterion in comparison.criteria if criterion is not comparison.rate]
    rows = [_row(comparison, criterion, outcome) for criterion in (comparison.metrics[0], *judged)]
    if failures_prove is not None:
        proof = Finding.of("agent_fails", p=failures_prove)
        rows[0] = replace(rows[0], verdict=Verdict.REGRESSED, findings=(proof,))
    if comparison.same_as:
        return tuple(map(_with_same_trials, rows))
    rows = _with_what_is_not_compared(comparison, rows)
    left_out = [row.criterion.name for row in rows if row.not_compared is not None and row.criterion.blocking]
    if left_out:
        why = Finding.of("not_compared", criterion=PASS_RATE, why="without_others", others=tuple(left_out))
        rows[0] = _not_compared(rows[0], why)
    return tuple(rows)


def _with_same_trials(row: CriterionResult) -> CriterionResult:
    """Return a row of a suite whose trials are the stored ones: a row that nothing judges is no omission there."""
    if row.findings != (NOTHING_DECIDES,):
        return row
    return replace(row, findings=(Finding.of("nothing_decides", same=True),), checked=True)


def _with_what_is_not_compared(comparison: Comparison, rows: Sequence[CriterionResult]) -> list[CriterionResult]:
    """Return the rows, including criteria that are gone, with the reasons some are not compared."""
    reasons = dict(comparison.incomparable_criteria)
    for finding in silent_criteria(comparison):
        reasons[finding["criterion"]] = finding
    found = []
    for row in rows:
        why = reasons.get(row.criterion.name)
        found.append(row if why is None else _not_compared(row, why))
    for criterion in comparison.unmatched.removed if comparison.stored else ():
        why = Finding.of("not_compared", criterion=criterion.name, why="removed")
        found.append(_not_compared(CriterionResult(criterion, Verdict.PASS, checked=False), why))
    return found


def _not_compared(row: CriterionResult, why: Finding) -> CriterionResult:
    """Return the row as not compared, unless it fails by itself or decides nothing."""
    if not row.criterion.blocking or row.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return replace(row, not_compared=why)
    findings = (why, *(row.findings if row.checked else ()))
    return replace(row, not_compared=why, verdict=Verdict.NOT_COMPARED, findings=findings)


def _row(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> CriterionResult:
    is_rate = criterion.name == PASS_RATE
    findings = _findings_of_rate(comparison, criterion, outcome) if is_rate else None
    if findings is None:
        findings = findings_of(comparison, criterion, outcome)
    verdict, checked = worst([finding.verdict for finding in findings]), findings != [NOTHING_DECIDES]
    now, before = _rate_of_both(comparison, criterion) if is_rate else _means_of_both(comparison, criterion)
    if verdict is Verdict.PASS and now is None:
        verdict = Verdict.NOT_MEASURED
        is_unchecked = is_rate and comparison.judged_trials
        findings = [Finding.of("no_value", why="unchecked" if is_unchecked else "no_trial")]
    change = outcome.evidence.metrics.get(criterion.name) if outcome is not None else None
    values = [value for group in comparison.values(criterion).values() for value in group]
    return CriterionResult(
        criterion,
        verdict,
        tuple(findings),
        candidate=now,
        baseline=before,
        change=change_estimate(change, criterion),
        compared=None if change is None else _compared_means(comparison, criterion),
        p_value=_p_value(outcome, criterion.name),
        detectable=detectable_drop(change, criterion),
        spent=spent(outcome.evidence) if outcome and change and change.blocks_regression else None,
        not_measured=0 if is_rate else _count_unscored(comparison, criterion),
        crashes=0 if is_rate else sum(trial.failed for trial in comparison.judged_trials),
        quantiles=quantile_estimates(criterion, values),
        dimensions=_pass_power(comparison, criterion) if is_rate else _dimensions(comparison, criterion),
        judge=calibrated_judge(criterion, comparison.correction_of(criterion), now, before),
        checked=checked,
    )


def _findings_of_rate(comparison: Comparison, rate: Criterion, outcome: Outcome | None) -> list[Finding]:
    """Return the findings on the pass rate: from the criterion that limits it, if any, and from the sequential test."""
    findings = findings_of(comparison, comparison.rate, None) if comparison.rate is not None else []
    return [*findings, *change_against_base(rate, outcome)] or [NOTHING_DECIDES]


def _count_unscored(comparison: Comparison, criterion: Criterion) -> int:
    return sum([error_of(trial, criterion) is not None for trial in comparison.judged_trials])


def _compared_means(comparison: Comparison, criterion: Criterion) -> tuple[float, float] | None:
    """Return the means of both sides over the cases that both measured."""
    sides = outcomes(comparison) if criterion.name == PASS_RATE else scores(comparison, criterion)
    both = [case_id for case_id, values in sides.now.items() if values and sides.before.get(case_id)]
    if not both:
        return None
    return _mean_of(sides.before, both), _mean_of(sides.now, both)


def _mean_of(side: Mapping[str, Sequence[float]], ids: Sequence[str]) -> float:
    return mean([mean(side[case_id]) for case_id in ids])


# --- estimates ------------------------------------------------------------------------------------


def _means_of_both(comparison: Comparison, criterion: Criterion) -> BothSides:
    """Return the means over all judged cases in epochs, since reruns pick the cases that failed."""
    stored = comparison.stored_values(criterion)
    before = [stored[case.id] for case in comparison.judged if case.id in stored]
    now = list(comparison.values(criterion).values())
    return estimate_of(now, criterion.scale), estimate_of(before, criterion.scale)


def _rate_of_both(comparison: Comparison, criterion: Criterion) -> BothSides:
    sides = _outcomes_of_all(comparison)
    return estimate_of([*sides.now.values()], criterion.scale), estimate_of([*sides.before.values()], criterion.scale)


def _outcomes_of_all(comparison: Comparison) -> Pairs:
    """Return 1 for each passing trial of an epoch and 0 for each other, by judged case with trials.

    The candidate's trials are judged by all criteria, since the estimate describes the suite; the baseline's by those
    that can be compared.
    """
    now, before = {}, {}
    for case in comparison.judged:
        passes = outcomes_of(comparison.measured(case.id, full=True), case, comparison.criteria)
        if passes:
            now[case.id] = as_values(passes)
        if case.id in comparison.with_baseline:
            passes = outcomes_of(comparison.baseline[case.id], case, comparison.comparable(case.id))
            if passes:
                before[case.id] = as_values(passes)
    return Pairs(now, before)


def _pass_power(comparison: Comparison, criterion: Criterion) -> dict[str, BothSides]:
    """Return pass^k next to the pass rate, for the number of trials that each case has; empty if a case has only
    one."""
    sides = _outcomes_of_all(comparison)
    k = min(map(len, sides.now.values()), default=0)
    if k < 2:
        return {}
    estimates = [_estimate_pass_power([*side.values()], k, criterion) for side in (sides.now, sides.before)]
    return {f"pass^{k}": (estimates[0], estimates[1])}


def _estimate_pass_power(groups: Sequence[Sequence[float]], k: int, criterion: Criterion) -> Estimate | None:
    shares = [all_pass(round(sum(group)), len(group), k) for group in groups if len(group) >= k]
    return estimate(shares, shares, criterion.scale)


def _dimensions(comparison: Comparison, criterion: Criterion) -> dict[str, BothSides]:
    """Return the means of the parts of the scores, over the cases on which the criterion is estimated."""
    stored = comparison.stored_values(criterion)
    now = [comparison.measured(case.id, full=True) for case in comparison.judged]
    before = [comparison.baseline[case.id] for case in comparison.judged if case.id in stored]
    of_base = _by_dimension(before, criterion)
    return {name: (found, of_base.get(name)) for name, found in _by_dimension(now, criterion).items()}


def _by_dimension(groups: Sequence[Sequence[Trial]], criterion: Criterion) -> dict[str, Estimate | None]:
    found: dict[str, list[list[float]]] = {}
    for trials in groups:
        of_case: dict[str, list[float]] = {}
        for trial in trials:
            score = trial.scores.get(criterion.name)
            if score is not None and score.details:
                for name, value in score.dimensions.items():
                    of_case.setdefault(name, []).append(value)
        for name, values in of_case.items():
            found.setdefault(name, []).append(values)
    return {name: estimate_of(values, Scale.UNIT) for name, values in found.items()}


def _p_value(outcome: Outcome | None, name: str) -> float | None:
    """Return the p-value of the last look, adjusted for all blocking metrics and statistics."""
    look = outcome.evidence.last_look if outcome is not None else None
    test = look.metrics.get(name) if look is not None else None
    return None if test is None else test.p_adjusted


def spent(evidence: EvidenceSummary) -> float:
    """Return the share of the error budget that looks, repeats and case reruns have used so far."""
    from gate.decision.engine.evidence import CASES_SHARE  # weight: only with a baseline

    alpha = 1 / (evidence.e_threshold * CASES_SHARE)
    looks = sum(look.spent for look in evidence.looks)
    repeats = sum(test.threshold for test in evidence.repeats)
    return min(1.0, CASES_SHARE + (looks + repeats) / alpha)
