"""What a suite asks of a metric that the configuration does not answer: refused before anything is run."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Project, first_of
from tests.integration.judges.judge_stub import JudgeStub, chat

CONFIG = "agent: {python: agent:answer}\nsuite: suite.yaml\n"
EVALVIEW = "name: late\ninput: {query: Late}\nexpected: {tools: [find]}\nthresholds: {min_score: 80}\n"


@pytest.mark.parametrize(
    ("defined", "hint"),
    [
        ("tool_categories: {search: [find], pay: [charge]}\n", "did you mean 'search'?"),
        ("", "define it under tool_categories"),
    ],
)
def test_an_expected_category_that_is_not_defined_is_refused(project: Project, defined: str, hint: str) -> None:
    project.write("gate.yaml", CONFIG + defined + "criteria: {tool_accuracy: 1.0}\n")
    project.write("suite.yaml", "cases:\n  - {id: a, input: hi, tools: [{category: serach}]}\n")
    ran = project.gate("run")
    assert ran.code == 2, ran.out + ran.err
    assert "suite.yaml:2" in ran.err
    assert "case 'a' expects a tool of category 'serach', which is not defined" in ran.err
    assert hint in ran.err


@pytest.mark.slow
def test_a_min_score_decides_and_needs_nothing_in_the_configuration(project: Project) -> None:
    project.write("gate.yaml", CONFIG)
    own = "weights: {tool_accuracy: 0.6, output_quality: 0, sequence_correctness: 0.4}\n"
    project.write("suite.yaml", EVALVIEW + own)
    for call, code, score in (("find", 0, 100.0), ("search", 1, 0.0)):
        project.write(
            "agent.py", f"def answer(m):\n    return {{'output': '', 'tool_calls': [{{'name': '{call}'}}]}}\n"
        )
        ended, result = project.result("run")
        found = {one["criterion"]["name"]: one for one in result["suites"][0]["criteria"]}
        assert (ended, found["overall_score"]["candidate"]["value"]) == (code, score)
        assert found["tool_accuracy"]["criterion"]["blocking"] is False
    project.write("gate.yaml", CONFIG + "criteria: {tool_accuracy: 1.0}\n")
    ended, result = project.result("run")
    found = {one["criterion"]["name"]: one for one in result["suites"][0]["criteria"]}
    assert (ended, found["tool_accuracy"]["verdict"]) == (1, "below_threshold")
    assert "overall_score" in found


STOCK = """\
name: Stock Analysis Test
description: The agent analyses a stock.
input:
  query: Analyze AAPL stock performance
  context: {symbol: AAPL}
expected:
  tools: [fetch_stock_data, analyze_metrics]
  tool_sequence: [fetch_stock_data, analyze_metrics]
  forbidden_tools: [delete_account]
  output:
    contains: [revenue, earnings]
    not_contains: [error]
weights: {tool_accuracy: 0.3, output_quality: 0.5, sequence_correctness: 0.2}
thresholds:
  min_score: 80
  max_cost: 0.50
  max_latency: 5000
  variance: {runs: 10, pass_rate: 0.8}
"""
ANALYST = """\
def answer(message):
    calls = [{"name": name, "arguments": {}} for name in ("fetch_stock_data", "analyze_metrics")]
    return {"output": "revenue and earnings grew", "tool_calls": calls, "cost_usd": %s}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("points", "cost", "code", "failing"),
    first_of([(23, 0.0234, 0, None), (5, 0.0234, 1, "overall_score"), (23, 0.9, 1, "cost")], 2),
)
def test_evalviews_own_example_runs_without_edits(
    project: Project, points: int, cost: float, code: int, failing: str | None
) -> None:
    counts = ("answers_the_question", "accurate", "structured", "follows_instructions")
    with JudgeStub() as stub:
        stub.answer = lambda _: chat({"reasoning": "so", **dict.fromkeys(counts, points)})
        project.write(
            "gate.yaml", f"suite: evals\nagent: {{python: agent:answer}}\njudge: {{base_url: {stub.url}, model: m}}\n"
        )
        project.write("evals/stock.yaml", STOCK)
        project.write("agent.py", ANALYST % cost)
        ended, result = project.result("run", OPENAI_API_KEY="k")
    suite = result["suites"][0]
    found = {one["criterion"]["name"]: one for one in suite["criteria"]}
    assert ended == code, suite["headline"]
    assert found["overall_score"]["candidate"]["value"] == pytest.approx(30 + 20 + 0.5 * 4 * points)
    if failing is not None:
        assert found[failing]["verdict"] == "below_threshold"
    assert {"forbidden_tools", "contains", "not_contains", "cost", "latency"} <= found.keys()
    assert any("variance.runs 10" in line for line in suite["warnings"])
