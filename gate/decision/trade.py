"""Trades: changes that break some cases and improve others, with no mean lower than before.

What was lost is proven as every regression is. What was gained is held to the same evidence with the sides exchanged:
cases are named at a false discovery rate of a tenth, or a joint test at ``alpha`` proves that there are some.
`gate.on_tradeoff` says what such a change does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from gate.decision.comparison import PASS_RATE
from gate.decision.conclusions import regressed_metrics, undecided
from gate.decision.findings import change_of
from gate.model import (
    CaseCounts,
    CaseResult,
    CaseStatus,
    CriterionResult,
    EvidenceSummary,
    OnTradeoff,
    Outcome,
    StageKind,
    Verdict,
    worst,
)
from gate.model.facts import TradedOff
from gate.model.findings import (
    AnyFinding,
    CaseTally,
    ChangeAllowed,
    ChangeUnbounded,
    GotWorse,
    LossNotExcluded,
    SuggestsDrop,
    TradeAccepted,
    TradeWarned,
)

MOST_SUSPECTS = 5
GOT_WORSE = (CaseStatus.BROKEN, CaseStatus.FAILED, CaseStatus.ERROR, CaseStatus.SUSPECT)
"""What is listed as worse, or could not be measured; the worst first."""
ROUNDING = 1e-9
"""A mean that is the same but for rounding did not fall."""


def trade_of(outcome: Outcome | None, policy: OnTradeoff, *, open_blocks: bool = False) -> TradedOff | None:
    """The trade that a proven regression is, if it is one; ``open_blocks``: what stays undecided fails the gate.

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
    return TradedOff(
        lost,
        tuple(_moved(*one) for one in gained),
        named=bool(outcome.cases),
        gained_named=bool(evidence.gained),
        policy=policy,
        waits=tuple(n for n, m in evidence.metrics.items() if m.blocks_regression and not m.holds),
        waits_block=open_blocks,
    )


def proven_by_mean(outcome: Outcome, name: str) -> bool:
    """Whether the look that proved a regression of this metric saw it in its mean, not in the drops of a few cases."""
    tests = [look.metrics[name] for look in outcome.evidence.looks if look.blocks and name in look.metrics]
    return tests[-1].by_mean if tests else outcome.stage.kind is not StageKind.REPEATS


def proven_by_cases(outcome: Outcome) -> bool:
    """Whether single cases prove a regression alone. That some are named, at a false discovery rate, is less."""
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


def traded(rows: Sequence[CriterionResult], outcome: Outcome, trade: TradedOff) -> tuple[CriterionResult, ...]:
    """The criteria under a policy that does not block a trade.

    What is proven worse is said, and decides nothing. A proven regression ends the schedule before the rest is bounded,
    so every other loss that is not excluded stays open.
    """
    return tuple(_row(row, outcome, trade) for row in rows)


def _row(row: CriterionResult, outcome: Outcome, trade: TradedOff) -> CriterionResult:
    found = outcome.evidence.metrics.get(row.criterion.name)
    if found is None or not found.blocks_regression:
        return row
    change = change_of(found, row.criterion)
    kept: list[AnyFinding] = [f for f in row.findings if not isinstance(f, GotWorse | ChangeAllowed)]
    worse = next((f for f in row.findings if isinstance(f, GotWorse)), None)
    if worse is not None:
        kept.append((TradeAccepted if trade.policy == "accept" else TradeWarned)(change, worse.broken))
    if not found.holds:
        kept.append(undecided(found, change, row.criterion))
    elif worse is None:
        kept.append(ChangeAllowed(change))
    return replace(row, findings=tuple(kept), verdict=worst([f.verdict for f in kept]))


def rests_on_trade(rows: Sequence[CriterionResult], verdict: Verdict) -> bool:
    """Whether nothing but a trade, and what it left open, is behind a suite's verdict."""
    kinds = GotWorse | TradeWarned | TradeAccepted | SuggestsDrop | ChangeUnbounded | LossNotExcluded
    found = [f for row in rows if row.criterion.blocking for f in row.findings if f.verdict is verdict]
    return verdict is Verdict.PASS or all(isinstance(f, kinds) for f in found)
