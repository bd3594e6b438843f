"""What agents of real frameworks return, taken as it is: text, calls with results, usage and cost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.frameworks.scripted_model import serving
from tests.acceptance.conftest import Project
from tests.connectors.servers import ask, turns_of
from tests.connectors.test_instrumented_agents import AGENTS, suite

pytestmark = pytest.mark.connectors
ORDERS = ["A1", "B2"]


def turns(
    project: Project, interpreter: Path, module: str, function: str = "result", orders: Sequence[str] = ORDERS
) -> list[dict[str, object]]:
    for path in AGENTS.glob("*.py"):
        shutil.copy(path, project.root)
    project.write("cases.json", suite(list(orders)))
    agent = {"python": f"{module}:{function}", "executable": str(interpreter), "env": {"OTEL_SDK_DISABLED": "true"}}
    criteria = {"tool_trajectory_avg_score": 1.0, "forbidden_tools": {"tools": ["delete"]}}
    project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": criteria, "trials": 1})
    ran = project.gate("run", "--record", "record.jsonl")
    assert ran.code == 0, ran.out + ran.err
    lines = map(json.loads, (project.root / "record.jsonl").read_text().splitlines())
    return [line["turns"][0] for line in lines if "turns" in line]


@pytest.mark.parametrize("module", ["openai_agents_agent", "pydantic_ai_agent", "langchain_agent", "claude_messages"])
def test_a_result_is_an_answer(project: Project, frameworks: Path, module: str) -> None:
    check(turns(project, frameworks, module), module)


def test_the_second_form_of_a_graphs_output_is_an_answer(project: Project, frameworks: Path) -> None:
    check(turns(project, frameworks, "langchain_agent", "output"), "langchain_agent")


def test_events_of_adk_are_an_answer(project: Project, agentevals: Path) -> None:
    """The environment of agentevals has google-adk."""
    check(turns(project, agentevals.with_name("python"), "adk_events"), "adk_events")


@pytest.mark.parametrize("module", ["openai_agents_agent", "pydantic_ai_agent", "langchain_agent", "claude_messages"])
def test_a_result_tells_that_its_answer_was_cut_off(project: Project, frameworks: Path, module: str) -> None:
    check_cut_off(project, frameworks, module)


def test_events_of_adk_tell_that_their_answer_was_cut_off(project: Project, agentevals: Path) -> None:
    check_cut_off(project, agentevals.with_name("python"), "adk_events")


def check_cut_off(project: Project, interpreter: Path, module: str) -> None:
    """The scripted models stop at the limit of length in the case of order Z9."""
    found = turns(project, interpreter, module, orders=["A1", "Z9"])
    cut_off = {"Z9" in str(turn): turn["usage"].get("cut_off", False) for turn in found}  # type: ignore[attr-defined]
    assert cut_off == {False: False, True: True}


CREWS: dict[str, list[tuple[str, str | None]] | None] = {
    "two tasks": [("lookup_order", None), ("lookup_order", None)],
    "alone": [("lookup_order", None)],
    "failing": [("lookup_order", "no such order")],
    "used before": None,
    "refused once": None,
    "shared model": None,
}
"""The calls that each crew's output tells, and what they failed with; None where some may be missing."""


def test_a_crew_tells_its_calls_where_its_output_has_all_of_them(project: Project, crewai: Path) -> None:
    shutil.copy(AGENTS / "crews.py", project.root)
    with serving() as variables:
        agent = {"python": "crews:answer", "executable": str(crewai), "env": variables, "concurrency": 2}
        ask(project, agent, [{"id": name, "input": name, "response": "Order A1 has shipped."} for name in CREWS])
    turns = {case: told[0] for case, told in turns_of(project).items()}
    found = {
        case: [(call["name"], call.get("error")) for call in turn.get("calls", ())]
        if turn.get("reports_calls")
        else None
        for case, turn in turns.items()
    }
    assert found == CREWS
    assert {case for case, turn in turns.items() if turn.get("unseen") == ["calls"]} == {
        case for case, calls in CREWS.items() if calls is None
    }
    assert {case for case, turn in turns.items() if "usage" in turn} == {
        case for case, calls in CREWS.items() if calls is not None
    }
    assert all(turn["response"] == ["Order A1 has shipped."] for case, turn in turns.items() if case != "two tasks")


@pytest.mark.parametrize("module", ["openai_agents_agent", "pydantic_ai_agent"])
def test_a_failure_that_the_framework_hides_is_the_error_of_its_call(
    project: Project, frameworks: Path, module: str
) -> None:
    for turn in turns(project, frameworks, module, orders=["F6", "F7"]):
        (call,) = turn["calls"]  # type: ignore[misc]
        assert call["error"]
    assert "Every call of `lookup` failed, in 2 trials: " in project.gate("report", "record.jsonl").out


def check(found: list[dict[str, object]], module: str) -> None:
    assert len(found) == len(ORDERS)
    for turn in found:
        (call,) = turn["calls"]  # type: ignore[misc]
        result = call["result"]
        assert (json.loads(result) if isinstance(result, str) else result) == {"status": "shipped"}
        assert call["id"] == "c1"
        assert turn["response"] == ["It has shipped."]
        usage = turn["usage"]
        assert isinstance(usage, dict)
        assert usage["input_tokens"] in ((20,) if module != "pydantic_ai_agent" else range(1, 1_000))
        assert usage.get("cost_usd") == (0.25 if module == "claude_messages" else None)
