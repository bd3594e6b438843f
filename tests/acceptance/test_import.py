"""`gate import`: a suite of another product becomes one of the gate's own, and runs as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Project

DATASET: dict[str, Any] = {
    "cases": [{"name": f"c{n}", "inputs": f"say {n}", "expected_output": f"{n}", "evaluators": ["EqualsExpected"]}
              for n in range(12)],
}  # fmt: skip


@pytest.fixture
def agent(project: Project) -> Project:
    project.write("agent.py", "def answer(message):\n    return message.split()[-1]\n")
    return project


def configure(project: Project, **more: str) -> None:
    project.write("gate.yaml", {"suite": "suite.json", "agent": {"python": "agent:answer"}, **more})


def test_a_dataset_is_converted_and_runs_as_it_did_before(agent: Project) -> None:
    agent.write("in/dataset.json", DATASET)
    ran = agent.gate("import", "in/dataset.json", "--to", "suite.json")
    assert ran.code == 0, ran.err
    assert "suite.json: 12 cases" in ran.out
    configure(agent, criteria="suite.criteria.json")
    assert agent.gate("run", "-q").code == 0
    agent.write("agent.py", "def answer(message):\n    return 'well, ' + message.split()[-1]\n")
    assert agent.gate("run", "-q").code == 1
    agent.write("gate.yaml", {"suite": "in/dataset.json", "agent": {"python": "agent:answer"}})
    assert agent.gate("run", "-q").code == 1, "unconverted, the same checks hold"


def test_a_lost_check_writes_nothing_unless_allowed(agent: Project) -> None:
    cases = [{**DATASET["cases"][0], "evaluators": ["EqualsExpected", "IsInstance"]}, *DATASET["cases"][1:]]
    agent.write("in/dataset.json", {"cases": cases})
    ran = agent.gate("import", "in/dataset.json", "--to", "suite.json")
    assert (ran.code, ran.out) == (2, "lost check: c0: evaluator IsInstance\n")
    assert "1 check would be lost" in ran.err
    assert not (agent.root / "suite.json").exists()
    assert agent.gate("import", "in/dataset.json", "--to", "suite.json", "--allow-loss").code == 0
    assert len(json.loads((agent.root / "suite.json").read_text())["cases"]) == 12
    configure(agent, criteria="suite.criteria.json")
    assert agent.gate("run", "-q").code == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["in.json", "--to", "suite.yaml"], "ends in .json"),
        (["in.json", "--to", "in.json"], "exists"),
        (["nowhere", "--to", "suite.json"], "no such file"),
        (["in.json"], "--to"),
    ],
)
def test_what_cannot_be_written_is_said_in_a_line(project: Project, arguments: list[str], why: str) -> None:
    project.write("in.json", DATASET)
    ran = project.gate("import", *arguments)
    assert ran.code == 2, ran.err
    assert why in ran.err
