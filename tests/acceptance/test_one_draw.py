"""Agents whose repeats are identical: a change that rewords every answer and breaks a case, as users meet it."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project

AGENT = """
def answer(message):
    if BROKEN and message == "item 3":
        return "no idea"
    return f"the right answer to {message}" + WORDS
"""


@pytest.mark.parametrize(("rerun", "expected"), [("auto", (1, "regressed")), ("never", (0, "inconclusive"))])
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
    if rerun == "auto":
        assert "c3" in suite["headline"], suite["headline"]
    else:
        assert "a second stored run tells" in str(suite)
