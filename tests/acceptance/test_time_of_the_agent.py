"""The agent's time is its own: how long the gate takes to score an answer fails no other trial."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import Project

pytestmark = pytest.mark.slow

AGENT = """
import asyncio

async def answer(message):
    await asyncio.sleep(0.0 if message == "first" else 0.7)
    return message
"""
CHECKS = """
import time

def slowly(case, answer):
    time.sleep(2.5 if "first" in str(answer) else 0.0)
    return True
"""


def test_an_answer_that_takes_long_to_score_fails_no_trial_beside_it(project: Project) -> None:
    project.write("agent.py", AGENT)
    project.write("checks.py", CHECKS)
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": "first" if n == 0 else f"w{n}"} for n in range(6)]})
    config = {
        "suite": "suite.yaml",
        "name": "s",
        "agent": {"python": "agent:answer", "timeout": "1.5s", "concurrency": 6},
        "criteria": {"checks:slowly": 0.5},
    }
    project.write("gate.yaml", json.dumps(config))
    project.commit()
    code, found = project.result("run", "--trials", "1")
    assert (code, found["verdict"]) == (0, "pass"), found
