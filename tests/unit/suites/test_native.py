"""The gate's own suite files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document, parse_document_with_lines
from gate.model import Case, Complexity, Part, Rubric, ToolCall, Turn
from gate.suites import load
from gate.suites.base import Document
from gate.suites.native import read
from tests.properties import examples
from tests.unit.suites.files import ROOT, mutated, write

FULL = """\
defaults:
  tags: [shop]
  complexity: simple
  state: {locale: en, vip: false}
cases:
  - id: refund
    input: I want my money back
    tools:
      - lookup_order
      - {name: refund, args: {order: A1}}
      - {category: notify}
    response: Done.
    tags: [smoke, 2026]
    complexity: complex
    metadata: {owner: me}
    state: {vip: true}
    thresholds: {response_match_score: 0.5}
    forbidden_tools: [delete_account]
    contains: refunded
    not_contains: [sorry]
    regex: "\\\\$[0-9]+"
    json_schema: {type: object}
    weights: {response_match_score: 2}
    options:
      tool_trajectory_avg_score: {match_type: IN_ORDER}
      contains: {ignore_case: true}
    rubrics:
      - The tone is kind.
      - {id: short, text: It is short., type: FINAL_RESPONSE_QUALITY}
  - id: 7
    turns:
      - input: hi
        tools: []
        response: [Hello!, How are you?]
        rubrics: [It greets.]
      - input: bye
"""


def cases(text: str, name: str = "f.yaml") -> tuple[Case, ...]:
    data, lines = parse_document_with_lines(text, name)
    return read(Document(data, name, "f", lines)).cases


def test_every_key() -> None:
    refund, seven = cases(FULL)
    assert refund.turns == (
        Turn(
            "I want my money back",
            (
                ToolCall("lookup_order", any_args=True),
                ToolCall("refund", {"order": "A1"}),
                ToolCall("", category="notify", any_args=True),
            ),
            (Part("Done."),),
        ),
    )
    assert refund.tags == {"shop", "smoke", "2026"}
    assert refund.complexity is Complexity.COMPLEX
    assert (refund.metadata, refund.state) == ({"owner": "me"}, {"locale": "en", "vip": True})
    assert refund.thresholds == {"response_match_score": 0.5}
    assert refund.options == {
        "tool_trajectory_avg_score": {"match_type": "IN_ORDER"},
        "contains": {"ignore_case": True, "values": ["refunded"]},
        "forbidden_tools": {"tools": ["delete_account"]},
        "not_contains": {"values": ["sorry"]},
        "regex": {"patterns": ["\\$[0-9]+"]},
        "json_schema": {"schema": {"type": "object"}},
        "weighted_score": {"weights": {"response_match_score": 2.0}},
    }
    assert refund.rubrics == (
        Rubric("The tone is kind.", "The tone is kind.", "FINAL_RESPONSE_QUALITY"),
        Rubric("short", "It is short.", "FINAL_RESPONSE_QUALITY"),
    )
    assert (seven.id, seven.complexity) == ("7", Complexity.SIMPLE)
    assert seven.turns == (
        Turn(
            "hi",
            (),
            (Part("Hello!"), Part("How are you?")),
            (Rubric("It greets.", "It greets.", "FINAL_RESPONSE_QUALITY"),),
        ),
        Turn("bye"),
    )
    assert [str(case.location) for case in (refund, seven)] == ["f.yaml:6", "f.yaml:30"]


def test_yaml_and_json_say_the_same() -> None:
    in_json = cases(json.dumps(parse_document(FULL, "f")), "f.json")
    for one, other in zip(cases(FULL), in_json, strict=True):
        assert (one.id, one.turns, one.options, one.rubrics) == (other.id, other.turns, other.options, other.rubrics)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- id: x\n  imput: hi", "f.yaml:2: case 'x': unknown key 'imput' (did you mean 'input'?)"),
        ("cases: []\ndefault: {}", "f.yaml:2: unknown key 'default' (did you mean 'defaults'?)"),
        ("cases: []\ndefaults: {tag: [x]}", "f.yaml:2: unknown key 'tag' (did you mean 'tags'?)"),
        ("- id: x\n  input: hi\n  tools:\n  - {nam: f}", "f.yaml:4: case 'x': unknown key 'nam' (did you"),
        ("- id: x\n  turns:\n  - input: hi\n    tool: []", "f.yaml:4: case 'x': unknown key 'tool' (did"),
        ("- input: hi", "f.yaml:1: case 1: missing key 'id'"),
        ("cases:\n- id: x", "f.yaml:2: case 'x': a case has either an input or turns"),
        ("- id: x\n  input: hi\n  turns: [{input: a}]", "f.yaml:1: case 'x': a case has either an input or turns"),
        ("- id: x\n  turns: [{input: a}]\n  tools: []", "f.yaml:1: case 'x': in a case with turns"),
        ("- id: x\n  turns: []", "f.yaml:2: case 'x': turns: is empty (write at least one)"),
        ("- id: x\n  input: ''", "f.yaml:2: case 'x': input: is empty"),
        ("- id: 1.10\n  input: hi", "f.yaml:1: case 1: id: expected text, found a number (put it in quotes)"),
        ("- id: true\n  input: hi", "f.yaml:1: case 1: id: expected text, found true (put it in quotes)"),
        ("- id: x\n  input: hi\n  complexity: hard", "f.yaml:3: case 'x': complexity: expected 'simple'"),
        ("- id: x\n  input: hi\n  tools: [{name: a, category: b}]", "f.yaml:3: case 'x': tools: a tool has either"),
        ("- id: x\n  input: hi\n  tools: [{category: b, args: {}}]", "f.yaml:3: case 'x': tools: args go with a name"),
        ("- id: x\n  input: hi\n  tools: f", "f.yaml:3: case 'x': tools: expected a list, found text"),
        ("- id: x\n  input: hi\n  weights: {a: -1}", "f.yaml:3: case 'x': weights.a: expected greater"),
        ("- id: x\n  input: hi\n  regex: a\n  options: {regex: {patterns: b}}", "f.yaml:1: case 'x': regex and"),
        ("cases: 3", "f.yaml:1: cases: expected a list, found a number"),
        ("- id: x\n  input: hi\n- 3", "f.yaml:3: case 2: expected a mapping, found a number (known keys: id, input"),
    ],
)  # fmt: skip
def test_malformed(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cases(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    mutant = mutated(data, parse_document(FULL, "f"))
    path = write(tmp_path / "m.yaml", yaml.safe_dump(mutant))
    try:
        (suite,) = load([path], root=tmp_path)
    except GateError as error:
        assert "\n" not in str(error)
        return
    assert all(case.id and case.turns and case.location for case in suite.cases)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=examples(200))
@given(cut=st.integers(min_value=1), junk=st.text(alphabet="{}[]:,-&*!|>'\" \n\tab1", max_size=3))
def test_torn_and_scribbled_files_are_suites_or_gate_errors(cut: int, junk: str, tmp_path: Path) -> None:
    place = cut % len(FULL)
    for text in (FULL[:place], FULL[:place] + junk + FULL[place:]):
        try:
            load([write(tmp_path / "m.yaml", text)], root=tmp_path)
        except GateError as error:
            assert "\n" not in str(error)


def test_the_example_of_the_repository_loads() -> None:
    examples = ROOT / "examples/support-agent"
    if not examples.is_dir():
        pytest.skip("no examples here")
    (suite,) = load([examples / "suite"], root=examples)
    assert len(suite.cases) >= 20
