"""The certainty of a verdict in one sentence: how rarely an unchanged agent looks like this, or what a pass may have
missed. Escapes nothing."""

from __future__ import annotations

from gate.decision.outcomes import PASS_RATE
from gate.model import CriterionResult, SuiteResult, Verdict
from gate.model.finding import Finding
from gate.reports.formatting import agree, by_chance, count
from gate.reports.reasons import narrow_miss
from gate.reports.words import about, thin


def how_sure(suite: SuiteResult) -> str:
    """Return how certain the verdict is, in one sentence; empty if chance plays no part."""
    by = suite.deciding
    match suite.verdict:
        case Verdict.REGRESSED:
            return _of_unchanged(by)
        case Verdict.PASS:
            return _seen(by)
        case Verdict.BELOW_THRESHOLD:
            row = deciding_row(by)
            if row is None:
                return ""
            missed = row.finding("mean", Verdict.BELOW_THRESHOLD)
            if missed is not None:
                return narrow_miss(missed, row.criterion)
        case Verdict.INCONCLUSIVE if by.outcome is not None and not _is_apart_from_looks(by.cause):
            look = by.outcome.evidence.last_look
            if look is not None:
                return seen_by_chance(look.p)
    return ""


def deciding_row(suite: SuiteResult) -> CriterionResult | None:
    """Return the first criterion that decides by itself; None if something else does."""
    if suite.cause.kind != "criteria_decide":
        return None
    return suite.row(suite.cause["criteria"][0])


def _is_apart_from_looks(cause: Finding) -> bool:
    """True if the cause of an open answer is another than too little evidence in the looks."""
    return cause.kind == "cases_fail" or (cause.kind == "criteria_decide" and bool(cause["why"]))


def seen_by_chance(p: float) -> str:
    """Return how often an unchanged agent looks as bad; if that is more often than not, there is no sign of a loss."""
    if p > 0.5:
        return "no sign of a loss"
    return f"an unchanged agent looks as bad or worse in {by_chance(p)} of runs"


RARE = (1_000, 500, 200, 100, 50)
"""Numbers of runs for expressing a probability."""


def _of_unchanged(suite: SuiteResult) -> str:
    """Return how rarely an unchanged agent would look like this; empty if that is not rare."""
    cause, outcome = suite.cause, suite.outcome
    chances = []
    if cause.kind == "agent_fails" and cause.verdict is Verdict.REGRESSED:
        chances.append(cause["p"])
    if outcome is not None and outcome.verdict == "REGRESSION":
        evidence = outcome.evidence
        chances += [look.p for look in evidence.looks if look.blocks]
        chances += [test.p for test in evidence.repeats if test.blocks]
        if evidence.highest_e_value is not None and evidence.highest_e_value >= evidence.e_threshold:
            chances.append(1 / evidence.highest_e_value)
    for runs in RARE:
        if chances and min(chances) * runs <= 1:
            return f"an unchanged agent would look like this in fewer than 1 of {runs:,} runs"
    return ""


def _seen(suite: SuiteResult) -> str:
    """Return the losses that a pass may have missed: because of a thin baseline, of few cases, or because they are
    small."""
    told = thin(suite)
    if told or suite.outcome is None:
        return told
    rate = suite.outcome.evidence.metrics.get(PASS_RATE)
    if rate is None:
        return ""
    cases = count(rate.cases, "case")
    if suite.finds is None:
        return f"{cases} like {agree(rate.cases, 'this', 'these')} would only show a case that breaks outright"
    drop = f"an overall drop of less than about {about(suite.finds)}"
    return f"{cases} like these would show a case that breaks; {drop} is often missed (`gate power`)"
