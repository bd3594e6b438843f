"""Strategy consistency through the command: gated by its threshold, the same from the run and from its record."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project, first_of

CONFIG = "agent: {python: agent:answer}\nsuite: suite.yaml\ncriteria: {strategy_consistency: 0.8}\n"
AGENT = """\
def answer(message, trial):
    names = {names}
    return {{"output": "done", "tool_calls": [{{"name": name, "arguments": {{}}}} for name in names]}}
"""
STEADY = "['search', 'book']"
TURNING = "['search', 'book'] if trial % 2 else ['book']"
BY_WORDING = "['search', 'book'] if 'please' in message else ['book']"


def suite(groups: bool) -> str:
    rows = []
    for n in range(12):
        wording = "Book it, please" if n % 2 else "Book it"
        group = f", metadata: {{equivalent: booking-{n // 2}}}" if groups else ""
        rows.append(f"  - {{id: case-{n}, input: '{wording}'{group}}}")
    return "cases:\n" + "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("names", "groups", "code"),
    first_of(
        [(STEADY, False, 0), (TURNING, False, 1), (STEADY, True, 0), (BY_WORDING, True, 1), (BY_WORDING, False, 0)], 2
    ),
)
def test_a_threshold_on_going_the_same_way(project: Project, names: str, groups: bool, code: int) -> None:
    project.write("suite.yaml", suite(groups))
    project.write("gate.yaml", CONFIG)
    project.write("agent.py", AGENT.format(names=names))
    got, result = project.result("run", "--record", "record.jsonl")
    assert got == code, result
    (decided,) = result["suites"]
    assert decided["criteria"][1]["candidate"]["value"] == 1.0 - code
    again, report = project.result("report", "record.jsonl")
    assert again == code
    assert report["suites"][0]["criteria"][1]["candidate"] == decided["criteria"][1]["candidate"]


@pytest.mark.slow
def test_a_pair_is_explained(project: Project) -> None:
    project.write("suite.yaml", suite(False))
    project.write("gate.yaml", CONFIG + "trials: 2\n")
    project.write("agent.py", AGENT.format(names=TURNING))
    project.gate("run", "--record", "record.jsonl")
    told = project.gate("explain", "record.jsonl", "--case", "case-3").out
    assert "strategy_consistency does not apply" in told
    assert "strategy_consistency 0.000 (at least 80 %) book; trial 1: search → book" in told


def test_what_it_cannot_do_is_refused(project: Project) -> None:
    project.write("suite.yaml", suite(False))
    project.write("agent.py", AGENT.format(names=STEADY))
    project.write("gate.yaml", CONFIG.replace("0.8", "{threshold: 0.8, regression: block}"))
    ran = project.gate("run")
    assert (ran.code, "a change of it cannot block" in ran.err) == (2, True)
    project.write("gate.yaml", CONFIG)
    project.write("suite.yaml", "cases: [{id: a, input: hi, thresholds: {strategy_consistency: 1}}]\n")
    ran = project.gate("run")
    assert (ran.code, "which is judged over the suite" in ran.err) == (2, True)


def test_one_pass_is_not_measured(project: Project) -> None:
    project.write("suite.yaml", suite(False))
    project.write("agent.py", AGENT.format(names=STEADY))
    project.write("gate.yaml", CONFIG + "trials: 1\n")
    code, result = project.result("run")
    assert (code, result["verdict"]) == (3, "error")
    assert "was run twice" in result["suites"][0]["headline"]
