"""Criteria that files of cases bring, and what a configuration makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from gate.config.load import load_config
from gate.config.resolve import Plan, make_plans, read_suites
from gate.errors import ConfigError
from tests.unit.config.test_base_policy import under_base_policy
from tests.unit.importers import test_inspect_logs, test_promptfoo
from tests.unit.suites.files import write

EVALVIEW = "name: one\ninput: {query: Hi}\nexpected: {tools: [find]}\n"
PYTHON = {"python": "agent:answer"}
KEY = {"OPENAI_API_KEY": "x"}


def plan_of(
    folder: Path, suite: str, content: Any, agent: Any = PYTHON, environment: Mapping[str, str] = KEY, **more: Any
) -> Plan:
    write(folder / suite, content)
    path = write(folder / "gate.yaml", yaml.safe_dump({"suite": suite, "agent": agent} | more))
    [plan] = make_plans(load_config(path), environment)
    return plan


def demanded(plan: Plan) -> dict[str, tuple[float | None, bool]]:
    return {criterion.name: (criterion.threshold, criterion.blocking) for criterion in plan.criteria}


@pytest.mark.parametrize(("own", "found"), [(0.8, (0.8, True)), ({"blocking": False}, (None, False))])
def test_the_configuration_names_the_scorers_that_decide(tmp_path: Path, own: Any, found: Any) -> None:
    data = test_inspect_logs.log(test_inspect_logs.sample(scores={"match": {"value": "C"}, "kind": {"value": "C"}}))
    assert demanded(plan_of(tmp_path, "log.json", data, {"replay": True})) == {
        "inspect:match": (None, True),
        "inspect:kind": (None, True),
    }
    plan = plan_of(tmp_path, "log.json", data, {"replay": True}, criteria={"inspect:match": own})
    assert demanded(plan)["inspect:match"] == found


def test_the_verdict_of_promptfoo_holds_beside_other_criteria(tmp_path: Path) -> None:
    data = {"results": {"version": 3, "results": [test_promptfoo.row("Hi")]}}
    plan = plan_of(tmp_path, "r.json", data, {"replay": True}, criteria={"contains": {"values": "Hi"}})
    assert demanded(plan) == {"promptfoo": (1.0, True), "contains": (1.0, True)}


def test_a_criterion_that_is_null_is_left_out_also_of_the_score(tmp_path: Path) -> None:
    assert "output_quality" in demanded(plan_of(tmp_path, "t.yaml", EVALVIEW))
    plan = plan_of(tmp_path, "t.yaml", EVALVIEW, criteria={"output_quality": None})
    assert demanded(plan).keys() == {"tool_accuracy", "sequence_correctness", "overall_score"}
    assert not any(scorer.needs_judge for scorer in plan.scorers)
    (score,) = (scorer for scorer in plan.scorers if scorer.criterion.name == "overall_score")
    assert set(score.metric.options.effective_weights) == {"tool_accuracy", "sequence_correctness"}


def test_without_any_judge_the_score_is_made_of_its_other_parts(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "t.yaml", EVALVIEW, environment={})
    assert demanded(plan).keys() == {"tool_accuracy", "sequence_correctness", "overall_score"}
    assert any("output_quality asks a judge and none is set up" in note for note in plan.notes)
    stated = plan_of(tmp_path, "t.yaml", EVALVIEW, criteria={"output_quality": None})
    score = {one.name: one.fingerprint for one in plan.criteria}["overall_score"]
    assert score == {one.name: one.fingerprint for one in stated.criteria}["overall_score"]


@pytest.mark.parametrize(
    ("of_file", "more"),
    [
        ("weights: {output_quality: 1, tool_accuracy: 0, sequence_correctness: 0}\n", {}),
        ("checks: {hallucination: true}\n", {}),
        ("", {"criteria": {"output_quality": 0.6}}),
        ("", {"judge": {"api_key_env": "MY_KEY"}}),
    ],
    ids=["nothing else has a share", "another criterion asks", "somebody stated it", "a judge is set up"],
)
def test_whoever_wants_a_judge_is_not_left_without_one(tmp_path: Path, of_file: str, more: Any) -> None:
    with pytest.raises(ConfigError, match=r"key is not set \(needed by|MY_KEY"):
        plan_of(tmp_path, "t.yaml", EVALVIEW + of_file, environment={}, **more)


def test_a_change_cannot_leave_a_criterion_out_for_its_own_comparison(tmp_path: Path) -> None:
    base = {"suite": "t.yaml", "agent": PYTHON}
    for side, content in (("base", base), ("head", {**base, "criteria": {"output_quality": None}})):
        write(tmp_path / side / "t.yaml", EVALVIEW)
        write(tmp_path / side / "gate.yaml", yaml.safe_dump(content))
    rules = under_base_policy(tmp_path / "head" / "gate.yaml", {}, tmp_path / "base" / "gate.yaml")
    [plan] = make_plans(rules.config, KEY)
    assert "output_quality" in demanded(plan)


def test_a_file_in_a_question_needs_an_agent_that_takes_it(tmp_path: Path) -> None:
    parts = [{"text": "What is this?"}, {"inline_data": {"mime_type": "image/png", "data": "aGk="}}]
    data = {
        "eval_cases": [
            {
                "eval_id": "one",
                "conversation": [{"user_content": {"parts": parts}, "final_response": {"parts": [{"text": "A"}]}}],
            }
        ]
    }
    with pytest.raises(ConfigError, match=r"case 'one': its question has inline_data, which a python: agent is not"):
        plan_of(tmp_path, "s.evalset.json", data)
    adk = {"adk": {"url": "http://localhost:9", "app": "a"}}
    assert plan_of(tmp_path, "s.evalset.json", data, adk).suite.cases[0].turns[0].attached


def eval_set(folder: Path, **beside: Any) -> Plan:
    write(folder / "evals" / "test_config.json", beside)
    write(folder / "evals" / "a.test.json", [{"query": "Hi", "reference": "Hello"}])
    path = write(folder / "gate.yaml", yaml.safe_dump({"suite": "evals", "agent": PYTHON}))
    [plan] = make_plans(load_config(path), KEY)
    return plan


def test_other_keys_of_a_test_config_stop_no_suite(tmp_path: Path) -> None:
    more = {"description": "x", "_comment": "y", "$schema": "z"}
    plan = eval_set(tmp_path, criteria={"response_match_score": 0.7}, **more)
    assert demanded(plan) == {"response_match_score": (0.7, True)}
    with pytest.raises(ConfigError, match=r"unknown key 'custom_metric' \(did you mean 'custom_metrics'\?\)"):
        eval_set(tmp_path, criteria={"response_match_score": 0.7}, custom_metric={})


@pytest.mark.parametrize("name", ["tool_trajectory_avg_score", "safety_v1"])
def test_a_threshold_of_zero_in_a_test_config_only_reports(tmp_path: Path, name: str) -> None:
    plan = eval_set(tmp_path, criteria={"response_match_score": 0.7, name: 0.0})
    assert demanded(plan)[name][1] is False


def test_a_set_in_camel_case_proposes_the_flavor_of_typescript(tmp_path: Path) -> None:
    turn = {"userContent": {"parts": [{"text": "Hi"}]}, "finalResponse": {"parts": [{"text": "Hello"}]}}
    data = {"evalSetId": "s", "evalCases": [{"evalId": "one", "conversation": [turn]}]}
    assert any("flavor: adk-ts" in note for note in plan_of(tmp_path, "s.evalset.json", data).notes)
    own = {"response_match_score": {"threshold": 0.8, "flavor": "adk"}}
    assert not any("flavor" in note for note in plan_of(tmp_path, "s.evalset.json", data, criteria=own).notes)


def test_scores_of_another_tool_are_not_asked_of_an_agent_that_is_run(tmp_path: Path) -> None:
    rows = [test_promptfoo.row("Hi", {"type": "contains", "value": "Hi"})]
    data = {"results": {"version": 3, "results": rows}}
    assert demanded(plan_of(tmp_path, "r.json", data)) == {"contains": (1.0, True)}
    log = test_inspect_logs.log(test_inspect_logs.sample(scores={"match": {"value": "C"}}))
    plan = plan_of(tmp_path, "log.json", log, criteria={"latency": {"max": 9}})
    assert demanded(plan).keys() == {"latency"}
    assert any("scorer match" in note for note in plan.notes)


def test_a_suite_outside_of_the_configurations_folder_is_named_by_both(tmp_path: Path) -> None:
    """Two configurations may measure the same cases of two agents, so the folder of each stays in the name."""
    write(tmp_path / "evals/first.yaml", "cases: [{id: a, input: Hi, response: Hi}]")
    path = write(tmp_path / "checks/gate.yaml", yaml.safe_dump({"suite": "../evals", "agent": PYTHON}))
    (tmp_path / ".git").mkdir()
    assert [suite.id for suite in read_suites(load_config(path))] == ["checks/evals"]
