"""Pydantic Evals' datasets: evaluators with a counterpart are carried over, all others are lost checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.model import Case, Part, Suite
from gate.suites import load
from gate.suites.base import Loss
from tests.unit.suites.files import write

DATASET = """\
# yaml-language-server: $schema=./schema.json
name: capitals
cases:
  - name: france
    inputs: What is the capital of France?
    metadata: {level: easy}
    expected_output: Paris
    evaluators: [EqualsExpected]
  - inputs: {question: And of Italy?}
    evaluators:
      - Contains: Rome
      - LLMJudge: {rubric: Names no other city., assertion: {evaluation_name: cities}, model_settings: {top_p: 1}}
evaluators:
  - MaxDuration: 2.5
"""


def suite_of(folder: Path, text: str = DATASET, losses: list[Loss] | None = None) -> Suite:
    write(folder / "dataset.yaml", text)
    (suite,) = load([folder], root=folder, losses=losses)
    return suite


def test_cases_and_evaluators(tmp_path: Path) -> None:
    suite = suite_of(tmp_path)
    first, second = suite.cases
    assert (first.id, second.id) == ("france", "dataset-2")
    assert [case.turns[0].user for case in suite.cases] == ["What is the capital of France?", "And of Italy?"]
    assert first.turns[0].response == (Part("Paris"),)
    assert first.options == {"regex": {"patterns": [r"\AParis\Z"]}}
    assert second.options == {"contains": {"values": ["Rome"]}}
    assert [rubric.text for rubric in second.rubrics] == ["Names no other city."]
    assert {case.thresholds["latency"] for case in suite.cases} == {2.5}
    wanted = {"regex", "contains", "latency", "rubric_based_final_response_quality_v1"}
    assert set(suite.brought or {}) == wanted
    assert second.location is not None and second.location.line == 9


def test_the_expected_output_is_a_pattern_of_its_letters(tmp_path: Path) -> None:
    case: Case = suite_of(
        tmp_path, "cases: [{inputs: a, expected_output: 'a.b (c)', evaluators: [EqualsExpected]}]"
    ).cases[0]
    assert case.options["regex"]["patterns"] == [r"\Aa\.b\ \(c\)\Z"]


@pytest.mark.parametrize(
    ("evaluator", "name"),
    [
        ("IsInstance: str", "IsInstance"),
        ("Contains: {value: Rome, case_sensitive: false}", "Contains"),
        ("Contains: 3", "Contains"),
        ("MaxDuration: {seconds: soon}", "MaxDuration"),
        ("LLMJudge: {rubric: x, score: {include_reason: true}}", "LLMJudge"),
        ("LLMJudge: {rubric: x, assertion: false}", "LLMJudge"),
        ("MyOwn: {}", "MyOwn"),
        ("EqualsExpected: {}", "EqualsExpected"),
    ],
)
def test_an_evaluator_without_a_counterpart_is_a_lost_check(tmp_path: Path, evaluator: str, name: str) -> None:
    text = f"cases: [{{inputs: a, evaluators: [{{{evaluator}}}]}}]"
    with pytest.raises(ConfigError, match=f"evaluator {name}: the gate has no such check"):
        suite_of(tmp_path, text)
    losses: list[Loss] = []
    suite_of(tmp_path, text, losses)
    assert [str(loss) for loss in losses] == [f"dataset-1: evaluator {name}"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cases: [{inputs: 3}]", "inputs"),
        ("cases: [{inputs: a}, 3]", "mapping"),
        ("cases: [{inputs: a, evaluators: 3}]", "list"),
        ("cases: [{inputs: a, evaluators: [{a: 1, b: 2}]}]", "one name"),
        ("cases: [{inputs: a, weight: 3}]", "weight"),
        ("cases: [{inputs: a}]\nreport_evaluators: [Confusion]", "Confusion"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, text: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        suite_of(tmp_path, text)
