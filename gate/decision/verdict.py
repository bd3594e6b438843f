"""Assembles a decided suite: the table for the rules, their verdict, and the facts that reports show with it."""

from __future__ import annotations

from msgspec.structs import replace

from gate.decision.cases import case_results
from gate.decision.changes import changes
from gate.decision.comparison import Comparison
from gate.decision.course import course, replayed_share, tool_times_of
from gate.decision.crashes import crash_facts, is_of_provider, proven, unconfirmed
from gate.decision.outages import counted_as_failed, excused, lost_ids, lost_to_infrastructure, unscored_ids
from gate.decision.rows import rows_of
from gate.decision.rules import Table, below, if_accepted, judge, loss, missed_threshold
from gate.decision.sequential import outcome_without_runs
from gate.decision.tags import by_group, where
from gate.decision.warnings import drop_found, warnings
from gate.model import CaseResult, Outcome, SuiteResult, Verdict
from gate.model.finding import Finding


def table_of(comparison: Comparison, outcome: Outcome | None, *, can_run: bool, with_cases: bool = True) -> Table:
    """Return the table for the rules; ``outcome``: the result of the sequential test on this comparison.

    It settles how agent failures count: as misses. If a block would rest on them and reruns do not confirm them, the
    suite is judged without them: if they look like the provider's, the later answers count; else the suite could not be
    measured.
    """
    table = _plain_table(comparison, outcome, with_cases=with_cases)
    if comparison.has_failures and comparison.settings.confirm_after is not None:
        if _blocks(table):
            table = _without_unconfirmed_failures(table, can_run=can_run, with_cases=with_cases)
        else:
            table = _with_proof_by_failures(table)
    return replace(table, lost=_lost_that_decide(table, can_run=can_run))


def _plain_table(comparison: Comparison, outcome: Outcome | None, *, with_cases: bool = False) -> Table:
    cases: tuple[CaseResult, ...] = ()
    if with_cases:
        cases = case_results(comparison, outcome)
    return Table(comparison, outcome, rows_of(comparison, outcome), cases)


def _with_proof_by_failures(table: Table) -> Table:
    """Return the table with a loss of the pass rate if recurring agent failures alone prove one."""
    proof = proven(table.comparison)
    if proof is None:
        return table
    rate, *others = table.rows
    warnings = [finding for finding in rate.findings if finding.is_warning]
    rate = replace(rate, verdict=Verdict.REGRESSED, findings=(proof, *warnings))
    return replace(table, rows=(rate, *others))


def _without_unconfirmed_failures(table: Table, *, can_run: bool, with_cases: bool) -> Table:
    """Return a table that blocks, with agent failures counted only as far as they are confirmed."""
    comparison = table.comparison
    why = unconfirmed(comparison)
    if why is None:
        return table
    answered = excused(comparison)
    without = _plain_table(answered, outcome_without_runs(answered, can_run=can_run), with_cases=with_cases)
    if _blocks(without):  # it does not rest on them, though a loss may where a threshold is missed anyway
        if loss(table) is not None and loss(without) is None:
            return without
        return table
    if is_of_provider(comparison, why):
        return without
    rows = []
    for row, other in zip(table.rows, without.rows, strict=True):
        if row.verdict in (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD):
            rows.append(other)  # a row that fails because of them would contradict the verdict
        else:
            rows.append(row)
    return replace(table, rows=tuple(rows), not_confirmed=why)


def _blocks(table: Table) -> bool:
    """True if a loss is proven or a threshold is missed."""
    return loss(table) is not None or missed_threshold(table) is not None


def _lost_that_decide(table: Table, *, can_run: bool) -> Finding | None:
    """Return the trials that could not be measured, if they would change the verdict as failures."""
    comparison = table.comparison
    unmeasured, unscored = lost_ids(comparison), unscored_ids(comparison)
    if not unmeasured and not unscored:
        return None
    verdict = judge(table).verdict
    if verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE):
        return None
    worse = counted_as_failed(comparison, unmeasured | unscored)
    outcome = outcome_without_runs(worse, can_run=can_run)
    turned = judge(replace(table, comparison=worse, outcome=outcome, rows=rows_of(worse, outcome))).verdict
    if turned is verdict or turned in (Verdict.PASS, Verdict.ERROR):
        return None
    without_score = sum([id(trial) in unscored for trial in comparison.own])
    return Finding.of("trials_lost", lost=len(unmeasured), of=len(comparison.own), unscored=without_score, decide=True)


def result_of_table(table: Table) -> SuiteResult:
    """Return the decided suite, with the facts that change no verdict."""
    cause = judge(table)
    comparison = table.comparison
    finds = None
    if cause.verdict is Verdict.PASS and table.outcome is not None:
        finds = drop_found(comparison)
    groups, further = by_group(comparison, table.cases)
    return SuiteResult(
        suite_id=comparison.suite_id,
        verdict=cause.verdict,
        cause=cause,
        criteria=table.rows,
        cases=table.cases,
        has_baseline=bool(comparison.stored),
        crashes=crash_facts(comparison),
        outcome=table.outcome,
        if_accepted=if_accepted(table),
        below=below(table),
        seed=comparison.seed,
        finds=finds,
        course=course(comparison),
        changes=changes(comparison, table.cases),
        warnings=warnings(comparison, cause),
        agent_runs=len(comparison.trials),
        errors=len(lost_to_infrastructure(comparison.trials)),
        retried=sum([trial.attempts - 1 for trial in comparison.trials]),
        tools=tool_times_of(comparison),
        groups=groups,
        further_groups=further,
        replayed=replayed_share(comparison),
        concentrated=where(comparison, table.rows, cause),
    )
