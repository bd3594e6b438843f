"""A provider that moved since the baseline was stored, and a change that really is worse: real agents, whole runs."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project

AGENT = """
import collections, pathlib, random
asked = collections.Counter()
def answer(message):
    moved = float(pathlib.Path(PROVIDER).read_text())
    asked[message] += 1
    drawn = random.Random(f"{message}:{asked[message]}:OWN").random()
    return "no idea" if drawn < moved + OWN else "the right answer"
"""
"""The same draws in every run of a test: a verdict at an error rate is wrong now and then."""


def prepared(project: Project) -> str:
    """Forty cases with five stored trials each, all passed; returns the agent's source."""
    provider = project.write("../provider.txt", "0.0")
    source = AGENT.replace("PROVIDER", repr(str(provider)))
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(40)]
    project.write("suite.yaml", {"cases": cases})
    project.write(
        "gate.yaml",
        "suite: suite.yaml\nagent: {python: 'agent:answer', timeout: 20s}\ncriteria: {response_match_score: 0.5}\n",
    )
    project.write("agent.py", source.replace("OWN", "0"))
    project.write(".gitignore", ".gate/\n*.jsonl\n*.json\n__pycache__/\n")
    project.commit()
    project.store(record="base.jsonl")
    return source


@pytest.mark.slow
def test_a_provider_that_moved_blocks_no_change(project: Project) -> None:
    source = prepared(project)
    project.write("../provider.txt", "0.4")
    project.write("agent.py", source.replace("OWN", "0.0"))
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == (0, "inconclusive"), suite
    assert "not against the base commit's agent run now" in str(suite)


def test_a_change_that_is_worse_is_blocked_beside_the_base(project: Project) -> None:
    source = prepared(project)
    project.write("agent.py", source.replace("OWN", "0.4"))
    project.commit("change")
    code, result = project.result("run", "-q", "--record", "change.jsonl")
    suite = result["suites"][0]
    assert (code, suite["verdict"]) == (1, "regressed")
    assert "of the baseline's agent)" in str(suite)
