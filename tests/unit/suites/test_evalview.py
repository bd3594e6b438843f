"""EvalView's test cases."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document, parse_document_with_lines
from gate.model import Case, ToolCall, Turn
from gate.suites import load
from gate.suites.base import Document
from gate.suites.evalview import read
from tests.unit.suites.files import mutated, write

FULL = """\
name: Late order
description: Looks the order up and opens a ticket.
input:
  query: My order has not arrived.
  context: {customer: c1}
expected:
  tools: [create_ticket]
  tool_sequence: [lookup_order, create_ticket]
  tool_categories: [notify]
  forbidden_tools: [delete_account]
  output:
    contains: [ticket]
    not_contains: [cannot]
    regex_patterns: ["#[0-9]+"]
    json_schema: {type: string}
thresholds: {min_score: 80, max_cost: 0.5, max_latency: 15000, weights: {tool_accuracy: 1}}
checks: {hallucination: true, safety: false}
adapter: http
adapter_config: {sequence_mode: unordered, timeout: 3}
tags: [support]
"""


def case_of(text: str) -> Case:
    data, lines = parse_document_with_lines(text, "f.yaml")
    (case,) = read(Document(data, "f.yaml", "f", lines)).cases
    return case


def test_every_key() -> None:
    case = case_of(FULL)
    calls = (
        ToolCall("lookup_order", any_args=True),
        ToolCall("create_ticket", any_args=True),
        ToolCall("", category="notify", any_args=True),
    )
    assert (case.id, case.turns) == ("Late order", (Turn("My order has not arrived.", calls),))
    assert (case.state, case.tags) == ({"customer": "c1"}, {"support"})
    assert case.thresholds == {"weighted_score": 0.8, "cost": 0.5, "latency": 15.0}
    assert case.options == {
        "forbidden_tools": {"tools": ["delete_account"]},
        "contains": {"values": ["ticket"]},
        "not_contains": {"values": ["cannot"]},
        "regex": {"patterns": ["#[0-9]+"]},
        "json_schema": {"schema": {"type": "string"}},
        "sequence_correctness": {"mode": "unordered"},
        "weighted_score": {"weights": {"tool_accuracy": 1.0}},
        "hallucinations_v1": {},
    }


def test_turns() -> None:
    case = case_of("name: x\nturns:\n- query: a\n  expected: {tools: []}\n- query: b\n  expected: {sequence: [f]}\n")
    assert case.turns == (Turn("a", ()), Turn("b", (ToolCall("f", any_args=True),)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\ninput: {qery: a}", "f.yaml:2: input.query: missing"),
        ("name: x\ninput: {query: a, contxt: {}}", "f.yaml:2: unknown key 'contxt' (did you mean 'context'?)"),
        ("name: x\ninput: {query: a}\nthresholds: {variance: {}}", "f.yaml:3: unknown key 'variance'"),
        ("name: x\ninput: {query: a}\nthresholds: {min_score: 101}", "f.yaml:3: thresholds.min_score: Input should be"),
        ("name: x\ninput: {query: a}\nturns: [{query: b}]", "f.yaml:1: a test case has either an input or turns"),
        ("name: x\nturns: [{query: b}]\nexpected: {tools: [f]}", "f.yaml:1: where a test case has turns"),
        (
            "name: x\ninput: {query: a}\nexpected: {tools: [f], sequence: [g]}",
            "f.yaml:3: expected: the sequence leaves",
        ),
        ("name: x\nturns:\n- query: a\n  expected: {output: {}}", "f.yaml:4: unknown key 'output'"),
    ],
)
def test_what_cannot_be_checked_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        case_of(text)
    assert str(caught.value).startswith(message)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    mutant = mutated(data, parse_document(FULL, "f"))
    try:
        (suite,) = load([write(tmp_path / "m.yaml", yaml.safe_dump(mutant))], root=tmp_path)
    except GateError as error:
        assert "\n" not in str(error)
        return
    assert all(case.id and case.turns for case in suite.cases)
