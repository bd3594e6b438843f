"""ADK's files through the command line: as strict as google-adk, and no stricter about what Google's own files hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Project

AGENT = """\
def answer(message):
    return {"output": "It is on its way.", "tool_calls": [{"name": "find", "arguments": {"id": 1}}]}
"""


def evalset(call: dict[str, Any]) -> dict[str, Any]:
    turn = {
        "user_content": {"parts": [{"text": "Where is it?"}]},
        "final_response": {"parts": [{"text": "It is on its way."}]},
        "intermediate_data": {"tool_uses": [call]},
    }
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "late", "initial_state": {}, "conversation": [turn]}]}


def set_up(project: Project, call: dict[str, Any], criteria: dict[str, Any], **beside: Any) -> None:
    project.write("agent.py", AGENT)
    project.write("gate.yaml", "suite: evals\nagent: {python: agent:answer}\njudge: {model: m}\n")
    project.write("evals/a.evalset.json", json.dumps(evalset(call), indent=1))
    project.write("evals/test_config.json", {"criteria": criteria, **beside})


@pytest.mark.slow
def test_a_file_as_google_writes_it_runs(project: Project) -> None:
    criteria = {"tool_trajectory_avg_score": 1.0, "safety_v1": {"threshold": 0.8, "backend": "patterns"}}
    set_up(project, {"name": "find", "args": {"id": 1}}, criteria, live_model_config={})
    code, result = project.result("run")
    verdicts = {one["criterion"]["name"]: one["verdict"] for one in result["suites"][0]["criteria"]}
    assert (code, verdicts["tool_trajectory_avg_score"], verdicts["safety_v1"]) == (0, "pass", "pass")


@pytest.mark.slow
def test_a_misspelt_key_of_a_call_is_refused_with_its_place(project: Project) -> None:
    subset = {"tool_trajectory_avg_score": {"threshold": 1.0, "args": "subset"}}
    set_up(project, {"name": "find", "arg": {"id": 2}}, subset)
    ran = project.gate("run")
    assert ran.code == 2
    assert "evals/a.evalset.json:" in ran.err
    assert "unknown key 'arg' in a function call, did you mean 'args'?" in ran.err


def test_an_option_in_both_spellings_is_refused(project: Project) -> None:
    both = {"tool_trajectory_avg_score": {"threshold": 1.0, "match_type": "EXACT", "matchType": "ANY_ORDER"}}
    set_up(project, {"name": "find", "args": {"id": 1}}, both)
    ran = project.gate("run")
    assert (ran.code, "both match_type and matchType are given" in ran.err) == (2, True)


def test_a_legacy_list_in_camel_case_expects_what_it_says(project: Project) -> None:
    for args, code in (({"id": 1}, 0), ({"id": 2}, 1)):
        set_up(project, {"name": "find"}, {"tool_trajectory_avg_score": {"threshold": 1.0, "args": "subset"}})
        turn = {"query": "Where is it?", "expectedToolUse": [{"toolName": "find", "toolInput": args}]}
        (project.root / "evals" / "a.evalset.json").unlink()
        project.write("evals/a.test.json", json.dumps([turn]))
        assert project.gate("run").code == code
