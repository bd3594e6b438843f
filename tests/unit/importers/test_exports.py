"""Rows that other products export: what they say is read, and what they check and the gate does not is refused."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError, GateError, MeasureError
from gate.model import Case, Part, Suite, ToolCall
from gate.suites import load
from gate.suites.base import Loss
from tests.properties import examples
from tests.unit.suites.files import mutated, write

GOLDEN = {
    "input": "Where is A1?",
    "actual_output": "On its way.",
    "expected_output": "It is on its way.",
    "retrieval_context": ["A1 left on Monday."],
    "additional_metadata": {"team": "care"},
    "expected_tools": [{"name": "find", "inputParameters": {"id": "A1"}}, {"name": "notify"}],
    "tools_called": [{"name": "find", "inputParameters": {"id": "A1"}, "output": "left"}],
    "name": "where",
}
SAID = (("user", "Hi"), ("assistant", "Hello"), ("user", "A1?"))
TALK = {
    "scenario": "a hurry",
    "expected_outcome": "The user knows.",
    "turns": [{"role": role, "content": content} for role, content in SAID],
}
LANGSMITH = {"id": "0001", "dataset_id": "d", "inputs": {"question": "Why?"}, "outputs": {"answer": "Because."},
             "metadata": {"a": 1}, "split": "smoke"}  # fmt: skip
LANGFUSE = {
    "id": "i1",
    "input": {"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "Hi"}]},
    "expectedOutput": "Hello",
    "metadata": None,
    "sourceTraceId": "t",
    "status": "ACTIVE",
}
OPENAI = {"item": {"id": 3, "question": "2+2?", "ideal": "4", "topic": "sums"}, "sample": {"output_text": "four"}}
OLD = {"input": [{"role": "system", "content": "x"}, {"role": "user", "content": "2+2?"}], "ideal": ["4"]}
AGENTCORE = {
    "scenario_id": "s1",
    "schema_type": "AGENTCORE_EVALUATION_PREDEFINED_V1",
    "assertions": ["Is polite."],
    "turns": [{"input": "Refund A1", "expected_response": "Done."}],
    "expected_trajectory": ["find", "refund"],
}
AWS = {
    "scenarioId": "s1",
    "turns": [{"input": "Refund A1", "expectedResponse": "Done."}],
    "expectedTrajectory": {"toolNames": ["find", "refund"]},
}
ROWS: list[dict[str, Any]] = [GOLDEN, TALK, LANGSMITH, LANGFUSE, OPENAI, OLD, AGENTCORE]


def suite_of(folder: Path, *rows: Any, losses: list[Loss] | None = None, suffix: str = "json") -> Suite:
    text = "".join(json.dumps(row) + "\n" for row in rows) if suffix == "jsonl" else json.dumps(rows)
    write(folder / f"rows.{suffix}", text)
    (suite,) = load([folder], root=folder, losses=losses)
    return suite


def case_of(folder: Path, row: Any) -> Case:
    (case,) = suite_of(folder, row).cases
    return case


def test_a_golden_with_its_calls_and_its_recorded_answer(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, GOLDEN)
    (case,), (recorded,) = suite.cases, suite.recorded
    assert case.id == "where"
    assert case.metadata == {"team": "care", "retrieval_context": ["A1 left on Monday."]}
    (turn,) = case.turns
    assert turn.tools == (ToolCall("find", {"id": "A1"}), ToolCall("notify", any_args=True))
    assert turn.response == (Part("It is on its way."),)
    (said,) = recorded.invocations
    made = [(call.name, call.result) for call in said.tool_calls]
    assert (said.text, made, said.reports_calls) == ("On its way.", [("find", "left")], True)


def test_a_conversational_golden_is_held_to_its_outcome(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, TALK)
    (case,) = suite.cases
    assert [turn.user for turn in case.turns] == ["Hi", "A1?"]
    assert [rubric.text for rubric in case.rubrics] == ["The user knows."]
    assert "rubric_based_final_response_quality_v1" in (suite.brought or {})


@pytest.mark.parametrize(
    ("row", "name", "user", "response"),
    [
        (LANGSMITH, "0001", "Why?", "Because."),
        (LANGFUSE, "i1", "Hi", "Hello"),
        (OPENAI, "3", "2+2?", "4"),
        (OLD, "rows-1", "x\n\n2+2?", "4"),
        (AGENTCORE, "s1", "Refund A1", "Done."),
        (AWS, "s1", "Refund A1", "Done."),
    ],
)
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_the_other_kinds(tmp_path: Path, suffix: str, row: Any, name: str, user: str, response: str) -> None:
    (case,) = suite_of(tmp_path, row, suffix=suffix).cases
    (turn,) = case.turns
    assert (case.id, turn.user, turn.response) == (name, user, (Part(response),))


def test_tags_metadata_and_trajectories_are_kept(tmp_path: Path) -> None:
    assert case_of(tmp_path / "a", LANGSMITH).tags == {"smoke"}
    assert case_of(tmp_path / "b", OPENAI).metadata == {"topic": "sums"}
    (turn,) = case_of(tmp_path / "c", AGENTCORE).turns
    assert turn.tools == (ToolCall("find", any_args=True), ToolCall("refund", any_args=True))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({**GOLDEN, "must_not_say": "no"}, "must_not_say"),
        ({**LANGSMITH, "evaluators": ["exact"]}, "evaluators"),
        ({**OLD, "ideal": ["4", "four"]}, "further texts of ideal"),
        ({**AGENTCORE, "turns": [{"input": "a"}, {"input": "b"}]}, "expected_trajectory of several turns"),
        ({**LANGSMITH, "outputs": {"answer": "So.", "tools": ["look_up"]}}, "outputs.tools"),
        ({"id": "i", "input": "Why?", "expectedOutput": {"answer": "So.", "route": "x"}}, "expectedOutput.route"),
        ({**GOLDEN, "expected_output": {"answer": "So.", "route": "sales"}}, "expected_output.route"),
        ({**TALK, "expected_tools": [{"name": "find"}]}, "expected_tools"),
    ],
)
def test_a_check_that_the_gate_does_not_have_is_refused_and_listed_on_import(
    tmp_path: Path, row: Any, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        suite_of(tmp_path, row)
    assert "gate import" in str(raised.value)
    losses: list[Loss] = []
    suite_of(tmp_path, row, losses=losses)
    assert [loss.what for loss in losses if loss.check] == [why]


def test_what_is_no_check_is_a_note(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    (note,) = suite_of(tmp_path, {**LANGFUSE, "input": said}).notes
    assert "input: what the system says is not carried over" in note


def test_a_part_of_the_question_is_never_left_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="attachments, which are part of the question"):
        suite_of(tmp_path, {**LANGSMITH, "attachments": {"a": "b"}})
    with pytest.raises(ConfigError, match=r"rows\.json:1: inputs\.history"):
        suite_of(tmp_path, {"inputs": {"question": "Why?", "history": ["Hi"]}, "outputs": {"answer": "So."}})


def test_both_spellings_of_agentcore_say_the_same(tmp_path: Path) -> None:
    first, second = case_of(tmp_path / "a", AGENTCORE), case_of(tmp_path / "b", AWS)
    assert first.turns == second.turns
    assert [call.name for call in second.turns[0].tools or ()] == ["find", "refund"]


@pytest.mark.parametrize("path", [[], {"toolNames": []}])
def test_an_empty_trajectory_expects_no_call(tmp_path: Path, path: Any) -> None:
    talk = {**AGENTCORE, "turns": [*AGENTCORE["turns"], {"input": "Thanks"}], "expected_trajectory": path}
    assert [turn.tools for turn in case_of(tmp_path, talk).turns] == [(), ()]


def test_assertions_and_outcomes_must_all_hold(tmp_path: Path) -> None:
    for number, row in enumerate([AGENTCORE, TALK]):
        brought = suite_of(tmp_path / str(number), row).brought or {}
        assert brought["rubric_based_final_response_quality_v1"] == {"threshold": 1.0}
        assert (brought["tool_trajectory_avg_score"], brought["response_match_score"]) == (1.0, 0.8)


def test_an_archived_item_of_langfuse_is_no_case(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, {**LANGFUSE, "status": "ARCHIVED", "id": "old"}, {**LANGFUSE, "status": "ACTIVE"})
    assert [case.id for case in suite.cases] == ["i1"]
    assert any("old: the whole item: it is archived" in note for note in suite.notes)


def test_goldens_of_deepeval_in_csv(tmp_path: Path) -> None:
    row = '"[{""name"": ""find""}]","{""team"": ""care""}"'
    text = f"input,expected_output,expected_tools,additional_metadata\nHi,Hello,{row}\n"
    path = write(tmp_path / "goldens.csv", text)
    (suite,) = load([path], root=tmp_path)
    (case,) = suite.cases
    assert (case.turns[0].user, case.turns[0].response, case.metadata) == ("Hi", (Part("Hello"),), {"team": "care"})
    assert [call.name for call in case.turns[0].tools or ()] == ["find"]


@pytest.mark.parametrize(("tools", "expected"), [([], ()), (None, None)])
def test_an_empty_list_of_deepeval_means_that_no_tool_is_called(tmp_path: Path, tools: Any, expected: Any) -> None:
    assert case_of(tmp_path, {**GOLDEN, "expected_tools": tools}).turns[0].tools == expected


@pytest.mark.parametrize(("cell", "expected"), [("[]", ()), ("", None)])
def test_an_empty_cell_says_nothing_of_tools(tmp_path: Path, cell: str, expected: Any) -> None:
    text = f"input,expected_output,expected_tools,additional_metadata\nHi,Hello,{cell},\n"
    (suite,) = load([write(tmp_path / "goldens.csv", text)], root=tmp_path)
    assert suite.cases[0].turns[0].tools == expected


def test_turns_of_deepeval_that_are_no_json_are_refused_by_what_to_write(tmp_path: Path) -> None:
    for turns in ("user: Hi", "Hi"):
        with pytest.raises(ConfigError) as caught:
            case_of(tmp_path, {"scenario": "A refund", "turns": turns})
        assert """as [{"role": "user", "content": "…"}]""" in str(caught.value)


def test_what_is_not_read_of_json_in_a_table_is_named_with_its_line(tmp_path: Path) -> None:
    turns = json.dumps([{"role": "user", "content": "Hi", "tone": "sad"}]).replace('"', '""')
    path = write(tmp_path / "talks.csv", f'scenario,expected_outcome,turns\nx,y,"{turns}"\n')
    with pytest.raises(ConfigError, match=r"^talks.csv:2: turns\.tone: it is not read here"):
        load([path], root=tmp_path)


def test_goldens_in_the_spelling_of_deepevals_own_service(tmp_path: Path) -> None:
    plain = case_of(tmp_path / "a", GOLDEN)
    twins = {"actual_output": "actualOutput", "expected_output": "expectedOutput", "tools_called": "toolsCalled",
             "retrieval_context": "retrievalContext", "additional_metadata": "additionalMetadata",
             "expected_tools": "expectedTools"}  # fmt: skip
    spelled = case_of(tmp_path / "b", {twins.get(key, key): value for key, value in GOLDEN.items()})
    assert (spelled.turns, spelled.metadata) == (plain.turns, plain.metadata)


def test_turns_of_deepeval_as_text(tmp_path: Path) -> None:
    turns = json.dumps([{"role": "user", "content": "Hi"}, {"role": "user", "content": "A1?"}])
    case = case_of(tmp_path, {"scenario": "A refund", "expected_outcome": "It is paid.", "turns": turns})
    assert [turn.user for turn in case.turns] == ["Hi", "A1?"]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"inputs": None}, "inputs"),
        ({"item": {}}, "no input"),
        ({**GOLDEN, "input": 7}, "input"),
        ({**GOLDEN, "expected_tools": [3]}, "names of tools"),
        ({"scenario": "someone"}, "simulated user"),
        ({"scenario_id": "x", "actor_profile": {}}, "simulated actor"),
        ({**LANGFUSE, "input": [{"role": "assistant", "content": "x"}]}, "texts of a user"),
    ],
)
def test_rows_that_cannot_be_read_are_refused_with_their_place(tmp_path: Path, row: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as raised:
        suite_of(tmp_path, LANGSMITH, row)
    assert "rows.json" in str(raised.value)


@settings(
    max_examples=examples(300, quick=40),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    row = data.draw(st.sampled_from(ROWS))
    with suppress(GateError):
        suite_of(tmp_path, mutated(data, row))


@pytest.mark.parametrize("losses", [None, []])
def test_a_file_without_any_case_that_is_left_says_what_was_left_out(tmp_path: Path, losses: list[Loss] | None) -> None:
    archived = {"id": "1", "input": {"q": "Hi"}, "datasetName": "d", "status": "ARCHIVED"}
    with pytest.raises(MeasureError, match=r"no cases \(left out: .*rchived"):
        load([write(tmp_path / "i.json", [archived])], root=tmp_path, losses=losses)


def test_rows_in_a_services_answer_are_its_cases_and_what_lies_beside_them_is_named(tmp_path: Path) -> None:
    page = write(tmp_path / "page.json", {"data": [LANGFUSE], "meta": {"page": 1}})
    more = write(tmp_path / "more.json", {"scenarios": [AGENTCORE], "thresholds": {"a": 1}})
    losses: list[Loss] = []
    paged, others = load([page], root=tmp_path, losses=losses)[0], load([more], root=tmp_path, losses=losses)[0]
    assert [case.turns[0].user for case in (*paged.cases, *others.cases)] == ["Hi", "Refund A1"]
    assert [(loss.what, loss.check) for loss in losses] == [
        ("input.messages: what the system says", False),
        ("thresholds", True),
    ]
    with pytest.raises(ConfigError, match=r"^more\.json:21: thresholds: it is not read here, and may be a check"):
        load([more], root=tmp_path)


def test_messages_as_langchain_serializes_them(tmp_path: Path) -> None:
    spoken = [
        {"lc": 1, "type": "constructor", "id": ["schema", "HumanMessage"], "kwargs": {"content": "Hi"}},
        {"type": "human", "data": {"content": "A1?", "type": "human"}},
    ]
    case = case_of(tmp_path, {"id": "1", "inputs": {"messages": spoken}, "outputs": {"answer": "Yes"}})
    assert [turn.user for turn in case.turns] == ["Hi", "A1?"]
