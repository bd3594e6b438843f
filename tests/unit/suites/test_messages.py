"""Rows of recorded messages."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from gate.errors import ConfigError, GateError
from gate.model import Complexity, Part, Suite, ToolCall, Usage
from gate.suites import FieldPaths, load
from tests.unit.suites.files import AIRLINE, ROW, SHARED, mutated, needs_shared, write

FIELDS: dict[str, Any] = {
    "id": "task",
    "trial": "trial",
    "messages": "log",
    "expected_tools": {"path": "want.calls", "name": "tool", "args": "kwargs"},
    "expected_response": "want.text",
    "tags": "labels",
}


def row(**change: Any) -> dict[str, Any]:
    return {**copy.deepcopy(ROW), **change}


def read(rows: Any, tmp_path: Path, /, **change: Any) -> Suite:
    name = "rows.json"
    if isinstance(rows, str):
        name = "rows.jsonl"
    path = write(tmp_path / name, rows)
    (suite,) = load([path], root=tmp_path, fields=FieldPaths.model_validate({**FIELDS, **change}))
    return suite


def test_rows_of_one_id_are_the_trials_of_one_case(tmp_path: Path) -> None:
    other = [{"role": "user", "content": "hello?"}, {"role": "assistant", "content": "Yes?"}]
    suite = read([row(trial=4), row(trial=2, log=other), row(task=8)], tmp_path)
    seven, eight = suite.cases
    assert (seven.id, eight.id, seven.tags) == ("7", "8", {"smoke"})
    assert seven.turns[0].tools == (ToolCall("find", {"id": 1}),)
    assert seven.turns[0].response == (Part("Hello!"),)
    assert len(seven.turns) == 1
    trials = [(trial.case_id, trial.number, trial.invocations[0].text) for trial in suite.recorded]
    assert trials == [("7", 1, "Yes?"), ("7", 2, "Hello."), ("8", 1, "Hello.")]


def test_what_the_user_says_is_no_part_of_the_content(tmp_path: Path) -> None:
    one = read([row()], tmp_path).cases[0]
    two = read([row(log=[{"role": "user", "content": "hullo"}])], tmp_path).cases[0]
    assert one.turns[0].user != two.turns[0].user
    assert one.content == two.content
    three = read([row(want={"calls": [], "text": "Hello!"})], tmp_path).cases[0]
    assert three.content != one.content


def test_configured_content_is_part_of_it(tmp_path: Path) -> None:
    contents = [read([row(rule=rule)], tmp_path, content=["rule"]).cases[0].content for rule in (1, 2)]
    assert contents[0] != contents[1]


def test_json_lines_know_their_lines(tmp_path: Path) -> None:
    text = "".join(json.dumps(row(task=task)) + "\n" for task in (1, 2))
    suite = read(text, tmp_path)
    assert [case.location.line for case in suite.cases if case.location] == [1, 2]
    with pytest.raises(ConfigError, match=r"rows\.jsonl:2: a row must be an object"):
        read(json.dumps(row()) + "\n3\n", tmp_path)


def test_rows_inside_a_file(tmp_path: Path) -> None:
    suite = read({"meta": {}, "results": {"rows": [row()]}}, tmp_path, rows="results.rows")
    assert str(suite.cases[0].location).endswith("rows.json:5")


def test_rows_have_the_paths_of_answers(tmp_path: Path) -> None:
    """One grammar: indexes from the end, filters, keys with dots."""
    noise = {"kind": "remark"}
    rows = {"runs": [{"kept": []}, {"kept": [noise, {**row(), "kind": "row"}]}]}
    suite = read(rows, tmp_path, rows="runs[-1].kept[kind=row]", metadata={"first": "log[0].role"})
    (case,) = suite.cases
    assert case.metadata == {"first": "user"}
    assert str(case.location) == "rows.json:1"  # a filter leaves no one place
    dotted = {**row(), "a.b": {"c[0]": "x"}}
    assert read([dotted], tmp_path, metadata={"n": '["a.b"]["c[0]"]'}).cases[0].metadata == {"n": "x"}


def test_a_row_of_a_nested_list_knows_its_line(tmp_path: Path) -> None:
    text = json.dumps({"runs": [[], [row(), {**row(), "task": 8}]]}, indent=1)
    fields = FieldPaths.model_validate({**FIELDS, "rows": "runs.-1"})
    (suite,) = load([write(tmp_path / "rows.json", text)], root=tmp_path, fields=fields)
    lines = text.splitlines()
    for case in suite.cases:
        line = int(str(case.location).rpartition(":")[2])
        assert lines[line - 1].strip() == "{"
    assert suite.cases[0].location != suite.cases[1].location


@pytest.mark.parametrize("path", ["log[x]", "a..b", ".a", "a[0", ""])
def test_what_is_no_path_is_refused(path: str) -> None:
    """Earlier versions took brackets for a part of a key."""
    with pytest.raises(ValidationError, match=r"is not a path such as|at least 1 character"):
        FieldPaths.model_validate({**FIELDS, "messages": path})


def test_null_says_nothing_and_empty_says_none(tmp_path: Path) -> None:
    silent, none = (read([row(want=want)], tmp_path).cases[0].turns[0] for want in (
        {"calls": None, "text": None}, {"calls": [], "text": ""}))  # fmt: skip
    assert (silent.tools, silent.response) == (None, None)
    assert (none.tools, none.response) == ((), ())


def test_rows_without_an_answer_are_cases_to_run(tmp_path: Path) -> None:
    suite = read([row(log=[{"role": "user", "content": "hi"}])], tmp_path)
    assert (suite.cases[0].turns[0].user, suite.recorded) == ("hi", ())


def test_errors_usage_cost_and_duration(tmp_path: Path) -> None:
    rows = [
        row(trial=0, fault=None, tokens={"input_tokens": 3}, usd=0.5, s=2),
        row(trial=1, fault="timed out", log=None, tokens=None, usd=None, s=None),
    ]
    paths = {"error": "fault", "usage": "tokens", "cost_usd": "usd", "duration": "s", "complexity": "level"}
    rows = [{**item, "level": "simple"} for item in rows]
    suite = read(rows, tmp_path, **paths)
    good, bad = suite.recorded
    assert (good.invocations[0].usage, good.invocations[0].duration) == (Usage(3, cost_usd=0.5), 2.0)
    assert (bad.error, bad.invocations, bad.number) == ("timed out", (), 2)
    assert suite.cases[0].complexity is Complexity.SIMPLE


def test_chosen_trials(tmp_path: Path) -> None:
    rows = []
    for number in range(4):
        said = {"role": "assistant", "content": f"This is {number}."}
        rows.append(row(trial=number, log=[{"role": "user", "content": "hello"}, said]))
    suite = read(rows, tmp_path, trials=[2, 3])
    trials = [(trial.number, trial.invocations[0].text) for trial in suite.recorded]
    assert trials == [(1, "This is 2."), (2, "This is 3.")]
    with pytest.raises(ConfigError, match=r"no row has trial '9'.*known: 0, 1, 2, 3"):
        read(rows, tmp_path, trials=[0, 9])
    with pytest.raises(ConfigError, match="`trials` needs `trial`"):
        read(rows, tmp_path, trials=[0], trial=None)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), row(trial=1, want={"calls": [], "text": "Hello!"})], "row of case '7' disagrees with .* in tools"),
        ([row(), row(trial=1, want={**ROW["want"], "text": "Ho"})], "disagrees with .* in response"),
        ([row(), row(trial=1, labels=[])], "disagrees with .* in its tags"),
        ([row(), row()], "case '7' has trial 0 twice"),
        ([{**row(), "want": {"call": [], "text": ""}}], "path 'want.calls' leads nowhere at 'calls' .*'call'"),
        ([row(task=None)], "task must be text or a whole number"),
        ([row(task=1.5)], "task must be text or a whole number"),
        ([row(trial=[])], "trial must be text or a whole number"),
        ([row(log=[{"role": "boss"}])], "message 0: unknown role 'boss'"),
        ([row(want={"calls": {}, "text": ""})], "want.calls: the expected calls must be a list"),
        ([row(want={"calls": [{"tool": ""}], "text": ""})], "a tool call must have a name"),
        ([row(want={"calls": [{"tool": "f"}], "text": ""})], "path 'kwargs' leads nowhere"),
        ([row(labels=3)], "tags must be a string or a list of strings"),
        ([row(want={"calls": [], "text": 3})], "the expected response must be text"),
    ],
)
def test_malformed(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        read(rows, tmp_path)


def test_unknown_paths_are_refused() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        FieldPaths.model_validate({"expected_tool": "x"})


@pytest.mark.slow
@needs_shared
def test_the_recorded_airline_conversations_load_with_configuration_alone() -> None:
    path = SHARED / "tau-bench/gpt-4o-airline.json"
    (whole,) = load([path], root=SHARED, fields=FieldPaths.model_validate(AIRLINE))
    assert len(whole.cases) == 50
    assert len(whole.recorded) == 200
    assert [int(case.id) for case in whole.cases if case.turns[0].tools == ()] == [12, 15, 17, 18, 21, 24, 49]
    assert all(len(trial.invocations) == 1 and trial.invocations[0].text for trial in whole.recorded)
    assert sum(len(trial.invocations[0].tool_calls) for trial in whole.recorded) == 1164
    halves = [
        load([path], root=SHARED, fields=FieldPaths.model_validate({**AIRLINE, "trials": t})) for t in ([0, 1], [2, 3])
    ]
    (first,), (second,) = halves
    assert first.id == second.id == whole.id
    assert [case.content for case in first.cases] == [case.content for case in second.cases]
    assert {trial.number for trial in first.recorded} == {trial.number for trial in second.recorded} == {1, 2}
    assert [t.invocations for t in first.recorded] != [t.invocations for t in second.recorded]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_mutants_are_suites_or_gate_errors(data: st.DataObject, tmp_path: Path) -> None:
    mutant = mutated(data, [row(), row(trial=1), row(task="b")])
    try:
        suite = read(mutant, tmp_path)
    except GateError as error:
        assert "\n" not in str(error)
        return
    assert all(case.id for case in suite.cases)
    assert all(trial.invocations or trial.error for trial in suite.recorded)


def test_a_file_in_the_question_of_a_row_is_part_of_it(tmp_path: Path) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    asked = {"role": "user", "content": [{"type": "text", "text": "What is it?"}, image]}
    (case,) = read([row(log=[asked, {"role": "assistant", "content": "A cat."}])], tmp_path).cases
    assert case.turns[0].attached == ({"inline_data": {"mime_type": "image/png", "data": "aGk="}},)
