"""An AG-UI server as a framework ships it, its model scripted: calls, arguments and results from the events."""

from __future__ import annotations

import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project

pytestmark = pytest.mark.connectors
SERVER = Path(__file__).parent / "agents" / "agui_server.py"


@contextmanager
def served(frameworks: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([str(frameworks), str(SERVER), str(port)], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def write(project: Project, url: str, orders: list[str]) -> None:
    def turn(order: str) -> dict[str, object]:
        return {"input": f"Where is {order}?", "tools": [{"name": "lookup", "args": {"order": order}}]}

    project.write("cases.json", [{"id": order, "turns": [turn(order), turn(f"{order}x")]} for order in orders])
    criteria = {"tool_trajectory_avg_score": 1.0}
    project.write(
        "gate.yaml",
        {
            "suite": "cases.json",
            "agent": {"agui": url, "concurrency": 64, "retries": 0},
            "criteria": criteria,
            "trials": 1,
            "gate": {"confirm_after": 0.1},
        },
    )


def test_an_agui_agent_is_judged_by_its_events(project: Project, frameworks: Path) -> None:
    """Sixty-four threads of two turns at once: each gets its own answers."""
    orders = [f"A{number}" for number in range(64)]
    with served(frameworks) as url:
        write(project, f"{url}/agent", orders)
        ran = project.gate("run", "--record", "record.jsonl")
    assert ran.code == 0, ran.out + ran.err
    lines = [json.loads(line) for line in (project.root / "record.jsonl").read_text().splitlines()]
    turns = {line["case"]: line["turns"] for line in lines if "turns" in line}
    for order in orders:
        found = [(call["name"], call["args"], turn["response"]) for turn in turns[order] for call in turn["calls"]]
        assert found == [
            ("lookup", {"order": order}, ["It has shipped."]),
            ("lookup", {"order": f"{order}x"}, ["It has shipped."]),
        ]
        assert "shipped" in json.dumps(turns[order][0]["calls"][0]["result"])


def test_a_run_that_fails_and_a_wrong_path_are_one_line_each(project: Project, frameworks: Path) -> None:
    with served(frameworks) as url:
        write(project, f"{url}/agent", ["E5"])
        failed = project.gate("run")
        write(project, f"{url}/nowhere", ["A1"])
        lost = project.gate("run")
    assert failed.code != 0
    assert "no model today" in failed.out + failed.err or "the stream broke off" in failed.out + failed.err
    assert lost.code == 3
    assert "HTTP 404" in lost.out + lost.err
    assert "Traceback" not in failed.err + lost.err
