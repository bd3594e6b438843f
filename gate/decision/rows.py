"""The rows of a decided suite: the pass rate and each criterion, with what was found of it and its figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from gate.decision.applies import lost_checks
from gate.decision.comparison import PASS_RATE, Comparison, correction_of, passed
from gate.decision.conclusions import (
    change_estimate,
    error_of,
    estimate,
    findings_of,
    quantile_estimates,
    regression,
)
from gate.decision.correction import calibrated_judge
from gate.decision.findings import natural
from gate.decision.tags import Pairs, outcomes
from gate.decision.thresholds import baseline_groups, case_values, failures
from gate.model import (
    Criterion,
    CriterionResult,
    Estimate,
    EvidenceSummary,
    MetricChange,
    Outcome,
    Scale,
    Trial,
    Verdict,
    worst,
)
from gate.model.finding import Finding
from gate.statistics.intervals import all_pass, mean


def rows_of(
    comparison: Comparison, outcome: Outcome | None, *, failures_prove: float | None = None, same: bool = False
) -> tuple[CriterionResult, ...]:
    """Return the pass rate and then each criterion; criteria that only the base has come last.

    ``failures_prove``: the p-value at which agent failures that came again prove a loss of the pass rate. ``same``: the
    trials are the base's own, so that there is nothing to compare.
    """
    judged = [criterion for criterion in comparison.criteria if criterion is not comparison.rate]
    rows = [_row(comparison, criterion, outcome) for criterion in (comparison.metrics[0], *judged)]
    if failures_prove is not None:
        rows[0] = replace(rows[0], verdict=Verdict.REGRESSED, findings=(Finding.of("agent_fails", p=failures_prove),))
    if same:
        return tuple(
            replace(r, findings=(Finding.of("nothing_held", same=True),), checked=True)
            if r.findings == (Finding.of("nothing_held"),)
            else r
            for r in rows
        )
    incomparable = _incomparable_criteria(comparison)
    rows = [
        _without_comparison(row, incomparable[row.criterion.name]) if row.criterion.name in incomparable else row
        for row in rows
    ]
    gone = comparison.unmatched.removed if comparison.stored else ()
    rows += [
        _without_comparison(
            CriterionResult(c, Verdict.PASS, checked=False),
            Finding.of("not_compared", criterion=c.name, why="removed"),
        )
        for c in gone
    ]
    names = tuple(row.criterion.name for row in rows if row.not_compared is not None and row.criterion.blocking)
    if names:
        rows[0] = _without_comparison(
            rows[0], Finding.of("not_compared", criterion=PASS_RATE, why="without_others", others=names)
        )
    return tuple(rows)


def _incomparable_criteria(comparison: Comparison) -> Mapping[str, Finding]:
    """Return the criteria of which too little is compared, with the reason."""
    return {**comparison.incomparable_criteria, **{one["criterion"]: one for one in lost_checks(comparison)}}


def _without_comparison(row: CriterionResult, why: Finding) -> CriterionResult:
    """Return the row as one that was not compared, unless it fails by itself or decides nothing."""
    if not row.criterion.blocking or row.verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return replace(row, not_compared=why)
    findings = (why, *(row.findings if row.checked else ()))
    return replace(row, not_compared=why, verdict=Verdict.NOT_COMPARED, findings=findings)


def _row(comparison: Comparison, criterion: Criterion, outcome: Outcome | None) -> CriterionResult:
    is_rate = criterion.name == PASS_RATE
    limited = comparison.rate if is_rate else criterion
    findings = findings_of(comparison, limited, None if is_rate else outcome) if limited else []
    findings += regression(criterion, outcome) if is_rate else []
    findings = findings or [Finding.of("nothing_held")]
    checked = findings != [Finding.of("nothing_held")]
    verdict = worst([f.verdict for f in findings])
    found = outcome.evidence.metrics.get(criterion.name) if outcome is not None else None
    now, before = (_estimate_rate if is_rate else _estimate_scores)(comparison, criterion)
    if verdict is Verdict.PASS and now is None:
        findings = [Finding.of("no_value", unchecked=is_rate and bool(comparison.judged_trials))]
        verdict = Verdict.NOT_MEASURED
    return CriterionResult(
        criterion,
        verdict,
        tuple(findings),
        candidate=now,
        baseline=before,
        change=change_estimate(found, criterion),
        compared=_compared(comparison, criterion) if found is not None else None,
        p_value=_p_value(outcome, criterion.name),
        detectable=_detectable(found, criterion),
        spent=spent(outcome.evidence) if outcome and found and found.blocks_regression else None,
        not_measured=0 if is_rate else sum([error_of(t, criterion) is not None for t in comparison.judged_trials]),
        crashes=0 if is_rate else failures(comparison.judged_trials),
        quantiles=quantile_estimates(criterion, case_values(comparison, criterion)[1]),
        dimensions=(_all_pass if is_rate else _dimensions)(comparison, criterion),
        judge=calibrated_judge(criterion, correction_of(comparison, criterion), now, before),
        checked=checked,
    )


def _compared(comparison: Comparison, criterion: Criterion) -> tuple[float, float] | None:
    """The means of both sides over the cases that both have."""
    if criterion.name == PASS_RATE:
        sides = outcomes(comparison)
    else:
        sides = Pairs(comparison.values(criterion), comparison.stored_values(criterion))
    both = [case_id for case_id, values in sides.now.items() if values and sides.before.get(case_id)]
    if not both:
        return None
    return mean([mean(sides.before[i]) for i in both]), mean([mean(sides.now[i]) for i in both])


def _all_pass(comparison: Comparison, criterion: Criterion) -> dict[str, tuple[Estimate | None, Estimate | None]]:
    """Return pass^k beside the pass rate, for as many trials as each case has; empty where one has no second."""
    now, before = _outcomes_by_side(comparison)
    k = min(map(len, now), default=0)
    if k < 2:
        return {}
    return {f"pass^{k}": (_estimate_all_pass(now, k, criterion), _estimate_all_pass(before, k, criterion))}


def _estimate_all_pass(groups: Sequence[Sequence[float]], k: int, criterion: Criterion) -> Estimate | None:
    shares = [all_pass(round(sum(group)), len(group), k) for group in groups if len(group) >= k]
    return estimate(shares, shares, criterion.scale)


def _dimensions(comparison: Comparison, criterion: Criterion) -> dict[str, tuple[Estimate | None, Estimate | None]]:
    """Means of what the scores are made of, over the cases that the criterion is estimated on."""
    now = [comparison.measured(case.id, full=True) for case in comparison.judged]
    stored = comparison.stored_values(criterion)
    before = [comparison.baseline[case.id] for case in comparison.judged if case.id in stored]
    sides = [_by_dimension(groups, criterion) for groups in (now, before)]
    return {name: (estimates, sides[1].get(name)) for name, estimates in sides[0].items()}


def _by_dimension(groups: Iterable[Sequence[Trial]], criterion: Criterion) -> dict[str, Estimate | None]:
    found: dict[str, list[list[float]]] = {}
    for trials in groups:
        values: dict[str, list[float]] = {}
        for trial in trials:
            score = trial.scores.get(criterion.name)
            if score is None or not score.details:
                continue
            for name, value in score.dimensions.items():
                values.setdefault(name, []).append(value)
        for name, group in values.items():
            found.setdefault(name, []).append(group)
    return {name: estimate([mean(g) for g in of], [v for g in of for v in g], Scale.UNIT) for name, of in found.items()}


def _estimate_scores(comparison: Comparison, criterion: Criterion) -> tuple[Estimate | None, Estimate | None]:
    """Candidate and baseline means over all judged cases: of epochs, since reruns pick the cases that failed."""
    means, values = case_values(comparison, criterion)
    return estimate(means, values, criterion.scale), _estimate_groups(baseline_groups(comparison, criterion), criterion)


def _estimate_rate(comparison: Comparison, criterion: Criterion) -> tuple[Estimate | None, Estimate | None]:
    now, before = _outcomes_by_side(comparison)
    return _estimate_groups(now, criterion), _estimate_groups(before, criterion)


def _outcomes_by_side(comparison: Comparison) -> tuple[list[list[float]], list[list[float]]]:
    """Return 1 for each trial of epochs that passes and 0 for each other, by judged case that has any."""
    now, before = [], []
    for case in comparison.judged:
        now.append(outcome_values(comparison.measured(case.id, full=True), comparison, case.id, comparison.criteria))
        if case.id in comparison.with_baseline:
            stored = comparison.baseline[case.id]
            before.append(outcome_values(stored, comparison, case.id, comparison.comparable(case.id)))
    return [group for group in now if group], [group for group in before if group]


def outcome_values(
    trials: Iterable[Trial], comparison: Comparison, case_id: str, criteria: Iterable[Criterion]
) -> list[float]:
    """Return 1 for each trial that passes these criteria and 0 for each that does not; unknown ones are left out."""
    criteria = tuple(criteria)
    outcomes = (passed(trial, comparison.by_id[case_id], criteria) for trial in trials)
    return [float(outcome) for outcome in outcomes if outcome is not None]


def _estimate_groups(groups: Sequence[Sequence[float]], criterion: Criterion) -> Estimate | None:
    return estimate([mean(g) for g in groups if g], [v for g in groups for v in g], criterion.scale)


def _p_value(outcome: Outcome | None, name: str) -> float | None:
    """Return the p-value of the last look, adjusted for all blocking metrics and statistics."""
    look = outcome.evidence.last_look if outcome is not None else None
    test = look.metrics.get(name) if look is not None else None
    return None if test is None else test.p_adjusted


def _detectable(found: MetricChange | None, criterion: Criterion) -> float | None:
    """In the criterion's unit, relative for money, time and counts; always positive."""
    if found is None or found.detectable is None:
        return None
    drop = found.detectable
    return abs(natural(-drop, criterion)) if criterion.scale.is_relative else drop


def spent(evidence: EvidenceSummary) -> float:
    """Share of the error budget that looks, repeats and case reruns have used so far."""
    from gate.decision.engine.evidence import CASES_SHARE  # weight: only with a baseline

    alpha = 1 / (evidence.e_threshold * CASES_SHARE)
    looks = sum(look.threshold if look.spent is None else look.spent for look in evidence.looks)
    repeats = sum(test.threshold for test in evidence.repeats)
    return min(1.0, CASES_SHARE + (looks + repeats) / alpha)
