"""Running again on the same commit goes on with the same record: green by repetition is not to be had.

What `gate.pipeline.rounds` finds in the record counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project

AGENT = """\
import os


def answer(message):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(message + "\\n")
    if os.environ.get("DOWN") and message == "item 7":
        raise ConnectionRefusedError("down")
    return "wrong" if {broken} and message in ("item 3", "item 4") else "the right answer"
"""


CALLS = ".gate/calls.txt"
"""As its value is a part of the agent, the same in each copy of the project."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("made"))
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(20)]
    project.write("suite.yaml", {"cases": cases})
    project.write(
        "gate.yaml",
        "suite: suite.yaml\nagent: {python: 'agent:answer', env: [CALLS, DOWN]}\n"
        "criteria: {response_match_score: 0.5}\nbaseline: {rerun: never}\n",
    )
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    commit(project, broken=False)
    project.store(CALLS=CALLS)
    calls(project).unlink()
    return project


@pytest.fixture
def project(project: Project, made: Project) -> Project:
    return made.copied(project)


def commit(project: Project, *, broken: bool) -> None:
    project.write("agent.py", AGENT.format(broken=broken))
    project.commit(f"broken: {broken}")


def calls(project: Project) -> Path:
    return project.root / CALLS


def asked(project: Project) -> int:
    return len(calls(project).read_text().splitlines()) if calls(project).exists() else 0


@pytest.mark.slow
def test_a_regression_is_not_run_away_from(project: Project) -> None:
    project.git("checkout", "-qb", "change")
    commit(project, broken=True)
    first = project.gate("run", "-q", CALLS=CALLS)
    assert first.code == 1
    after = asked(project)
    assert after > 20
    again = project.gate("run", "-q", CALLS=CALLS)
    assert (again.code, again.out) == (1, first.out)
    assert asked(project) == after, "the agent was asked again"


@pytest.mark.slow
def test_a_run_is_resumed_beside_everything_that_it_wrote(project: Project) -> None:
    """An ended run has every report in the work tree; the next command names none of them."""
    commit(project, broken=False)
    forms = ("html", "json", "junit", "markdown", "ctrf")
    reports = [*(f"--report={form}={form}.out" for form in forms), "--statement=statement.out"]
    first = project.gate("run", "-q", "--trials", "1", *reports, CALLS=CALLS)
    before = asked(project)
    again = project.gate("run", "-q", "--trials", "1", "--resume", CALLS=CALLS)
    assert (again.code, asked(project)) == (first.code, before), again.err


@pytest.mark.slow
def test_what_could_not_be_measured_is_run_again_and_nothing_else(project: Project) -> None:
    project.git("checkout", "-qb", "change")
    commit(project, broken=False)
    environment = {"CALLS": str(calls(project))}
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("CALLS, DOWN", "CALLS, DOWN_SECRET"))
    project.write("agent.py", (project.root / "agent.py").read_text().replace('"DOWN"', '"DOWN_SECRET"'))
    project.git("commit", "-qam", "read another name")
    down = project.gate("run", "-q", DOWN_SECRET="1", **environment)
    assert down.code == 3
    before = asked(project)
    up = project.gate("run", "-q", **environment)
    assert up.code == 0, up.out
    again = calls(project).read_text().splitlines()[before:]
    assert again
    assert set(again) == {"item 7"}


@pytest.mark.slow
def test_a_new_commit_is_measured_anew(project: Project) -> None:
    project.git("checkout", "-qb", "change")
    commit(project, broken=True)
    assert project.gate("run", "-q", CALLS=CALLS).code == 1
    before = asked(project)
    project.write("agent.py", AGENT.format(broken=False) + "\n# mended\n")
    project.commit("mended")
    assert project.gate("run", "-q", CALLS=CALLS).code == 0
    assert asked(project) >= before + 20
    mended = asked(project)
    commit(project, broken=False)
    assert project.gate("run", "-q", CALLS=CALLS).code == 0
    assert asked(project) == mended, "it is the base's agent again, of which enough is known"


@pytest.mark.slow
def test_answers_of_another_base_do_not_count_as_the_base_s(project: Project) -> None:
    """A run compared a change with an older baseline, as its base was not measured yet, and ran that commit's agent."""
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("rerun: never", "rerun: match"))
    commit(project, broken=True)  # on the default branch, and not measured
    project.git("checkout", "-qb", "change")
    project.write("notes.txt", "no part of the agent's behaviour\n")
    project.commit("a change")
    project.gate("run", "-q", CALLS="/dev/null")  # its base is not measured yet
    assert passes_of_base(project)[0], "the older base's agent"
    project.git("checkout", "-q", "-")
    store(project)
    project.git("checkout", "-q", "change")
    project.gate("run", "-q", CALLS="/dev/null")
    passed, asked = passes_of_base(project)
    assert not passed, f"{passed} of {asked}"


@pytest.mark.slow
def test_answers_of_the_base_s_agent_count_at_whichever_commit_it_ran(project: Project) -> None:
    text = (project.root / "gate.yaml").read_text().replace("rerun: never", "rerun: match")
    project.write("gate.yaml", text.replace("agent: {", "agent: {sources: [agent.py], "))
    project.commit("name the sources")
    store(project)
    project.write("notes.txt", "no part of the agent\n")
    project.commit("the base, which is not measured yet")
    project.git("checkout", "-qb", "change")
    commit(project, broken=True)
    project.gate("run", "-q", CALLS="/dev/null")
    before = answers_of_base(project)
    assert before
    project.git("checkout", "-q", "-")
    store(project)
    project.git("checkout", "-q", "change")
    project.gate("run", "-q", CALLS="/dev/null")
    assert answers_of_base(project)[: len(before)] == before


def store(project: Project) -> None:
    project.gate("run", "-q", CALLS="/dev/null")
    project.gate("baseline", "save", CALLS="/dev/null")


def answers_of_base(project: Project) -> list[Any]:
    """Return the trials of the base's agent in the newest record."""
    path = max((project.root / ".gate/records").rglob("*.jsonl"), key=lambda path: path.stat().st_mtime)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("side") == "baseline"]


def passes_of_base(project: Project) -> tuple[int, int]:
    """Return how often the base's agent passed the broken cases in the newest record, and how often it was asked."""
    scores = [line["scores"] for line in answers_of_base(project) if line["case"] in ("c3", "c4")]
    return sum(score["response_match_score"]["value"] == 1.0 for score in scores), len(scores)
