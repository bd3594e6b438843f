"""Custom metrics: for the gate's interpreter and the agent's, with our signature and with google-adk's."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import REPOSITORY, Project, first_of

SUITE = """\
cases:
  - {id: a, input: Refund A1, tools: [{name: refund, args: {id: A1}}], response: Your refund was issued}
"""
AGENT = """\
def answer(message):
    call = {"name": "refund", "arguments": {"id": "A1"}, "result": [9]}
    return {"output": "Your refund was issued", "tool_calls": [call]}
"""
METRICS = """\
import os
{imports}
def ours(actual, expected):
    (happened,), (wanted,) = actual, expected
    assert happened.user == wanted.user == "Refund A1"
    assert happened.tool_calls[0].name == wanted.tools[0].name == "refund"
    assert happened.tool_calls[0].args == {{"id": "A1"}} and happened.tool_calls[0].result == [9]
    assert wanted.response[0].text == happened.text and not wanted.response[0].thought
    return {{"value": {found}, "reason": "issued"}} if {as_mapping} else {found}

class Result:
    def __init__(self, score): self.score = self.overall_score = score; self.per_invocation_results = []

def adk(eval_metric, actual_invocations, expected_invocations=None, conversation_scenario=None):
    (happened,), (wanted,) = actual_invocations, expected_invocations
    assert (eval_metric.metric_name, eval_metric.threshold) == ("ok", None)
    assert eval_metric.criterion.threshold == 0.5 and conversation_scenario is None
    assert happened.user_content.parts[0].text == "Refund A1" and happened.final_response.role == "model"
    assert happened.final_response.parts[0].text == wanted.final_response.parts[0].text
    called, meant = happened.intermediate_data.tool_uses[0], wanted.intermediate_data.tool_uses[0]
    assert (called.name, called.args) == (meant.name, meant.args) == ("refund", {{"id": "A1"}})
    assert happened.intermediate_data.tool_responses[0].response == {{"result": [9]}}
    return Result({found})

async def later(actual, expected):
    import asyncio
    await asyncio.sleep(0)
    return {found}

def fails(actual, expected): raise KeyError("order")
def ends(actual, expected): os._exit(7)
def hangs(actual, expected):
    import time
    time.sleep(3600)
def percent(actual, expected): return 80
"""


def write(project: Project, metric: str, *, found: str = "1.0", imports: str = "", as_mapping: bool = False) -> Project:
    """A project whose one criterion is a custom metric; only its own folder holds the modules."""
    project.write("suite.yaml", SUITE)
    project.write("agent.py", AGENT)
    project.write("my_metrics.py", METRICS.format(found=found, imports=imports, as_mapping=as_mapping))
    project.write("gate.yaml", f"agent: {{python: agent:answer, timeout: 60s}}\nsuite: suite.yaml\n{metric}\n")
    return project


def criterion(path: str, where: str) -> str:
    return f"criteria: {{ok: {{metric: '{path}', threshold: 0.5, run_in: {where}}}}}"


def reason(result: dict[str, Any]) -> str:
    (suite,) = result["suites"]
    return " ".join(suite["cases"][0]["reasons"])


@pytest.mark.slow
@pytest.mark.parametrize("where", ["gate", "agent"])
@pytest.mark.parametrize("path", first_of(["my_metrics:ours", "my_metrics.adk"]))
@pytest.mark.parametrize(("found", "code"), first_of([("0.0", 1), ("1.0", 0)]))
def test_a_custom_metric_decides_wherever_it_runs(
    project: Project, path: str, where: str, found: str, code: int
) -> None:
    write(project, criterion(path, where), found=found, as_mapping=True)
    got, result = project.result("run")
    assert got == code, result
    (suite,) = result["suites"]
    assert suite["criteria"][1]["candidate"]["value"] == float(found)


@pytest.mark.slow
def test_a_module_of_the_agents_alone_is_importable_beside_the_agent(project: Project, tmp_path: Path) -> None:
    """A virtual environment that has a package which the gate does not have."""
    write(project, criterion("my_metrics:ours", "agent"), imports="import only_beside_the_agent")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    (packages / "only_beside_the_agent.py").write_text("")
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("timeout: 60s", "executable: venv"))
    assert project.gate("run").code == 0
    project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("run_in: agent", "run_in: gate"))
    ran = project.gate("run")
    assert ran.code == 2
    assert "needs module 'only_beside_the_agent', which is not installed" in ran.err


def test_adks_custom_metrics_load_from_its_test_config(project: Project) -> None:
    write(project, "criteria: test_config.json")
    code = {"code_config": {"name": "my_metrics.adk"}}
    project.write("test_config.json", {"criteria": {"ok": 0.5}, "custom_metrics": {"ok": code}})
    assert project.gate("run").code == 0


@pytest.mark.slow
def test_custom_metrics_are_found_where_python_does_not_look_in_the_working_directory(project: Project) -> None:
    """As with the installed command, and in the action's container."""
    write(project, criterion("my_metrics:ours", "gate"))
    content = {"role": "user", "parts": [{"text": "Refund A1"}]}
    calls = {"tool_uses": [{"name": "refund", "args": {"id": "A1"}}]}
    turn = {"user_content": content, "final_response": {"parts": [{"text": "done"}]}, "intermediate_data": calls}
    project.write("metrics_of_mine.py", "def same(actual, expected):\n    return actual[0].text == 'done'\n")
    line = json.dumps({"id": "x", "actual": [turn], "expected": [turn]})
    for command, given in (["run"], ""), (["score", "--metric", "metrics_of_mine:same"], line):
        argv = [sys.executable, "-I", "-m", "gate", *command]
        ran = subprocess.run(argv, cwd=project.root, input=given, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
    assert json.loads(ran.stdout)["score"] == 1.0


def test_an_async_custom_metric_runs_beside_the_agent_alone(project: Project) -> None:
    assert write(project, criterion("my_metrics:later", "agent")).gate("run").code == 0
    ran = write(project, criterion("my_metrics:later", "gate")).gate("run")
    assert ran.code == 2
    assert "`run_in: agent` runs coroutine functions" in ran.err


@pytest.mark.parametrize(
    ("name", "where", "error"),
    first_of(
        [
            ("percent", "agent", "the custom metric returned 80, not a number from 0 to 1"),
            ("fails", "gate", "the metric raised KeyError: 'order'"),
            ("fails", "agent", "the custom metric failed: KeyError: 'order' (my_metrics.py:30)"),
            ("ends", "gate", "the custom metric failed: its process exited with status 7"),
            ("ends", "agent", "the custom metric failed: its process exited with status 7"),
            ("hangs", "agent", "the custom metric gave no answer within 5 s"),
            ("percent", "gate", "the custom metric returned 80, not a number from 0 to 1"),
        ],
        2,
    ),
)
def test_a_custom_metric_that_fails_leaves_the_score_not_measured(
    project: Project, name: str, where: str, error: str
) -> None:
    write(project, criterion(f"my_metrics:{name}", where))
    if name == "hangs":
        project.write("gate.yaml", (project.root / "gate.yaml").read_text().replace("timeout: 60s", "timeout: 5s"))
    code, result = project.result("run")
    assert code == 3
    assert error in reason(result)


@pytest.mark.parametrize(
    ("metric", "agent", "code", "error"),
    [
        ("my_metrics:nothing", "python", 3, "cannot import the custom metric my_metrics:nothing"),
        ("my_metrics:ours", "command", 2, "ok: `run_in: agent` needs a python: agent, and this one is command:"),
    ],
)
def test_a_custom_metric_that_cannot_run_beside_the_agent(
    project: Project, metric: str, agent: str, code: int, error: str
) -> None:
    write(project, criterion(metric, "agent"))
    if agent == "command":
        project.write("gate.yaml", f"agent: {{command: cat}}\nsuite: suite.yaml\n{criterion(metric, 'agent')}\n")
    ran = project.gate("run")
    assert ran.code == code, ran.out + ran.err
    assert error in ran.err


def test_run_in_is_for_custom_metrics_alone(project: Project) -> None:
    ran = write(project, "criteria: {tool_accuracy: {threshold: 1, run_in: agent}}").gate("run")
    assert ran.code == 2
    assert "unknown option 'run_in'" in ran.err
    assert "expected `gate` or `agent`" in write(project, criterion("my_metrics:ours", "cloud")).gate("run").err


@pytest.mark.slow
def test_the_examples_of_the_guide_run(project: Project) -> None:
    guide = (REPOSITORY / "docs" / "how-to" / "extend.md").read_text(encoding="utf-8")
    page = guide.partition("\n## A metric of your own\n")[2].partition("\n## ")[0]
    functions = [text for text in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "google" not in text]
    criteria = [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "executable" not in text]
    assert (len(functions), len(criteria)) == (2, 3)
    for text in criteria:
        write(project, text)
        project.write("checks.py", "\n".join(functions))
        ran = project.gate("run")
        assert ran.code == 0, ran.out + ran.err


@pytest.mark.oracle
def test_adks_own_classes_are_handed_over_where_they_are_installed(project: Project) -> None:
    """Needs an interpreter with google-adk, named by GATE_ORACLE_PYTHON."""
    python = os.environ.get("GATE_ORACLE_PYTHON")
    if not python:
        pytest.skip("GATE_ORACLE_PYTHON names no interpreter with google-adk")
    code = "from google.adk.evaluation.eval_case import Invocation, get_all_tool_calls"
    write(project, criterion("my_metrics:native", "agent"), imports=code)
    with (project.root / "my_metrics.py").open("a") as file:
        file.write(
            "from google.adk.evaluation.evaluator import EvalStatus, EvaluationResult, PerInvocationResult\n"
            "def native(eval_metric, actual, expected, scenario):\n"
            "    assert isinstance(actual[0], Invocation) and isinstance(expected[0], Invocation)\n"
            "    made = get_all_tool_calls(actual[0].intermediate_data)\n"
            "    score = float(made[0].args == {'id': 'A1'})\n"
            "    each = PerInvocationResult(actual_invocation=actual[0], score=score, eval_status=EvalStatus.PASSED)\n"
            "    return EvaluationResult(overall_score=score, per_invocation_results=[each])\n"
        )
    text = (project.root / "gate.yaml").read_text()
    project.write("gate.yaml", text.replace("timeout: 60s", f"executable: {python}, timeout: 60s"))
    got, result = project.result("run")
    assert got == 0, result
