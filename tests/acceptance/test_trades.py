"""A change that breaks two cases and repairs four, under each policy: verdict, headline and exit code say one thing."""

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


@pytest.fixture
def change(project: Project) -> Project:
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
    ("policy", "margin", "code", "verdict", "starts", "ends"),
    [
        ("block", 0.3, 1, "regressed", "a trade: 2 cases broke", "pass rate 90 % → 95 %"),
        pytest.param(
            *("warn", 0.3, 0, "inconclusive", "a trade, which does not block by itself: ", "pass rate 90 % → 95 %"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            *("accept", 0.3, 0, "pass", "a trade, which is accepted here: ", "pass rate 90 % → 95 %"),
            marks=pytest.mark.slow,
        ),
        (
            "warn",
            0.0,
            1,
            "inconclusive",
            "a trade, which does not block by itself: ",
            "; not enough evidence on pass rate besides, which blocks here (`gate.on_inconclusive`)",
        ),
    ],
)
def test_headline_and_exit_code_agree_under_a_strict_gate(
    change: Project, policy: str, margin: float, code: int, verdict: str, starts: str, ends: str
) -> None:
    configure(change, on_tradeoff=policy, on_inconclusive="block", pass_rate_margin=margin)
    change.commit("a trade")
    ended, found = change.result("run", "-q")
    [suite] = found["suites"]
    assert (ended, suite["verdict"]) == (code, verdict), suite["headline"]
    assert suite["headline"].startswith(starts) and suite["headline"].endswith(ends), suite["headline"]
    shown = change.gate("report", found["record_paths"][0])
    last = {
        (0, "inconclusive"): "exit code 0: inconclusive, which does not block here",
        (1, "inconclusive"): "exit code 1: inconclusive, which blocks here (`gate.on_inconclusive`)",
        (1, "regressed"): "exit code 1: the gate failed",
        (0, "pass"): "exit code 0: pass",
    }[code, verdict]
    assert shown.out.rstrip().splitlines()[-1].strip() == last
    assert shown.code == code
