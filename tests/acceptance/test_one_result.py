"""One record, one result: `run`, `report`, `compare -c` and `merge -c` render the same, to the byte.

The work of `gate.stored.judging`.
"""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from gate.records import read_record
from tests.acceptance.conftest import Project, first_of

AGENT = """
import hashlib

def answer(message, case_id, trial):
    number = int(case_id.partition("-")[2])
    luck = int(hashlib.sha256(f"{case_id}:{trial}".encode()).hexdigest(), 16) % 100
    if BROKEN and number == 1 and trial == 1:
        raise RuntimeError("out of rows")
    good = not (BROKEN and number in BROKEN) and luck < LUCK
    call = {"name": "lookup" if good else "guess", "arguments": {"of": number}}
    if not good:
        call["error"] = "the table has no such row"
    return {"output": "done" if good else "I had to guess", "tool_calls": [call], "cost_usd": 0.001}
"""
CONFIG = """
suite: suite.json
agent: {python: agent:answer, concurrency: 8}
criteria:
  tool_trajectory_avg_score: {match_type: ANY_ORDER, threshold: 0.5}
  response_match_score: {threshold: 0.3, blocking: false}
quarantine:
  - {case: case-3, owner: me, reason: flaky upstream, expires: 2020-01-01}
"""
SITUATIONS = {
    "unchanged": {"BROKEN": "()", "LUCK": "101"},
    "unsteady": {"BROKEN": "()", "LUCK": "80"},
    "broken": {"BROKEN": "(4, 5, 6, 7, 8, 9)", "LUCK": "95"},
}


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A repository of one commit, and its baseline."""
    project = Project(tmp_path_factory.mktemp("unchanged"))
    cases = [
        {
            "id": f"case-{n}",
            "input": f"question {n}",
            "tools": [{"name": "lookup", "args": {"of": n}}],
            "response": "done",
        }
        for n in range(14)
    ]
    project.write("suite.json", {"cases": cases})
    project.write("gate.yaml", CONFIG)
    write_agent(project, "unchanged")
    project.write(".gitignore", ".gate\n__pycache__/\n")
    project.commit()
    project.store()
    return project


@pytest.fixture
def compared(project: Project, unchanged: Project) -> Project:
    return unchanged.copied(project)


def write_agent(project: Project, situation: str) -> None:
    text = AGENT
    for word, value in SITUATIONS[situation].items():
        text = text.replace(word, value)
    project.write("agent.py", text)


def rendered(project: Project, *arguments: str) -> tuple[int, str]:
    path = project.root / ".gate" / "out.md"
    path.unlink(missing_ok=True)
    ran = project.gate(*arguments, "--markdown", str(path))
    assert path.exists(), ran.err
    return ran.code, path.read_text(encoding="utf-8")


def stored(project: Project) -> Path:
    [path] = (project.root / ".gate" / "baselines").rglob("*.jsonl")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("trials", first_of(["auto", "2"]))
@pytest.mark.parametrize("situation", first_of(["broken", "unchanged", "unsteady"]))
def test_the_four_commands_render_one_record_alike(compared: Project, situation: str, trials: str) -> None:
    write_agent(compared, situation)
    compared.git("commit", "-q", "--allow-empty", "-a", "-m", situation)
    ran = rendered(compared, "run", "--trials", trials, "--record", ".gate/a.jsonl")
    assert rendered(compared, "report", ".gate/a.jsonl") == ran
    assert rendered(compared, "compare", ".gate/a.jsonl", str(stored(compared)), "-c", "gate.yaml") == ran
    assert rendered(compared, "merge", ".gate/a.jsonl", "-o", ".gate/a.jsonl", "-c", "gate.yaml") == ran
    assert rendered(compared, "report", ".gate/a.jsonl") == ran
    assert "expired" in ran[1]
    if situation == "broken":
        assert "the table has no such row" in ran[1]


@pytest.mark.slow
def test_a_report_looks_where_its_run_looked(compared: Project) -> None:
    """Compared with nothing by the run's command line, a record is not compared with a baseline that is there."""
    write_agent(compared, "broken")
    compared.git("commit", "-q", "-a", "-m", "broken")
    ran = rendered(compared, "run", "--store", "none", "--record", ".gate/a.jsonl")
    assert "baselines are switched off" in ran[1]
    assert rendered(compared, "report", ".gate/a.jsonl") == ran


@pytest.mark.slow
def test_a_report_says_if_the_run_was_compared_with_something_else(compared: Project) -> None:
    write_agent(compared, "broken")
    compared.git("commit", "-q", "-a", "-m", "broken")
    code, ran = rendered(compared, "run", "--record", ".gate/a.jsonl")
    assert "the run compared this record with" not in ran
    stored(compared).unlink()
    again, report = rendered(compared, "report", ".gate/a.jsonl")
    assert (code, again) != (0, 0)
    assert "the run compared this record with" in report
    assert "here it is compared with no baseline" in report


@pytest.mark.slow
@pytest.mark.parametrize("situation", first_of(["broken", "unchanged"]))
def test_what_the_command_line_selected_is_the_scope_in_every_command(compared: Project, situation: str) -> None:
    """To the twelve cases that were left out on purpose nothing is owed, whoever shows the record."""
    write_agent(compared, situation)
    compared.git("commit", "-q", "--allow-empty", "-a", "-m", situation)
    ran = rendered(compared, "run", "--case", "case-4", "--case", "case-8", "--record", ".gate/a.jsonl")
    assert "2 of 14 cases" in ran[1]
    assert "removed" not in ran[1]
    against = str(stored(compared))
    assert rendered(compared, "compare", ".gate/a.jsonl", against, "-c", "gate.yaml") == ran
    assert rendered(compared, "merge", ".gate/a.jsonl", "-o", ".gate/a.jsonl", "-c", "gate.yaml") == ran
    assert rendered(compared, "report", ".gate/a.jsonl") == ran


@pytest.mark.slow
def test_a_merged_record_is_reported_by_the_rules_that_judged_it(compared: Project) -> None:
    """They may be stricter than those that its shards ran under."""
    write_agent(compared, "unsteady")
    compared.git("commit", "-q", "--allow-empty", "-a", "-m", "unsteady")
    paths = [".gate/one.jsonl", ".gate/two.jsonl"]
    for index, path in enumerate(paths, 1):
        ran = compared.gate("run", "--trials", "2", "--shard", f"{index}/2", "--record", path)
        assert ran.code == 0, ran.err
    assert compared.gate("merge", *paths, "-o", ".gate/whole.jsonl").code == 0
    closing = read_record(compared.root / ".gate" / "whole.jsonl").footer
    assert closing is not None and closing.terms and "doubts" not in closing.terms
    strict = CONFIG.replace("threshold: 0.5", "threshold: 0.95")
    compared.write("strict.yaml", strict)
    compared.write(".git/info/exclude", "strict.yaml\n")
    merged = rendered(compared, "merge", *paths, "-o", ".gate/whole.jsonl", "-c", "strict.yaml")
    assert merged[0] == 1
    assert "0.95" in merged[1]
    assert rendered(compared, "report", ".gate/whole.jsonl") == merged


def test_a_file_of_tests_is_red_where_the_exit_code_is(project: Project) -> None:
    """One case never passes, and the mean of all misses the threshold."""
    project.write("agent.py", "def answer(message):\n    return 'no' if message == 'question 1' else 'yes'\n")
    project.write(
        "suite.json", {"cases": [{"id": f"c{n}", "input": f"question {n}", "response": "yes"} for n in range(10)]}
    )
    project.write(
        "gate.yaml", "suite: suite.json\nagent: {python: agent:answer}\ncriteria: {response_match_score: 0.95}\n"
    )
    ran = project.gate("run", "--junit", "j.xml", "--report", "ctrf=c.json")
    assert ran.code == 1, ran.out
    root = ElementTree.parse(project.root / "j.xml").getroot()
    summary = json.loads((project.root / "c.json").read_text())["results"]["summary"]
    assert int(root.get("failures", "")) + int(root.get("errors", "")) == summary["failed"] > 0
    [never] = (test for test in root.iter("testcase") if test.get("name") == "c1")
    told = never.find("failure")
    assert told is not None
    assert told.get("message", "").startswith("failed: 0/")
