"""Agents whose repeats are identical, as users meet them: a deterministic one, and one that keeps its answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.acceptance.conftest import Project, first_of

AGENT = """
def answer(message):
    if BROKEN and message == "item 3":
        return "no idea"
    return f"the right answer to {message}" + WORDS
"""


@pytest.mark.slow
@pytest.mark.parametrize(("rerun", "expected"), first_of([("auto", (1, "regressed")), ("never", (0, "inconclusive"))]))
def test_a_deterministic_agent_that_was_reworded_is_proven_by_its_base_or_is_not_called_fine(
    project: Project, rerun: str, expected: tuple[int, str]
) -> None:
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": f"the right answer to item {n}"} for n in range(40)]
    project.write("suite.yaml", {"cases": cases})
    project.write(
        "gate.yaml",
        "suite: suite.yaml\nagent: {python: 'agent:answer', timeout: 20s}\ncriteria: {response_match_score: 0.5}\n"
        f"baseline: {{rerun: {rerun}}}\n",
    )
    project.write("agent.py", AGENT.replace("BROKEN", "False").replace("WORDS", "''"))
    project.write(".gitignore", ".gate/\n*.jsonl\n*.json\n__pycache__/\n")
    project.commit()
    project.store(record="base.jsonl")
    project.write("agent.py", AGENT.replace("BROKEN", "True").replace("WORDS", "'!'"))
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == expected, suite["headline"]
    assert "c3" in suite["headline"], suite["headline"]


CACHED = """
from pathlib import Path

with Path(STARTS).open("a") as starts:
    starts.write("started\\n")
PROCESS = len(Path(STARTS).read_text().splitlines())

def answer(message):
    number = int(message.split()[1])
    said = "No" if (number + 3 * PROCESS) % 10 == 0 else "Yes"
    return f"{said}, to item {number}, says process {PROCESS}"
"""


@pytest.mark.slow
@pytest.mark.parametrize("rerun", first_of(["auto", "never"]))
@pytest.mark.parametrize("kind", first_of(["python", "command"]))
def test_an_agent_whose_process_keeps_its_answers_is_not_blocked_for_what_another_one_drew(
    project: Project, tmp_path: Path, kind: str, rerun: str
) -> None:
    """The default branch's run is topped up by a process of its own, so that its repeats are two draws, not five: each
    process fails another tenth of the cases, every time that it is asked."""
    project.write("suite.yaml", {"cases": [{"id": f"c{n}", "input": f"item {n}"} for n in range(40)]})
    agent = CACHED.replace("STARTS", repr(str(tmp_path / "starts")))
    project.write("agent.py", agent + (LINES if kind == "command" else ""))
    asked = {
        "python": "{python: 'agent:answer', timeout: 20s}",
        "command": f"{{command: [{sys.executable}, agent.py], persistent: true, concurrency: 1}}",
    }
    project.write(
        "gate.yaml",
        f"suite: suite.yaml\nagent: {asked[kind]}\ncriteria: {{contains: {{threshold: 0.5, values: ['Yes']}}}}\n"
        f"baseline: {{rerun: {rerun}}}\n",
    )
    project.write(".gitignore", ".gate/\n*.jsonl\n*.json\n__pycache__/\n")
    project.commit()
    assert project.gate("baseline", "-q").code == 0
    project.git("switch", "-qc", "change")
    project.write("agent.py", project.root.joinpath("agent.py").read_text() + "# a remark\n")
    project.commit("change")
    code, result = project.result("run", "-q")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) in {(0, "pass"), (0, "inconclusive")}, suite["headline"]
    assert "count as one trial" in str(suite), suite


LINES = """

import json, sys

for line in sys.stdin:
    asked = json.loads(line)
    print(json.dumps({"id": asked["id"], "output": answer(asked["messages"][-1]["content"])}), flush=True)
"""
