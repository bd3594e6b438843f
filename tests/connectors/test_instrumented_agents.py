"""Agents of real frameworks that answer with bare text, judged by the spans they export to the gate's receiver."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from examples.frameworks.scripted_model import serving
from tests.acceptance.conftest import Project

pytestmark = pytest.mark.connectors
AGENTS = Path(__file__).parent / "agents"
ORDERS = [f"A{number}" for number in range(20)]


def suite(orders: list[str]) -> list[dict[str, Any]]:
    return [
        {"id": order, "input": f"Where is {order}?", "tools": [{"name": "lookup", "args": {"order": order}}]}
        for order in orders
    ]


def prepared(project: Project, agent: dict[str, Any], orders: list[str] = ORDERS) -> None:
    for path in AGENTS.glob("*.py"):
        shutil.copy(path, project.root)
    project.write("cases.json", suite(orders))
    criteria = {"tool_trajectory_avg_score": 1.0, "tokens": 1_000, "forbidden_tools": {"tools": ["delete"]}}
    project.write("gate.yaml", {"suite": "cases.json", "agent": agent, "criteria": criteria, "trials": 1})


def measured(project: Project) -> dict[str, dict[str, Any]]:
    """Case → its turn, after a run that must pass."""
    ran = project.gate("run", "--record", "record.jsonl")
    assert ran.code == 0, ran.out + ran.err
    lines = map(json.loads, (project.root / "record.jsonl").read_text().splitlines())
    return {line["case"]: line["turns"][0] for line in lines if "turns" in line}


@pytest.mark.parametrize("framework", ["pydantic_ai_agent", "langchain_agent"])
def test_a_functions_spans_are_its_trajectory(project: Project, frameworks: Path, framework: str) -> None:
    """Twenty at once in one process: each trial gets its own spans."""
    prepared(project, {"python": f"{framework}:answer", "executable": str(frameworks), "traces": True})
    turns = measured(project)
    for order in ORDERS:
        (call,) = turns[order]["calls"]
        assert (call["name"], call["args"], call["result"]) == ("lookup", {"order": order}, {"status": "shipped"})
        assert turns[order]["usage"]["model_calls"] == 2
        assert turns[order]["response"] == ["It has shipped."]


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_both_encodings_of_the_sdks_exporters_are_received(
    project: Project, frameworks: Path, protocol: str, compression: str
) -> None:
    env = {"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_EXPORTER_OTLP_COMPRESSION": compression}
    agent = {"python": "pydantic_ai_agent:answer", "executable": str(frameworks), "traces": True, "env": env}
    prepared(project, agent, ["A1", "B2"])
    turns = measured(project)
    (call,) = turns["B2"]["calls"]
    assert (call["name"], call["args"], call["result"]) == ("lookup", {"order": "B2"}, {"status": "shipped"})
    assert turns["B2"]["usage"]["model_calls"] == 2


@pytest.mark.parametrize(("environment", "framework"), [("frameworks", "microsoft_agent"), ("crewai", "strands_agent")])
def test_a_framework_that_exports_by_itself_is_judged_by_its_spans(
    project: Project, request: pytest.FixtureRequest, environment: str, framework: str
) -> None:
    interpreter = request.getfixturevalue(environment)
    with serving() as variables:
        agent = {"python": f"{framework}:answer", "executable": str(interpreter), "traces": True, "env": variables}
        prepared(project, agent, ["A1", "B2"])
        project.write("cases.json", [{**case, "tools": [looked_up(case["id"])]} for case in suite(["A1", "B2"])])
        turns = measured(project)
    for order, turn in turns.items():
        (call,) = turn["calls"]
        assert (call["name"], call["args"]["order_id"], call["result"]["status"]) == ("lookup_order", order, "shipped")
        usage = turn["usage"]
        assert (usage["input_tokens"], usage["output_tokens"], usage["model_calls"]) == (200, 40, 2)
        assert (usage["model"], turn["response"]) == ("gpt-5-mini", [f"Order {order} has shipped."])


def looked_up(order: str) -> dict[str, Any]:
    return {"name": "lookup_order", "args": {"order_id": order}}


@pytest.mark.parametrize("framework", ["pydantic_ai_agent", "langchain_agent"])
def test_a_programs_spans_are_its_trajectory(project: Project, frameworks: Path, framework: str) -> None:
    """The program does not look at `TRACEPARENT`: it is known by the endpoint that it was handed."""
    agent = {"command": [str(frameworks), f"{framework}.py"], "traces": True, "concurrency": 2}
    prepared(project, agent, ["A1", "B2"])
    turns = measured(project)
    assert [call["args"] for call in turns["B2"]["calls"]] == [{"order": "B2"}]


@contextmanager
def served(project: Project, frameworks: Path, receiver: int) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    exports = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{receiver}", "OTEL_BSP_SCHEDULE_DELAY": "200"}
    command = [str(frameworks), "http_agent.py", str(port)]
    environment = {**os.environ, **exports}
    with subprocess.Popen(command, cwd=project.root, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield port
        finally:
            server.kill()


def test_a_servers_spans_are_its_trajectory(project: Project, frameworks: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        receiver = free.getsockname()[1]
    prepared(project, {"command": "none"})
    with served(project, frameworks, receiver) as port:
        prepared(project, {"http": f"http://127.0.0.1:{port}/", "traces": {"port": receiver}})
        turns = measured(project)
    assert [turns[order]["calls"][0]["args"]["order"] for order in ORDERS] == ORDERS


def test_a_tool_that_raises_is_a_failed_call(project: Project, frameworks: Path) -> None:
    agent = {"python": "pydantic_ai_agent:answer", "executable": str(frameworks), "traces": True}
    prepared(project, agent, ["A1", "E5"])
    project.gate("run", "--record", "record.jsonl")
    lines = map(json.loads, (project.root / "record.jsonl").read_text().splitlines())
    errors = {line["case"]: line.get("error") for line in lines if "turns" in line or "error" in line}
    assert errors["A1"] is None
    assert "no such order" in json.dumps(errors["E5"])
