"""`gate import`: a suite of another product becomes one of the gate's own, and runs as it is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of

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


def test_a_limit_that_only_the_cases_state_is_kept(agent: Project) -> None:
    tests = [{"description": "one", "vars": {"q": "Hi"}, "assert": [{"type": "latency", "threshold": 5000}]}]
    agent.write("promptfooconfig.yaml", {"prompts": ["{{q}}"], "tests": tests})
    assert agent.gate("import", "promptfooconfig.yaml", "--to", "suite.json").code == 0
    configure(agent, criteria="suite.criteria.json")
    ran = agent.gate("run", "-q")
    assert ran.code == 0, ran.out + ran.err
    suite = agent.root / "suite.json"
    suite.write_text(suite.read_text().replace("5.0", "0.0000001"))
    assert agent.gate("run", "-q").code == 1


ADK_TURN = {"user_content": {"parts": [{"text": "Hi"}]}, "final_response": {"parts": [{"text": "Hello"}]}}
ADK_CASE = {"eval_id": "one", "conversation": [ADK_TURN], "final_session_state": {"paid": True}}
PROMPTFOO = {"description": "one", "vars": {"q": "Hi"}, "assert": [{"type": "javascript", "value": "1"}]}
SAMPLE = {"id": "one", "epoch": 1, "input": "Hi", "messages": [{"role": "user", "content": "Hi"},
          {"role": "assistant", "content": "Hello"}], "scores": {"model_graded_qa": {"value": "C"}}}  # fmt: skip
PYTHON = """from deepeval import assert_test
from deepeval.test_case import LLMTestCase
def one():
    assert_test(LLMTestCase(input="Hi"), [Mine()])
"""
LOSSY: dict[str, tuple[str, Any, str]] = {
    "adk": ("s.evalset.json", {"eval_set_id": "s", "eval_cases": [ADK_CASE]}, "one: final_session_state"),
    "promptfoo": (
        "promptfooconfig.yaml",
        {"prompts": ["{{q}}"], "tests": [PROMPTFOO]},
        "one: assertion javascript '1'",
    ),
    "inspect": (
        "log.json",
        {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": [SAMPLE]},
        "one: scorer model_graded_qa",
    ),
    "pydantic-evals": (
        "d.yaml",
        {"cases": [{"name": "one", "inputs": "Hi", "evaluators": ["Mine"]}]},
        "evaluator Mine",
    ),
    "deepeval": ("g.json", [{"name": "one", "input": "Hi", "expected_output": "x", "mine": 1}], "lost check: mine"),
    "langsmith": ("l.json", [{"id": "one", "inputs": {"q": "Hi"}, "outputs": {"answer": "x", "b": "y"}}], "outputs.b"),
    "langfuse": ("f.json", [{"id": "one", "input": "Hi", "expectedOutput": "x", "mine": 1}], "lost check: mine"),
    "openai-evals": ("e.json", [{"item": {"id": "one", "input": "Hi", "ideal": ["x", "y"]}}], "further texts of ideal"),
    "agentcore": ("a.json", [{"scenario_id": "one", "turns": [{"input": "Hi"}], "mine": 1}], "lost check: mine"),
    "evalview": (
        "v.yaml",
        {"name": "one", "input": {"query": "Hi"}, "thresholds": {"variance": {"max_std_dev": 5, "runs": 3}}},
        "one: variance.max_std_dev",
    ),
    "python-tests": ("test_one.py", PYTHON, "line 4: metric Mine()"),
}
"""Format → a file whose check has no counterpart here, and the check."""


@pytest.mark.parametrize("form", first_of(LOSSY, 4))
def test_a_check_that_is_lost_ends_with_2_in_every_format(project: Project, form: str) -> None:
    name, content, lost = LOSSY[form]
    project.write(name, content)
    ran = project.gate("import", name, "--to", "suite.json")
    (line,) = [line for line in ran.out.splitlines() if line.startswith("lost check: ")]
    assert (ran.code, lost in line) == (2, True), ran.out + ran.err
    assert "1 check would be lost" in ran.err
    assert not (project.root / "suite.json").exists()
    allowed = project.gate("import", name, "--to", "suite.json", "--allow-loss")
    assert allowed.code == 0, allowed.err
    assert line in allowed.out
    (case,) = json.loads((project.root / "suite.json").read_text())["cases"]
    assert case["input"] == "Hi"


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
