"""The first workflow: the gate on every change, where the repository's host is known."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gate.commands.texts.survey import start_of

GITHUB = """\
# The gate on every pull request. docs/how-to/github.md has the whole of it: the baseline's job, forks, releases.
name: Gate
on:
  pull_request:
permissions: {{}}
jobs:
  gate:
    runs-on: ubuntu-24.04
    timeout-minutes: 30
    permissions:
      actions: read # what earlier jobs measured
      contents: read
      pull-requests: write # the comment
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with:
          persist-credentials: false
      - uses: agent-gate/agent-gate@v0
{setup}{env}"""
GITLAB = """\
# The gate on every merge request. docs/how-to/gitlab.md has the whole of it: baselines, notes, releases.
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
    - gate run --junit gate-results/junit.xml
  cache: # what was measured of this merge request: a retry continues it
    key: gate-$CI_MERGE_REQUEST_IID
    paths: [.gate/records/]
    when: always
  artifacts:
    when: always
    paths: [gate-results/]
    reports:
      junit: gate-results/junit.xml
"""


def workflow_of(folder: Path, keys: Sequence[str]) -> tuple[str, str]:
    """Name and content of the workflow file; an empty name where the host is not known."""
    remote = _remote(folder)
    requirements = next((name for name in ("requirements.txt", "pyproject.toml") if (folder / name).is_file()), "")
    install = {"requirements.txt": "pip install -r requirements.txt", "pyproject.toml": "pip install ."}.get(
        requirements, ""
    )
    if (folder / ".github").is_dir() or "github" in remote:
        setup = f"        with:\n          setup: {install}\n" if install else ""
        names = [f"          {key}_API_KEY: ${{{{ secrets.{key}_API_KEY }}}}\n" for key in keys]
        env = "".join(["        env:\n", *names]) if names else ""
        return ".github/workflows/gate.yml", GITHUB.format(setup=setup, env=env)
    if (folder / ".gitlab-ci.yml").is_file() or "gitlab" in remote:
        return ".gitlab-ci.yml", GITLAB.format(install=f"\n    - {install}" if install else "")
    return "", ""


def _remote(folder: Path) -> str:
    return start_of(folder / ".git" / "config").lower()
