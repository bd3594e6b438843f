"""The facts about a decided suite: what its verdict rests on, what was run, what changed, what to be careful of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from gate.decision.cases import edited, removed, worst_wording
from gate.decision.comparison import (
    MOST_STORED,
    PASS_RATE,
    Comparison,
    Goal,
    Incomparable,
    all_unchecked,
    is_recorded,
    passes,
)
from gate.decision.crashes import base_gone, failures_excused, lost_to_infrastructure
from gate.decision.engine.state import CONCURRENT, CONFIRM
from gate.decision.findings import natural
from gate.decision.provider import answered_by, tools_changed
from gate.decision.rows import outcome_values
from gate.decision.thresholds import close_thresholds
from gate.decision.unseen import fell_silent, silence
from gate.model import (
    FULL,
    PROBE,
    REPEAT,
    SILENT,
    CriterionResult,
    Outcome,
    Side,
    SuiteResult,
    Trial,
    Verdict,
)
from gate.model.course import Course
from gate.model.defaults import STORED_TRIALS
from gate.model.finding import Finding

FIXED_DESIGN = 5
"""Trials a case of the fixed design that runs are compared with."""
FEW_CASES = 10
BLIND_MARGIN = 0.5
"""From this margin of the pass rate on, which four cases or fewer have, only a case that breaks outright is seen."""
MEASURABLE = 0.05
"""Seconds that a first answer takes at least, for a faster second one to mean anything."""
MOST_QUICKER = 0.75
"""Share of the cases whose repeats are quicker if a cache answers; a server that was cold is slow for the first few."""


def _new(comparison: Comparison) -> list[str]:
    """Return the judged cases that the baseline does not have, under any name."""
    return [case.id for case in comparison.judged if case.id not in comparison.baseline]


# --- what was run ---------------------------------------------------------------------------------


def course(comparison: Comparison, stopped: str) -> Course:
    """Return the runs by their reason: each is counted in ``runs``, and under one of the reasons for it."""
    planned = [t for t in comparison.trials if not comparison.is_replacement(t)]
    again = [t.side for t in comparison.trials if comparison.is_replacement(t)]
    runs = Counter((t.tag, t.side) for t in planned)
    both = {tag: runs[tag, Side.CANDIDATE] + runs[tag, Side.BASELINE] for tag in (PROBE, REPEAT, CONCURRENT)}
    reruns = Counter(t.case_id for t in planned if t.tag == CONFIRM and t.side is Side.CANDIDATE)
    judged, epochs = {case.id for case in comparison.judged}, passes(comparison)
    whole = sum(t.tag == FULL and t.side is Side.CANDIDATE and t.case_id in judged for t in planned)
    return Course(
        epochs=epochs,
        cases=len(judged),
        rerun_cases=len(reruns),
        rerun_least=min(reruns.values(), default=0),
        rerun_most=max(reruns.values(), default=0),
        runs=len(comparison.trials),
        alpha=comparison.settings.alpha,
        suites=comparison.settings.suites,
        family=comparison.settings.family,
        baseline_runs=sum(t.side is Side.BASELINE for t in comparison.trials),
        fixed_runs=FIXED_DESIGN * len(judged),
        concurrent=both[CONCURRENT] > 0,
        stopped=stopped,
        reruns=reruns.total(),
        baseline_reruns=runs[CONFIRM, Side.BASELINE],
        confirming=both[PROBE],
        baseline_confirming=runs[PROBE, Side.BASELINE],
        epoch_runs=None if whole == epochs * len(judged) else whole,
        baseline_epochs=runs[FULL, Side.BASELINE],
        quarantined=runs[FULL, Side.CANDIDATE] - whole,
        repeating=both[REPEAT],
        baseline_repeating=runs[REPEAT, Side.BASELINE],
        drifting=both[CONCURRENT],
        baseline_drifting=runs[CONCURRENT, Side.BASELINE],
        again=len(again),
        baseline_again=again.count(Side.BASELINE),
    )


# --- what changed, and what to be careful of ------------------------------------------------------


def changes(comparison: Comparison) -> tuple[Finding, ...]:
    """Return the changes: models that answer now, tools, new, changed and removed cases, criteria that cannot be
    compared."""
    if not comparison.stored:
        return ()
    found: list[Finding] = [*answered_by(comparison.judged_trials, comparison.stored)]
    found += tools_changed(comparison.judged_trials, comparison.stored)
    if new := _new(comparison):
        found.append(Finding.of("cases_changed", how="new", cases=tuple(new)))
    if changed := edited(comparison):
        found.append(Finding.of("cases_changed", how="edited", cases=changed))
    if renamed := comparison.unmatched.renamed:
        found.append(Finding.of("renamed_cases", cases=tuple((old, new) for new, old in renamed.items())))
    found += comparison.incomparable_criteria.values()
    for criterion in comparison.unmatched.removed:
        found.append(Finding.of("not_compared", criterion=criterion.name, why="removed"))
    pairs = comparison.not_comparable.items()
    if fresh := sorted({name for (_, name), why in pairs if why is Incomparable.NEW}):
        found.append(Finding.of("new_criteria", criteria=tuple(fresh)))
    if gone := removed(comparison):
        found.append(Finding.of("cases_changed", how="removed", cases=gone))
    return tuple(found)


def warnings(comparison: Comparison, result: SuiteResult) -> tuple[Finding, ...]:
    """Return the findings that weaken the verdict without changing it."""
    outcome, failed = result.outcome, result.verdict is not Verdict.ERROR and result.crashes is not None
    return (
        *([Finding.of("agent_failures")] if failed else []),
        *_excused(result.criteria),
        *(close_thresholds(comparison) if result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE) else ()),
        *_few(comparison, outcome),
        *_thin_baseline(comparison, outcome),
        *_quiet_rises(comparison, outcome),
        *_partly_measured(comparison),
        *_errors(comparison),
        *_repeats(comparison, result),
        *fell_silent(comparison.criteria, comparison.judged_trials, comparison.stored),
        *silence(comparison.criteria, comparison.judged_trials),
        *_unchecked(comparison),
    )


def _unchecked(comparison: Comparison) -> list[Finding]:
    """Cases that ran without anything to fail by: since none states it, or since the answers gave no occasion."""
    ids, known = comparison.unchecked, comparison.baseline
    were = tuple([i for i in ids if i in known and not all_unchecked(known[i], comparison.comparable(i))])
    never = tuple([i for i in ids if i not in were])
    found = (Finding.of("cases_unchecked", cases=never), Finding.of("cases_unchecked", cases=were, were_checked=True))
    return [one for one in found if one["cases"]]


def _excused(results: Iterable[CriterionResult]) -> list[Finding]:
    """Return the criteria that pass only because the baseline was no better."""
    found: list[Finding] = []
    for row in results:
        criterion = row.criterion
        if row.verdict is not Verdict.PASS or not criterion.blocking:
            continue
        for finding in row.findings:
            if finding.is_excused and finding.kind != "own_thresholds":
                found.append(Finding.of("excused", criterion=criterion.name, found=finding))
    return found


def _few(comparison: Comparison, outcome: Outcome | None) -> list[Finding]:
    n = len(comparison.paired)
    if not 0 < n < FEW_CASES:
        return []
    rate = outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None
    return [Finding.of("few_cases", cases=n, blind=rate is not None and rate.margin >= BLIND_MARGIN)]


def _thin_baseline(comparison: Comparison, outcome: Outcome | None) -> list[Finding]:
    counts = sorted(len(comparison.baseline[case_id]) for case_id in comparison.paired)
    target, goal = comparison.settings.stored_trials, comparison.settings.goal
    wanted = max(target, STORED_TRIALS)
    if not counts or counts[0] >= (wanted if goal is None else MOST_STORED):
        return []
    from gate.decision.power import provable  # weight: only with a baseline

    if goal is not None and counts[0] >= wanted:
        wanted = _wanted_for(goal, comparison)
        if counts[0] >= wanted:
            return []

    thin, least, typical = sum(n < wanted for n in counts), counts[0], counts[(len(counts) - 1) // 2]
    alone = comparison.settings.rerun == "never"
    recorded = is_recorded(comparison)
    blind = alone and not provable(len(counts), least, comparison.settings.own_alpha, recorded=recorded)
    rate = outcome.evidence.metrics.get(PASS_RATE) if outcome is not None else None
    drop = rate.detectable if rate is not None else None
    return [
        Finding.of(
            "thin_baseline",
            cases=thin,
            wanted=wanted,
            least=least,
            typical=typical,
            blind=blind,
            drop=drop,
            grows=least < (target if goal is None else wanted),
        )
    ]


def _wanted_for(goal: Goal, comparison: Comparison) -> int:
    """Return how many stored trials of each case it takes to find a drop that the suite is meant to find."""
    from gate.decision.power import Rates, stored_wanted  # weight: only with a baseline

    outcomes = [
        outcome_values(comparison.baseline[case_id], comparison, case_id, comparison.comparable(case_id))
        for case_id in comparison.paired
    ]
    rates = Rates(tuple((int(sum(values)), len(values)) for values in outcomes if values))
    settings = comparison.settings
    return stored_wanted(rates, goal, alpha=settings.own_alpha, epochs=settings.looks) if rates.counts else 0


def _quiet_rises(comparison: Comparison, outcome: Outcome | None) -> list[Finding]:
    """Metrics that do not block, and got worse beyond their margin and beyond noise."""
    by_name = {c.name: c for c in comparison.metrics}
    return [
        Finding.of(
            "quiet_rise",
            criterion=name,
            change=natural(found.change, by_name[name]),
            wording=worst_wording(comparison, by_name[name]) if by_name[name].lexical else None,
        )
        for name, found in (outcome.evidence.metrics if outcome is not None else {}).items()
        if not found.blocks_regression and found.high is not None and found.high < 0 and found.change < -found.margin
    ]


def _partly_measured(comparison: Comparison) -> list[Finding]:
    found: list[Finding] = []
    for criterion in comparison.criteria:
        scores = [s for t in comparison.answers if (s := t.scores.get(criterion.name)) is not None]
        if lost := sum(s.value is None and s.error is not None for s in scores):
            found.append(Finding.of("scores_unmeasured", criterion=criterion.name, lost=lost, of=len(scores)))
    return found


def _errors(comparison: Comparison) -> list[Finding]:
    found: list[Finding] = []
    gone = base_gone(comparison)
    trials = [t for t in comparison.trials if gone is None or t.side is Side.CANDIDATE]
    found += [gone] if gone is not None else []
    found += [one for one in failures_excused(comparison) if not (one["at_base"] and gone)]
    if lost := len(lost_to_infrastructure(trials)):
        found.append(Finding.of("trials_lost", lost=lost, of=len(trials)))
    if again := sum(t.attempts - 1 for t in trials):
        found.append(Finding.of("attempts_repeated", attempts=again))
    return found


def _repeats(comparison: Comparison, result: SuiteResult) -> list[Finding]:
    """Repeated trials that never differ add no information: a cache, a fixed seed, or a deterministic agent."""
    if once := comparison.repeats.cases:
        open_ = result.verdict is Verdict.INCONCLUSIVE  # of a pass they are the doubt
        return [
            Finding.of(
                "repeats_once",
                cases=len(once),
                of=comparison.repeats.repeated,
                lost=comparison.repeats.lost if open_ else (),
            )
        ]
    groups = [comparison.measured(case.id) for case in comparison.judged]
    groups = [group for group in groups if len(group) > 1 and any(map(_said, group))]
    if len(groups) < 3 or any(len({_said(t) for t in group}) > 1 for group in groups):
        return []
    quicker = sum(map(_is_quicker, groups))
    return [Finding.of("repeats_alike", cached=quicker >= MOST_QUICKER * len(groups))]


def _is_quicker(group: Sequence[Trial]) -> bool:
    """True if each repeat of a case took less than a fifth of the time of its first trial, which could be measured."""
    first, later = group[0].duration, [trial.duration for trial in group[1:]]
    return first is not None and first > MEASURABLE and all(one is not None and one < first / 5 for one in later)


def _said(trial: Trial) -> tuple[Any, ...]:
    return tuple(
        i.digest or (i.text, tuple((c.name, repr(c.args)) for c in i.tool_calls))
        for i in trial.invocations
        if i.digest not in ("", SILENT) or i.text
    )
