"""One job, several suites, one error budget, which they share; a real agent, real runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gate.pipeline.terms import own_terms
from gate.records import read_record
from tests.acceptance.conftest import Project

CASES = 8
STORED = 11
AGENT = """\
import random
from pathlib import Path

BROKEN = Path(__file__).with_name("broken.txt").read_text().split()


def answer(message):
    word = message.split()[-1]
    said = f"Done, ticket {random.randrange(10**9)}."
    return {"output": said, "tool_calls": [{"name": "guess" if word in BROKEN else "look_up"}]}
"""
CONFIG = """\
suite: suites
agent: {python: "agent:answer", concurrency: 8}
baseline: {rerun: never}
trials: 1
"""


@pytest.fixture
def change(project: Project) -> Project:
    """Three suites with a baseline of eleven trials per case, and a branch."""
    for name in "abc":
        cases = [{"id": f"{name}{n}", "input": f"item {name}{n}", "tools": ["look_up"]} for n in range(CASES)]
        project.write(f"suites/{name}/suite.yaml", {"cases": cases})
        criteria = {"tool_trajectory_avg_score": {"threshold": 0.01, "match_type": "EXACT"}}
        project.write(f"suites/{name}/test_config.json", {"criteria": criteria})
    project.write("gate.yaml", CONFIG)
    project.write("agent.py", AGENT)
    project.write("broken.txt", "")
    project.write(".gitignore", ".gate/\nresult.json\n__pycache__/\n")
    project.commit()
    assert project.gate("run", "-q", "--trials", str(STORED)).code == 0
    assert project.gate("baseline", "save").code == 0
    project.git("checkout", "-q", "-b", "change")
    return project


def judged(project: Project, *broken: str) -> tuple[int, dict[str, dict[str, Any]], dict[str, int]]:
    """The exit code, the suites by their name, and the comparisons that each was judged among."""
    project.write("broken.txt", " ".join(broken))
    project.commit(f"breaks {len(broken)}")
    code, found = project.result("run", "-q")
    names = [Path(suite["suite_id"]).parts[-1][0] for suite in found["suites"]]
    divided = [own_terms(read_record(Path(path))).settings.comparisons for path in found["record_paths"]]
    return code, dict(zip(names, found["suites"], strict=True)), dict(zip(names, divided, strict=True))


@pytest.mark.slow
def test_a_suite_is_judged_alike_whatever_the_others_show(change: Project) -> None:
    """Two cases fail once each against eleven passes: chance does that to 1 of 144, which a third of alpha does not
    prove."""
    few = ("b0", "b1")
    code, alone, divided = judged(change, *few)
    assert (alone["b"]["verdict"], code) == ("inconclusive", 0), "a third of alpha does not prove it"
    assert divided == {"a": 3, "b": 3, "c": 3}
    code, both, divided = judged(change, *(f"a{n}" for n in range(CASES)), *few)
    verdicts = {name: suite["verdict"] for name, suite in both.items()}
    assert verdicts == {"a": "regressed", "b": "inconclusive", "c": "pass"}
    assert (code, divided) == (1, {"a": 3, "b": 3, "c": 3})
    _, again = change.result("report", json.loads((change.root / "result.json").read_text())["record_paths"][1])
    assert again["suites"][0]["verdict"] == "inconclusive"
    assert any("over this job's 3 suites" in line for line in both["c"]["story"])


@pytest.mark.slow
def test_one_regressed_suite_says_nothing_of_the_others(change: Project) -> None:
    code, suites, _ = judged(change, *(f"a{n}" for n in range(CASES)))
    assert code == 1
    assert {name: suite["verdict"] for name, suite in suites.items()} == {"a": "regressed", "b": "pass", "c": "pass"}
