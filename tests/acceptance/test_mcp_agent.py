"""An agent that is a tool of an MCP server over stdio, from its first run to a change that breaks it."""

from __future__ import annotations

import sys

import pytest

from tests.acceptance.conftest import Project

SERVER = """\
import json
import os
import sys

WRONG = {wrong}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    if message["method"] == "initialize":
        server = {{"name": "s", "version": "1"}}
        result = {{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": server}}
    elif message["method"] == "tools/list":
        schema = {{"type": "object", "properties": {{"question": {{"type": "string"}}}}}}
        result = {{"tools": [{{"name": "ask", "inputSchema": schema}}]}}
    else:
        asked = message["params"]["arguments"]["question"]
        with open(os.environ["CALLS"], "a") as calls:
            calls.write(asked + "\\n")
        text = "wrong" if asked in WRONG else "the right answer"
        result = {{"content": [{{"type": "text", "text": text}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""


def commit(project: Project, wrong: list[str]) -> None:
    project.write("server.py", SERVER.format(wrong=wrong))
    project.commit(f"wrong: {len(wrong)}")


@pytest.mark.slow
def test_a_change_that_breaks_it_is_found_and_not_run_away_from(project: Project) -> None:
    """The server is of the commit: its fingerprint tells that the same run again would say the same."""
    calls = project.root / ".gate" / "calls.txt"
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(12)]
    project.write("suite.yaml", {"cases": cases})
    mcp = {"command": [sys.executable, "server.py"], "tool": "ask", "reuse": True}
    agent = {"mcp": mcp, "concurrency": 2, "env": ["CALLS"]}
    project.write("gate.yaml", {"suite": "suite.yaml", "agent": agent, "criteria": {"response_match_score": 0.5}})
    project.write(".gitignore", ".gate/\n__pycache__/\n")
    commit(project, [])
    project.store(CALLS=str(calls))
    project.git("checkout", "-qb", "change")
    commit(project, ["item 3", "item 4", "item 5", "item 6"])
    ran = project.gate("run", "-q", CALLS=str(calls))
    assert ran.code == 1, ran.out + ran.err
    assert "4 of 12 cases broke" in ran.out
    asked = calls.read_text()
    again = project.gate("run", "-q", CALLS=str(calls))
    assert (again.code, again.out) == (1, ran.out)
    assert calls.read_text() == asked, "the agent was asked again"
