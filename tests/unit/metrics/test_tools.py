from typing import Any

import pytest

from gate.metrics.base import Context, TrialOutput
from gate.model import Case, Invocation, Score, ToolCall, Turn
from tests.unit.metrics.build import metric, tool_score


def test_recall_and_precision() -> None:
    for expected, actual, recall, precision in [
        (["a", "b"], ["a", "b"], 1.0, 1.0),
        (["a", "b"], ["b", "x", "y"], 0.5, 1 / 3),
        (["a", "a"], ["a"], 0.5, 1.0),
        (["a"], ["a", "a"], 1.0, 0.5),
        (["a"], [], 0.0, 0.0),
        ([], ["a"], None, 0.0),
        ([], [], None, 1.0),
    ]:
        accuracy = tool_score("tool_accuracy", [expected], [actual])
        assert (accuracy.value, accuracy.error) == (recall, None), (expected, actual)
        assert tool_score("tool_selection_accuracy", [expected], [actual]).value == precision, (expected, actual)


def test_calls_are_counted_over_all_turns_and_compared_within_each() -> None:
    score = tool_score("tool_accuracy", [["a", "b", "c"], ["d"]], [["a", "d"], ["a"]])
    assert (score.value, score.details) == (1 / 4, {"hits": 1, "expected": 4})
    assert score.reason == "1 of 4 expected tools were called; missing: b → c → d"


def test_categories_count() -> None:
    context = Context({"search": frozenset({"web", "docs"})})
    expected = [ToolCall("", category="search"), ToolCall("web")]
    assert tool_score("tool_accuracy", [expected], [["web", "docs"]], context).value == 1.0
    assert tool_score("tool_accuracy", [[ToolCall("", category="other")]], [["web"]], context).error is not None


def test_a_case_that_states_no_tools_does_not_apply() -> None:
    for name in ["tool_accuracy", "tool_selection_accuracy", "step_efficiency"]:
        score = tool_score(name, [None], [["a"]])
        assert (score.value, score.error) == (None, None), name


def test_turn_counts_that_differ_are_an_error() -> None:
    for name in ["tool_accuracy", "tool_selection_accuracy", "step_efficiency"]:
        assert tool_score(name, [["a"]], [["a"], ["a"]]).error is not None, name


def test_step_efficiency() -> None:
    for expected, actual, value in [
        (["a", "b"], ["a", "b"], 1.0),
        (["a"], ["a", "a", "a", "a"], 0.25),
        (["a", "b"], ["a"], 1.0),
        (["a"], [], 0.0),
        ([], [], 1.0),
    ]:
        assert tool_score("step_efficiency", [expected], [actual]).value == value, (expected, actual)


def test_the_necessary_steps_may_be_given() -> None:
    score = tool_score("step_efficiency", [None], [["a", "b", "c", "d"]], steps=3)
    assert (score.value, score.reason) == (0.75, "steps: 3 necessary, 4 taken")


def recovery(*calls: ToolCall, categories: dict[str, frozenset[str]] | None = None, **options: Any) -> Score:
    case = Case("c", (Turn("q"),))
    return metric("error_recovery_rate", Context(categories or {}), **options).score(
        case, TrialOutput((Invocation("q", tool_calls=calls),))
    )


FAILED = ToolCall("get", result=None, error="timeout")
WORKED = ToolCall("get", result={"ok": 1})


@pytest.mark.parametrize(
    "result",
    [
        '{"error": "no such order"}',
        '{"isError": true}',
        '{"status": "error"}',
        [{"type": "text", "text": "Error: no such order"}],
        [{"type": "text", "text": '{"error": "no such order"}', "annotations": None}],
        '[{"type": "text", "text": "Error: no such order"}]',
    ],
)
def test_a_result_that_is_json_text_states_its_error(result: Any) -> None:
    assert recovery(ToolCall("get", result=result)).value == 0.0
    assert recovery(ToolCall("get", result=result), ToolCall("get", result='{"ok": 1}')).value == 1.0


def test_json_text_may_be_an_empty_result() -> None:
    for empty in ["[]", "{}", '""', "null"]:
        assert recovery(ToolCall("get", result=empty), empty_results=True).value == 0.0, empty
    assert recovery(ToolCall("get", result='{"error": null, "rows": 1}'), empty_results=True).value is None


def test_an_error_is_recovered_by_a_later_success_of_the_same_goal() -> None:
    assert recovery(FAILED, WORKED).value == 1.0
    assert recovery(WORKED, FAILED).value == 0.0
    assert recovery(FAILED, FAILED, WORKED).value == 1.0
    assert recovery(FAILED, ToolCall("other", result="fine")).value == 0.0
    assert recovery(FAILED, ToolCall("other", error="x"), WORKED).value == 0.5
    assert "not recovered: other" in recovery(FAILED, ToolCall("other", error="x"), WORKED).reason


def test_a_tool_of_the_same_category_serves_the_same_goal() -> None:
    other = ToolCall("fetch", result="fine")
    assert recovery(FAILED, other, categories={"read": frozenset({"get", "fetch"})}).value == 1.0


def test_results_that_say_they_are_errors_are() -> None:
    for result in ["Error: no such user", {"error": "x"}, {"isError": True}, {"status": "error"}]:
        assert recovery(ToolCall("get", result=result)).value == 0.0, result


def test_other_results_are_not() -> None:
    for result in ["fine", {"error": None}, {"error": False}, {"error": []}, {"error": {}}, {"status": "ok"}, [1], 0]:
        score = recovery(ToolCall("get", result=result))
        assert (score.value, score.error, score.reason) == (None, None, "no tool call failed"), result


def test_incorrect_responses_are_failures_where_the_options_say_so() -> None:
    wrong, empty = ToolCall("get", result={"message": "No such user"}), ToolCall("get", result=[])
    assert recovery(wrong, WORKED).value is None
    score = recovery(wrong, FAILED, ToolCall("pay", error="x"), WORKED, incorrect=["no such"])
    assert score.value == pytest.approx(2 / 3)
    assert score.reason.startswith("2 of 3 tool errors and incorrect responses (1) were recovered; not recovered: pay")
    assert score.details == {"errors": 2, "incorrect": 1, "recovered": 2}
    assert recovery(FAILED, wrong, incorrect=["no such"]).value == 0.0  # an incorrect response recovers nothing
    assert recovery(empty, WORKED).value is None
    assert recovery(empty, WORKED, empty_results=True).value == 1.0
    assert recovery(WORKED, ToolCall("get"), empty_results=True).value == 0.0
    assert recovery(ToolCall("get", result=0), empty_results=True).value is None  # a figure is a result


def test_without_results_nothing_is_measured() -> None:
    assert recovery(ToolCall("get"), ToolCall("get")).error is not None
    assert recovery().error is None
