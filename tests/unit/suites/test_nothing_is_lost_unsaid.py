"""Whatever checks something in another tool's suite is in what `gate import` writes, or is listed as a lost check.

Each check that is generated holds a mark of its own, which is then looked for. test_promptfoo does it for promptfoo.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.errors import ConfigError
from gate.importers.convert import convert
from gate.suites import load
from gate.suites.base import Loss
from tests.properties import examples
from tests.unit.suites.files import write

MARK = st.from_regex(r"m[0-9]{4}", fullmatch=True)
LIMITS = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def marks(value: Any) -> set[str]:
    return set(re.findall(r"m[0-9]{4}", json.dumps(value)))


def taken_over(folder: Path, data: Any) -> tuple[list[str], list[str]]:
    """What `gate import` would write, and the lost checks that it would list."""
    write(folder / "suite.json", data)
    losses: list[Loss] = []
    (suite,) = load([folder / "suite.json"], root=folder, losses=losses)
    made = convert(suite)
    return [made.suite, made.criteria], [str(loss) for loss in [*losses, *made.losses] if loss.check]


EVALUATOR = st.one_of(
    st.builds(lambda mark: {"Contains": mark}, MARK),
    st.builds(lambda mark: {"LLMJudge": mark}, MARK),
    st.builds(lambda mark: {"LLMJudge": {"rubric": mark, "include_input": True}}, MARK),
    MARK,
    st.builds(lambda mark: {mark: {"anything": 1}}, MARK),
)


@given(
    st.lists(st.tuples(st.lists(EVALUATOR, max_size=4), MARK), min_size=1, max_size=3), st.lists(EVALUATOR, max_size=2)
)
@LIMITS
def test_pydantic_evals(tmp_path: Path, cases: list[tuple[list[Any], str]], shared: list[Any]) -> None:
    rows = [{"inputs": "Hi", "evaluators": own, "expected_output": expected} for own, expected in cases]
    written, lost = taken_over(tmp_path, {"cases": rows, "evaluators": shared, "report_evaluators": shared})
    assert marks([rows, shared]) <= marks([written, lost])


TOOL = st.builds(lambda name, value: {"name": name, "inputParameters": {"id": value}}, MARK, MARK)
GOLDEN = st.fixed_dictionaries(
    {"input": st.just("Hi"), "expected_output": MARK},
    optional={"expected_tools": st.lists(TOOL, max_size=3), "context": st.lists(MARK, max_size=1)},
)
EXAMPLE = st.fixed_dictionaries(
    {"inputs": st.just({"question": "Hi"})},
    optional={"outputs": st.dictionaries(st.one_of(st.just("answer"), MARK), MARK, min_size=1, max_size=3)},
)
SCENARIO = st.fixed_dictionaries(
    {"scenario_id": st.just("s"), "turns": st.lists(st.builds(lambda m: {"input": "Hi", "expected_response": m}, MARK),
                                                    min_size=1, max_size=2)},
    optional={"assertions": st.lists(MARK, max_size=2), "expected_trajectory": st.lists(MARK, max_size=2, min_size=1)},
)  # fmt: skip


@given(st.one_of(GOLDEN, EXAMPLE, SCENARIO), st.dictionaries(MARK, st.just("x"), max_size=2))
@LIMITS
def test_rows_of_other_products(tmp_path: Path, row: dict[str, Any], unknown: dict[str, str]) -> None:
    """Marks are in values that are carried over, and in keys that are listed."""
    written, lost = taken_over(tmp_path, [{**row, **unknown}])
    if len(row.get("turns", ())) > 1 and row.get("expected_trajectory"):
        assert any("expected_trajectory" in one for one in lost)
        row = {key: value for key, value in row.items() if key != "expected_trajectory"}
    outputs = row.get("outputs", {})
    beside = {key for key in outputs if key != "answer"} if "answer" in outputs else set()
    # The name of an only output is no check; its value is.
    checked = {
        **row,
        "outputs": list(outputs.values())
        if len(outputs) == 1
        else {k: v for k, v in outputs.items() if k not in beside},
    }
    assert marks([checked, list(unknown), sorted(beside)]) <= marks([written, lost])


CALL = st.builds(lambda name, value: {"name": name, "args": {"id": value}}, MARK, MARK)
TURN = st.builds(
    lambda said, calls: {
        "user_content": {"parts": [{"text": "Hi"}]},
        "final_response": {"parts": [{"text": said}]},
        "intermediate_data": {"tool_uses": calls},
    },
    MARK,
    st.lists(CALL, max_size=2),
)
RUBRIC = st.builds(
    lambda mark: {"rubric_id": mark, "rubric_content": {"text_property": mark}, "type": "FINAL_RESPONSE_QUALITY"}, MARK
)
PLAN = st.builds(lambda start, plan: {"starting_prompt": start, "conversation_plan": plan}, MARK, MARK)


@given(st.one_of(st.lists(TURN, min_size=1, max_size=3), PLAN), st.lists(RUBRIC, max_size=2))
@LIMITS
def test_eval_sets_of_adk(tmp_path: Path, held: Any, rubrics: list[Any]) -> None:
    key = "conversation" if isinstance(held, list) else "conversation_scenario"
    data = {"eval_set_id": "s", "eval_cases": [{"eval_id": "one", key: held, "rubrics": rubrics}]}
    written, lost = taken_over(tmp_path, data)
    assert marks([held, rubrics]) <= marks([written, lost])


def stated(**fields: Any) -> Any:
    """A row with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


ANSWER = st.one_of(MARK, st.builds(lambda one, other: {"answer": one, other: "x"}, MARK, MARK))
ITEM = st.builds(
    lambda fields, unknown: {"id": "i", "input": "Hi", "datasetName": "d", **fields, **unknown},
    stated(expectedOutput=ANSWER),
    st.dictionaries(MARK, st.just("x"), max_size=2),
)
EVALS_ITEM = st.builds(
    lambda fields, unknown: {"item": {"input": "Hi", **fields}, **unknown},
    stated(ideal=st.one_of(MARK, st.lists(MARK, min_size=1, max_size=1)), topic=MARK),
    st.dictionaries(MARK, st.just("x"), max_size=2),
)
LANGSMITH = st.builds(lambda fields: {"inputs": {"question": "Hi"}, **fields}, stated(outputs=ANSWER))


@pytest.mark.slow
@given(st.one_of(ITEM, EVALS_ITEM, LANGSMITH))
@LIMITS
def test_items_of_langfuse_and_rows_of_openai_evals(tmp_path: Path, row: dict[str, Any]) -> None:
    written, lost = taken_over(tmp_path, [row])
    assert marks(row) <= marks([written, lost])


@pytest.mark.parametrize("expected", [0, False, 7, True, 0.5])
@pytest.mark.parametrize(
    "row",
    [
        {"input": "2-2?", "datasetName": "d", "expectedOutput": ...},
        {"input": "2-2?", "ideal": ...},
        {"item": {"input": "2-2?", "expected": ...}},
        {"input": "2-2?", "name": "n", "actual_output": "x", "expected_output": ...},
        {"inputs": "2-2?", "outputs": ...},
        {"scenario_id": "s", "turns": [{"input": "2-2?", "expected_response": ...}]},
    ],
)
def test_a_number_or_false_is_an_expected_answer(tmp_path: Path, row: dict[str, Any], expected: Any) -> None:
    text = json.dumps(expected)
    write(tmp_path / "suite.json", [json.loads(json.dumps(row, default=lambda _: expected))])
    (suite,) = load([tmp_path / "suite.json"], root=tmp_path)
    assert [part.text for part in suite.cases[0].turns[0].response or ()] == [text]


@pytest.mark.parametrize(
    ("row", "lost"),
    [
        ({"item": {"input": "Hi", "ideal": "x", "expected_output": "y"}}, "expected_output"),
        ({"item": {"input": "Hi", "ideal": "x"}, "testing_criteria": [{"type": "string_check"}]}, "testing_criteria"),
        ({"inputs": "Hi", "outputs": {"answer": "x"}, "reference_outputs": {"answer": "y"}}, "reference_outputs"),
        ({"input": "Hi", "expected_output": "x", "expected_outcome": "a refund"}, "expected_outcome"),
    ],
)
def test_a_second_thing_that_is_expected_is_a_lost_check(tmp_path: Path, row: dict[str, Any], lost: str) -> None:
    assert any(lost in one for one in taken_over(tmp_path, [row])[1])
    with pytest.raises(ConfigError, match=lost):
        load([tmp_path / "suite.json"], root=tmp_path)


OUTPUT = stated(
    contains=st.lists(MARK, max_size=2),
    not_contains=st.lists(MARK, max_size=2),
    regex_patterns=st.lists(MARK, max_size=2),
)
EXPECTED = stated(tools=st.lists(MARK, max_size=2), forbidden_tools=st.lists(MARK, max_size=2), output=OUTPUT)


@given(EXPECTED)
@LIMITS
def test_cases_of_evalview(tmp_path: Path, expected: dict[str, Any]) -> None:
    written, lost = taken_over(tmp_path, {"name": "one", "input": {"query": "Hi"}, "expected": expected})
    assert marks(expected) <= marks([written, lost])


def test_the_largest_deviation_of_evalview_is_a_lost_check(tmp_path: Path) -> None:
    data = {"name": "one", "input": {"query": "Hi"}, "thresholds": {"variance": {"max_std_dev": 5, "runs": 3}}}
    assert taken_over(tmp_path, data)[1] == ["one: variance.max_std_dev"]
    (suite,) = load([tmp_path / "suite.json"], root=tmp_path)
    assert any("max_std_dev is not checked" in note for note in suite.notes)


def test_the_final_state_of_adk_is_a_lost_check(tmp_path: Path) -> None:
    turn = {"user_content": {"parts": [{"text": "Hi"}]}}
    case = {"eval_id": "one", "conversation": [turn], "final_session_state": {"paid": True}}
    assert taken_over(tmp_path, {"eval_set_id": "s", "eval_cases": [case]})[1] == ["one: final_session_state"]


SCORERS = st.dictionaries(MARK, st.just({"value": "C"}), max_size=3)


@given(SCORERS, MARK, st.booleans())
@LIMITS
def test_scorers_of_inspect(tmp_path: Path, scores: dict[str, Any], target: str, includes: bool) -> None:
    said = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "So."}]
    scores = {**scores, "includes": {"value": "C"}} if includes else scores
    sample = {"id": "one", "epoch": 1, "input": "Hi", "target": target, "messages": said, "scores": scores}
    written, lost = taken_over(tmp_path, {"status": "success", "eval": {}, "samples": [sample]})
    assert marks([list(scores), target]) <= marks([written, lost])
