"""A change that breaks two cases and repairs four, under each policy: its verdict and exit code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import Project

CASES = 40
AGENT = """\
import random

BROKEN = BROKEN_HERE


def answer(message):
    wrong = int(message.split()[-1]) in BROKEN
    said = f"Done, ticket {random.randrange(10**9)}."
    return {"output": said, "tool_calls": [{"name": "guess" if wrong else "look_up"}]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("made"))
    cases = [{"id": f"case-{n}", "input": f"item {n}", "tools": ["look_up"]} for n in range(CASES)]
    project.write("suite.yaml", {"cases": cases})
    project.write("agent.py", AGENT.replace("BROKEN_HERE", "{10, 11, 12, 13}"))
    project.write(".gitignore", ".gate/\nresult.json\n__pycache__/\n")
    configure(project)
    project.commit()
    project.store()
    project.git("checkout", "-q", "-b", "change")
    project.write("agent.py", AGENT.replace("BROKEN_HERE", "{0, 1}"))
    return project


@pytest.fixture
def change(project: Project, made: Project) -> Project:
    return made.copied(project)


def configure(project: Project, **gate: Any) -> None:
    project.write(
        "gate.yaml",
        {
            "suite": "suite.yaml",
            "agent": {"python": "agent:answer", "concurrency": 8},
            "criteria": {"tool_trajectory_avg_score": {"match_type": "EXACT", "margin": 0.3}},
            "baseline": {"rerun": "never"},
            "trials": 5,
            "gate": gate,
        },
    )


def test_a_trade_is_a_regression(change: Project) -> None:
    configure(change, pass_rate_margin=0.3)
    change.commit("a trade")
    code, found = change.result("run", "-q")
    [suite] = found["suites"]
    assert (code, suite["verdict"], suite["facts"]["cause"]["kind"]) == (1, "regressed", "cases_broke")
    assert change.gate("report", found["record_paths"][0]).code == code
