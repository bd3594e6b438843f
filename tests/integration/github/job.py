"""A job on a runner: a repository, its checkout, an event, and one step that runs the action as the runner would.

How the step is started is handed in: as a process here, or inside the built image. Everything else is the same.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import warm
from tests.integration.github.fake_github import WORKFLOW, FakeGitHub
from tests.integration.github.runner_reader import RunnerReader, read_file_commands

IDENTITY = {f"GIT_{who}_{what}": "test@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
QUIET = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, **IDENTITY}

AGENT = '''
"""Looks an order up, and refunds it where asked; `behaviour.txt` says how well."""

import hashlib
import os
import sys
from pathlib import Path

BEHAVIOUR = Path(__file__).with_name("behaviour.txt").read_text().strip()


def answer(message):
    print("::error::the agent speaks to the runner")
    print("::error::and on the other stream", file=sys.stderr)
    order = message.split()[-1]
    number = int(order)
    if BEHAVIOUR == "down":
        os._exit(3)
    wrong = {
        "good": False,
        "bad": number < 12,
        "slip": number == 0,
        "awful": True,
    }.get(BEHAVIOUR)
    if BEHAVIOUR.startswith("broken-"):
        wrong = number < int(BEHAVIOUR.removeprefix("broken-"))
    calls = [{"name": "lookup_order", "arguments": {"order": order}, "result": "found"}]
    if not wrong:
        calls.append({"name": "refund_order", "arguments": {"order": order}, "result": "done"})
    return {"output": f"I refunded order {order}", "tool_calls": calls, "cost_usd": 0.001}
'''
CONFIG = """\
name: support
suite: suite.yaml
agent: {python: "agent:answer", concurrency: 4}
criteria:
  tool_trajectory_avg_score: {threshold: 0.5, match_type: IN_ORDER}
baseline: {store: git}
gate: {alpha: 0.05}
"""
BLOCK = CONFIG.replace("{store: git}", "{store: git, require_provenance: block}")
"""The same, where a baseline must be proven."""


def suite(cases: int = 24) -> str:
    """Each case on a line of its own, from line 2."""
    lines = (
        f"  - {{id: refund-{n}, input: refund order {n}, tools: "
        f"[{{name: lookup_order, args: {{order: '{n}'}}}}, {{name: refund_order, args: {{order: '{n}'}}}}]}}"
        for n in range(cases)
    )
    return "\n".join(["cases:", *lines]) + "\n"


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env={**os.environ, **QUIET}, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class Repository:
    """The user's repository: a bare remote, and a clone to commit from; as it is in the folder of ``template``."""

    def __init__(self, folder: Path, template: Path | None = None) -> None:
        self.remote, self.work, self.branch = folder / "remote.git", folder / "work", "main"
        if template:
            shutil.copytree(template, folder, symlinks=True)
            git(self.work, "remote", "set-url", "origin", self.remote.as_uri())
        else:
            self.remote.mkdir(parents=True)
            git(self.remote, "init", "-q", "--bare", "-b", "main")
            git(self.remote, "config", "uploadpack.allowAnySHA1InWant", "true")
            git(folder, "clone", "-q", self.remote.as_uri(), str(self.work))
        self.files: dict[str, str] = {"agent.py": AGENT, "gate.yaml": CONFIG, "suite.yaml": suite()}
        self.files[WORKFLOW] = "on: [pull_request, merge_group, push]\n"

    def commit(self, behaviour: str = "good", *, branch: str = "", push: bool = True, **files: str) -> str:
        """Commits the project with this behaviour; ``files`` by name, with ``__`` for the dot."""
        known = {**self.files, "behaviour.txt": behaviour}
        known |= {name.replace("__", "."): content for name, content in files.items()}
        for name, content in known.items():
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).write_text(content, encoding="utf-8")
        git(self.work, "add", "-A")
        git(self.work, "commit", "-q", "--allow-empty", "-m", behaviour)
        if push:
            git(self.work, "push", "-q", "origin", f"HEAD:refs/heads/{branch or self.branch}")
        return git(self.work, "rev-parse", "HEAD")

    def pull_request(self, number: int, behaviour: str, *, onto: str = "", **files: str) -> tuple[str, str]:
        """A change on a branch of its own; returns its head, and the merge that GitHub makes of it.

        ``onto``: the commit that it begins at and is merged with; empty: the default branch's.
        """
        onto = onto or f"origin/{self.branch}"
        git(self.work, "checkout", "-q", "-b", f"change-{number}", onto)
        head = self.commit(behaviour, branch=f"change-{number}", **files)
        git(self.work, "checkout", "-q", "--detach", onto)
        git(self.work, "merge", "-q", "--no-ff", "-m", "merge", head)
        merge = git(self.work, "rev-parse", "HEAD")
        git(self.work, "push", "-q", "origin", f"HEAD:refs/pull/{number}/merge", f"{head}:refs/pull/{number}/head")
        git(self.work, "checkout", "-q", self.branch)
        return head, merge

    def merge(self, number: int, **files: str) -> str:
        """Squashes a change into the default branch, as GitHub's button does; ``files`` reached it in the meantime."""
        git(self.work, "checkout", "-q", self.branch)
        for name, content in files.items():
            (self.work / name.replace("__", ".")).write_text(content, encoding="utf-8")
            git(self.work, "commit", "-q", "-a", "-m", "meanwhile")
        git(self.work, "merge", "-q", "--squash", f"change-{number}")
        git(self.work, "commit", "-q", "--allow-empty", "-m", f"change {number}")
        git(self.work, "push", "-q", "origin", self.branch)
        return git(self.work, "rev-parse", "HEAD")

    def rename(self, branch: str) -> None:
        """Gives the default branch another name."""
        for place in (self.remote, self.work):
            git(place, "branch", "-m", self.branch, branch)
        git(self.work, "fetch", "-q", "--prune", "origin")
        self.branch = branch

    def checkout(self, folder: Path, ref: str, *, depth: int = 1) -> None:
        """What actions/checkout leaves: one commit, detached."""
        folder.mkdir(parents=True)
        git(folder, "init", "-q", "-b", "main")
        git(folder, "remote", "add", "origin", self.remote.as_uri())
        limit = [f"--depth={depth}"] if depth else ["--tags"]
        git(folder, "fetch", "-q", *limit, "origin", ref)
        git(folder, "checkout", "-q", "--detach", "FETCH_HEAD")


@dataclass
class Step:
    """One step as the runner sees it, before it is started."""

    root: Path
    """Holds the folders that the runner mounts: workspace, home, workflow, file_commands."""
    event: str
    payload: Mapping[str, Any]
    ref: str
    sha: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"


@dataclass
class Done:
    """What the runner knows of a step that has ended."""

    code: int
    log: str
    reader: RunnerReader
    outputs: dict[str, str]
    summary: str

    def annotations(self, *levels: str) -> list[tuple[str, dict[str, str], str]]:
        return self.reader.of(*(levels or ("error", "warning", "notice")))


Launch = Callable[[Step, dict[str, str]], subprocess.CompletedProcess[str]]


def run(step: Step, fake: FakeGitHub, launch: Launch) -> Done:
    """Runs the step with the runner's folders, files and variables, and reads what it left."""
    for name in ("home", "workflow", "file_commands"):
        (step.root / name).mkdir(exist_ok=True)
    (step.root / "workflow" / "event.json").write_text(json.dumps(step.payload), encoding="utf-8")
    for name in ("output", "summary"):
        (step.root / "file_commands" / name).write_text("")
    environment = {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_API_URL": fake.url,
        "GITHUB_EVENT_NAME": step.event,
        "GITHUB_GRAPHQL_URL": fake.graphql_url,
        "GITHUB_HEAD_REF": step.payload.get("pull_request", {}).get("head", {}).get("ref", ""),
        "GITHUB_REF": step.ref,
        "GITHUB_REF_NAME": re.sub("^refs/(heads|tags|pull)/", "", step.ref),
        "GITHUB_REPOSITORY": fake.repository,
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_RUN_ID": "100",
        "GITHUB_SERVER_URL": "https://github.example",
        "GITHUB_SHA": step.sha,
        "GITHUB_WORKFLOW_REF": f"{fake.repository}/{WORKFLOW}@{step.ref}",
        "INPUT_TOKEN": "good",
        **step.environment,
        **{f"INPUT_{name.upper()}": value for name, value in step.inputs.items()},
    }
    ended = launch(step, environment)
    reader = RunnerReader()
    reader.read(ended.stdout + ended.stderr)
    return Done(
        ended.returncode,
        ended.stdout + ended.stderr,
        reader,
        read_file_commands((step.root / "file_commands" / "output").read_text(encoding="utf-8")),
        (step.root / "file_commands" / "summary").read_text(encoding="utf-8"),
    )


AFTER_THE_ENTRYPOINT = """
import os
from gate.action.main import main
from gate.security.environment import ALWAYS_ALLOWED, handed_on

environment = dict(os.environ)
os.environ.clear()
os.environ.update(handed_on(environment, ALWAYS_ALLOWED))
main(environment)
"""


def as_process(
    step: Step, environment: dict[str, str], *, words: Sequence[str] = ("-c", AFTER_THE_ENTRYPOINT), cold: bool = False
) -> subprocess.CompletedProcess[str]:
    """Runs what the entrypoint starts: everything but the image itself, and the process that hides its environment."""
    places = {
        "HOME": str(step.root / "home"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_WORKSPACE": str(step.workspace),
        "GITHUB_EVENT_PATH": str(step.root / "workflow" / "event.json"),
        "GITHUB_OUTPUT": str(step.root / "file_commands" / "output"),
        "GITHUB_STEP_SUMMARY": str(step.root / "file_commands" / "summary"),
        **IDENTITY,
    }
    return warm.run(
        words, flags=("-I", "-u"), cwd=step.workspace, environment={**places, **environment}, timeout=300, cold=cold
    )


def from_the_entrypoint(step: Step, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """As the runner starts it: the process that executes itself once more."""
    return as_process(step, environment, words=("-m", "gate.action.entrypoint"), cold=True)
