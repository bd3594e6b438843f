"""One step of a job: its input from the runner (inputs, event, workspace, repository), and its outcome."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from shlex import join
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gate.action.inputs import INPUTS, is_input, overrides_of, read_inputs
from gate.action.sealing import seal
from gate.baselines.ledger import is_candidate
from gate.baselines.proofs import Proofs
from gate.config.load import Config, ConfigFile, read_config
from gate.errors import EXIT_PRECEDENCE, ConfigError, ExitCode
from gate.hosts.base import Stamp
from gate.hosts.events import Activity, Mode, activity
from gate.hosts.github import GitHub, connect
from gate.model import Result
from gate.pipeline.identity import REPORTS
from gate.security.environment import ARTIFACT, TOKEN
from gate.security.escape import console
from gate.system.git import SEALED, Git, encode_sealed, token_header, with_header

RESULTS = Path(REPORTS)
"""Folder of reports and records in the workspace; not hidden, because uploads skip hidden files."""
USUAL = {"baseline.store": "git"}
"""The default store: a runner's disk does not outlive the job."""
Say = Callable[[str], None]


class Step(Struct, frozen=True, dict=True):
    """The runner's input to this step. Only ``github`` and ``say`` have effects outside of it."""

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
        """The configuration as first read: later changes by ``setup`` have no effect."""
        return read_config(self.config_path)

    @property
    def git(self) -> Git:
        """The configuration's repository, which may be checked out in a subfolder of the workspace."""
        folder = self.config_path.parent
        return Git(folder if folder.is_dir() else self.workspace, environment=self.environment)

    @property
    def is_anchored(self) -> bool:
        """True if the run also compares with the anchor: on the default branch, and for releases."""
        return self.activity.mode in (Mode.RECORD, Mode.RELEASE)

    @property
    def release(self) -> str:
        """The tag to release; empty for a release candidate, which later releases are not compared with."""
        tag = self.activity.tag or ""
        return "" if is_candidate(tag) else tag

    @property
    def accept_label(self) -> str:
        """The label that accepts a loss of what is measured; empty if none can."""
        is_change = self.activity.pull_request is not None or self.activity.mode is Mode.REPORT
        label: str = self.inputs["accept_label"]
        return label if is_change else ""

    @property
    def summary_url(self) -> str:
        return self.page_of(self.environment.get("GITHUB_RUN_ID", ""))

    def page_of(self, run: int | str) -> str:
        """Return the page of a run, by its id."""
        seen = self.environment
        where = f"{seen.get('GITHUB_SERVER_URL', '')}/{seen.get('GITHUB_REPOSITORY', '')}"
        return f"{where}/actions/runs/{run}"

    @property
    def stamp(self) -> Stamp:
        """The stamp of the run that measured, so that a late report does not replace a newer one."""
        run = self.activity.run
        head = self.activity.head or ""
        if run is not None:
            return Stamp(run.id, run.attempt, head)
        return Stamp(int(self.environment["GITHUB_RUN_ID"]), int(self.environment["GITHUB_RUN_ATTEMPT"]), head)


class StepOutcome(Struct, frozen=True):
    """The outcome of the step, before anything is published."""

    exit_code: int
    result: Result | None = None
    error: str = ""
    """The reason why there is no result, or a problem in addition to it."""
    pull_request: int | None = None
    note: str = ""
    """The reason why there is nothing to publish, if that is no error."""
    remark: str = ""
    """The reason why the label that accepts a result is ignored."""
    proofs: Proofs | None = None
    """The proofs for later jobs, if this job records baselines."""
    onto: str | None = None
    """The target branch of a reported pull request, which the event does not name."""
    is_named: bool = False
    """True if the configuration names the suite, as each one does that has others beside it."""


def outcome_of(result: Result, config: Config, **parts: Any) -> StepOutcome:
    """Return the outcome of a step that has a result; ``parts`` are further fields."""
    return StepOutcome(int(result.exit_code), result, is_named=config.file.name is not None, **parts)


def open_step(environment: Mapping[str, str], workspace: Path, say: Say) -> Step:
    inputs = read_inputs(environment)
    found = activity(_payload(environment), environment)
    say(f"{environment.get('GITHUB_EVENT_NAME', '')}: {found.mode.value}, {console(found.reason)}")
    github = connect(environment, inputs["token"])
    return Step(_environment(environment, inputs), inputs, found, workspace, github, say)


def _environment(environment: Mapping[str, str], inputs: Mapping[str, Any]) -> dict[str, str]:
    """Return the gate's environment, without the inputs. Git and the stores authenticate with the token.

    So the checkout need not leave a token in its files. The token has a separate variable, which no other process gets.
    """
    seen = {name: value for name, value in environment.items() if not is_input(name)}
    seen.update(inputs["env"])
    seen[ARTIFACT] = inputs["artifact"]
    if inputs["token"]:
        seen[TOKEN] = inputs["token"]
    return seen


def with_sealed_git(step: Step, folder: Path) -> Step:
    """Return the step with a sealed copy of its git directory: git ignores later changes by ``setup`` or the agent."""
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


def input_overrides(step: Step, source: ConfigFile) -> dict[str, Any]:
    """Return the inputs as keys of the configuration, with the default store unless the configuration names one."""
    overrides = overrides_of(step.inputs)
    stated = source.load(overrides).file.baseline.model_fields_set
    return overrides if "store" in stated else overrides | USUAL


def worse_code(one: int, other: int) -> int:
    """Return the exit code that takes precedence."""
    return min(one, other, key=lambda code: EXIT_PRECEDENCE.index(ExitCode(code)))


def repeat_command(step: Step, overrides: Mapping[str, Any], pull_request: int | None = None) -> str:
    """Return the commands that repeat this run on a reviewer's machine: fetch, check out, run."""
    words = ["gate", "run"]
    if step.inputs["config"] != INPUTS["config"].default:
        words += ["--config", step.inputs["config"]]
    for tag in step.inputs["tags"]:
        words += ["--tag", tag]
    if step.inputs["trials"]:
        words += ["--trials", str(step.inputs["trials"])]
    for key, option in (("baseline.against", "--against"), ("baseline.store", "--store")):
        if key in overrides:
            words += [option, overrides[key]]
    if step.release:
        words += ["--release", step.release]
    return f"{_checkout(step, overrides.get('baseline.against'), pull_request)}\n{join(words)}"


def _checkout(step: Step, base: str | None, pull_request: int | None) -> str:
    """Return the commands that fetch the commit and its base into a reviewer's clone."""
    found = step.activity
    if pull_request is None and found.comments:
        pull_request = found.pull_request
    if pull_request is not None:
        checkout = f"gh pr checkout {pull_request}"
        if not base:
            return checkout
        return f"{checkout} && {join(['git', 'fetch', 'origin', base])}"
    head = found.head or ""
    fetched = [head]
    if base and base != head:
        fetched.append(base)
    return f"{join(['git', 'fetch', 'origin', *fetched])} && {join(['git', 'checkout', head])}"
