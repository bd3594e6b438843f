"""The first workflow: the gate on every change, and the job that stores the baseline, for the repository's host."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from gate.agents.requirements import text_on_disk
from gate.commands.setup.found import FoundAgent
from gate.commands.setup.openapi import NODE

GITHUB = """\
# Agent Gate on every pull request and after every merge. `gate help ci` explains it.
name: Gate

on:
  pull_request:
    types: [opened, synchronize, reopened, labeled, unlabeled, edited]
  merge_group:
  push:
    branches: [{branch}]

jobs:
  gate: # make "gate / check" a required check
    uses: agent-gate/agent-gate/.github/workflows/gate.yml@v0
    permissions:
      actions: read # what earlier jobs measured
      contents: write # the baseline branch; the job that runs a change only reads
      pull-requests: write # the comment
{settings}"""
GITLAB = """\
# Agent Gate on every merge request and after every merge. `gate help ci` explains it.
gate:
  image: python:3.13-slim-bookworm
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  variables:
    GIT_DEPTH: "0"
  before_script:
    - apt-get update && apt-get install --yes --no-install-recommends git
    - pip install agent-gate{install}
  script:
    - BASE="${{CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$CI_MERGE_REQUEST_DIFF_BASE_SHA}}" # the first: merged results
    - gate run --comment --against "$BASE" --rules-from "$BASE"
      --junit gate-results/junit.xml --html gate-results/report.html
  cache: # what this merge request measured: a retry continues it
    key: gate-$CI_MERGE_REQUEST_IID
    paths: [.gate/records/]
    when: always
  artifacts:
    when: always
    paths: [gate-results/]
    reports:
      junit: gate-results/junit.xml

baseline: # pushes the branch gate-baselines: allow job tokens to push in the project's CI/CD settings
  extends: gate
  rules:
    - if: $CI_COMMIT_BRANCH == $CI_DEFAULT_BRANCH
  script:
    - gate baseline --junit gate-results/junit.xml --html gate-results/report.html
  cache: [] # reads nothing that a change could have written
"""


class Workflow(Struct, frozen=True):
    """The workflow file for the repository's host."""

    path: str = ""
    """The path of the file; empty if the host is not known."""
    text: str = ""
    secrets: tuple[str, ...] = ()
    """The keys that it reads from the host's secrets."""
    first_push: str = ""
    """The sentence about the first push to the default branch."""


def workflow_of(folder: Path, keys: Sequence[str], agent: FoundAgent | None = None, executable: str = "") -> Workflow:
    """Return the workflow for the repository's host.

    ``executable`` is the agent's virtual environment. GitLab's job must create that; the action installs the agent in
    one of its own.
    """
    start = agent.start if agent else ""
    branch, remote = default_branch(folder), remote_of(folder)
    install = _install(folder, is_node=agent is not None and agent.framework == NODE)
    commands = [*install]
    if start:
        commands.append(f"{start} > server.log 2>&1 &")
    secrets = tuple([f"{key}_API_KEY" for key in keys])
    said = f"The first push to {branch} stores the baseline on the branch gate-baselines (job `baseline`). "
    said += "Until then, "
    if agent and agent.is_server:
        said += "only thresholds decide."
    else:
        said += "the gate compares with the base commit's agent."
    if (folder / ".github").is_dir() or "github" in remote:
        text = GITHUB.format(branch=_in_yaml(branch), settings=_setup(commands) + _environment(secrets))
        return Workflow(".github/workflows/gate.yml", text, secrets, said)
    if (folder / ".gitlab-ci.yml").is_file() or "gitlab" in remote:
        if executable:
            commands = [f"python -m venv {executable}", *(f"{executable}/bin/{command}" for command in install)]
        lines = "".join(f"\n    - {command}" for command in commands)
        return Workflow(".gitlab-ci.yml", GITLAB.format(install=lines), secrets, said)
    return Workflow()


def _install(folder: Path, *, is_node: bool) -> list[str]:
    """Return the commands that install the agent."""
    if is_node:
        return ["npm ci" if (folder / "package-lock.json").is_file() else "npm install"]
    if (folder / "requirements.txt").is_file():
        return ["pip install -r requirements.txt"]
    if (folder / "pyproject.toml").is_file():
        return ["pip install ."]
    return []


def _setup(commands: Sequence[str]) -> str:
    if not commands:
        return ""
    if len(commands) == 1:
        return f"    with:\n      setup: {commands[0]}\n"
    return "    with:\n      setup: |\n" + "".join(f"        {one}\n" for one in commands)


def _environment(secrets: Sequence[str]) -> str:
    if not secrets:
        return ""
    text = "    secrets:\n      env: |\n"
    for name in secrets:
        text += f"        {name}=${{{{ secrets.{name} }}}}\n"
    return text


def default_branch(folder: Path) -> str:
    """Return the branch that changes are merged into, from git's files: the one that the remote names, else main or
    master if there is one, else the current one."""
    own, git = _git_folders(folder)
    told = text_on_disk(git / "refs" / "remotes" / "origin" / "HEAD").strip()
    if told.startswith("ref: refs/remotes/origin/"):
        return told.removeprefix("ref: refs/remotes/origin/")
    packed = text_on_disk(git / "packed-refs")
    for branch in ("main", "master"):
        for ref in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
            if (git / ref).is_file() or f" {ref}\n" in packed:
                return branch
    current = text_on_disk(own / "HEAD").strip()  # neither: a repository may call its only branch `trunk`
    return current.removeprefix("ref: refs/heads/") if current.startswith("ref: refs/heads/") else "main"


def _in_yaml(branch: str) -> str:
    """Return the name as an item of a list in YAML: quoted unless it is plain."""
    return branch if re.fullmatch(r"[A-Za-z][\w./-]*", branch) else json.dumps(branch)


def remote_of(folder: Path) -> str:
    """Return the configuration of the repository's remotes in lower case; empty if it has none."""
    config = text_on_disk(_git_folders(folder)[1] / "config").lower()
    return config if "[remote " in config else ""


def _git_folders(folder: Path) -> tuple[Path, Path]:
    """Return git's folder of this work tree, and the one that the work trees of a repository share."""
    own = folder / ".git"
    told = text_on_disk(own).strip()
    if told.startswith("gitdir: "):  # a linked work tree or a submodule
        own = folder / told.removeprefix("gitdir: ")
    return own, own / text_on_disk(own / "commondir").strip()
