"""The rows of a decided suite: the pass rate and each criterion, with its findings and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec.structs import replace

from gate.decision.comparison import Comparison
from gate.decision.correction import calibrated_judge
from gate.decision.crashes import count_failed
from gate.decision.estimates import (
    change_estimate,
    detectable_drop,
    estimate,
    estimate_of,
    quantile_estimates,
)
from gate.decision.findings import NO_YARDSTICK, change_against_base, error_of, findings_of
from gate.decision.gaps import incomparable_criteria, silent_criteria
from gate.decision.outcomes import PASS_RATE, all_unchecked
from gate.decision.pairs import BothSides, Pairs, pairs_of
from gate.model import Criterion, CriterionResult, Estimate, EvidenceSummary, Outcome, Scale, Trial, Verdict, worst
from gate.model.finding import Finding
from gate.statistics.intervals import all_pass, mean_of_means


def rows_of(comparison: Comparison, outcome: Outcome | None) -> tuple[CriterionResult, ...]:
    """Return the pass rate and then each criterion; criteria that only the base has come last."""
    judged = [criterion for criterion in comparison.criteria if criterion is not comparison.rate]
    rows = [_row(comparison, criterion, outcome) for criterion in (comparison.metrics[0], *judged)]
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
    if row.checked:
        return row
    same = Finding.of("not_judged", why="same_trials")
    findings = [same if finding == NO_YARDSTICK else finding for finding in row.findings]
    return replace(row, findings=tuple(findings), checked=True)


def _with_what_is_not_compared(comparison: Comparison, rows: Sequence[CriterionResult]) -> list[CriterionResult]:
    """Return the rows, including criteria that are gone, with the reasons some are not compared."""
    reasons = incomparable_criteria(comparison)
    for finding in silent_criteria(comparison):
        reasons[finding["criterion"]] = finding
    found = []
    for row in rows:
        why = reasons.get(row.criterion.name)
        found.append(row if why is None else _not_compared(row, why))
    if comparison.stored:
        for criterion in comparison.removed:
            why = Finding.of("not_compared", criterion=criterion.name, why="removed")
            found.append(_not_compared(CriterionResult(criterion, Verdict.PASS, checked=False), why))
    return found


def _not_compared(row: CriterionResult, why: Finding) -> CriterionResult:
    """Return the row as not compared, unless it fails by itself or decides nothing."""
    if not row.criterion.blocking or row.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return replace(row, not_compared=why)
    others = [finding for finding in row.findings if finding != NO_YARDSTICK]
    return replace(row, not_compared=why, verdict=Verdict.NOT_COMPARED, findings=(why, *others))


def _row(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> CriterionResult:
    sides, trials = pairs_of(comparison, criterion, by_all=True), comparison.judged_trials
    unscored = crashes = 0
    why = "no_trial"
    if criterion.name == PASS_RATE:
        findings, dimensions = _findings_of_rate(comparison, criterion, outcome), _pass_power(sides, criterion)
        if trials:
            why = "unchecked"
    else:
        findings, dimensions = findings_of(comparison, criterion, outcome), _dimensions(comparison, criterion)
        unscored, crashes = sum([error_of(trial, criterion) is not None for trial in trials]), count_failed(trials)
    verdict = worst([finding.verdict for finding in findings])
    warnings = [finding for finding in findings if finding.is_warning]
    checked = [finding for finding in findings if not finding.is_warning] != [NO_YARDSTICK]
    now, before = sides.estimates([case.id for case in comparison.judged], criterion.scale)
    if verdict is Verdict.PASS and now is None:
        verdict = Verdict.NOT_MEASURED
        findings = [Finding.of("not_judged", Verdict.NOT_MEASURED, why=why), *warnings]
    values = list(chain.from_iterable(comparison.in_epochs.values(criterion).values()))
    p_value = change = used = compared = detectable = None
    if outcome is not None:
        found, look = outcome.evidence.metrics.get(criterion.name), outcome.evidence.last_look
        if look is not None and criterion.name in look.metrics:
            p_value = look.metrics[criterion.name].p_adjusted
        if found is not None:
            change, detectable = change_estimate(found, criterion), detectable_drop(found, criterion)
            compared = _compared_means(comparison, criterion)
            if found.blocks_regression:
                used = spent(outcome.evidence)
    return CriterionResult(
        criterion,
        verdict,
        tuple(findings),
        candidate=now,
        baseline=before,
        not_measured=unscored,
        crashes=crashes,
        quantiles=quantile_estimates(criterion, values),
        dimensions=dimensions,
        judge=calibrated_judge(criterion, comparison.correction_of(criterion), now, before),
        checked=checked,
        p_value=p_value,
        spent=used,
        change=change,
        compared=compared,
        detectable=detectable,
    )


def _findings_of_rate(comparison: Comparison, rate: Criterion, outcome: Outcome | None) -> list[Finding]:
    """Return the findings on the pass rate: from the criterion that limits it, if any, and from the sequential test."""
    findings = []
    if comparison.rate is not None:
        findings = findings_of(comparison, comparison.rate, None)
    change = change_against_base(comparison, rate, outcome)
    if change is not None:
        findings.append(change)
    return [*(findings or [NO_YARDSTICK]), *_unchecked_cases(comparison)]


def _unchecked_cases(comparison: Comparison) -> list[Finding]:
    """Return the cases that ran without a check: no criterion covers them, or the answers gave it nothing to check."""
    never, were_checked = [], []
    for case_id in comparison.unchecked:
        before = comparison.baseline.get(case_id)
        if before and not all_unchecked(before, comparison.comparable(case_id)):
            were_checked.append(case_id)
        else:
            never.append(case_id)
    found = []
    for cases, why in ((never, "cases_unchecked"), (were_checked, "answers_unchecked")):
        if cases:
            found.append(Finding.of("not_judged", why=why, cases=tuple(cases)))
    return found


def _compared_means(comparison: Comparison, criterion: Criterion) -> tuple[float, float] | None:
    """Return the means of both sides over the cases that both measured."""
    sides = pairs_of(comparison, criterion)
    both = [case_id for case_id, values in sides.now.items() if values and sides.before.get(case_id)]
    if not both:
        return None
    now, before = sides.groups(both)
    return mean_of_means(before), mean_of_means(now)


# --- estimates ------------------------------------------------------------------------------------


def _pass_power(sides: Pairs, criterion: Criterion) -> dict[str, BothSides]:
    """Return pass^k next to the pass rate, for the number of trials that each case has; empty if a case has only
    one."""
    k = min(map(len, filter(None, sides.now.values())), default=0)
    if k < 2:
        return {}
    now = _estimate_pass_power(sides.now.values(), k, criterion)
    return {f"pass^{k}": (now, _estimate_pass_power(sides.before.values(), k, criterion))}


def _estimate_pass_power(groups: Iterable[Sequence[float]], k: int, criterion: Criterion) -> Estimate | None:
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


def spent(evidence: EvidenceSummary) -> float:
    """Return the share of the error budget that looks, repeats and case reruns have used so far."""
    from gate.decision.engine.evidence import CASES_SHARE  # weight: only with a baseline

    alpha = 1 / (evidence.e_threshold * CASES_SHARE)
    looks = sum([look.spent for look in evidence.looks])
    repeats = sum([test.threshold for test in evidence.repeats])
    return min(1.0, CASES_SHARE + (looks + repeats) / alpha)
