"""Scores the trials of a kept record again with the current criteria and judge; runs no agent.

So a baseline can follow an upgrade of its judge: the recorded conversations are scored again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from gate.baselines.pairing import Match, match_cases
from gate.config.load import Config
from gate.config.resolve import Plan, make_plans
from gate.errors import MeasureError
from gate.model import Trial
from gate.pipeline.budget import RunBudget, judge_budget
from gate.pipeline.journal import redactor_of
from gate.pipeline.judge_stored import plan_named, read_whole
from gate.pipeline.trials import TrialRunner
from gate.pipeline.verdict import own_terms
from gate.records import Header, Record, redacted, write_record
from gate.records.model import count as counted
from gate.reports.formatting import count
from gate.system.clock import now


async def rescore_record(path: Path, output: Path, config: Config, environment: Mapping[str, str]) -> str:
    """Writes the record at ``path``, scored anew, to ``output``; returns what was done in a line.

    Raises:
        MeasureError: a stored baseline, which keeps no messages; or no case of the record is in the suite as it was.
    """
    record = read_whole(path)
    if record.header.stripped:
        raise MeasureError(
            "a stored baseline keeps no messages, so it cannot be scored again",
            where=str(path),
            hint="name the record of the run itself: --record, .gate/records, or the artifact of its job",
        )
    plan = plan_named(record.header.suite_id, make_plans(config, environment), config)
    match = match_cases(plan.planned, record.header.plan)
    kept = [trial for trial in record.trials if trial.case_id in match.same]
    if not kept:
        what = "the suite has no case with the same content as in the record"
        raise MeasureError(what, where=str(path), hint="check out the suite that the record belongs to")
    started, budget = monotonic(), config.file.budget
    run_budget = RunBudget(budget, judge_budget(budget))
    async with TrialRunner(config, plan, environment, run_budget) as runner:
        trials = [trial async for trial in runner.score(_renamed(kept, match))]
        judge_cost = runner.judge_cost_usd
    redactor = redactor_of(environment)
    trials = sorted((redacted(t, redactor) for t in trials), key=lambda t: (t.round, t.case_id, t.side.value, t.number))
    footer = replace(
        counted(tuple(trials)),
        duration=monotonic() - started,
        judge_cost_usd=judge_cost,
        stopped=run_budget.stopped,
        terms=_terms(record, plan),
    )
    write_record(output, Record(_header(record.header, plan, match), tuple(trials), footer))
    left = len(record.trials) - len(kept)
    gone = f"; {count(left, 'trial')} of cases that changed or left the suite were left out" if left else ""
    return f"{output}: {count(len(trials), 'trial')} scored again{gone}"


async def _renamed(trials: Sequence[Trial], match: Match) -> AsyncIterator[Trial]:
    """The trials under the ids that their cases have now, without their scores."""
    for trial in trials:
        yield replace(trial, case_id=match.ids[trial.case_id], scores={})


def _header(header: Header, plan: Plan, match: Match) -> Header:
    """Of the same run; its plan holds the cases that were scored."""
    found = {match.ids[case_id] for case_id in match.same}
    cases = tuple(case for case in plan.planned if case.id in found)
    selected = header.selected or bool(plan.deselected)
    return replace(header, plan=cases, criteria=plan.criteria, selected=selected, created=now().timestamp())


def _terms(record: Record, plan: Plan) -> Mapping[str, object]:
    """The run's own, by the criteria of now; the schedule looked at other scores, so its looks no longer count."""
    own = own_terms(record)
    notes = (*own.notes, "scored again by other criteria or another judge than those of its run")
    return replace(own, criteria=plan.criteria, thresholds=None, scheduled=False, notes=notes, base=None).plain()
