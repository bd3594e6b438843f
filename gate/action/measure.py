"""Measures the checked-out commit or joins its shards, gives the verdict, and saves the default branch's record."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gate.action.acceptance import with_acceptance
from gate.action.base_commit import base_of
from gate.action.container import prepare, reachable, runner_address
from gate.action.reuse import record_name, take_up_earlier
from gate.action.step import RESULTS, USUAL, Step, StepOutcome, input_overrides, outcome_of, repeat_command, worse_code
from gate.agents.base import expand
from gate.agents.http import server_of
from gate.baselines.git import GitOptions
from gate.baselines.proofs import FILE, Proofs, joined, read
from gate.config.base_policy import BasePolicy, Rules, base_at, under_base_policy
from gate.config.load import Config
from gate.errors import ConfigError, ExitCode, GateError, MeasureError, UntrustedError
from gate.hosts.events import Mode
from gate.model import Result, Verdict
from gate.model.defaults import REMOTE
from gate.pipeline.flow import run_gate
from gate.pipeline.identity import changed_files
from gate.pipeline.progress import ProgressLines
from gate.pipeline.session import RunOptions
from gate.records import merge, read_record, write_record
from gate.reports.console import render as render_console
from gate.reports.files import Outputs
from gate.security import files
from gate.security.escape import console
from gate.stored.judging import decide_merged
from gate.stored.upkeep import carry_on, save_baseline
from gate.system.signals import run as run_coroutine

USUAL_STORE = {**USUAL, "baseline.branch": GitOptions().branch, "baseline.remote": REMOTE}
"""The store of the default branch's baselines, unless its configuration names another."""


def measure(step: Step) -> StepOutcome:
    """Measure the checked-out commit, or join the records of its shards, and compare."""
    overrides = input_overrides(step, step.source)
    commit = base_of(step.activity, step.git)
    if commit:
        overrides["baseline.against"] = commit
    earlier = _proofs_left(step)
    with ExitStack() as stack:  # the base commit's files, from which custom metrics are imported
        base = None
        if commit and step.activity.mode is Mode.RUN:
            base = stack.enter_context(base_at(commit, step.source, overrides, step.environment, USUAL))
        return _measure(step, overrides, base, earlier)


def _measure(step: Step, overrides: Mapping[str, Any], base: BasePolicy | None, earlier: Proofs) -> StepOutcome:
    """``base``: the rules of the commit that a change is measured against, read before any code of the change runs."""
    changed: tuple[str, ...] = ()
    if step.inputs["shards"]:
        environment, rules = step.environment, _rules(step, overrides, base)
        result = _of_shards(step, overrides, rules)
    else:
        changed = changed_files(step.source.load(overrides), step.git)  # before setup changes any
        environment, found = _set_up_agent(step, overrides)
        rules = _rules(step, {**overrides, **found}, base)
        origin, note = take_up_earlier(step, rules.config, overrides.get("baseline.against"))
        options = RunOptions(
            shard=step.inputs["shard"],
            command=repeat_command(step, overrides),
            rules=rules,
            changed=changed,
            origin=origin,
            same_head=step.environment.get("GITHUB_EVENT_NAME", "") == "pull_request" or step.stamp.attempt > 1,
            note=note,
            anchored=step.is_anchored,
            release=step.release,
            setup=step.inputs["setup"] or None,
            fills_baseline=step.is_anchored and not any(key.startswith("select.") for key in overrides),
        )
        result = run_coroutine(run_gate(rules.config, options, Outputs(), environment, ProgressLines(sys.stdout)))
    others = [name for name in rules.config.file.publish if name != "github"]
    if others:
        step.say(console(f"not published on {', '.join(others)}: the action publishes on GitHub alone"))
    result, remark = with_acceptance(step, rules.config, result, step.activity.pull_request)
    step.say(render_console(result, label=step.accept_label))
    number = step.activity.pull_request if step.activity.comments else None
    error = "; ".join(result.problems)
    outcome = outcome_of(result, rules.config, error=error, pull_request=number, remark=remark)
    if step.inputs["shard"] != (1, 1):  # no verdict: it fails only if it could not measure, and writes no comment
        code = 0 if outcome.exit_code == ExitCode.FAILED else outcome.exit_code
        return replace(outcome, exit_code=code, pull_request=None)
    if step.activity.mode in (Mode.RECORD, Mode.RELEASE) and result.verdict is not Verdict.ERROR:
        saved = _save_as_baseline(step, rules.config, environment, outcome, changed)
        return replace(saved, proofs=joined(filter(None, (earlier, saved.proofs))))
    return outcome


def _of_shards(step: Step, overrides: Mapping[str, Any], rules: Rules) -> Result:
    _, note = take_up_earlier(step, rules.config, overrides.get("baseline.against"))
    return decide_merged(
        _join_shards(step),
        rules.config,
        step.environment,
        Outputs(),
        repeat_command(step, overrides),
        rules,
        anchored=step.is_anchored,
        release=step.release,
        note=note,
        selected_here=True,
    )


def _rules(step: Step, overrides: Mapping[str, Any], base: BasePolicy | None) -> Rules:
    """Return the configuration, under the rules of its base if it has one."""
    if base is None:
        return Rules(step.source.load(overrides))
    if base.is_absent:  # only a stored baseline can then show the rules by which the suite was judged before
        overrides = {**overrides, **USUAL_STORE}
    return under_base_policy(step.source, overrides, base)


def _has_environment(config: Config) -> bool:
    """True if the agent's configured interpreter exists: a checkout does not contain a local virtual environment."""
    executable = getattr(config.agent, "executable", None)
    return executable is not None and (config.root / Path(executable).expanduser()).exists()


def _set_up_agent(step: Step, overrides: Mapping[str, Any]) -> tuple[Mapping[str, str], dict[str, Any]]:
    """Run ``setup``, and find an agent that listens on the runner's ``localhost``.

    Returns:
        The environment to run in, and the findings about the agent, as overrides of the configuration. They count as
        the agent's settings, so they name no place that differs between runners.
    """
    environment, config = step.environment, step.source.load(overrides)
    found: dict[str, Any] = {}
    command = step.inputs["setup"] or config.file.setup
    if command:
        cache = step.workspace.resolve() / step.inputs["setup_cache"]
        environment = prepare(command, root=config.root, cache=cache, environment=environment, say=step.say)
        if config.agent_kind == "python" and not _has_environment(config):
            found["agent.executable"] = os.path.relpath(environment["VIRTUAL_ENV"], config.root.resolve())
    server = server_of(config.agent, config.agent_kind)
    if server is not None:
        url = expand(server.url, environment, where=f"agent.{config.agent_kind}.url")
        gateway = runner_address(step.workspace)
        found[f"agent.{config.agent_kind}.url"] = reachable(url, gateway)
        found |= _further_addresses(config, environment, gateway)
    return environment, found


def _further_addresses(config: Config, environment: Mapping[str, str], gateway: str | None) -> dict[str, Any]:
    """Return the addresses of the base commit's agent and of the version endpoint, as reached from the container.

    An address that does not answer is left unchanged: the code that uses it reports the error.
    """
    found: dict[str, Any] = {}
    base, version = config.agent.base, config.agent.version
    with suppress(ConfigError):
        if base is not None:
            url = reachable(expand(base.url, environment, where="agent.base.url"), gateway)
            found["agent.base"] = {**base.model_dump(exclude_unset=True), "url": url}
    with suppress(ConfigError):
        if version is not None and version.url is not None:
            url = reachable(expand(version.url, environment, where="agent.version.url"), gateway)
            found["agent.version"] = {"header": version.header, "url": url}
    return found


def _join_shards(step: Step) -> Path:
    """Join the shards' records. Return the path of the joined record."""
    folder = step.workspace / step.inputs["shards"]
    if folder.resolve() in step.workspace.resolve().parents:  # else `shards: /` would search the whole machine
        raise ConfigError("it is not a folder of shard records: the workspace is in it", where="with: shards")
    try:
        paths = files.plain(sorted(folder.rglob("*.jsonl")))
    except OSError as error:
        raise MeasureError(f"it cannot be searched: {error.strerror}", where=str(folder)) from None
    if not paths:
        raise MeasureError("no shard records found", where=str(folder), hint="download the artifacts of all shards")
    whole = merge([read_record(path) for path in paths])
    path = step.workspace / RESULTS / record_name(whole.header.suite_id)
    write_record(path, whole)
    return path


# --- the baseline job -----------------------------------------------------------------------------


def _proofs_left(step: Step) -> Proofs:
    """Return the proofs that an earlier step of this job left: both steps share one artifact.

    They are read before any code of the commit runs, which might write some. A commit that brings some is refused.
    """
    paths = files.plain([step.workspace / RESULTS / FILE])
    try:
        return joined(read(path.read_bytes(), str(path)) for path in paths)
    except (OSError, UntrustedError):
        return Proofs()


def _save_as_baseline(
    step: Step, config: Config, environment: Mapping[str, str], outcome: StepOutcome, changed: Sequence[str]
) -> StepOutcome:
    """Save the records as the commit's baseline. A failure sets the exit code unless that is already worse."""
    result = outcome.result
    assert result is not None, "there is a record to save"
    proofs: list[Proofs] = []
    try:
        for suite, path in zip(result.suites, result.record_paths, strict=True):
            accepted = (suite.accepted, f"the label {step.inputs['accept_label']}") if suite.accepted else None
            said = save_baseline(
                config, Path(path), environment, release=step.release, accepted=accepted, proofs=proofs
            )
            for line in said.splitlines():
                step.say(console(line, 2_000))
    except GateError as error:
        code = worse_code(outcome.exit_code, error.exit_code)
        said = "; ".join(filter(None, (outcome.error, str(error))))
        if changed:
            more = ", …" if len(changed) > 3 else ""
            said += f"; changed: {', '.join(changed[:3])}{more}"
        return replace(outcome, exit_code=code, error=said, proofs=_carried_on(step, config, environment, proofs))
    return replace(outcome, proofs=_carried_on(step, config, environment, proofs))


def _carried_on(step: Step, config: Config, environment: Mapping[str, str], own: Sequence[Proofs]) -> Proofs | None:
    """Return the proofs for later jobs: of this job's records, and of other stored records found proven."""
    try:
        carried, problems = carry_on(config, environment, own)
    except GateError as error:
        carried, problems = joined(own), (str(error),)
    for problem in problems:
        step.say(console(f"earlier proofs of baselines are not carried on: {problem}", 2_000))
    return carried
