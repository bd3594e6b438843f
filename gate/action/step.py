"""The container's entrypoint: inputs and event → the command line's own calls, then publishing. Decides nothing."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from shlex import join
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from gate.action.base_commit import base_of, branch_tip, fork_point
from gate.action.container import ROUTES, gateway_of, give_back, prepare, reachable
from gate.action.inputs import INPUTS, is_input, overrides_of, read_inputs
from gate.action.reuse import Carrier, record_name, records_of
from gate.action.runner import SUMMARY_BYTES, Runner, WorkflowCommandGuard, annotations_of
from gate.action.sealing import seal
from gate.agents.base import expand
from gate.agents.http import Server
from gate.baselines.tags import is_candidate
from gate.config.base_policy import Base, Rules, base_at, hold, path_at
from gate.config.load import Config, ConfigFile, read_config
from gate.config.resolve import read_suites
from gate.config.settings import now as utc_now
from gate.config.settings import settings_of
from gate.errors import EXIT_PRECEDENCE, Cancelled, ConfigError, ExitCode, GateError, MeasureError, PublishError
from gate.hosts.base import (
    Annotate,
    Annotation,
    CopyFile,
    Effect,
    PostComment,
    PostFailure,
    Publication,
    SetOutputs,
    Stamp,
    WriteFile,
    WriteSummary,
    publish,
)
from gate.hosts.events import Activity, Facts, Mode, activity
from gate.hosts.github import Acceptance, GitHub, PullRequest, PullRequestHost
from gate.hosts.rest import Rest, RestError
from gate.model import Result, Verdict, acceptable
from gate.pipeline.flow import LOCAL_KINDS, RunOptions, run_gate
from gate.pipeline.keeping import save_baseline
from gate.pipeline.progress import Lines
from gate.pipeline.reference import REPORTS, changes
from gate.pipeline.stored import decide_merged, judge_records, suite_ids
from gate.pipeline.verdict import conclude
from gate.records import Record, merge, read_record, write_record
from gate.reports import load_report
from gate.reports.console import render as render_console
from gate.reports.files import Outputs
from gate.reports.markdown import Place, render_suite, render_unmeasured
from gate.reports.markdown import render as render_markdown
from gate.security import files
from gate.security.environment import TOKEN
from gate.security.escape import console, markdown
from gate.system.git import SEALED, Git, encode_sealed, token_header, with_header
from gate.system.signals import run as run_coroutine

RESULTS = Path(REPORTS)
"""Folder of reports and records in the workspace; not hidden, because uploads leave hidden files out."""
REPORT_FILES = {"junit": "junit.xml", "html": "report.html", "json": "report.json", "markdown": "report.md"}
OUTPUTS = (
    "verdict",
    "exit_code",
    "regressions",
    "baseline_sha",
    "baseline_distance",
    "junit_path",
    "report_path",
    "comment_url",
    "cost_usd",
)
"""Every output of the action; ``action.yml`` and the guide are held to it."""
USUAL_STORE = {"baseline.store": "git", "baseline.branch": "gate-baselines", "baseline.remote": "origin"}
"""Where the default branch keeps its baselines unless its configuration says otherwise."""
SUMMARY_CHARS = SUMMARY_BYTES // 4 - 1_000
"""A character is at most four bytes."""
Say = Callable[[str], None]


# --- one step -------------------------------------------------------------------------------------


class Step(Struct, frozen=True, dict=True):
    """What the runner says of this step. ``api`` and ``say`` are its only ways out."""

    environment: Mapping[str, str]
    inputs: Mapping[str, Any]
    activity: Activity
    workspace: Path
    github: GitHub
    say: Say

    @property
    def config_path(self) -> Path:
        path: str = self.inputs["config"]
        return self.workspace / path

    @cached_property
    def source(self) -> ConfigFile:
        """The configuration as it was when it was first asked for: what ``setup`` writes over it counts for nothing."""
        return read_config(self.config_path)

    @property
    def git(self) -> Git:
        """The repository of the configuration, which need not be checked out at the workspace's top."""
        folder = self.config_path.parent
        return Git(folder if folder.is_dir() else self.workspace, environment=self.environment)

    @property
    def is_anchored(self) -> bool:
        """Whether what is measured is to be no worse than the anchor: the default branch, and releases."""
        return self.activity.mode in (Mode.RECORD, Mode.RELEASE)

    @property
    def release(self) -> str:
        """The tag that is to be released; not that of a candidate, which is no yardstick for what follows."""
        tag = self.activity.tag or ""
        return "" if is_candidate(tag) else tag

    @property
    def summary_url(self) -> str:
        server, repository, run = (
            self.environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")
        )
        return f"{server}/{repository}/actions/runs/{run}"

    @property
    def stamp(self) -> Stamp:
        """Of the run that measured, so that a report that comes late does not hide a newer one."""
        run = self.activity.run
        head = self.activity.head or ""
        if run is not None:
            return Stamp(run.id, run.attempt, head)
        return Stamp(int(self.environment["GITHUB_RUN_ID"]), int(self.environment["GITHUB_RUN_ATTEMPT"]), head)


class Outcome(Struct, frozen=True):
    """What came of the step, before anything of it is published."""

    exit_code: int
    result: Result | None = None
    error: str = ""
    """Why there is no result, or what went wrong beside it."""
    warning: str = ""
    """What to mind of a result that stands."""
    pull_request: int | None = None
    note: str = ""
    """Why there is nothing to publish, where that is as it should be."""


def main(environment: Mapping[str, str]) -> NoReturn:
    """Carries out one step of a job. No traceback reaches the log unless the run was started with debug logging."""
    raise SystemExit(act(environment, _say))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def act(environment: Mapping[str, str], say: Say) -> int:
    """Measures or reports, publishes, and returns the exit code."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or Path.cwd())
    runner = Runner(say, _path(environment, "GITHUB_OUTPUT"), _path(environment, "GITHUB_STEP_SUMMARY"))
    silence = WorkflowCommandGuard()
    say(silence.begin)  # whatever the agent or its setup prints from here on, the runner obeys none of it
    sealed = TemporaryDirectory(prefix="gate-git-", ignore_cleanup_errors=True)
    try:
        step, outcome = _carry_out(environment, workspace, say, Path(sealed.name))
    finally:
        _empty(environment)
        say(silence.end)
    try:
        return _publish(step, outcome, runner)
    except Exception as error:  # noqa: BLE001  (the verdict stands, whatever is wrong with showing it)
        _trace(environment)
        said = f"unexpected {type(error).__name__} while publishing: {error}"
        publish([Annotate((Annotation("error", "Agent Gate", said),))], runner)
        return outcome.exit_code or int(ExitCode.PUBLISH)
    finally:
        sealed.cleanup()
        give_back(workspace)
        if step is not None:
            step.github.close()


def _empty(environment: Mapping[str, str]) -> None:
    """Takes back what agent or setup wrote to the files by which the runner lets a step set things for later ones."""
    for name in ("GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        path = _path(environment, name)
        with suppress(OSError):
            if path is not None and path.exists():
                path.write_bytes(b"")


def _path(environment: Mapping[str, str], name: str) -> Path | None:
    return Path(environment[name]) if environment.get(name) else None


def _carry_out(environment: Mapping[str, str], workspace: Path, say: Say, sealed: Path) -> tuple[Step | None, Outcome]:
    step: Step | None = None
    try:
        step = _step(environment, workspace, say)
        step = _sealed(step, sealed)
        _check_results(workspace)
        outcome = _MODES[step.activity.mode](step)
        _check_results(workspace)  # once more: setup and agent may have put a link there
        return step, outcome
    except GateError as error:
        _trace(environment)
        return step, Outcome(int(error.exit_code), error=str(error))
    except Cancelled as error:
        return step, Outcome(error.exit_code, error="stopped; what was measured is in the record")
    except Exception as error:  # noqa: BLE001  (the one place: whatever it was, nothing was measured)
        _trace(environment)
        said = f"unexpected {type(error).__name__}: {error} (re-run with debug logging for the traceback)"
        return step, Outcome(int(ExitCode.NOT_MEASURED), error=said)


def _check_results(workspace: Path) -> None:
    """That results will be where they belong, and overwrite nothing elsewhere."""
    folder = workspace / RESULTS
    try:
        for path in (folder, folder / ".gitignore", *(folder / name for name in REPORT_FILES.values())):
            files.check(path)
    except files.LinkError as error:
        raise ConfigError(str(error.strerror), where=RESULTS.name) from None


def _trace(environment: Mapping[str, str]) -> None:
    if environment.get("RUNNER_DEBUG") == "1":
        traceback.print_exc(file=sys.stdout)


def _step(environment: Mapping[str, str], workspace: Path, say: Say) -> Step:
    inputs = read_inputs(environment)
    event = environment.get("GITHUB_EVENT_NAME", "")
    facts = Facts(environment.get("GITHUB_REF", ""), environment.get("GITHUB_SHA", ""))
    found = activity(event, _payload(environment), facts)
    say(f"{event}: {found.mode.value}, {console(found.reason)}")
    headers = {
        "Authorization": f"Bearer {inputs['token']}",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }
    rest = Rest(environment.get("GITHUB_API_URL", "https://api.github.com"), headers, environment=environment)
    graphql = environment.get("GITHUB_GRAPHQL_URL", "https://api.github.com/graphql")
    github = GitHub(rest, environment.get("GITHUB_REPOSITORY", ""), graphql_url=graphql)
    return Step(_environment(environment, inputs["token"]), inputs, found, workspace, github, say)


def _environment(environment: Mapping[str, str], token: str) -> dict[str, str]:
    """What the gate sees. Git and the stores sign in with the token, so the checkout need not leave one in its files.

    It has a name that is handed to nobody else; a ``GITHUB_TOKEN`` is one that the workflow has set.
    """
    seen = {name: value for name, value in environment.items() if not is_input(name)}
    return {**seen, TOKEN: token} if token else seen


def _sealed(step: Step, folder: Path) -> Step:
    """The step with its repository as it is now: whatever ``setup`` and the agent write to it, git reads none of it."""
    token, git = step.inputs["token"], step.git
    if token:
        server = step.environment.get("GITHUB_SERVER_URL", "https://github.com")
        git = Git(git.root, environment=with_header(step.environment, server, token_header(token)))
    return replace(step, environment={**step.environment, SEALED: encode_sealed(seal(git, folder))})


def _payload(environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        payload = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"the event cannot be read: {error}", where=path or "GITHUB_EVENT_PATH") from None
    if not isinstance(payload, dict):
        raise ConfigError("the event is not an object", where=path)
    return payload


# --- modes ----------------------------------------------------------------------------------------


def _refuse(step: Step) -> Outcome:
    raise ConfigError(step.activity.reason, where="event", hint=step.activity.hint)


def _run(step: Step) -> Outcome:
    """Measures the checked-out commit, or joins what shards measured of it, and compares."""
    with ExitStack() as stack:
        return _measure(step, _overrides(step), stack)


def _measure(step: Step, overrides: Mapping[str, Any], stack: ExitStack) -> Outcome:
    changed: tuple[str, ...] = ()
    base = _base(step, overrides, stack)
    if step.inputs["shards"]:
        environment, rules = step.environment, _rules(step, overrides, base)
        command = _command(step, overrides)
        result = decide_merged(
            _joined(step),
            rules.config,
            environment,
            Outputs(),
            command,
            rules,
            anchored=step.is_anchored,
            release=step.release,
        )
    else:
        changed = changes(step.source.load(overrides), step.git)  # of the user's, before setup adds to it
        environment, found = _ready(step, overrides)
        rules = _rules(step, {**overrides, **found}, base)
        origin, note = _carried_over(step, rules.config, overrides.get("baseline.against"))
        command = _command(step, overrides)
        shard = step.inputs["shard"]
        options = RunOptions(
            shard=shard,
            command=command,
            rules=rules,
            changed=changed,
            origin=origin,
            note=note,
            anchored=step.is_anchored,
            release=step.release,
        )
        result = run_coroutine(run_gate(rules.config, options, Outputs(), environment, Lines(sys.stdout)))
    result = _accepted(step, rules.config, result, step.activity.pull_request)
    step.say(render_console(result))
    number = step.activity.pull_request if step.activity.comments else None
    outcome = Outcome(int(result.exit_code), result, pull_request=number)
    if step.inputs["shard"] != (1, 1):
        return _part(outcome)
    if step.activity.mode in (Mode.RECORD, Mode.RELEASE) and result.verdict is not Verdict.ERROR:
        return _saved(step, rules.config, environment, outcome, changed)
    return outcome


def _report(step: Step) -> Outcome:
    """Judges what an untrusted run measured: its raw scores, under the rules and cases of the base branch."""
    run = step.activity.run
    assert run is not None, "REPORT names the run"
    pull = step.github.pull_request_of(run)
    if pull is None:
        return Outcome(0, note=f"nothing to report: no open pull request has the head {run.head[:12]} any more")
    base = fork_point(step.git, pull.head, pull.base_branch)  # fetches history; nothing of it is checked out
    tip = branch_tip(step.git, pull.base_branch)
    with path_at(tip, step.config_path, step.environment) as path:
        return _judge(step, pull, path, {"baseline.against": base} if base else {})


def _judge(step: Step, pull: PullRequest, path: Path, overrides: Mapping[str, Any]) -> Outcome:
    """The verdict by the configuration at ``path``."""
    source = read_config(path)
    overrides = {**_store(source, overrides_of(step.inputs)), **overrides}
    config = source.load(overrides)
    records = [replace(record, header=replace(record.header, commit=pull.head)) for record in _untrusted(step, config)]
    result = judge_records(records, config, step.environment, command=_command(step, overrides, pull.number))
    result = _accepted(step, config, result, pull.number)
    step.say(render_console(result))
    return Outcome(int(result.exit_code), result, pull_request=pull.number)


_MODES: dict[Mode, Callable[[Step], Outcome]] = {
    Mode.RUN: _run,
    Mode.RECORD: _run,
    Mode.RELEASE: _run,
    Mode.REPORT: _report,
    Mode.REFUSED: _refuse,
}


def _overrides(step: Step) -> dict[str, Any]:
    """Inputs and event as keys of the configuration."""
    overrides = _store(step.source, overrides_of(step.inputs))
    base = base_of(step.activity, step.git)
    return overrides | ({"baseline.against": base} if base else {})


def _store(source: ConfigFile, overrides: dict[str, Any]) -> dict[str, Any]:
    """A runner's disk is gone after the job: baselines are kept in git unless the configuration says where."""
    stated = source.load(overrides).file.baseline.model_fields_set
    return overrides if "store" in stated else overrides | {"baseline.store": "git"}


def _base(step: Step, overrides: Mapping[str, Any], stack: ExitStack) -> Base | None:
    """The rules of the commit that a change is measured against, read before anything of the change runs.

    None where it is no change that is still to be merged. Checks are imported from files that stay with ``stack``.
    """
    base = overrides.get("baseline.against")
    if base is None or step.activity.mode is not Mode.RUN:
        return None
    return stack.enter_context(base_at(base, step.source, overrides, step.environment))


def _rules(step: Step, overrides: Mapping[str, Any], base: Base | None) -> Rules:
    """The configuration, under the rules of its base where it has one."""
    if base is None:
        return Rules(step.source.load(overrides))
    if base.is_absent:  # then nothing but a stored baseline tells that the suite was judged by other rules before
        overrides = {**overrides, **USUAL_STORE}
    return hold(step.source, overrides, base)


def _ready(step: Step, overrides: Mapping[str, Any]) -> tuple[Mapping[str, str], dict[str, Any]]:
    """Installs the agent where ``setup`` says so, and finds the one that listens on ``localhost``.

    Returns the environment to run in, and what was found out of the agent as overrides.
    """
    environment, config = step.environment, step.source.load(overrides)
    found: dict[str, Any] = {}
    command = step.inputs["setup"] or config.file.setup
    if command:
        cache = step.workspace / step.inputs["setup_cache"]
        environment = prepare(command, root=config.root, cache=cache, environment=environment, say=step.say)
        if config.agent_kind == "python" and "executable" not in config.agent.model_fields_set:
            found["agent.executable"] = f"{environment['VIRTUAL_ENV']}/bin/python"
    server = getattr(config.agent, config.agent_kind, None)
    if isinstance(server, Server):
        url = expand(server.url, environment, where=f"agent.{config.agent_kind}.url")
        found[f"agent.{config.agent_kind}.url"] = reachable(url, gateway_of(ROUTES.read_text(encoding="ascii")))
    return environment, found


def _carried_over(step: Step, config: Config, base: str | None) -> tuple[str, str]:
    """Whose record this run takes up, and what a reader should know where it measures what was measured before."""
    if config.agent_kind not in LOCAL_KINDS:  # whether it is the same agent could not be known
        return "", ""
    inputs = step.inputs
    carrier = Carrier(step.github, step.git, config, step.environment, inputs["artifact"], inputs["shard"], base)
    origin = ""
    try:
        origin = carrier.carry_over(step.activity, lambda line: step.say(console(line)))
    except GateError as error:  # it never stands in the way of measuring
        refused = isinstance(error, RestError) and error.status in (403, 404)
        hint = "; the job needs `permissions: {actions: read}`" if refused else ""
        step.say(f"measured afresh, for what an earlier job measured cannot be taken up: {console(str(error))}{hint}")
    attempt = step.environment.get("GITHUB_RUN_ATTEMPT", "1")
    afresh = f"attempt {attempt} measures afresh: no record of an earlier attempt was found to continue"
    return origin, afresh if attempt != "1" and not origin else ""


def _joined(step: Step) -> Path:
    """Where the one record of all shards is."""
    folder = step.workspace / step.inputs["shards"]
    paths = sorted(folder.rglob("*.jsonl"))
    if not paths:
        raise MeasureError("there is no record to join", where=str(folder), hint="download the artifacts of all shards")
    whole = merge([read_record(path, error=MeasureError) for path in paths])
    path = step.workspace / RESULTS / record_name(whole.header.suite_id)
    write_record(path, whole)
    return path


def _untrusted(step: Step, config: Config) -> list[Record]:
    """The records of the configured suites out of the archive that the untrusted run left."""
    run = step.activity.run
    assert run is not None, "REPORT names the run"
    archive = step.github.artifact(run, step.inputs["artifact"])
    return records_of(archive, run, suite_ids(config, step.environment), complete=True)


def _command(step: Step, overrides: Mapping[str, Any], pull_request: int | None = None) -> str:
    """The commands that do the same on a reviewer's machine: fetch, then run."""
    words = ["gate", "run"]
    if step.inputs["config"] != INPUTS["config"].default:
        words += ["--config", step.inputs["config"]]
    for tag in step.inputs["tags"]:
        words += ["--tag", tag]
    if step.inputs["trials"]:
        words += ["--trials", str(step.inputs["trials"])]
    for key, option in (("baseline.against", "--against"), ("baseline.store", "--store")):
        words += [option, overrides[key]] if key in overrides else []
    words += ["--release", step.release] if step.release else []
    return f"{_checkout(step, overrides.get('baseline.against'), pull_request)}\n{join(words)}"


def _checkout(step: Step, base: str | None, pull_request: int | None) -> str:
    """Brings the commit and the one that it is measured against to a reviewer's clone."""
    found, known = step.activity, [base] if base else []
    number = pull_request or (found.pull_request if found.comments else None)
    if number is not None:
        return " && ".join([f"gh pr checkout {number}", *(join(["git", "fetch", "origin", ref]) for ref in known)])
    head = found.head or ""
    return f"{join(['git', 'fetch', 'origin', *dict.fromkeys([head, *known])])} && {join(['git', 'checkout', head])}"


def _accepted(step: Step, config: Config, result: Result, number: int | None) -> Result:
    """The result with its regressions and doubts accepted, where someone who may has set the label for it."""
    if not any(suite.verdict in acceptable(suite) for suite in result.suites):
        return result
    found = acceptance_of(step, number)
    if found is None:
        return result
    by = f"{found.by} at {found.at.isoformat()}"
    suites = [replace(s, accepted=by) if s.verdict in acceptable(s) else s for s in result.suites]
    settings, paths = settings_of(config, utc_now()), [Path(path) for path in result.record_paths]
    return conclude(suites, settings, command=result.command, record_paths=paths)


def acceptance_of(step: Step, number: int | None) -> Acceptance | None:
    """Who accepted what was measured, and when: by the label on the pull request of this number, or on the one that
    became the commit. None where nobody did, or where the label does not count, which is said.
    """
    label, activity = step.inputs["accept_label"], step.activity
    if not label:
        return None
    try:
        if number is None and activity.mode is Mode.RECORD:
            merged = step.github.merged_pull_request(activity.head or "")
            number = merged.number if merged else None
        found = step.github.acceptance(number, label, activity.labelled, activity.head or "") if number else None
    except PublishError as error:
        step.say(f"the label {label} cannot be looked up: {console(str(error))}")
        return None
    ignored = found.ignored if found is not None else ""
    if found is not None and not ignored and not _is_of_head(step):
        ignored = "what is checked out is neither the pull request's head nor its merge"
    if ignored:
        step.say(f"the label {label} is ignored: {ignored}")
        return None
    return found


def _is_of_head(step: Step) -> bool:
    """Whether what was measured is the head that the event names, or the merge that GitHub makes of it.

    A workflow may check out a branch, which may have moved on since the event.
    """
    if step.activity.mode is not Mode.RUN or not step.activity.comments:
        return True
    head = step.git.head()
    return head is not None and step.activity.head in (head, *step.git.parents(head)[1:])


def _part(outcome: Outcome) -> Outcome:
    """A shard's verdict is not the suite's: only what kept it from measuring ends its job, and nothing is commented."""
    code = 0 if outcome.exit_code == ExitCode.FAILED else outcome.exit_code
    return replace(outcome, exit_code=code, pull_request=None)


def _saved(
    step: Step, config: Config, environment: Mapping[str, str], outcome: Outcome, changed: Sequence[str]
) -> Outcome:
    """Saves the records as the commit's baseline; a failure is the exit code where nothing worse is."""
    result = outcome.result
    assert result is not None, "there is a record to save"
    try:
        for suite, path in zip(result.suites, result.record_paths, strict=True):
            accepted = (suite.accepted, f"the label {step.inputs['accept_label']}") if suite.accepted else None
            said = save_baseline(config, Path(path), environment, release=step.release, accepted=accepted)
            for line in said.splitlines():
                step.say(console(line, 2_000))
    except GateError as error:
        names = f"; changed: {', '.join(changed[:3])}{', …' if len(changed) > 3 else ''}" if changed else ""
        code = _worse(outcome.exit_code, error.exit_code)
        return replace(outcome, exit_code=code, error=f"{error}{names}")
    return outcome


def _worse(one: int, other: int) -> int:
    return min(one, other, key=lambda code: EXIT_PRECEDENCE.index(ExitCode(code)))


# --- publishing -----------------------------------------------------------------------------------


def _publish(step: Step | None, outcome: Outcome, runner: Runner) -> int:
    """Files, outputs, summary, annotations, comment, in this order; no failure hides what follows, nor the verdict."""
    done = publish(_effects(step, outcome), runner)
    comments = _comment(step, outcome)
    problems = (*done.problems, *comments.problems)
    if comments.comment_urls:
        problems += publish([SetOutputs({"comment_url": comments.comment_urls[0]})], runner).problems
    for note in comments.notes:
        runner.say(console(note))
    for problem in problems:
        publish([Annotate((Annotation("warning", "Agent Gate: not published", str(problem)),))], runner)
    if problems and step is not None and step.inputs["on_publish_error"] == "fail":
        return _worse(outcome.exit_code, ExitCode.PUBLISH) if outcome.exit_code < 128 else outcome.exit_code
    return outcome.exit_code


def _effects(step: Step | None, outcome: Outcome) -> list[Effect]:
    effects: list[Effect] = []
    result = outcome.result
    if step is not None:
        effects += _left(step) if result is None else _files(step, result)
    effects.append(SetOutputs(_outputs(outcome)))
    if result is not None:
        place = _place(step) if step is not None else Place()
        effects.append(WriteSummary(render_markdown(result, limit=SUMMARY_CHARS, place=place)))
        effects.append(Annotate(annotations_of(result)))
    if outcome.warning:
        effects.append(Annotate((Annotation("warning", "Agent Gate", outcome.warning),)))
    if outcome.note:
        effects.append(WriteSummary(f"### Agent Gate\n\n{markdown(outcome.note)}"))
    if outcome.error:
        effects.append(WriteSummary(f"### Agent Gate\n\n{markdown(outcome.error, 2_000)}"))
        effects.append(Annotate((Annotation("error", "Agent Gate", outcome.error),)))
    return effects


def _files(step: Step, result: Result) -> list[Effect]:
    """Reports, and copies of the records under names that another job can know. Git is told to ignore them."""
    folder = step.workspace / RESULTS
    effects: list[Effect] = [_ignored(folder)]
    reports = {form: load_report(form)(result) for form in REPORT_FILES if form != "markdown"}
    reports["markdown"] = render_markdown(result, place=_place(step))
    effects += [WriteFile(folder / REPORT_FILES[form], text) for form, text in reports.items()]
    for suite, path in zip(result.suites, result.record_paths, strict=False):
        effects.append(CopyFile(folder / record_name(suite.suite_id), Path(path)))
    return effects


def _left(step: Step) -> list[Effect]:
    """What a run without a verdict measured all the same, where another attempt finds it."""
    try:
        output, head = step.source.load().output, step.git.head()
    except GateError:
        return []
    folder = step.workspace / RESULTS
    left = sorted((output / "records").glob(f"*/{head}*.jsonl"))
    copies: list[Effect] = [CopyFile(folder / f"{path.parent.name}.jsonl", path) for path in left]
    return [_ignored(folder), *copies] if copies else []


def _ignored(folder: Path) -> WriteFile:
    return WriteFile(folder / ".gitignore", "*\n")


def _outputs(outcome: Outcome) -> dict[str, str]:
    """The outputs as text; empty where there is nothing to say. ``comment_url`` follows once there is one."""
    result, code = outcome.result, str(outcome.exit_code)
    if result is None:
        verdict = "" if outcome.note else Verdict.ERROR.value
        return dict.fromkeys(OUTPUTS, "") | {"verdict": verdict, "exit_code": code}
    compared = next((s.baseline for s in result.suites if s.baseline and s.baseline.commit), None)
    spent = [cost for s in result.suites for cost in (s.cost_usd, s.judge_cost_usd) if cost is not None]
    against = [(s.suite_id, one) for s in result.suites for one in (s, *s.further)]  # the own base, and the anchor
    regressed = len({(i, c.criterion.name) for i, s in against for c in s.criteria if c.verdict is Verdict.REGRESSED})
    return dict.fromkeys(OUTPUTS, "") | {
        "verdict": result.verdict.value,
        "exit_code": code,
        "regressions": str(regressed),
        "baseline_sha": (compared.commit or "") if compared else "",
        "baseline_distance": "" if compared is None or compared.distance is None else str(compared.distance),
        "junit_path": str(RESULTS / REPORT_FILES["junit"]),
        "report_path": str(RESULTS / REPORT_FILES["html"]),
        "cost_usd": f"{sum(spent):.6f}" if spent else "",
    }


def _place(step: Step, *, url: str = "") -> Place:
    """How the change is known to who reads of it. ``url``: where the whole report is, for one that is a part."""
    activity = step.activity
    on_change = activity.pull_request is not None or activity.mode is Mode.REPORT
    return Place(activity.head or "", url, step.inputs["accept_label"] if on_change else "")


def _left_unmeasured(step: Step) -> int | None:
    """The pull request on which a run without a result leaves an earlier verdict standing; a part is not the run."""
    run = step.activity.run
    if step.inputs["shard"] != (1, 1) or not step.activity.comments:
        return None
    try:
        pull = step.github.pull_request_of(run) if run is not None else None
    except GateError:
        return None
    return pull.number if pull is not None else step.activity.pull_request


def _suites(step: Step) -> tuple[str, ...] | None:
    """The suites that the run is about; None where the configuration cannot be read."""
    try:
        return tuple(suite.id for suite in read_suites(step.source.load()))
    except GateError:
        return None


def _comment(step: Step | None, outcome: Outcome) -> Publication:
    """The comment of each suite on the pull request that was measured, where the token may write it."""
    result = outcome.result
    if step is None or outcome.note or not step.inputs["comment"]:
        return Publication(notes=(outcome.note,) if outcome.note else ())
    number = outcome.pull_request if result is not None else _left_unmeasured(step)
    if number is None:
        return Publication()
    if step.activity.is_fork and step.activity.mode is not Mode.REPORT:
        return Publication(notes=("no comment: a fork's token only reads; the `workflow_run` job comments",))
    place = _place(step, url=step.summary_url)
    effects: list[Effect] = [PostFailure(render_unmeasured(outcome.error, place), _suites(step))]
    if result is not None:
        effects = [PostComment(suite.suite_id, render_suite(suite, result, place=place)) for suite in result.suites]
    return publish(effects, PullRequestHost(step.github, number, step.stamp))
