"""Conversations instead of an agent: one that the agent never answered is no conversation less, but one that failed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of

CONFIG = {
    "suite": "rows.jsonl",
    "agent": {"replay": True},
    "criteria": {"not_contains": {"values": ["I cannot"]}},
    "baseline": {"store": "none"},
}


def row(name: str, *, answered: bool = True) -> str:
    said = [{"role": "user", "content": f"Where is {name}?"}, {"role": "assistant", "content": "On its way."}]
    return json.dumps({"id": name, "messages": said if answered else said[:1]}) + "\n"


def cases(result: dict[str, Any]) -> dict[str, str]:
    return {case["id"]: json.dumps(case) for case in result["suites"][0]["cases"]}


@pytest.mark.parametrize("where", first_of(["first", "last"]))
def test_a_row_without_an_answer_is_a_failed_trial_of_its_case(project: Project, where: str) -> None:
    good, silent = "".join(row(name) for name in "abcdef") * 3, row("b", answered=False)
    project.write("gate.yaml", CONFIG)
    project.write("rows.jsonl", good)
    code, _ = project.result("run")
    assert code == 0
    project.write("rows.jsonl", silent + good if where == "first" else good + silent)
    code, result = project.result("run")
    assert (code, result["verdict"]) == (1, "below_threshold")
    told = cases(result)["b"]
    assert "the recording holds no answer" in told
    assert result["suites"][0]["agent_runs"] == 19


def test_a_case_that_was_never_answered_misses_beside_others(project: Project) -> None:
    project.write("gate.yaml", {**CONFIG, "criteria": {"not_contains": {"values": ["I cannot"], "threshold": 0.9}}})
    project.write("rows.jsonl", "".join(row(name, answered=name != "b") for name in "abcdef") * 3)
    code, result = project.result("run")
    assert (code, result["verdict"]) == (1, "below_threshold")
    assert "the recording holds no answer" in cases(result)["b"]


def test_rows_without_an_answer_stay_cases_for_an_agent_that_is_run(project: Project) -> None:
    project.write("agent.py", "def answer(message):\n    return {'output': 'On its way.'}\n")
    project.write("gate.yaml", {**CONFIG, "agent": {"python": "agent:answer"}})
    project.write("rows.jsonl", "".join(row(name, answered=False) for name in "abcdef"))
    assert project.result("run")[0] == 0
    assert "recorded" not in project.gate("suite").out
    project.write("gate.yaml", CONFIG)
    ran = project.gate("run")
    assert ran.code == 3
    assert "the suite holds no recorded trials to replay" in ran.err
