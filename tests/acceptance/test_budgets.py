"""Each budget ends a run before it is overspent; what is left undone is no regression, and not green too early."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.integration.judges.judge_stub import JudgeStub, chat

CASES = 20
AGENT = """
import time

def answer(message, case_id):
    time.sleep(SECONDS)
    tool = "guess" if BROKEN else "lookup"
    usage = {"input_tokens": 90, "output_tokens": 10}
    return {"output": "done", "tool_calls": [{"name": tool, "arguments": {}}], "usage": usage, "cost_usd": 0.01}
"""
CONFIG = """
suite: suite.json
agent: {python: agent:answer, concurrency: 2, sources: [agent.py]}
criteria: {tool_trajectory_avg_score: {match_type: IN_ORDER, threshold: 0.5}}
"""
EVALUATED = {"input": "question", "tools": [{"name": "lookup"}], "response": "it is finished"}


@pytest.fixture
def project(project: Project) -> Project:
    return write(project)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a stored baseline of four trials."""
    made = write(Project(tmp_path_factory.mktemp("measured")))
    made.store(trials=4)
    return made


@pytest.fixture
def with_baseline(project: Project, measured: Project) -> Project:
    return measured.copied(project)


def write(project: Project) -> Project:
    project.write(
        "suite.json", {"cases": [{"id": f"case-{n}", **EVALUATED, "input": f"question {n}"} for n in range(CASES)]}
    )
    project.write("gate.yaml", CONFIG)
    write_agent(project)
    return project


def write_agent(project: Project, *, broken: bool = False, seconds: float = 0.0) -> None:
    project.write("agent.py", AGENT.replace("BROKEN", str(broken)).replace("SECONDS", str(seconds)))


def limited(project: Project, budget: str, **more: Any) -> tuple[int, dict[str, Any]]:
    lines = [f"{key}: {json.dumps(value)}" for key, value in more.items()]
    base = (project.root / "gate.yaml").read_text()
    project.write("limited.yaml", "\n".join([base, f"budget: {budget}", *lines]))
    return project.result("run", "--config", "limited.yaml", "--record", str(project.root / "limited.jsonl"))


BUDGETS = {
    "tokens": ("{tokens: 600}", 5, 6),
    "usd": ("{usd: 0.06}", 5, 6),
}
"""Budget → fewest and most agent runs: what is in flight counts as the dearest so far, so nothing comes on top."""


@pytest.mark.slow
@pytest.mark.parametrize("name", BUDGETS)
@pytest.mark.parametrize("broken", [False, True])
def test_spent_before_every_case_was_run_is_an_error(with_baseline: Project, name: str, broken: bool) -> None:
    write_agent(with_baseline, broken=broken)
    budget, least, most = BUDGETS[name]
    code, result = limited(with_baseline, budget)
    suite = result["suites"][0]
    assert least <= suite["agent_runs"] <= most
    if not broken:
        assert (code, result["verdict"]) == (3, "error")
    assert any("budget" in line for line in [*suite["story"], *suite["warnings"]])


def test_tokens_of_a_known_model_are_dollars(project: Project) -> None:
    """The agent reports no cost. 5,000 + 5,000 tokens of gpt-4o were $0.0625 or less at any time."""
    priced = AGENT.replace('"output_tokens": 10}', '"output_tokens": 5000, "model": "gpt-4o"}').replace(
        ', "cost_usd": 0.01', ""
    )
    project.write("agent.py", priced.replace("BROKEN", "False").replace("SECONDS", "0").replace("90", "5000"))
    code, result = limited(project, "{usd: 0.2}")
    suite = result["suites"][0]
    assert (code, result["verdict"]) == (3, "error")
    assert 1 <= suite["agent_runs"] < CASES
    assert not any("report no cost" in warning for warning in suite["warnings"])


@pytest.mark.parametrize(
    ("budget", "says"),
    first_of(
        [
            (
                "{usd: 5}",
                "budget.usd cannot bound this agent: its answers report neither a cost nor tokens with a model",
            ),
            ("{tokens: 100000}", "budget.tokens cannot bound this agent: its answers report no tokens"),
        ]
    ),
)
def test_an_agent_that_tells_no_cost_is_stopped_after_its_first_answer(
    project: Project, budget: str, says: str
) -> None:
    silent = AGENT.replace(', "usage": usage, "cost_usd": 0.01', "").replace("BROKEN", "False").replace("SECONDS", "0")
    project.write("agent.py", silent)
    project.write("limited.yaml", (project.root / "gate.yaml").read_text() + f"budget: {budget}\n")
    ran = project.gate("run", "-c", "limited.yaml", "--record", "limited.jsonl")
    assert ran.code == 3
    lines = [line for line in ran.err.splitlines() if line.startswith("gate: ")]
    assert len(lines) == 1
    assert says in lines[0]
    assert "budget.runs" in lines[0]
    assert count(project.root / "limited.jsonl") == 1


def test_a_trial_that_does_not_tell_its_cost_counts_as_the_dearest(project: Project) -> None:
    forgetful = AGENT.replace('"cost_usd": 0.01}', '**({"cost_usd": 0.01} if case_id == "case-0" else {})}')
    project.write("agent.py", forgetful.replace("BROKEN", "False").replace("SECONDS", "0"))
    code, result = limited(project, "{usd: 0.06}")
    suite = result["suites"][0]
    assert (code, result["verdict"]) == (3, "error")
    assert 5 <= suite["agent_runs"] <= 6
    assert any("each is charged like the most expensive" in warning for warning in suite["warnings"])


def test_an_openai_agent_is_priced_by_its_tokens_and_model(project: Project) -> None:
    """1,000 tokens in and 100 out: under half a cent, and more than a tenth of one, of gpt-4o at any time."""
    with JudgeStub() as stub:
        stub.answer = lambda request: chat("it is finished")
        server = f"openai: {{url: '{stub.url}', model: gpt-4o}}, concurrency: 2"
        config = f"suite: suite.json\nagent: {{{server}}}\ncriteria: {{response_match_score: 0.5}}\n"
        project.write("gate.yaml", config)
        code, result = limited(project, "{usd: 0.02}")
        asked = len(stub.requests)
    assert (code, result["verdict"]) == (3, "error")
    assert 4 <= asked < CASES
    assert asked == result["suites"][0]["agent_runs"]


def test_runs_that_cannot_cover_one_pass_are_refused_before_anything_runs(project: Project) -> None:
    write_agent(project)
    project.write("limited.yaml", (project.root / "gate.yaml").read_text() + "budget: {runs: 6}\n")
    ran = project.gate("run", "-c", "limited.yaml", "--record", "limited.jsonl")
    assert ran.code == 3
    assert f"budget.runs 6 does not cover 1 x {CASES} runs" in ran.err
    assert not (project.root / "limited.jsonl").exists()


@pytest.mark.slow
def test_minutes(project: Project) -> None:
    """What is in flight when they are over ends by itself; nothing more is started."""
    write_agent(project, seconds=4.0)
    code, result = limited(project, "{minutes: 0.06}")
    assert (code, result["verdict"]) == (3, "error")
    assert 1 <= result["suites"][0]["agent_runs"] <= 2


@pytest.mark.parametrize(
    "budget", first_of([f"{{runs: {CASES}}}", f"{{runs: {CASES + 5}}}", f"{{usd: {CASES * 0.01}}}"])
)
def test_spent_after_the_first_pass_is_no_regression(with_baseline: Project, budget: str) -> None:
    """An unchanged agent: whatever is missing for a pass is missing evidence."""
    code, result = limited(with_baseline, budget)
    assert code == 0
    assert result["verdict"] in ("pass", "inconclusive")


def test_what_is_proven_stands(with_baseline: Project) -> None:
    write_agent(with_baseline, broken=True)
    code, result = limited(with_baseline, f"{{runs: {CASES}}}")
    assert (code, result["verdict"]) == (1, "regressed")


@pytest.mark.slow
def test_a_run_over_its_budget_is_resumed_with_a_larger_one(project: Project) -> None:
    assert limited(project, "{tokens: 600}", trials=1)[0] == 3
    code, result = limited(project, "{runs: 60}", trials=1)
    assert (code, result["suites"][0]["agent_runs"]) == (0, CASES)
    rows = [json.loads(line) for line in (project.root / "limited.jsonl").read_text().splitlines()]
    assert sum("case" in row for row in rows) == CASES


def test_judge_calls(project: Project) -> None:
    with JudgeStub() as stub:
        stub.answer = lambda request: chat({"reasoning": "fine", "is_the_agent_response_valid": "valid"})
        config = (project.root / "gate.yaml").read_text().split("criteria:")[0]
        criteria = "criteria: {final_response_match_v2: 0.5}\n"
        judge = f"judge: {{model: judge-1, base_url: '{stub.url}', num_samples: 1}}\n"
        project.write("gate.yaml", config + criteria + judge)
        path = project.root / "limited.jsonl"
        project.write("limited.yaml", (project.root / "gate.yaml").read_text() + "budget: {judge_calls: 5}\n")
        ran = project.gate("run", "-c", "limited.yaml", "--record", str(path), OPENAI_API_KEY="test-key-for-the-stub")
    assert ran.code == 3, ran.out + ran.err
    assert len(stub.requests) == 5
    assert "judge" in ran.out
    assert "regressed" not in ran.out
    assert count(path) < CASES


def count(path: Path) -> int:
    return sum('"case":' in line[:10] for line in path.read_text().splitlines())


def test_one_line_names_the_budget_that_left_nothing_to_say(project: Project) -> None:
    project.write("gate.yaml", (project.root / "gate.yaml").read_text() + "budget: {minutes: 0.0001}\n")
    ran = project.gate("run", "-q")
    assert ran.code == 3
    assert "stopped: the budget of 0.0001 minutes is spent\n" in ran.out
