"""A decided suite as the reports show it: per criterion and per case."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from gate.decision.applies import fell_away
from gate.decision.cases import case_results, lost
from gate.decision.comparison import PASS_RATE, Comparison, correction_of, error_share, passed, whole_epochs
from gate.decision.conclusions import (
    change_estimate,
    doubted,
    error_of,
    estimate,
    hard_failures,
    judge,
    quantile_estimates,
    regression,
)
from gate.decision.control import control_fell
from gate.decision.correction import calibrated_judge
from gate.decision.crashes import (
    counted_as_failed,
    crash_facts,
    excused,
    fails_all_over,
    lost_ids,
    lost_to_infrastructure,
    proven,
    unconfirmed,
    unscored_ids,
)
from gate.decision.facts import cause, changes, course, warnings
from gate.decision.findings import natural
from gate.decision.replayed import replayed_share
from gate.decision.tags import Pairs, by_group, outcomes, where
from gate.decision.thresholds import baseline_groups, case_values, failures
from gate.decision.trade import trade_of, traded
from gate.model import (
    PROBE,
    CaseStatus,
    CrashFacts,
    Criterion,
    CriterionResult,
    ErrorKind,
    Estimate,
    EvidenceSummary,
    MetricChange,
    Outcome,
    Scale,
    Side,
    SuiteResult,
    ToolTime,
    Trial,
    Verdict,
    missed,
    tool_times,
    worst,
)
from gate.model.facts import (
    AgentFails,
    AllQuarantined,
    CacheOrBroken,
    CaseMostlyLost,
    CaseNotRecorded,
    CasesNotMeasured,
    CouldNotMeasure,
    CriteriaNotCompared,
    CutShort,
    Doubt,
    Doubted,
    LostDecide,
    NoCases,
    Problem,
    TooManyErrors,
    UnexplainedFailures,
)
from gate.model.findings import (
    Apart,
    ComparedWithout,
    ConfirmationSpared,
    FailuresConfirmed,
    GotWorse,
    NoLongerMeasured,
    NotCompared,
    NotConfirmed,
    NothingChecked,
    NothingHeld,
    NothingRerun,
    NoTrialMeasured,
    Unconfirmed,
)
from gate.security.limits import cut
from gate.statistics.intervals import mean

PROVEN = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
MAX_ERROR_CHARS = 120
"""Characters of the commonest error that stand in a headline."""


def conclude(
    comparison: Comparison, outcome: Outcome | None, stopped: str = "", *, verdict_only: bool = False
) -> SuiteResult:
    """The verdict on what there is; ``verdict_only``: without what is only shown of the suite and its cases."""
    rate = comparison.metrics[0]
    judged = [c for c in comparison.criteria if c is not comparison.rate]
    results = tuple(_result(comparison, c, outcome, stopped=stopped) for c in (rate, *judged))
    settings = comparison.settings
    trade = trade_of(outcome, settings.on_tradeoff, open_blocks=settings.on_inconclusive == "block")
    if outcome is not None and trade is not None and trade.policy != "block":
        results = traded(results, outcome, trade)
    verdict, problem = _suite_verdict(comparison, results)
    cut_short = bool(stopped) and verdict in (Verdict.PASS, Verdict.INCONCLUSIVE) and _unfinished(comparison)
    verdict = Verdict.INCONCLUSIVE if cut_short else verdict
    cases = () if verdict_only else case_results(comparison, outcome)
    result = SuiteResult(
        suite_id="",
        verdict=verdict,
        cause=_cut_short(comparison, stopped)
        if cut_short
        else cause(comparison, outcome, results, cases, verdict=verdict, problem=problem, trade=trade),
        criteria=results,
        cases=cases,
        has_baseline=bool(comparison.stored),
        crashes=crash_facts(comparison),
        outcome=outcome,
        trade=trade,
    )
    if not verdict_only:
        result = _shown(comparison, result, stopped)
    return _capped(comparison, result, open_=cut_short)


def _shown(comparison: Comparison, result: SuiteResult, stopped: str) -> SuiteResult:
    """With what changes no verdict."""
    groups, further = by_group(comparison, result.cases)
    return replace(
        result,
        course=course(comparison, stopped),
        changes=changes(comparison),
        warnings=warnings(comparison, result),
        agent_runs=len(comparison.trials),
        errors=len(lost_to_infrastructure(comparison.trials)),
        retried=sum(t.attempts - 1 for t in comparison.trials),
        tools=_tool_times(comparison),
        groups=groups,
        further_groups=further,
        trend=_trend(comparison),
        replayed=replayed_share(comparison),
        concentrated=where(comparison, result.criteria, result.verdict, result.cause),
    )


def _capped(comparison: Comparison, result: SuiteResult, *, open_: bool) -> SuiteResult:
    """What the baseline measured and was not compared keeps the suite from passing, and its own row from a tick.

    ``open_``: the suite is inconclusive for want of trials, which outranks this.
    """
    fell = {one.criterion: one for one in fell_away(comparison)}
    apart = {**comparison.apart, **fell}
    gone = comparison.owed.removed if comparison.stored else ()
    rows = tuple(
        _row_apart(row, apart[row.criterion.name]) if row.criterion.name in apart else row for row in result.criteria
    )
    rows += tuple(_row_apart(CriterionResult(c, Verdict.PASS, checked=False), NoLongerMeasured()) for c in gone)
    names = [row.criterion.name for row in rows if row.not_compared and row.criterion.blocking]
    if names:
        without = ComparedWithout(tuple(names))
        rows = tuple(_row_apart(row, without) if row.criterion.name == PASS_RATE else row for row in rows)
    names = [name for name in names if name not in fell]
    missing: list[Doubt] = [CriteriaNotCompared(tuple(names))] if names else []
    missing += [one for one in (lost(comparison), *fell.values()) if one is not None]
    if missing and result.verdict is Verdict.INCONCLUSIVE and not open_:
        waits = any(row.verdict is Verdict.INCONCLUSIVE and row.criterion.blocking for row in result.criteria)
        result = result if waits else replace(result, verdict=Verdict.PASS)  # nothing else is in the way
    result = replace(result, criteria=rows)
    return doubted(result, *missing) if missing else result


def _row_apart(row: CriterionResult, why: Apart) -> CriterionResult:
    """A row without a pass; one that does not block keeps its verdict, for it decides nothing."""
    if not row.criterion.blocking or row.verdict is not Verdict.PASS:
        return replace(row, not_compared=why)
    findings = (NotCompared(why), *(row.findings if row.checked else ()))
    return replace(row, not_compared=why, verdict=Verdict.INCONCLUSIVE, findings=findings)


def judged(
    comparison: Comparison,
    outcome: Outcome | None,
    stopped: str,
    ask: Callable[[Comparison], Outcome | None],
    *,
    verdict_only: bool = False,
) -> SuiteResult:
    """The verdict on what there is; none where the agent fails all over, and nobody knows whose fault that is.

    ``ask`` is the engine's answer on another comparison.
    """
    result = conclude(comparison, outcome, stopped, verdict_only=verdict_only)
    result = _confirmed(comparison, result, stopped, ask)
    if result.verdict is not Verdict.INCONCLUSIVE or (found := fails_all_over(comparison)) is None:
        return result
    return replace(result, verdict=Verdict.ERROR, cause=CouldNotMeasure(found), doubts=(), trade=None)


def _confirmed(
    comparison: Comparison, result: SuiteResult, stopped: str, ask: Callable[[Comparison], Outcome | None]
) -> SuiteResult:
    """The verdict as far as it may rest on failures of the agent, and on what was never measured.

    A block that needs failures has to be confirmed. A pass has to hold with each lost trial counted as failed, and
    with no case that crashes as it never did at the baseline.
    """
    facts = result.crashes
    if facts is not None and result.verdict in PROVEN and comparison.settings.confirm_after is not None:
        without = excused(comparison)
        other = conclude(without, ask(without), stopped, verdict_only=True)
        if why := unconfirmed(comparison):
            if other.verdict in PROVEN:
                return _without_failures(comparison, result, other, why)
            return _softened(result, other, replace(facts, doubt=why), why)
    undecided = facts is not None and result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    if undecided and (p := proven(comparison)) is not None:
        return _hardened(result, comparison, p)
    if result.verdict is Verdict.PASS:
        if comparison.repeats.lost:
            result = doubted(result, CacheOrBroken(comparison.repeats.lost))
        if (fell := control_fell(comparison)) is not None:
            result = doubted(result, fell)
        if facts is not None and facts.unexplained:
            result = doubted(result, UnexplainedFailures(len(facts.unexplained)))
        unmeasured, unscored = lost_ids(comparison), unscored_ids(comparison)
        if unmeasured or unscored:
            worse = counted_as_failed(comparison, unmeasured | unscored)
            if conclude(worse, ask(worse), stopped, verdict_only=True).verdict is not Verdict.PASS:
                own = sum(id(t) in unscored for t in comparison.trials if t.side is Side.CANDIDATE)
                result = doubted(result, LostDecide(len(unmeasured), own))
    return result


def _hardened(result: SuiteResult, comparison: Comparison, p: float) -> SuiteResult:
    """A regression that the confirmation proves by itself."""
    criteria = tuple(
        replace(r, verdict=Verdict.REGRESSED, findings=(FailuresConfirmed(p),)) if r.criterion.name == PASS_RATE else r
        for r in result.criteria
    )
    again = {t.case_id for t in comparison.trials if t.tag == PROBE and t.failed and t.side is Side.CANDIDATE}
    facts = result.crashes
    broken = again.intersection(facts.cases if facts is not None else ())
    cases = tuple(replace(c, status=CaseStatus.BROKEN) if c.id in broken else c for c in result.cases)
    return replace(result, verdict=Verdict.REGRESSED, cause=AgentFails(p), doubts=(), criteria=criteria, cases=cases)


def _softened(result: SuiteResult, other: SuiteResult, facts: CrashFacts, why: Unconfirmed) -> SuiteResult:
    """A block that was not confirmed: inconclusive, and named. What is proven without the failures stays proven."""
    stays = {r.criterion.name for r in other.criteria if r.verdict in PROVEN}
    criteria = tuple(
        replace(r, verdict=Verdict.INCONCLUSIVE, findings=(NotConfirmed(why), *r.findings))
        if r.verdict in PROVEN and r.criterion.name not in stays
        else r
        for r in result.criteria
    )
    cases = tuple(
        replace(c, status=CaseStatus.SUSPECT) if c.crashes and c.status in (CaseStatus.BROKEN, CaseStatus.FAILED) else c
        for c in result.cases
    )
    return replace(
        result,
        verdict=Verdict.INCONCLUSIVE,
        cause=Doubted(),
        doubts=(why,),
        criteria=criteria,
        cases=cases,
        crashes=facts,
        trade=None,
    )


def _without_failures(comparison: Comparison, result: SuiteResult, other: SuiteResult, why: Unconfirmed) -> SuiteResult:
    """What is proven without failures that were not confirmed; nothing that takes them is called proven.

    ``other`` is the verdict without them, a block by itself: so nobody waits for their confirmation.
    """
    why = ConfirmationSpared() if isinstance(why, NothingRerun) else why
    named = other.outcome.cases if other.outcome is not None else ()
    cases = tuple(
        replace(c, status=CaseStatus.SUSPECT)
        if c.crashes and c.status is CaseStatus.BROKEN and c.id not in named
        else c
        for c in result.cases
    )
    by_name = {row.criterion.name: row for row in other.criteria}
    pairs = [(row, by_name[row.criterion.name]) for row in result.criteria]
    if cases == result.cases and not any(_needs_failures(*pair) for pair in pairs):
        return result
    rows = tuple(_row_without_failures(*pair, why) for pair in pairs)
    verdict, _ = _suite_verdict(comparison, rows)
    regressed = verdict is Verdict.REGRESSED
    outcome, trade = (other.outcome, other.trade) if regressed else (result.outcome, None)
    found = cause(comparison, outcome, rows, cases, verdict=verdict, problem=None, trade=trade)
    return replace(
        result,
        verdict=verdict,
        cause=found,
        criteria=rows,
        cases=cases,
        outcome=outcome,
        trade=trade,
        missed_besides=missed(result),  # nobody accepts that unseen, confirmed or not
    )


def _needs_failures(row: CriterionResult, without: CriterionResult) -> bool:
    """Whether anything of what is proven of a row is not, ``without`` the failures: its verdict, or a case it names."""
    named, still = ({i for f in one.findings if isinstance(f, GotWorse) for i in f.broken} for one in (row, without))
    proven = row.verdict in PROVEN or without.verdict in PROVEN
    return proven and (row.verdict is not without.verdict or not named <= still)


def _row_without_failures(row: CriterionResult, without: CriterionResult, why: Unconfirmed) -> CriterionResult:
    """A row as far as it is proven ``without`` the failures; with its figures where a comparison decided."""
    if without.verdict in PROVEN:
        counted = row.verdict is without.verdict is Verdict.BELOW_THRESHOLD  # a failure is the worst score there
        alone = replace(without, crashes=row.crashes, findings=(*without.findings, NotConfirmed(why)))
        return row if counted else alone
    if row.verdict not in PROVEN:
        return row
    return replace(row, verdict=Verdict.INCONCLUSIVE, findings=(NotConfirmed(why), *row.findings))


def _suite_verdict(comparison: Comparison, results: Sequence[CriterionResult]) -> tuple[Verdict, Problem | None]:
    """The worst blocking criterion. A hard failure outranks all; what is proven outranks failing infrastructure."""
    if any(hard_failures(comparison, c) for c in comparison.criteria if c.hard and c.blocking):
        return Verdict.BELOW_THRESHOLD, None
    found = worst([r.verdict for r in results if r.criterion.blocking])
    found = Verdict.NOT_MEASURED if found is Verdict.NOT_APPLIED else found
    if found in PROVEN:
        return found, None
    problem = measuring_problem(comparison)
    if problem is not None:
        return Verdict.ERROR, problem
    if found is Verdict.PASS and not comparison.paired and not _held(comparison):
        return Verdict.INCONCLUSIVE, None
    return found, None


def _held(comparison: Comparison) -> bool:
    """Whether anything but a baseline could fail the suite: a threshold, a limit, or a hard rule that blocks."""
    own = any(case.thresholds for case in comparison.judged)
    return own or any(
        c.threshold is not None or c.limit is not None or c.quantiles or c.hard
        for c in comparison.criteria
        if c.blocking
    )


def _unfinished(comparison: Comparison) -> bool:
    """Whether less was run than the first decision takes: an exact design, or one pass."""
    return whole_epochs(comparison) < (comparison.settings.exact_epochs or 1)


def _cut_short(comparison: Comparison, stopped: str) -> CutShort:
    return CutShort(stopped, whole_epochs(comparison), comparison.settings.exact_epochs or 1)


def measuring_problem(comparison: Comparison) -> Problem | None:
    """Why the suite could not be measured; None where it could."""
    if not comparison.judged:
        return AllQuarantined() if comparison.cases else NoCases()
    if comparison.outage:
        return comparison.outage
    share, most = error_share(comparison), comparison.settings.max_error_rate
    if share > most:
        return TooManyErrors(share, most, _commonest_error(comparison))
    silent = [case.id for case in comparison.judged if not comparison.measured(case.id)]
    if silent:
        return CasesNotMeasured(tuple(silent), len(comparison.judged), _commonest_error(comparison))
    return _lost_case(comparison)


def _lost_case(comparison: Comparison) -> Problem | None:
    """The first case of which too much is missing for the rest to stand for it."""
    if not comparison.errors:
        return None
    for case in comparison.judged:
        trials = comparison.candidate.get(case.id, ())
        refused = sum(_asked_in_vain(trial) for trial in trials)
        if refused:
            return CaseNotRecorded(case.id, refused, len(trials), _commonest_error(comparison))
    for case in comparison.judged:
        trials = comparison.scheduled(case.id)
        lost = len(comparison.lost(comparison.candidate.get(case.id, ())))
        if len(trials) > 1 and 2 * lost > len(trials):
            return CaseMostlyLost(case.id, lost, len(trials), _commonest_error(comparison))
    return None


def _asked_in_vain(trial: Trial) -> bool:
    """Whether a trial ended since it asked otherwise than its recording: no trial in its place makes up for that."""
    return (
        trial.error is not None
        and trial.error.kind is ErrorKind.MISSING
        and trial.replay is not None
        and bool(trial.replay.source)
    )


def _commonest_error(comparison: Comparison) -> str:
    """What most of the candidate's trials that were lost ended in."""
    trials = (trial for group in comparison.candidate.values() for trial in group)
    counts = Counter(f"{t.error.kind.value}: {t.error.message}" for t in trials if t.error and not t.measured)
    if not counts:
        return ""
    text = min(counts, key=lambda text: (-counts[text], text))
    return cut(" ".join(text.split()), MAX_ERROR_CHARS)


def _result(comparison: Comparison, criterion: Criterion, outcome: Outcome | None, *, stopped: str) -> CriterionResult:
    is_rate = criterion.name == PASS_RATE
    limited = comparison.rate if is_rate else criterion
    findings = judge(comparison, limited, None if is_rate else outcome, final=not stopped) if limited else []
    findings += regression(criterion, outcome) if is_rate else []
    findings = findings or [NothingHeld()]
    checked = findings != [NothingHeld()]
    verdict = worst([f.verdict for f in findings])
    found = outcome.evidence.metrics.get(criterion.name) if outcome is not None else None
    now, before = (_estimate_rate if is_rate else _estimate_scores)(comparison, criterion)
    if verdict is Verdict.PASS and now is None:
        findings = [NothingChecked() if is_rate and comparison.judged_trials else NoTrialMeasured()]
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
        dimensions={} if is_rate else _dimensions(comparison, criterion),
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


COVERED = 0.9
"""Share of the paired cases that a stored run has at least, to be a point of the trend."""


def _trend(comparison: Comparison) -> tuple[float, ...]:
    """Pass rates of the runs that the stored trials are of, and of the candidate, over the cases that are paired."""
    runs: dict[str, dict[str, list[float]]] = {}
    began: dict[str, float] = {}
    for case_id in comparison.paired:
        for trial in comparison.baseline[case_id]:
            values = _outcomes([trial], comparison, case_id, comparison.comparable(case_id))
            if trial.run and values:
                runs.setdefault(trial.run, {}).setdefault(case_id, []).extend(values)
                began[trial.run] = min(began.get(trial.run, math.inf), trial.started or 0.0)
    whole = [run for run, found in runs.items() if len(found) >= COVERED * len(comparison.paired)]
    groups = (
        _outcomes(comparison.measured(i, full=True), comparison, i, comparison.comparable(i)) for i in comparison.paired
    )
    now = [mean(group) for group in groups if group]
    if len(whole) < 2 or not now:
        return ()
    stored = [mean([mean(group) for group in runs[run].values()]) for run in sorted(whole, key=lambda r: began[r])]
    return (*stored, mean(now))


def _tool_times(comparison: Comparison) -> tuple[ToolTime, ...]:
    """Time per tool over the candidate's measured trials; of the turns in which the agent times its tools."""
    trials = (trial for group in comparison.candidate.values() for trial in group if trial.error is None)
    turns = (turn for trial in trials for turn in trial.invocations)
    return tuple(tool_times(turn for turn in turns if any(call.duration is not None for call in turn.tool_calls)))


def _estimate_scores(comparison: Comparison, criterion: Criterion) -> tuple[Estimate | None, Estimate | None]:
    """Candidate and baseline means over all judged cases: of epochs, since reruns pick the cases that failed."""
    means, values = case_values(comparison, criterion)
    return estimate(means, values, criterion.scale), _estimate_groups(baseline_groups(comparison, criterion), criterion)


def _estimate_rate(comparison: Comparison, criterion: Criterion) -> tuple[Estimate | None, Estimate | None]:
    now, before = [], []
    for case in comparison.judged:
        now.append(_outcomes(comparison.measured(case.id, full=True), comparison, case.id, comparison.criteria))
        if case.id in comparison.with_baseline:
            stored = comparison.baseline[case.id]
            before.append(_outcomes(stored, comparison, case.id, comparison.comparable(case.id)))
    return _estimate_groups(now, criterion), _estimate_groups(before, criterion)


def _outcomes(
    trials: Iterable[Trial], comparison: Comparison, case_id: str, criteria: Iterable[Criterion]
) -> list[float]:
    criteria = tuple(criteria)
    outcomes = (passed(trial, comparison.by_id[case_id], criteria) for trial in trials)
    return [float(outcome) for outcome in outcomes if outcome is not None]


def _estimate_groups(groups: Sequence[Sequence[float]], criterion: Criterion) -> Estimate | None:
    return estimate([mean(g) for g in groups if g], [v for g in groups for v in g], criterion.scale)


def _p_value(outcome: Outcome | None, name: str) -> float | None:
    """Of the last look, adjusted for all blocking metrics and statistics."""
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
