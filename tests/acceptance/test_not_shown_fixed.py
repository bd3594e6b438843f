"""A change that was measured regressed stays red until a measurement passes; an open answer does not clear it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gate.pipeline.earlier import MOST_TOLD
from tests.acceptance.conftest import Project
from tests.acceptance.test_situations import FOLDER, suite_of

CASES = 4


def configuration() -> dict[str, Any]:
    return {
        "suite": "suite.yaml",
        "agent": {"python": "agent:answer", "concurrency": 8},
        "criteria": {"tool_trajectory_avg_score": 0.5},
        "gate": {"confirm_after": "100ms"},
    }


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose branch broke one of four cases, and was measured so."""
    project = Project(tmp_path)
    shutil.copy(FOLDER / "agent.py", project.root / "agent.py")
    project.write("behaviour.json", {})
    project.write("suite.yaml", suite_of(CASES))
    project.write("gate.yaml", json.dumps(configuration()))
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.commit("base")
    assert project.gate("run", "--trials", "5", "--record", ".gate/base.jsonl", "--quiet").code == 0
    assert project.gate("baseline", "save", ".gate/base.jsonl").code == 0
    project.git("checkout", "-qb", "change")
    assert measured(project, {"c01": "no_tools"}) == (1, "regressed", "cases_broke")
    return project


def measured(project: Project, behaviour: Mapping[str, Any]) -> tuple[int, str, str]:
    """Commit what the agent does now, run the gate, and return its exit code, verdict and what that rests on."""
    project.write("behaviour.json", behaviour)
    project.git("commit", "-qam", "another commit")
    code, result = project.result("run")
    return code, result["verdict"], result["suites"][0]["facts"]["cause"]["kind"]


@pytest.mark.slow
def test_an_open_answer_stays_red_and_a_pass_clears_it(project: Project) -> None:
    open_answer = {
        "c01": ["no_tools", "good", "good"],
        "c02": ["no_tools", "good", "good", "good"],
        "c03": ["good", "no_tools", "good", "good"],
    }
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")
    assert measured(project, {"c01": "good"}) == (0, "pass", "passes")


def test_another_branch_at_its_commit_hides_no_measurement(project: Project) -> None:
    project.git("branch", "kept")
    project.git("reset", "-q", "--hard", "HEAD~1")
    open_answer = {"c01": ["no_tools", "good", "good"], "c02": ["no_tools", "good", "good", "good"]}
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")


def test_measurements_that_decide_nothing_do_not_hide_a_regressed_one(project: Project) -> None:
    for number in range(MOST_TOLD):
        assert measured(project, {"*": "raise", "attempt": str(number)}) == (3, "error", "outage")
    open_answer = {"c01": ["no_tools", "good", "good"], "c02": ["no_tools", "good", "good", "good"]}
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")


@pytest.mark.slow
def test_many_newer_records_of_other_changes_hide_no_measurement(project: Project) -> None:
    [own] = (project.root / ".gate/records").rglob(f"{project.git('rev-parse', 'HEAD')}.jsonl")
    for number in range(60):
        shutil.copy(project.root / ".gate/base.jsonl", own.with_name(f"other-{number}.jsonl"))
    open_answer = {"c01": ["no_tools", "good", "good"], "c02": ["no_tools", "good", "good", "good"]}
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")


@pytest.mark.slow
def test_a_replaced_commit_that_another_branch_still_has_is_not_forgotten(project: Project) -> None:
    """As a branch that was pushed before it was amended, or kept as a copy before a rebase."""
    project.git("update-ref", "refs/remotes/origin/change", "HEAD")
    open_answer = {"c01": ["no_tools", "good", "good"], "c02": ["no_tools", "good", "good", "good"]}
    project.write("behaviour.json", open_answer)
    project.git("commit", "-qa", "--amend", "-m", "amended")
    code, result = project.result("run")
    assert (code, result["suites"][0]["facts"]["cause"]["kind"]) == (1, "not_shown_fixed")


@pytest.mark.slow
def test_a_pass_of_a_part_clears_nothing(project: Project) -> None:
    """The part leaves out the one case that broke, which is few enough to be removed under a pass."""
    project.git("commit", "-q", "--allow-empty", "-m", "ask a part")
    assert project.gate("run", "--case", "c0[023]").code == 0
    few = configuration() | {"budget": {"runs": CASES}}
    project.write("gate.yaml", json.dumps(few))
    open_answer = {"c01": "no_tools"}
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")


@pytest.mark.slow
def test_a_folder_whose_repository_is_gone_is_compared_with_what_was_saved_last(project: Project) -> None:
    shutil.rmtree(project.root / ".git")
    code, result = project.result("run")
    assert (code, result["verdict"]) == (1, "regressed")


@pytest.mark.slow
def test_a_rebase_onto_a_base_that_moved_forgets_nothing(project: Project) -> None:
    """The earlier measurement keeps the trials of the base's agent that ran beside it."""
    project.git("checkout", "-q", "main")
    project.write("notes.md", "nothing of the agent")
    project.commit("notes")
    project.git("checkout", "-q", "change")
    project.git("rebase", "-q", "main")
    open_answer = {"c01": ["no_tools", "good", "good"], "c02": ["no_tools", "good", "good", "good"]}
    assert measured(project, open_answer) == (1, "regressed", "not_shown_fixed")
