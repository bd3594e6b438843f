"""A change that breaks two cases and repairs four, under each policy: its verdict and exit code."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of

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


@pytest.mark.parametrize(
    ("policy", "margin", "code", "verdict"),
    first_of(
        [
            ("warn", 0.0, 1, "inconclusive"),
            ("block", 0.3, 1, "regressed"),
            ("warn", 0.3, 0, "inconclusive"),
            ("accept", 0.3, 0, "pass"),
        ],
        2,
    ),
)
def test_verdict_and_exit_code_under_a_strict_gate(
    change: Project, policy: str, margin: float, code: int, verdict: str
) -> None:
    configure(change, on_tradeoff=policy, on_inconclusive="block", pass_rate_margin=margin)
    change.commit("a trade")
    ended, found = change.result("run", "-q")
    [suite] = found["suites"]
    assert (ended, suite["verdict"]) == (code, verdict), suite["headline"]
    assert change.gate("report", found["record_paths"][0]).code == code
