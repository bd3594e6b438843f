"""An attempt that failed and was tried again: a forbidden call in it counts, in each way in which it is seen."""

from __future__ import annotations

import json
import sys

import pytest

from tests.acceptance.conftest import Project

AGENT = """
import json, pathlib, sys
request = json.load(sys.stdin)
marker, dropped = pathlib.Path("failed"), [{"name": "drop", "args": {}}]
calls = []
if request["messages"][0]["content"] == "hello 3" and not marker.exists():
    turn, last = request["turn"], TURNS - 1
    calls = dropped if turn == 0 else []
    if turn == last:
        marker.touch()
        FAIL
print(json.dumps({"output": "fine", "tool_calls": calls}))
"""
STATED = 'print(json.dumps({"error": "429 rate limit", "tool_calls": calls})); sys.exit()'
PRINTED = 'print(json.dumps({"output": "", "tool_calls": calls})); sys.exit("429 too many requests")'
SILENT = 'sys.exit("429 too many requests")'


@pytest.mark.parametrize(
    ("fail", "turns"),
    [(STATED, 1), (PRINTED, 1), (SILENT, 2)],
    ids=["in an answer with an error", "in the output of a program that failed", "in an earlier turn"],
)
def test_a_forbidden_call_in_an_attempt_that_failed_counts(project: Project, fail: str, turns: int) -> None:
    cases = []
    for number in range(1, 6):
        said = [{"input": f"hello {number}"}, {"input": "go on"}]
        cases.append({"id": f"case {number}", "turns": said[:turns]})
    project.write("evals.json", {"cases": cases})
    project.write("agent.py", AGENT.replace("TURNS", str(turns)).replace("FAIL", fail))
    criteria = {"forbidden_tools": {"tools": ["drop"]}, "contains": {"values": ["fine"], "threshold": 0.5}}
    agent = {"command": [sys.executable, "agent.py"]}
    project.write("gate.yaml", json.dumps({"suite": "evals.json", "agent": agent, "criteria": criteria, "trials": 1}))
    code, result = project.result("run")
    assert (project.root / "failed").exists()
    assert (code, result["verdict"]) == (1, "below_threshold")
    assert "in an earlier attempt, which infrastructure ended" in json.dumps(result)
    shown = project.gate("explain", "--case", "case 3").out
    assert "an earlier attempt, which infrastructure ended:\n    turn 1: drop" in shown, shown
