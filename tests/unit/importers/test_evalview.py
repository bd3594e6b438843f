"""EvalView's test cases."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, GateError
from gate.formats.documents import parse_document, parse_document_with_lines
from gate.importers.convert import convert
from gate.importers.evalview import WeightsModel, read
from gate.metrics.weighted import OverallScoreOptions
from gate.model import Case, Complexity, Suite, ToolCall, Turn
from gate.suites import load
from gate.suites.base import Document
from tests.unit.metrics.build import said_score
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
thresholds: {min_score: 80, max_cost: 0.5, max_latency: 15000, weights: {tool_accuracy: 0.3}}
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
    assert case.thresholds == {"overall_score": 80.0, "cost": 0.5, "latency": 15.0}
    assert case.options == {
        "forbidden_tools": {"tools": ["delete_account"]},
        "contains": {"values": ["ticket"], "ignore_case": True},
        "not_contains": {"values": ["cannot"], "ignore_case": True},
        "regex": {"patterns": ["(?is)#[0-9]+"]},
        "json_schema": {"schema": {"type": "string"}},
        "sequence_correctness": {"mode": "unordered"},
        "overall_score": {"weights": {"tool_accuracy": 0.3, "output_quality": 0.5, "sequence_correctness": 0.2}},
        "hallucinations_v1": {},
    }


@pytest.mark.parametrize("pattern", ["HI", "(?i)HI", "(?im)^HI", "(?x) H I # it greets", "(?a)HI", "HI.there"])
def test_patterns_ignore_case_and_keep_their_own_flags(pattern: str) -> None:
    text = FULL.replace('"#[0-9]+"', json.dumps(pattern))
    assert text != FULL
    options = case_of(text).options["regex"]
    assert said_score("regex", ["hi\nthere"], **options).value == 1.0


def test_turns() -> None:
    case = case_of("name: x\nturns:\n- query: a\n  expected: {tools: []}\n- query: b\n  expected: {sequence: [f]}\n")
    assert case.turns == (Turn("a", ()), Turn("b", (ToolCall("f", any_args=True),)))


def test_tools_of_a_whole_conversation_may_be_called_in_any_turn() -> None:
    """EvalView's `init` writes the first turn once more, as `input`."""
    case = case_of("name: x\ninput: {query: a}\nturns: [{query: a}, {query: b}]\nexpected: {tools: [f, g]}")
    assert [turn.user for turn in case.turns] == ["a", "b"]
    assert case.turns[1].tools == (ToolCall("f", any_args=True), ToolCall("g", any_args=True))
    assert case.options["tool_accuracy"] == case.options["sequence_correctness"] == {"whole_conversation": True}


@pytest.mark.parametrize(
    "text",
    [
        "tools: [{name: f, input_schema: {}}]",
        "gate: strict",
        "mocks: {tools: []}",
        "expected: {hallucination: {check: false}, safety: {check: false}}",
    ],
)
def test_what_evalview_writes_for_itself_stops_no_suite(text: str) -> None:
    assert case_of(f"name: x\ninput: {{query: a}}\n{text}").turns == (Turn("a"),)


def test_checks_in_the_expectation_are_checks() -> None:
    stated = "{hallucination: {check: true}, safety: {check: true}, output: {no_pii: true}}"
    assert case_of(f"name: x\ninput: {{query: a}}\nexpected: {stated}").options == {
        "hallucinations_v1": {},
        "safety_v1": {},
        "pii": {},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "name: x\ndesciption: y\ninput: {query: a}",
            "f.yaml:2: unknown key 'desciption' (did you mean 'description'?)",
        ),
        ("name: x\ninput: {qery: a}", "f.yaml:2: unknown key 'qery' (did you mean 'query'?)"),
        ("name: x\ninput: {query: a, contxt: {}}", "f.yaml:2: unknown key 'contxt' (did you mean 'context'?)"),
        ("name: x\ninput: {query: a}\nthresholds: {variance: {rns: 3}}", "f.yaml:3: unknown key 'rns'"),
        ("name: x\ninput: {query: a}\nweights: {tool_accuracy: 1}", "f.yaml:3: weights: the weights sum to 1.7"),
        ("name: x\ninput: {query: a}\nweights: {quality: 1}", "f.yaml:3: unknown key 'quality'"),
        (
            "name: x\ninput: {query: a}\nweights: {}\nthresholds: {weights: {}}",
            "f.yaml:1: weights and thresholds.weights mean the same: keep one",
        ),
        ("name: x\ninput: {query: a}\nthresholds: {min_score: 101}", "f.yaml:3: thresholds.min_score: expected"),
        (
            "name: x\ninput: {query: a}\nthresholds: {min_score: 0.8}",
            "f.yaml:3: thresholds.min_score: 0.8 is too low for a scale from 0 to 100 (did you mean 80?)",
        ),
        ("name: x\nweights: {tool_accuracy: 0.3}", "f.yaml:1: neither `input` nor `turns`"),
        (
            "name: x\nturns:\n- query: b\n  expected: {tools: [f]}\nexpected: {tools: [f]}",
            "f.yaml:1: expected tools belong either to the turns or to the whole",
        ),
        ("name: x\nturns: [{query: a}, {query: b, context: {k: 1}}]", "f.yaml:1: only the first turn can have"),
        (
            "name: x\ninput: {query: a}\nexpected: {tools: [f], sequence: [g]}",
            "f.yaml:3: expected: the sequence omits",
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


# --- the criteria that the files bring ------------------------------------------------------------


def test_a_file_without_a_min_score_is_held_to_the_sources_own(tmp_path: Path) -> None:
    """Each by itself, as in EvalView: one that fails is not made up for by nine that pass."""
    stated = "name: y\ninput: {query: a}\nthresholds: {min_score: 80}"
    suite = brought(tmp_path, "name: x\ninput: {query: a}")
    assert (suite.brought or {})["overall_score"] == {"threshold": 70.0}
    suite = brought(tmp_path, "name: x\ninput: {query: a}", stated)
    assert [case.thresholds for case in suite.under({}).cases] == [{"overall_score": 70.0}, {"overall_score": 80.0}]
    converted = json.loads(convert(suite).suite)["cases"]
    assert [row["thresholds"] for row in converted] == [{"overall_score": 70.0}, {"overall_score": 80.0}]


def test_a_criterion_in_the_configuration_takes_the_place_of_the_default(tmp_path: Path) -> None:
    suite = brought(tmp_path, "name: x\ninput: {query: a}")
    assert [case.thresholds for case in suite.under({"overall_score": 60}).cases] == [{}]


def test_a_criterion_that_the_configuration_removes_is_removed_from_each_case(tmp_path: Path) -> None:
    text = "name: x\ninput: {query: a}\nexpected: {output: {contains: [b]}}\nthresholds: {min_score: 80}"
    (case,) = brought(tmp_path, text).under({"overall_score": None, "contains": None}).cases
    assert (case.thresholds, case.options) == ({}, {})


def brought(tmp_path: Path, *texts: str) -> Suite:
    for number, text in enumerate(texts):
        write(tmp_path / f"case{number}.yaml", text)
    (suite,) = load([tmp_path], root=tmp_path)
    return suite


def test_the_weights_are_those_of_the_score() -> None:
    assert WeightsModel().model_dump() == OverallScoreOptions().weights


def test_a_file_brings_a_criterion_for_everything_that_it_states(tmp_path: Path) -> None:
    reports = {"blocking": False}
    assert brought(tmp_path, FULL).brought == {
        "tool_accuracy": reports,
        "output_quality": reports,
        "sequence_correctness": reports,
        "overall_score": {},
        "forbidden_tools": {},
        "contains": {},
        "not_contains": {},
        "regex": {},
        "json_schema": {},
        "hallucinations_v1": {"threshold": 1.0},
        "cost": {},
        "latency": {},
    }


def test_a_part_without_weight_is_no_criterion_and_asks_no_judge(tmp_path: Path) -> None:
    text = "name: x\ninput: {query: a}\nweights: {tool_accuracy: 0.6, sequence_correctness: 0.4, output_quality: 0}\n"
    assert set(brought(tmp_path, text).brought or ()) == {"tool_accuracy", "sequence_correctness", "overall_score"}


def test_files_together_bring_the_criteria_of_all_and_the_strictest_pass_rate(tmp_path: Path) -> None:
    one = "name: x\ninput: {query: a}\nthresholds: {variance: {pass_rate: 0.7, max_std_dev: 5, min_mean_score: 90}}\n"
    other = "name: y\ninput: {query: a}\nthresholds: {max_cost: 1, variance: {runs: 5, pass_rate: 0.9}}\n"
    suite = brought(tmp_path, one, other)
    assert (suite.brought or {})["pass_rate"] == 0.9
    assert "cost" in (suite.brought or {})
    assert suite.cases[0].thresholds == {"overall_score": 90.0}
    assert any("max_std_dev is not checked" in note for note in suite.notes)
    assert any("`trials: 5`" in note for note in suite.notes)


def test_other_formats_bring_none(tmp_path: Path) -> None:
    assert brought(tmp_path, "- {id: a, input: hi}\n").brought is None


def test_difficulty_and_meta() -> None:
    case = case_of("name: x\ninput: {query: a}\ndifficulty: expert\nmeta: {owner: me}\nsuite_type: regression\n")
    assert (case.complexity, case.metadata) == (Complexity.COMPLEX, {"owner": "me"})


@pytest.mark.parametrize("shape", ["weights: {}", "scoring: {{weights: {}}}\nadapter: http\nendpoint: nowhere"])
def test_a_projects_weights_hold_for_every_test_without_its_own(tmp_path: Path, shape: str) -> None:
    project = shape.format("{tool_accuracy: 0.6, sequence_correctness: 0.4, output_quality: 0}")
    write(tmp_path / ".evalview" / "config.yaml", project)
    plain = "name: x\ninput: {query: a}\n"
    own = "name: y\ninput: {query: a}\nweights: {tool_accuracy: 0.5, output_quality: 0.3, sequence_correctness: 0.2}\n"
    first, second = brought(tmp_path, plain, own).cases
    assert first.options["overall_score"]["weights"] == {
        "tool_accuracy": 0.6,
        "output_quality": 0.0,
        "sequence_correctness": 0.4,
    }
    assert second.options["overall_score"]["weights"]["output_quality"] == 0.3


@pytest.mark.parametrize(
    ("project", "why"),
    [
        ("weights: {tool_accuracy: 0.9}", "sum to 1.6"),
        ("weights: {tool_acuracy: 0.9}", "tool_acuracy"),
        ("scoring: {weights: {speed: 1}}", "speed"),
        ("weights: {}\nscoring: {weights: {}}", "mean the same"),
        ("[]", "mapping|dictionary"),
    ],
)
def test_weights_of_a_project_that_mean_nothing_are_refused(tmp_path: Path, project: str, why: str) -> None:
    write(tmp_path / ".evalview" / "config.yaml", project)
    with pytest.raises(ConfigError, match=why) as raised:
        brought(tmp_path, "name: x\ninput: {query: a}\n")
    assert ".evalview/config.yaml" in str(raised.value)


def test_a_projects_settings_outside_of_it_are_not_read(tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    write(tmp_path / "outside.yaml", "weights: {tool_accuracy: 1, output_quality: 0, sequence_correctness: 0}")
    folder = tmp_path / "project"
    (folder / ".evalview").mkdir(parents=True)
    (folder / ".evalview" / "config.yaml").symlink_to(outside)
    with pytest.raises(ConfigError, match="not followed"):
        brought(folder, "name: x\ninput: {query: a}\n")


def test_the_projects_settings_are_found_from_the_test_upwards(tmp_path: Path) -> None:
    write(
        tmp_path / "shop" / ".evalview" / "config.yaml",
        "weights: {tool_accuracy: 1, output_quality: 0, sequence_correctness: 0}",
    )
    write(tmp_path / "shop" / "tests" / "t.yaml", "name: x\ninput: {query: a}")
    (suite,) = load([tmp_path / "shop"], root=tmp_path)
    assert suite.cases[0].options["overall_score"]["weights"]["tool_accuracy"] == 1.0
