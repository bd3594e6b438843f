"""`gate doctor` on where a run is to take place: the store and git."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Outcome, Project

CONFIG = "suite: suite.yaml\nagent: {python: agent:answer}\ncriteria: {response_match_score: 0.5}\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write("suite.yaml", "cases:\n  - {id: hello, input: Hello, response: Hi there}\n")
    made.write("agent.py", "def answer(message):\n    return 'Hi there'\n")
    made.write("gate.yaml", CONFIG)
    return made


def line(ran: Outcome, start: str) -> str:
    """The only line of this check."""
    found = [one for one in ran.out.splitlines() if one[3:].startswith(start)]
    assert len(found) == 1, ran.out
    return found[0]


def without_git(project: Project, *arguments: str) -> Outcome:
    return project.gate(*arguments, PATH=str(Path(sys.executable).parent))


def test_a_git_store_without_a_repository(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {store: git}\n")
    remedy = "`git init` and add the remote 'origin', or write `baseline: {store: file}`"
    said = line(project.gate("doctor", "--no-ask"), "baseline: store: ")
    assert said.startswith("!! ")
    assert f"(to do: {remedy})" in said
    ran = project.gate("run")
    assert (ran.code, f"({remedy})" in ran.err) == (4, True), ran.err


def test_a_git_store_without_the_remote(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {store: git}\n")
    project.commit()
    remedy = "`git remote add origin URL`, or write `baseline: {store: file}`"
    assert f"(to do: {remedy}" in line(project.gate("doctor", "--no-ask"), "baseline: store: ")
    ran = project.gate("run")
    assert (ran.code, f"({remedy}" in ran.err) == (4, True), ran.err


@pytest.mark.slow
def test_a_git_store_with_a_wrong_remote_is_not_fine_as_well(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {store: git}\n")
    project.commit()
    project.git("remote", "add", "origin", "/nowhere")
    assert "check the remote" in line(project.gate("doctor", "--no-ask"), "baseline: store: ")


@pytest.mark.slow
def test_a_damaged_baseline_is_not_fine_as_well(project: Project) -> None:
    assert project.gate("run", "-q").code == 0
    assert project.gate("baseline", "save").code == 0
    (stored,) = (project.root / ".gate/baselines").rglob("*.jsonl")
    stored.write_bytes(stored.read_bytes() + b"{}\n")
    ran = project.gate("doctor", "--no-ask")
    assert ran.code == 4
    assert line(ran, "baseline: store: ").startswith("!! ")


def test_a_repository_without_git(project: Project) -> None:
    project.write("gate.yaml", CONFIG + "baseline: {store: git}\n")
    project.commit()
    ran = without_git(project, "doctor", "--no-ask")
    assert "(to do: install git, or write `baseline: {store: file}`" in line(ran, "baseline: store: ")
    assert "git is not installed" in line(ran, "job: git: ")
    assert "not a repository" not in ran.out
    assert "(install git, or write `baseline: {store: file}`" in without_git(project, "run").err


def test_looking_leaves_nothing_behind(project: Project) -> None:
    before = sorted(project.root.rglob("*"))
    assert project.gate("doctor", "--no-ask").code == 0
    assert sorted(project.root.rglob("*")) == before


def test_a_missing_module_has_the_hint_of_a_run(project: Project) -> None:
    project.write("gate.yaml", CONFIG.replace("agent:answer", "agnt:answer"))
    assert "(to do: did you mean 'agent'?)" in line(project.gate("doctor"), "agent: answers: ")


def test_a_suite_without_cases_has_a_remedy(project: Project) -> None:
    project.write("suite.yaml", "cases: []\n")
    assert "(to do: name at least one under `cases`" in line(
        project.gate("doctor", "--no-ask"), "configuration: suites and criteria"
    )
