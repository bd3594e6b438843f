"""A suite or case that the base measured and the change renames, removes or no longer selects is not compared."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project
from tests.acceptance.test_situations import FOLDER, suite_of


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two suites of one configuration, each with a baseline of the base commit."""
    project = Project(tmp_path_factory.mktemp("base"))
    shutil.copy(FOLDER / "agent.py", project.root / "agent.py")
    project.write("behaviour.json", {})
    for name in ("one", "two"):
        project.write(f"evals/{name}/suite.yaml", suite_of(4))
        project.write(f"evals/{name}/test_config.json", {"criteria": {"tool_trajectory_avg_score": 1.0}})
    project.write("gate.yaml", {"suite": "evals", "agent": {"python": "agent:answer"}})
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.commit("base")
    assert project.gate("run", "--trials", "3", "--quiet").code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-qb", "change")
    return project.root


@pytest.fixture
def project(base: Path, tmp_path: Path) -> Project:
    shutil.copytree(base, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


def judged(project: Project, *words: str) -> tuple[int, Any]:
    project.commit("change")
    code, result = project.result("run", *words)
    return code, [suite["facts"]["cause"] for suite in result["suites"]]


@pytest.mark.parametrize("change", [("mv", "evals/two", "evals/three"), ("rm", "-rq", "evals/two")])
def test_a_suite_that_is_renamed_or_removed_is_not_compared(project: Project, change: tuple[str, ...]) -> None:
    project.git(*change)
    code, causes = judged(project)
    assert code == 1
    assert causes[0]["kind"] == "incomplete"
    assert "two" in json.dumps(causes[0]["gaps"])


def test_a_run_of_selected_cases_owes_nothing_for_the_others(project: Project) -> None:
    project.write("README.md", "another file")
    assert judged(project, "--case", "c00")[0] == 0


def select(project: Project, *ids: str) -> None:
    project.write("gate.yaml", {"suite": "evals", "agent": {"python": "agent:answer"}, "select": {"ids": ids}})


def test_cases_that_the_change_no_longer_selects_are_not_compared(project: Project) -> None:
    select(project, "c00")
    code, causes = judged(project)
    assert (code, [cause["kind"] for cause in causes]) == (1, ["incomplete", "incomplete"])
    assert all("3 of the 4 cases" in json.dumps(cause["gaps"]) for cause in causes)
    assert judged(project, "--case", "c00")[0] == 0


def test_a_renamed_case_is_not_counted_with_those_no_longer_selected(project: Project) -> None:
    suite = suite_of(4)
    suite["cases"][1]["id"] = "renamed"
    for name in ("one", "two"):
        project.write(f"evals/{name}/suite.yaml", suite)
    select(project, "c02", "c03", "renamed")
    assert judged(project)[0] == 0


@pytest.mark.slow
def test_a_selection_that_the_base_has_as_well_owes_nothing_for_the_others(project: Project) -> None:
    project.git("checkout", "-q", "main")
    select(project, "c00")
    project.commit("select")
    project.git("checkout", "-qB", "change")
    project.write("README.md", "another file")
    assert judged(project)[0] == 0


@pytest.mark.slow
def test_what_was_accepted_before_a_release_is_not_owed_to_the_release_before(project: Project) -> None:
    project.git("checkout", "-q", "main")
    before = project.git("rev-parse", "HEAD")
    select(project, "c00")
    project.git("rm", "-rq", "evals/two")
    project.commit("select")
    assert project.gate("run", "--trials", "3", "--quiet").code == 1
    assert project.gate("baseline", "save").code == 0
    release = ("run", "--release", "v2", "--against", before)
    assert project.gate(*release).code == 1
    assert project.gate("baseline", "accept", "--by", "ada", "--why", "one is enough").code == 0
    project.write("README.md", "another file")
    project.commit("later")
    done = project.gate(*release)
    assert done.code == 0, done.out


@pytest.mark.slow
def test_a_removed_suite_is_missed_under_a_selection_that_takes_its_cases(project: Project) -> None:
    project.git("rm", "-rq", "evals/two")
    project.write("evals/one/more.yaml", {"cases": [{"id": "new", "input": "item new", "tools": []}]})
    project.write("behaviour.json", {"new": "no_tools"})
    for asked, code in (("c*", 1), ("new", 0)):
        assert judged(project, "--case", asked, "--case", "new")[0] == code
    select(project, "new")
    assert judged(project)[0] == 1


@pytest.mark.slow
def test_shards_do_not_hide_a_removed_suite(project: Project) -> None:
    project.git("rm", "-rq", "evals/two")
    project.commit("change")
    for number in (1, 2):
        project.gate("run", "--trials", "3", "--shard", f"{number}/2", "--record", f".gate/{number}.jsonl")
    shards = (".gate/1.jsonl", ".gate/2.jsonl")
    code, result = project.result("merge", *shards, "-o", ".gate/whole.jsonl", "-c", "gate.yaml")
    assert (code, result["verdict"]) == (1, "not_compared")
    assert "two" in json.dumps(result["suites"][0]["facts"]["cause"]["gaps"])
