"""The findings on a suite that weaken a verdict without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gate.decision.comparison import Comparison
from gate.decision.outages import base_gone, failures_excused, lost_to_infrastructure
from gate.decision.outcomes import PASS_RATE, outcomes_of
from gate.decision.settings import MOST_STORED, Goal
from gate.decision.unseen import fell_silent, silence
from gate.model import SILENT, MetricChange, Outcome, Side, SuiteResult, Trial, Verdict
from gate.model.defaults import STORED_TRIALS
from gate.model.finding import Finding

FEW_CASES = 10
BLIND_MARGIN = 0.5
"""From this pass-rate margin on, which suites of four cases or fewer have, only a case that breaks outright shows."""
MEASURABLE = 0.05
"""Minimum duration in seconds of a first answer for a faster second one to count."""
MOST_QUICKER = 0.75
"""Share of the cases whose repeats must be quicker to indicate a cache; a cold server is slow only for the first
few."""


def warnings(comparison: Comparison, result: SuiteResult) -> tuple[Finding, ...]:
    """Return the findings that weaken the verdict without changing it."""
    found: list[Finding] = []
    if comparison.same_as:  # no loss to miss
        if result.cause.kind != "same_agent":
            found.append(Finding.of("same_agent", commit=comparison.same_as))
    else:
        found += _few_cases(comparison, result.outcome)
        found += _thin_baseline(comparison, result.outcome)
    found += _errors(comparison)
    found += _repeats(comparison)
    found += fell_silent(comparison.criteria, comparison.judged_trials, comparison.stored)
    found += silence(comparison.criteria, comparison.judged_trials)
    return tuple(found)


# --- a comparison with little power ---------------------------------------------------------------


def _rate_change(outcome: Outcome | None) -> MetricChange | None:
    return outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None


def _few_cases(comparison: Comparison, outcome: Outcome | None) -> list[Finding]:
    n = len(comparison.paired)
    if not 0 < n < FEW_CASES:
        return []
    rate = _rate_change(outcome)
    return [Finding.of("few_cases", cases=n, blind=rate is not None and rate.margin >= BLIND_MARGIN)]


def _thin_baseline(comparison: Comparison, outcome: Outcome | None) -> list[Finding]:
    """Return a finding if a case has fewer stored trials than the decision, or the configured power, needs."""
    counts = sorted(len(comparison.baseline[case_id]) for case_id in comparison.paired)
    settings = comparison.settings
    goal, least_wanted = settings.goal, max(settings.stored_trials, STORED_TRIALS)
    if not counts or counts[0] >= (least_wanted if goal is None else MOST_STORED):
        return []
    wanted = least_wanted
    if goal is not None and counts[0] >= least_wanted:
        wanted = _wanted_for(goal, comparison)
    if counts[0] >= wanted:
        return []
    rate = _rate_change(outcome)
    return [
        Finding.of(
            "thin_baseline",
            cases=sum(n < wanted for n in counts),
            wanted=wanted,
            least=counts[0],
            typical=counts[(len(counts) - 1) // 2],
            blind=_cannot_prove_one(comparison, len(counts), counts[0]),
            drop=None if rate is None else rate.detectable,
            grows=counts[0] < (settings.stored_trials if goal is None else wanted),
        )
    ]


def _cannot_prove_one(comparison: Comparison, cases: int, stored: int) -> bool:
    """True if so few stored trials could not prove a single broken case, and the base is not run again."""
    from gate.decision.power import provable  # weight: only with a baseline

    if comparison.settings.rerun != "never":
        return False
    return not provable(cases, stored, comparison.settings.own_alpha, recorded=comparison.is_recorded)


def _wanted_for(goal: Goal, comparison: Comparison) -> int:
    """Return the stored trials per case needed to find a drop that the suite is meant to find."""
    from gate.decision.power import Rates, stored_wanted  # weight: only with a baseline

    counts = []
    for case_id in comparison.paired:
        case, criteria = comparison.by_id[case_id], comparison.comparable(case_id)
        outcomes = outcomes_of(comparison.baseline[case_id], case, criteria)
        if outcomes:
            counts.append((sum(outcomes), len(outcomes)))
    settings = comparison.settings
    return stored_wanted(Rates(tuple(counts)), goal, alpha=settings.own_alpha, epochs=settings.looks) if counts else 0


# --- lost trials -----------------------------------------------------------------------------------


def _errors(comparison: Comparison) -> list[Finding]:
    """Return the trials lost to infrastructure, and the failures that were excused."""
    found: list[Finding] = []
    trials: Sequence[Trial] = comparison.trials
    gone = base_gone(comparison)
    if gone is not None:
        found.append(gone)
        trials = [trial for trial in trials if trial.side is Side.CANDIDATE]
    for excused in failures_excused(comparison):
        if not (excused["by"] == "base" and gone):
            found.append(excused)
    lost = len(lost_to_infrastructure(trials))
    repeated = sum(trial.attempts - 1 for trial in trials)
    if lost or repeated:
        found.append(Finding.of("trials_lost", Verdict.PASS, lost=lost, of=len(trials), repeated=repeated))
    return found


# --- repeats --------------------------------------------------------------------------------------


def _repeats(comparison: Comparison) -> list[Finding]:
    """Return a finding if repeated trials never differ: a cache, a fixed seed, or a deterministic agent adds
    nothing."""
    known = comparison.repeats
    if known.cases:
        return [Finding.of("repeats_alike", cases=len(known.cases), of=known.repeated, why="other_runs_differ")]
    groups = []
    for case in comparison.judged:
        trials = comparison.measured(case.id)
        if len(trials) > 1 and any(map(_said, trials)):
            groups.append(trials)
    if len(groups) < 3 or any(len({_said(trial) for trial in trials}) > 1 for trials in groups):
        return []
    quicker = sum(map(_is_quicker, groups))
    why = "faster" if quicker >= MOST_QUICKER * len(groups) else "steady"
    return [Finding.of("repeats_alike", cases=len(groups), of=len(groups), why=why)]


def _is_quicker(trials: Sequence[Trial]) -> bool:
    """True if each repeat of a case took less than a fifth of the time of its first trial, if that is long enough to
    tell."""
    first = trials[0].duration
    if first is None or first <= MEASURABLE:
        return False
    return all(trial.duration is not None and trial.duration < first / 5 for trial in trials[1:])


def _said(trial: Trial) -> tuple[Any, ...]:
    """Return the content of a trial's answer, turn by turn, without empty turns."""
    found: list[Any] = []
    for turn in trial.invocations:
        if turn.digest in ("", SILENT) and not turn.text:
            continue
        if turn.digest:
            found.append(turn.digest)
        else:
            found.append((turn.text, tuple([(call.name, repr(call.args)) for call in turn.tool_calls])))
    return tuple(found)
