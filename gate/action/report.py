"""Reports on a fork's pull request: judges the records of an untrusted run by the base branch's rules."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from gate.action.acceptance import with_acceptance
from gate.action.base_commit import branch_tip, fork_point, measured_base
from gate.action.reuse import records_of
from gate.action.step import Step, StepOutcome, input_overrides, outcome_of, repeat_command
from gate.config.base_policy import path_at
from gate.config.load import Config, read_config
from gate.errors import MeasureError
from gate.hosts.github import PullRequest
from gate.records import Record
from gate.reports.console import render as render_console
from gate.stored.judging import judge_records, suite_ids


def report(step: Step) -> StepOutcome:
    """Judge the raw scores of an untrusted run by the rules and cases of the base branch."""
    run = step.activity.run
    assert run is not None, "REPORT names the run"
    if run.unmeasured:
        return StepOutcome(0, note=f"nothing to report of run {run.id}: {run.unmeasured}")
    pull = step.github.pull_request_of(run)
    if pull is None:
        return StepOutcome(0, note=f"nothing to report: no open pull request has the head {run.head[:12]} any more")
    fork = fork_point(step.git, pull.head, pull.base_branch)  # fetches the fork's history; checks nothing out
    tip = branch_tip(step.git, pull.base_branch)
    with path_at(tip, step.config_path, step.environment) as path:
        return _judge(step, pull, path, fork, tip)


def _judge(step: Step, pull: PullRequest, path: Path, fork: str | None, tip: str) -> StepOutcome:
    """Return the verdict by the configuration at ``path``, which is that of the base branch's ``tip``."""
    source = read_config(path)
    overrides = input_overrides(step, source)
    left = _untrusted(step, source.load(overrides))
    base = measured_base(step.git, [record.header.base_commit for record in left], fork, tip)
    overrides |= {"baseline.against": base} if base else {}
    config = source.load(overrides)
    records = [replace(record, header=replace(record.header, commit=pull.head)) for record in left]
    result = judge_records(records, config, step.environment, command=repeat_command(step, overrides, pull.number))
    result, remark = with_acceptance(step, config, result, pull.number)
    step.say(render_console(result, label=step.accept_label))
    return outcome_of(result, config, pull_request=pull.number, remark=remark, onto=pull.base_branch)


def _untrusted(step: Step, config: Config) -> list[Record]:
    """Return the records of the configured suites, from the artifact of the untrusted run."""
    run = step.activity.run
    assert run is not None, "REPORT names the run"
    archive = step.github.artifact(run, step.inputs["artifact"])
    found = records_of(archive, run, suite_ids(config, step.environment))
    for record in found:
        if record.footer is None:  # judged, it would look as if the run had measured everything
            what = f"it did not finish measuring {record.header.suite_id!r}; its log has the reason"
            raise MeasureError(what, where=f"run {run.id}")
    return found
