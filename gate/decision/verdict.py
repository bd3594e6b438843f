"""Puts a decided suite together: the table that the rules see, their verdict, and what reports show beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from gate.decision.cases import case_results
from gate.decision.comparison import Comparison
from gate.decision.crashes import (
    counted_as_failed,
    crash_facts,
    excused,
    is_of_provider,
    lost_ids,
    lost_to_infrastructure,
    proven,
    unconfirmed,
    unscored_ids,
)
from gate.decision.facts import changes, course, warnings
from gate.decision.replayed import replayed_share
from gate.decision.rows import outcome_values, rows_of
from gate.decision.rules import Table, below, if_accepted, judge, loss, missed_threshold
from gate.decision.tags import by_group, where
from gate.model import Outcome, Scale, Side, SuiteResult, ToolTime, Verdict, tool_times
from gate.model.finding import Finding
from gate.statistics.intervals import mean

Ask = Callable[[Comparison], Outcome | None]
"""The sequential test's answer on a comparison, without further trials."""
COVERED = 0.9
"""Share of the paired cases that a stored run has at least, to be a point of the trend."""


def table_of(
    comparison: Comparison,
    ask: Ask,
    *,
    stopped: str = "",
    gaps: Sequence[Finding] = (),
    earlier: Sequence[Verdict] = (),
    same_as: str = "",
    same_verdict: str = "",
    with_cases: bool = True,
) -> Table:
    """Return the table that the rules see.

    How agent failures count is settled here. They are misses. A block that would rest on them, and that asking again
    does not confirm, is judged without them: if they look like the provider's, the later answers count; else the suite
    could not be measured.
    """

    def of(one: Comparison) -> Table:
        outcome = ask(one)
        cases = case_results(one, outcome) if with_cases else ()
        rows = rows_of(one, outcome, same=bool(same_as))
        return Table(one, outcome, rows, cases, stopped, tuple(gaps), tuple(earlier), same_as, same_verdict)

    table = of(comparison)
    if any(trial.failed for trial in comparison.errors) and comparison.settings.confirm_after is not None:
        table = _with_failures_settled(table, of)
    return replace(table, lost=_lost(table, ask))


def _with_failures_settled(table: Table, of: Callable[[Comparison], Table]) -> Table:
    """Return the table with agent failures as far as they are confirmed."""
    comparison = table.comparison
    if not _blocks(table):
        p = proven(comparison)
        if p is None:
            return table
        rows = rows_of(comparison, table.outcome, failures_prove=p)
        return replace(table, rows=rows, failures_prove=p)
    why = unconfirmed(comparison)
    if why is None:
        return table
    without = of(excused(comparison))
    if _blocks(without):  # it does not rest on them; a loss may, beside a threshold that is missed anyway
        return without if loss(table) is not None and loss(without) is None else table
    if is_of_provider(comparison, why):
        return without
    # A row that fails because of them would deny the verdict.
    fails = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)
    rows = tuple(other if row.verdict in fails else row for row, other in zip(table.rows, without.rows, strict=True))
    return replace(table, rows=rows, not_confirmed=why)


def _blocks(table: Table) -> bool:
    """True if a loss is proven or a threshold is missed."""
    return loss(table) is not None or missed_threshold(table) is not None


def _lost(table: Table, ask: Ask) -> Finding | None:
    """Return the trials that could not be measured, if they would turn the verdict as failures."""
    comparison = table.comparison
    unmeasured, unscored = lost_ids(comparison), unscored_ids(comparison)
    if not unmeasured and not unscored:
        return None
    verdict = judge(table).verdict
    if verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return None
    worse = counted_as_failed(comparison, unmeasured | unscored)
    outcome = ask(worse)
    turned = judge(replace(table, comparison=worse, outcome=outcome, rows=rows_of(worse, outcome))).verdict
    if turned is verdict or turned in (Verdict.PASS, Verdict.ERROR):
        return None
    own = sum(id(trial) in unscored for trial in comparison.trials if trial.side is Side.CANDIDATE)
    return Finding.of("lost_decide", trials=len(unmeasured), unscored=own)


def result_of_table(table: Table, *, verdict_only: bool = False) -> SuiteResult:
    """Return the decided suite; with ``verdict_only`` without what reports show of it besides."""
    cause = judge(table)
    comparison = table.comparison
    result = SuiteResult(
        suite_id="",
        verdict=cause.verdict,
        cause=cause,
        criteria=table.rows,
        cases=table.cases,
        has_baseline=bool(comparison.stored),
        crashes=crash_facts(comparison),
        outcome=table.outcome,
        if_accepted=if_accepted(table),
        below=below(table),
    )
    return result if verdict_only else _shown(table, result)


def _shown(table: Table, result: SuiteResult) -> SuiteResult:
    """Return the suite with what changes no verdict."""
    comparison = table.comparison
    groups, further = by_group(comparison, result.cases)
    return replace(
        result,
        course=course(comparison, table.stopped),
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


def _trend(comparison: Comparison) -> tuple[float, ...]:
    """Pass rates of the runs that the stored trials are of, and of the candidate, over the cases that are paired."""
    runs: dict[str, dict[str, list[float]]] = {}
    began: dict[str, float] = {}
    for case_id in comparison.paired:
        for trial in comparison.baseline[case_id]:
            values = outcome_values([trial], comparison, case_id, comparison.comparable(case_id))
            if trial.run and values:
                runs.setdefault(trial.run, {}).setdefault(case_id, []).extend(values)
                began[trial.run] = min(began.get(trial.run, math.inf), trial.started or 0.0)
    whole = [run for run, found in runs.items() if len(found) >= COVERED * len(comparison.paired)]
    groups = (
        outcome_values(comparison.measured(i, full=True), comparison, i, comparison.comparable(i))
        for i in comparison.paired
    )
    now = [mean(group) for group in groups if group]
    if len(whole) < 2 or not now:
        return ()
    stored = [mean([mean(group) for group in runs[run].values()]) for run in sorted(whole, key=lambda r: began[r])]
    return (*stored, mean(now))


def _tool_times(comparison: Comparison) -> tuple[ToolTime, ...]:
    """Return calls and time per tool over the candidate's measured trials.

    Without a criterion about time only of the turns in which the agent times its tools: no others' calls are kept.
    """
    asked = any(criterion.scale is Scale.SECONDS for criterion in comparison.criteria)
    trials = (trial for group in comparison.candidate.values() for trial in group if trial.error is None)
    turns = (turn for trial in trials for turn in trial.invocations)
    return tuple(tool_times(t for t in turns if asked or any(call.duration is not None for call in t.tool_calls)))
