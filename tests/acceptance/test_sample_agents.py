"""The eval sets and criteria that ship with four sample agents: they load unchanged, and score when an agent is driven.

The agent is scripted: it answers each query with what the eval set expects, or with something else where told to.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project, first_of

AGENTS = {"RAG": 1, "customer-service": 2, "llm-auditor": 2, "travel-concierge": 3}
"""Sample → its cases."""

SCRIPTED = """
import json, os, pathlib

ANSWERS = {}
for path in sorted(pathlib.Path("evals").rglob("*.test.json")):
    data = json.loads(path.read_text())
    if isinstance(data, list):
        for row in data:
            calls = [{"name": t["tool_name"], "arguments": t["tool_input"]} for t in row["expected_tool_use"]]
            ANSWERS[row["query"]] = {"output": row["reference"], "tool_calls": calls}
    else:
        for case in data["eval_cases"]:
            for turn in case["conversation"]:
                uses = (turn.get("intermediate_data") or {}).get("tool_uses") or []
                calls = [{"name": use["name"], "arguments": use["args"]} for use in uses]
                parts = (turn["final_response"] or {}).get("parts", [])
                text = "\\n".join(part["text"] for part in parts if part.get("text"))
                ANSWERS[turn["user_content"]["parts"][0]["text"]] = {"output": text, "tool_calls": calls}


def answer(message):
    if os.environ.get("SILENT"):
        return {"output": "I do not know.", "tool_calls": []}
    return ANSWERS[message]
"""


def prepare(project: Project, folder: Path, name: str) -> None:
    shutil.copytree(folder, project.root / "evals" / name)
    project.write("scripted.py", SCRIPTED)
    project.write("gate.yaml", "suite: evals/\nagent: {python: scripted:answer, env: [SILENT]}\ntrials: 1\n")


@pytest.mark.parametrize("name", first_of(AGENTS, 2))
def test_a_sample_loads_with_its_own_criteria_and_a_right_answer_scores_one(
    project: Project, shared: Callable[[str], Path], name: str
) -> None:
    prepare(project, shared(f"adk-samples/{name}"), name)
    code, result = project.result("run")
    assert code == 0, result
    (suite,) = result["suites"]
    assert suite["suite_id"] == f"evals/{name}"
    assert len(suite["cases"]) == AGENTS[name]
    by_name = {found["criterion"]["name"]: found for found in suite["criteria"]}
    stated = json.loads((project.root / "evals" / name / "test_config.json").read_text())["criteria"]
    for metric, threshold in stated.items():
        assert by_name[metric]["criterion"]["threshold"] == threshold
        assert by_name[metric]["candidate"]["value"] == 1.0, metric


def test_wrong_answers_fall_below_the_samples_thresholds(project: Project, shared: Callable[[str], Path]) -> None:
    prepare(project, shared("adk-samples/customer-service"), "customer-service")
    code, result = project.result("run", SILENT="1")
    assert code == 1
    assert result["verdict"] == "below_threshold"


@pytest.mark.slow
def test_each_folder_with_criteria_is_a_suite_of_its_own(project: Project, shared: Callable[[str], Path]) -> None:
    for name in AGENTS:
        prepare(project, shared(f"adk-samples/{name}"), name)
    described = project.gate("suite")
    assert described.code == 0, described.err
    code, result = project.result("run")
    assert code == 0
    assert [suite["suite_id"] for suite in result["suites"]] == sorted(f"evals/{name}" for name in AGENTS)
    assert all(f"evals/{name}" in described.out for name in AGENTS)
