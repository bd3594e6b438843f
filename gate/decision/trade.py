"""Trades: changes that break some cases and improve others, with no mean lower than before.

What was lost is proven as every regression is. What was gained is held to the same evidence with the sides exchanged:
cases are named at a false discovery rate of a tenth, or a joint test at ``alpha`` proves that there are some.
A trade is a regression, shown with both lists and accepted as any loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from gate.decision.comparison import PASS_RATE
from gate.decision.conclusions import regressed_metrics
from gate.model import CaseCounts, CaseResult, CaseStatus, EvidenceSummary, Outcome, StageKind
from gate.model.finding import CaseTally, Finding

MOST_SUSPECTS = 5
GOT_WORSE = (CaseStatus.BROKEN, CaseStatus.FAILED, CaseStatus.ERROR, CaseStatus.SUSPECT)
"""The statuses that are listed as worse or not measured; the worst first."""
ROUNDING = 1e-9
"""A mean that is the same but for rounding did not fall."""


def trade_of(outcome: Outcome | None) -> Finding | None:
    """Return the trade that a proven regression is, or None if it is none.

    Cases broke, or the statistic that a few large drops move most rejected; others gained; and no metric that carries
    the regression has a lower mean than before. Where a mean fell, the suite is worse, whatever single cases gained.
    """
    if outcome is None or outcome.verdict != "REGRESSION":
        return None
    evidence = outcome.evidence
    gains = evidence.gained or evidence.perhaps_gained
    if not gains:
        return None
    changes = [evidence.metrics.get(name) for name in {PASS_RATE, *regressed_metrics(outcome)}]
    if any(found is None or found.change < -ROUNDING for found in changes):
        return None
    lost = moved(evidence, outcome.cases) if outcome.cases else suspects(evidence)
    if not lost:
        return None
    gained = sorted(gains.items(), key=lambda one: (-(one[1].e_value or 0.0), one[0]))
    return Finding.of(
        "traded_off",
        lost=lost,
        gained=tuple(_moved(*one) for one in gained),
        named=bool(outcome.cases),
        gained_named=bool(evidence.gained),
    )


def proven_by_mean(outcome: Outcome, name: str) -> bool:
    """True if the look that proved a regression of this metric saw it in its mean, not in the drops of a few cases."""
    tests = [look.metrics[name] for look in outcome.evidence.looks if look.blocks and name in look.metrics]
    return tests[-1].by_mean if tests else outcome.stage.kind is not StageKind.REPEATS


def proven_by_cases(outcome: Outcome) -> bool:
    """True if single cases prove a regression alone. That some are named, at a false discovery rate, is less."""
    highest = outcome.evidence.highest_e_value
    return outcome.stage.of_cases or highest is None or highest >= outcome.evidence.e_threshold


def moved(evidence: EvidenceSummary, case_ids: Iterable[str]) -> tuple[CaseTally, ...]:
    """Cases with how often they passed on both sides; those of which no counts are kept are left out."""
    return tuple(_moved(one, evidence.cases[one]) for one in case_ids if one in evidence.cases)


def suspects(evidence: EvidenceSummary) -> tuple[CaseTally, ...]:
    """The cases that fail more often than before, those with the most evidence first; `most_suspect` is for readers."""
    known = [(c, n) for c, n in evidence.cases.items() if n.passed * n.baseline_trials < n.baseline_passed * n.trials]
    known.sort(key=lambda one: (one[1].e_value is not None, -(one[1].e_value or 0.0), one[0]))
    return tuple(_moved(*one) for one in known[:MOST_SUSPECTS])


def badness(case: CaseResult, *, elsewhere: bool = False) -> tuple[float | str, ...]:
    """Sorts cases as every report lists them: the worst status first, then the most evidence, then the largest fall.

    ``elsewhere``: outside the tags that the loss is concentrated in, and so after those of its status that are in them.
    """
    rank = GOT_WORSE.index(case.status) if case.status in GOT_WORSE else len(GOT_WORSE)
    before = case.baseline_passed / case.baseline_trials if case.baseline_trials else 0.0
    now = case.passed / case.trials if case.trials else 0.0
    return (rank, elsewhere, -(case.e_value or 0.0), now - before, now, case.id)


def most_suspect(cases: Iterable[CaseResult]) -> tuple[CaseTally, ...]:
    """The first cases that fail more often than before, as they are listed: of those that got worse, if there are any.

    Their counts are those of the list, too: of all trials, with the ones that the base ran in this job.
    """
    fell = [c for c in cases if c.passed * c.baseline_trials < c.baseline_passed * c.trials]
    fell = [c for c in fell if c.status is not CaseStatus.QUARANTINED]
    listed = [c for c in fell if c.status in GOT_WORSE] or fell
    first = sorted(listed, key=badness)[:MOST_SUSPECTS]
    return tuple(CaseTally(c.id, c.passed, c.trials, c.baseline_passed, c.baseline_trials) for c in first)


def _moved(case_id: str, counts: CaseCounts) -> CaseTally:
    return CaseTally(case_id, counts.passed, counts.trials, counts.baseline_passed, counts.baseline_trials)
