"""Figures beyond the verdict: dimensions, standard deviations, time per tool, cases that got better, own limits."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Project
from tests.integration.judges.judge_stub import JudgeStub, Reply, Request, chat

AGENT = """
from time import time_ns

def answer(message, case_id):
    number = int(case_id.partition("-")[2])
    calls = [{"name": "search", "arguments": {}, "duration": seconds} for seconds in (0.25, 0.75)]
    calls += [{"name": "pay", "arguments": {}, "duration": 2.0}, {"name": "pay", "arguments": {}}]
    output = f"{'no' if number in WRONG else 'yes'}, {time_ns()}"
    return {"output": output, "tool_calls": calls, "cost_usd": 0.0234}
"""
CONFIG = """
suite: suite.json
agent: {python: agent:answer, concurrency: 4}
judge: {model: stub, base_url: "URL", num_samples: 1}
trials: TRIALS
criteria:
  contains: {values: ["yes"], threshold: 0.5}
  cost: {}
  rubric: {blocking: false, dimensions: {depth: {weight: 0.5, levels: {excellent: Says yes}}, form: {weight: 0.5}}}
"""


def graded(request: Request) -> Reply:
    depth = "poor" if "Agent: no" in request.fenced["conversation"] else "excellent"
    levels = {"depth": depth, "form": "good"}
    return chat({"dimensions": [{"dimension": n, "reasoning": "so", "level": one} for n, one in levels.items()]})


@pytest.fixture
def stub() -> Iterator[JudgeStub]:
    with JudgeStub() as judge:
        judge.answer = graded
        yield judge


def write(project: Project, stub: JudgeStub, wrong: str, trials: int) -> None:
    project.write("agent.py", AGENT.replace("WRONG", wrong))
    text = CONFIG.replace("URL", stub.url).replace("TRIALS", str(trials))
    project.write("gate.yaml", text)


@pytest.mark.slow
def test_what_a_run_tells_beyond_its_verdict(project: Project, stub: JudgeStub) -> None:
    cases = [{"id": f"case-{n}", "input": f"question {n}"} for n in range(4)]
    project.write("suite.json", {"cases": [{**cases[0], "thresholds": {"cost": 0.5}}, *cases[1:]]})
    write(project, stub, "(0,)", 5)
    key = {"OPENAI_API_KEY": "test-key-for-the-stub"}
    ran = project.gate("run", "-q", "--record", "old.jsonl", **key)
    assert ran.code == 0, ran.out + ran.err
    assert project.gate("baseline", "save", "old.jsonl", **key).code == 0
    write(project, stub, "()", 2)
    code, result = project.result("run", "--record", "new.jsonl", "--markdown", "new.md", "--html", "new.html", **key)
    assert code == 0
    assert "  excellent: Says yes" in stub.requests[0].unfenced
    suite = result["suites"][0]
    rubric = next(one for one in suite["criteria"] if one["criterion"]["name"] == "rubric")
    now, before = rubric["dimensions"]["depth"]
    assert (now["value"], now["n"], now["trials"]) == (1.0, 4, 8)
    assert before["value"] == pytest.approx((0.3 + 1 + 1 + 1) / 4)
    assert rubric["dimensions"]["form"][0]["value"] == pytest.approx(0.8)
    # case 0 scored 0.55 five times, the three others 0.9: by hand √((0.2625² + 3 · 0.0875²) / 3) = 0.175 over cases
    assert rubric["baseline"]["sd_cases"] == pytest.approx(0.175)
    assert rubric["baseline"]["sd"] == pytest.approx(0.175 * (15 / 19) ** 0.5)
    assert rubric["candidate"]["sd"] == pytest.approx(0.0)
    tools = {one.pop("name"): one for one in suite["tools"]}
    assert tools == {
        "pay": {"calls": 16, "timed": 8, "seconds": 16.0, "seconds_per_call": 2.0},
        "search": {"calls": 16, "timed": 16, "seconds": 8.0, "seconds_per_call": 0.5},
    }
    better = [case for case in suite["cases"] if (case["improvement"] or 0) >= 2]
    assert [(c["id"], c["baseline_passed"], c["baseline_trials"], c["passed"]) for c in better] == [("case-0", 0, 5, 2)]
    shown = [(project.root / name).read_text() for name in ("new.md", "new.html")]
    told = [project.gate(*command, "new.jsonl", **key).out for command in (("report", "-v"), ("explain", "-v"))]
    for text in (*told, *shown):
        assert text in shown or "passed more often than in the baseline" in text.lower()
        assert text in shown or "0/5 → 2/2" in text
        assert "depth" in text and "was 0.825" in text.replace(" **", " ")
        assert "standard deviation" in text
        plain = " ".join(re.sub("<[^>]+>", "", text).split())
        assert "2 s a call" in plain or "seconds per call" in plain
    assert project.gate("report", "new.jsonl", "--markdown", "again.md", **key).code == 0
    assert (project.root / "again.md").read_text() == shown[0]


def test_explaining_a_case_shows_its_own_limit_met_or_not(project: Project, stub: JudgeStub) -> None:
    own = {"id": "case-0", "input": "q", "thresholds": {"cost": 0.5}}
    project.write("suite.json", {"cases": [own, {"id": "case-1", "input": "q"}]})
    write(project, stub, "()", 1)
    key = {"OPENAI_API_KEY": "test-key-for-the-stub"}
    assert project.gate("run", "-q", "--record", "new.jsonl", **key).code == 0
    text = project.gate("explain", "new.jsonl", "--against", "none", "--case", "case-0", **key).out
    assert "  cost $0.0234 (at most $0.50, this case's own limit)" in text
    assert "  contains 1.000 (at least 50 %)" in text
    assert "    depth 1.000" in text
    other = project.gate("explain", "new.jsonl", "--against", "none", "--case", "case-1", **key).out
    assert "  cost $0.0234 (must not get worse)" in other
