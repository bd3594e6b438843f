"""Nothing is stored yet: the base commit's agent is run beside the change, and what it does is the yardstick."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from gate.config.load import load_config
from gate.model.finding import Finding
from gate.records import read_record
from gate.stored.judging import judge_records
from tests.acceptance.conftest import Project

AGENT = """\
import os


def answer(message):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write(message + "\\n")
    return "wrong" if message in {broken} else "the right answer"
"""
CONFIGURATION = (
    "suite: suite.yaml\nagent: {python: 'agent:answer', env: [CALLS]}\ncriteria: {response_match_score: 0.3}\n"
)
CASES = 5
OF_BASE = 3 * CASES


@pytest.fixture
def bare(project: Project) -> Project:
    """A repository with an agent, whose main branch knows nothing of the gate."""
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\ncalls.txt\n")
    project.write("agent.py", AGENT.format(broken=()))
    project.commit("base")
    project.git("checkout", "-qb", "change")
    return project


def add_gate(project: Project) -> None:
    cases = [{"id": f"c{n}", "input": f"item {n}", "response": "the right answer"} for n in range(CASES)]
    project.write("suite.yaml", {"cases": cases})
    project.write("gate.yaml", CONFIGURATION)


def broken(project: Project) -> Project:
    project.write("agent.py", AGENT.format(broken=("item 3",)))
    project.commit("change")
    return project


@pytest.fixture
def change(bare: Project) -> Project:
    """A branch that breaks a case; nothing is stored for the base, which has the same configuration."""
    bare.git("checkout", "-q", "main")
    add_gate(bare)
    bare.commit("gate")
    bare.git("branch", "-qf", "change")
    bare.git("checkout", "-q", "change")
    return broken(bare)


def run(project: Project, *words: str) -> tuple[int, dict[str, Any]]:
    code, result = project.result(*words, CALLS=str(project.root / "calls.txt"))
    return code, result["suites"][0]


def asked(project: Project) -> int:
    return len((project.root / "calls.txt").read_text().splitlines())


def of_base(record: Path) -> list[str]:
    return [line for line in record.read_text().splitlines() if '"tag":"base"' in line]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("run",), ("run", "--rules-from", "main")])
def test_a_base_without_configuration_is_held_to_the_rules_of_the_change(bare: Project, words: tuple[str, ...]) -> None:
    add_gate(bare)
    bare.write(".github/workflows/gate.yml", "on: pull_request\n")
    code, suite = run(broken(bare), *words)
    assert (code, suite["verdict"]) == (1, "regressed")
    assert "by this change's rules, because the base has none" in suite["headline"]
    assert "c3" in suite["headline"]


def test_a_base_without_the_agent_is_no_yardstick(project: Project) -> None:
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\ncalls.txt\n")
    project.commit("base")
    project.git("checkout", "-qb", "change")
    add_gate(project)
    code, suite = run(broken(project), "run")
    assert (code, suite["verdict"]) == (0, "pass")
    assert "no baseline yet" in suite["headline"]
    assert any("the base commit's agent" in told for told in suite["warnings"])


def test_a_criterion_that_only_the_change_can_measure_leaves_the_others_compared(change: Project) -> None:
    change.write("gate.yaml", CONFIGURATION.replace("0.3}", "0.3, cost: {max: 1}}"))
    answer = 'return {"output": "wrong" if message == "item 3" else "the right answer", "cost_usd": 0.01}'
    change.write("agent.py", f"def answer(message):\n    {answer}\n")
    change.commit("report the cost")
    code, suite = run(change, "run")
    assert (code, suite["verdict"]) == (1, "regressed")
    assert "c3" in suite["headline"]
    assert any("the base commit's agent is no yardstick for cost: " in told for told in suite["warnings"])


def test_a_report_of_the_record_says_the_same_and_a_baseline_of_it_is_the_change_alone(change: Project) -> None:
    code, suite = run(change, "run", "--record", "run.jsonl")
    assert (code, suite["agent_runs"]) == (1, asked(change))
    assert len(of_base(change.root / "run.jsonl")) == OF_BASE
    again = run(change, "report", "run.jsonl")
    assert again[0] == 1
    assert [again[1][key] for key in ("verdict", "headline", "agent_runs")] == [
        suite[key] for key in ("verdict", "headline", "agent_runs")
    ]
    against_nothing = run(change, "report", "run.jsonl", "--against", "none")
    assert against_nothing[1]["verdict"] == "pass"
    assert change.gate("baseline", "save", "run.jsonl").code == 0
    (stored,) = (change.root / ".gate" / "baselines").rglob("*.jsonl")
    assert '"case":"c3"' in stored.read_text() and not of_base(stored)


def test_the_record_of_a_fork_is_judged_with_the_base_that_ran_beside_it(change: Project) -> None:
    code, suite = run(change, "run", "--record", "run.jsonl")
    record = read_record(change.root / "run.jsonl")
    change.git("checkout", "-q", "main")
    config = load_config(change.root / "gate.yaml", {"baseline.against": "main"})
    result = judge_records([record], config, {"PATH": os.environ["PATH"], "CALLS": ""}, command="gate")
    (judged,) = result.suites
    assert (result.exit_code, result.verdict.value) == (code, suite["verdict"])
    assert [one.case_id for one in judged.cause["cases"]] == ["c3"]
    assert judged.changes[0] == Finding.of("base_run_beside", commit=change.git("rev-parse", "main"))


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_the_base_where_it_was(change: Project) -> None:
    record = change.root / "run.jsonl"
    _, suite = run(change, "run", "--record", "run.jsonl")
    lines, calls = record.read_text().splitlines(keepends=True), asked(change)
    first = next(number for number, line in enumerate(lines) if '"tag":"base"' in line)
    kept = lines[: first + 4]
    record.write_text("".join(kept))
    code, again = run(change, "run", "--record", "run.jsonl", "--resume")
    assert (code, again["verdict"], again["agent_runs"]) == (1, suite["verdict"], suite["agent_runs"])
    assert asked(change) - calls == suite["agent_runs"] - CASES - 4
    numbers = sorted((json.loads(line)["case"], json.loads(line)["n"]) for line in of_base(record))
    assert numbers == [(f"c{case}", number) for case in range(CASES) for number in (1, 2, 3)]


def test_a_prompt_of_promptfoo_is_the_agents_and_the_base_is_asked_with_its_own(project: Project) -> None:
    """The base's agent would otherwise share the loss that the change's prompt causes, and none would be proven."""
    project.write(".gitignore", ".gate/\n__pycache__/\nresult.json\n")
    project.write("prompt.txt", "Never discuss salaries.\nQuestion: {{question}}\n")
    tests = []
    for question in ("salary", "days", "notice"):
        wanted = {"type": "contains", "value": "cannot" if question == "salary" else "28"}
        tests.append({"description": question, "vars": {"question": question}, "assert": [wanted]})
    config = {"prompts": ["file://prompt.txt"], "providers": ["openai:gpt"], "tests": tests}
    project.write("promptfooconfig.yaml", config)
    project.write(
        "agent.py",
        "def answer(message):\n"
        "    if 'salary' in message:\n"
        "        return 'I cannot say' if 'Never' in message else 'A lot'\n"
        "    return '28 days'\n",
    )
    project.write("gate.yaml", "suite: promptfooconfig.yaml\nagent: {python: 'agent:answer'}\n")
    project.commit("base")
    assert project.gate("baseline", "-q").code == 0
    project.git("checkout", "-qb", "change")
    project.write("prompt.txt", "Question: {{question}}\n")
    project.commit("change")
    project.gate("run", "--json", "result.json")
    (suite,) = json.loads((project.root / "result.json").read_text())["suites"]
    (salary,) = [case for case in suite["cases"] if case["id"] == "salary"]
    assert salary["baseline_passed"] == salary["baseline_trials"] > 5, "the base ran beside the change, and passed"
    assert (suite["verdict"], salary["status"]) == ("regressed", "broken")
