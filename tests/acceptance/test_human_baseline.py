"""Recorded conversations of people are a baseline like any other: the agent is held to how often they succeed."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.conftest import Project, first_of

CRITERIA = """\
suite: conversations.jsonl
name: support
fields: {id: ticket, trial: clerk, messages: messages, expected_tools: expected}
criteria:
  tool_trajectory_avg_score: {match_type: IN_ORDER}
  tool_accuracy: {}
"""
HUMANS = CRITERIA + "agent: {replay: true}\nbaseline: {path: .gate/people}\n"
AGENT = CRITERIA + "agent: {python: agent:answer}\nbaseline: {path: .gate/people, on_missing: fail}\n"
CODE = """\
def answer(message, case_id):
    calls = [{{"name": "refund", "arguments": {{"order": case_id}}}}] if {acts} else []
    return {{"output": "Your refund is on its way", "tool_calls": calls}}
"""
TICKETS = 12


def conversation(ticket: int, clerk: int) -> dict[str, object]:
    """A refund by a person; the third clerk forgets it on every third ticket."""
    order = f"T{ticket}"
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": json.dumps({"order": order})}}
    act = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": ""},
    ]
    forgot = clerk == 3 and ticket % 3 == 0
    messages = [
        {"role": "user", "content": f"Please refund {order}"},
        *([] if forgot else act),
        {"role": "assistant", "content": "I have sent you the money."},
    ]
    expected = [{"name": "refund", "args": {"order": order}}]
    return {"ticket": order, "clerk": clerk, "messages": messages, "expected": expected}


@pytest.fixture
def people(project: Project) -> Project:
    """A repository in which four clerks' conversations are saved as the baseline."""
    rows = [conversation(ticket, clerk) for ticket in range(TICKETS) for clerk in range(1, 5)]
    project.write("conversations.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    project.write("humans.yaml", HUMANS)
    project.write("gate.yaml", AGENT)
    project.write("agent.py", CODE.format(acts=True))
    project.write(".gitignore", ".gate\n")
    project.commit()
    assert project.gate("run", "--quiet", "--config", "humans.yaml", "--record", ".gate/people.jsonl").code == 0
    saved = project.gate("baseline", "save", ".gate/people.jsonl", "--config", "humans.yaml")
    assert saved.code == 0, saved.err
    return project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("acts", "code", "verdict"), first_of([("len(case_id) > 2", 1, "regressed"), ("True", 0, "pass")])
)
def test_an_agent_is_compared_with_people(people: Project, acts: str, code: int, verdict: str) -> None:
    people.write("agent.py", CODE.format(acts=acts))
    got, result = people.result("run")
    (suite,) = result["suites"]
    assert (got, result["verdict"]) == (code, verdict), suite["story"]
    rate = suite["criteria"][0]
    assert rate["baseline"]["value"] == pytest.approx(1 - 4 / (4 * TICKETS))
    assert rate["baseline"]["trials"] == 4 * TICKETS


@pytest.mark.slow
def test_people_cannot_be_run_again_in_place_of_the_base_commits_agent(people: Project) -> None:
    """The baseline's commit is in the repository, and its agent could be run; but the baseline is not that agent."""
    people.write("agent.py", CODE.format(acts="len(case_id) > 2"))
    assert people.gate("run", "--record", "agent.jsonl").code == 1
    trials = [json.loads(line) for line in (people.root / "agent.jsonl").read_text().splitlines()]
    assert not [line for line in trials if line.get("side") == "baseline"]
    people.write("gate.yaml", AGENT.replace("fail}", "fail, rerun: match}"))
    ran = people.gate("run")
    assert ran.code == 2
    assert "baseline.rerun: match needs the base commit's agent" in ran.err
