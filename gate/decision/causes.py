"""The causes of comparison verdicts: the criterion or cases at fault, or the trade-off, with figures.

A trade-off breaks some cases and improves others, and no mean is lower than before. The loss is proven like any
regression. The gain is held to the same standard with the sides exchanged: cases are named at a false discovery rate of
a tenth, or a joint test at ``alpha`` proves that some exist. A trade-off is a regression: it is shown with both lists
and accepted like any loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gate.decision.cases import reads_text, worst_wording
from gate.decision.comparison import Comparison
from gate.decision.findings import regressed_metrics, tally
from gate.decision.gaps import edited_cases, new_cases, removed_cases
from gate.decision.outcomes import PASS_RATE
from gate.model import (
    CaseResult,
    CaseStatus,
    Criterion,
    CriterionResult,
    EvidenceSummary,
    Outcome,
    StageKind,
    Verdict,
)
from gate.model.finding import CaseTally, Fell, Finding, Uncompared

MOST_SUSPECTS = 5
GOT_WORSE = (CaseStatus.BROKEN, CaseStatus.FAILED, CaseStatus.ERROR, CaseStatus.SUSPECT)
"""The statuses listed as worse or not measured, the worst first."""
ROUNDING = 1e-9
"""A mean that drops by no more than this has not fallen: the difference is rounding."""


# --- what a pass, or an open answer, rests on -----------------------------------------------------


def passes(comparison: Comparison, outcome: Outcome | None) -> Finding:
    """Return the grounds for a pass."""
    quarantined = len(comparison.cases) - len(comparison.judged)
    uncompared = Uncompared(quarantined=quarantined)
    if comparison.stored:
        new, edited, removed = new_cases(comparison), edited_cases(comparison), removed_cases(comparison)
        uncompared = Uncompared(len(new), len(edited), len(removed), quarantined)
    compared: frozenset[str] = frozenset()
    if outcome is not None:
        compared = comparison.with_baseline
    cases, unchecked = len(comparison.judged), comparison.unchecked
    return Finding.of(
        "passes",
        compared=len(compared.difference(unchecked)),
        checked=cases - len(unchecked),
        cases=cases,
        uncompared=uncompared,
    )


def not_enough_evidence(rows: Sequence[CriterionResult], cases: Sequence[CaseResult]) -> Finding:
    """Return the open criteria and the suspected cases."""
    suspected = sorted((case for case in cases if case.status is CaseStatus.SUSPECT), key=badness)
    names = tuple([row.criterion.name for row in rows])
    suspects = tuple([case.id for case in suspected])
    return Finding.of("criteria_decide", Verdict.INCONCLUSIVE, criteria=names, suspects=suspects)


# --- what a proven loss rests on ------------------------------------------------------------------


def got_worse(
    comparison: Comparison, rows: Sequence[CriterionResult], cases: Sequence[CaseResult], outcome: Outcome
) -> Finding:
    """Return the grounds for a proven loss: a trade-off, the cases that broke, or the suite as a whole."""
    trade = trade_of(outcome, cases)
    if trade is not None:
        return trade
    broken = [case for case in cases if case.status is CaseStatus.BROKEN]
    if broken and proven_by_cases(outcome):
        counts = outcome.evidence.cases
        broke = tuple([tally(case.id, counts.get(case.id, case)) for case in broken])
        return Finding.of("cases_broke", cases=broke, of=outcome.evidence.paired)
    at_fault, missed = [], []
    for row in rows:
        if row.criterion.blocking and row.verdict is Verdict.REGRESSED:
            at_fault.append(row.criterion)
        if row.criterion.blocking and row.is_below:
            missed.append(row.criterion.name)
    names = [criterion.name for criterion in at_fault]
    alone = [criterion for criterion in at_fault if set(names).isdisjoint(criterion.parts)]
    criterion = (alone or at_fault)[0]
    drift = outcome.stage.drift_open and not comparison.base_ran_now
    found = Finding.of(
        "suite_got_worse",
        criteria=tuple(names),
        by_mean=proven_by_mean(outcome, criterion.name),
        perhaps_drift=drift,
        missed=tuple(missed),
        drift_moot=bool(missed) and drift and comparison.settings.rerun != "never",
    )
    # The cases to look at first got worse by that criterion; only for the pass rate are whole trials counted.
    if criterion.name == PASS_RATE:
        return found.but(suspects=most_suspect(cases))
    if reads_text(criterion):
        found = found.but(wording=worst_wording(comparison, criterion))
    return found.but(fell=_fell(criterion, cases))


def _fell(criterion: Criterion, cases: Sequence[CaseResult]) -> tuple[Fell, ...]:
    """Return the cases whose score got worse by this criterion, the largest fall first."""
    sign = -criterion.direction.sign
    found = []
    for case in cases:
        now, before = case.scores.get(criterion.name, (None, None))
        if case.status is CaseStatus.QUARANTINED or now is None or before is None:
            continue
        if sign * (now - before) > ROUNDING:
            found.append(Fell(case.id, before, now))
    found.sort(key=lambda fell: (-sign * (fell.now - fell.before), fell.case_id))
    return tuple(found[:MOST_SUSPECTS])


def trade_of(outcome: Outcome, cases: Iterable[CaseResult]) -> Finding | None:
    """Return the trade-off in a proven regression, or None if there is none.

    Cases broke, or the statistic that is most sensitive to a few large drops rejected; others gained; and no metric
    that carries the regression has a lower mean than before. If a mean fell, the suite is worse, whatever single cases
    gained.
    """
    evidence = outcome.evidence
    gains = evidence.gained or evidence.perhaps_gained
    if not gains:
        return None
    for name in {PASS_RATE, *regressed_metrics(outcome)}:
        change = evidence.metrics.get(name)
        if change is None or change.change < -ROUNDING:
            return None
    lost = tallies(evidence, outcome.cases) if outcome.cases else most_suspect(cases)
    if not lost:
        return None
    gained = sorted(gains.items(), key=lambda one: (-(one[1].e_value or 0.0), one[0]))
    return Finding.of(
        "cases_broke",
        cases=lost,
        named=bool(outcome.cases),
        gained=tuple([tally(case_id, counts) for case_id, counts in gained]),
        gained_named=bool(evidence.gained),
    )


def proven_by_mean(outcome: Outcome, name: str) -> bool:
    """True if the look that proved a regression of this metric saw it in the mean, not in the drops of a few cases."""
    tests = [look.metrics[name] for look in outcome.evidence.looks if look.blocks and name in look.metrics]
    if tests:
        return tests[-1].by_mean
    return outcome.stage.kind is not StageKind.REPEATS


def proven_by_cases(outcome: Outcome) -> bool:
    """True if single cases alone prove a regression. Naming some at a false discovery rate proves less."""
    highest = outcome.evidence.highest_e_value
    return outcome.stage.of_cases or highest is None or highest >= outcome.evidence.e_threshold


# --- cases, the worst first -----------------------------------------------------------------------


def tallies(evidence: EvidenceSummary, case_ids: Iterable[str]) -> tuple[CaseTally, ...]:
    """Return how often the cases passed on both sides, without cases that have no counts."""
    return tuple([tally(case_id, evidence.cases[case_id]) for case_id in case_ids if case_id in evidence.cases])


def most_suspect(cases: Iterable[CaseResult]) -> tuple[CaseTally, ...]:
    """Return the first cases that fail more often than before, in report order; only those that got worse, if any did.

    As in the report, the counts cover all trials, including those that the base ran in this job.
    """
    fell = []
    for case in cases:
        passes_less = case.passed * case.baseline_trials < case.baseline_passed * case.trials
        if passes_less and case.status is not CaseStatus.QUARANTINED:
            fell.append(case)
    listed = [case for case in fell if case.status in GOT_WORSE] or fell
    return tuple([tally(case.id, case) for case in sorted(listed, key=badness)[:MOST_SUSPECTS]])


def badness(case: CaseResult, *, elsewhere: bool = False) -> tuple[float | str, ...]:
    """Return the key that sorts cases in every report: by worst status, then most evidence, then largest fall.

    ``elsewhere``: True outside the tags that the loss is concentrated in; sorts a case after others of its status.
    """
    rank = len(GOT_WORSE)
    if case.status in GOT_WORSE:
        rank = GOT_WORSE.index(case.status)
    before = case.baseline_passed / max(1, case.baseline_trials)
    now = case.passed / max(1, case.trials)
    return (rank, elsewhere, -(case.e_value or 0.0), now - before, now, case.id)
