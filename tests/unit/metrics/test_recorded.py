import json
from typing import Any

import pytest

from gate.errors import ConfigError
from gate.metrics.recorded import score_lines


def invocation(text: str, *tools: str) -> dict[str, Any]:
    return {
        "user_content": {"parts": [{"text": "q"}]},
        "final_response": {"parts": [{"text": text}]},
        "intermediate_data": {"tool_uses": [{"name": name, "args": {}} for name in tools]},
    }


def answers(metric: str, *lines: Any, **options: Any) -> list[dict[str, Any]]:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return [json.loads(answer) for answer in score_lines(metric, options, texts)]


def test_one_answer_per_line_in_order() -> None:
    same = {"id": "a", "actual": [invocation("yes", "t")], "expected": [invocation("yes", "t")]}
    other = {"id": 7, "actual": [invocation("no")], "expected": [invocation("yes", "t")]}
    first, second = answers("tool_trajectory_avg_score", same, "\n", other, match_type="in order")
    assert {key: first[key] for key in ("id", "score", "per_turn", "error")} == {
        "id": "a", "score": 1.0, "per_turn": [1.0], "error": None,
    }  # fmt: skip
    assert (second["id"], second["score"], second["per_turn"], second["error"]) == (7, 0.0, [0.0], None)
    assert [one["score"] for one in answers("response_match_score", same, other)] == [1.0, 0.0]


def test_camel_case_is_read() -> None:
    line = {"id": 1, "actual": [{"userContent": {"parts": []}, "finalResponse": {"parts": [{"text": "x"}]}}]}
    line["expected"] = line["actual"]
    assert answers("response_match_score", line)[0]["score"] == 1.0


def test_a_bad_line_is_an_error_of_that_line_alone() -> None:
    for bad in [
        "{torn",
        "[]",
        "null",
        '{"id": 1}',
        '{"id": 1, "actual": {}, "expected": []}',
        '{"id": NaN}',
        '{"id": 1, "actual": [3], "expected": []}',
        "[" * 200_000,
        '{"id": 1, "actual": [{"user_content": {"parts": 3}}], "expected": []}',
    ]:
        good = {"id": 2, "actual": [invocation("yes")], "expected": [invocation("yes")]}
        first, second = answers("response_match_score", bad, good)
        assert first["score"] is None, bad
        assert first["error"], bad
        assert second["score"] == 1.0, bad


def test_a_byte_order_mark_before_the_first_line_is_no_error() -> None:
    same = {"id": 1, "actual": [invocation("yes")], "expected": [invocation("yes")]}
    (answer,) = answers("response_match_score", "\ufeff" + json.dumps(same))
    assert (answer["score"], answer["error"]) == (1.0, None)


def test_turn_counts_that_differ_are_an_error() -> None:
    (answer,) = answers("response_match_score", {"id": 1, "actual": [], "expected": [invocation("x")]})
    assert (answer["score"], answer["per_turn"]) == (None, [])
    assert "turns: 1 in the case, 0 in the trial" in answer["error"]


@pytest.mark.parametrize("options", [[1], "x", None])
def test_options_that_are_no_object(options: Any) -> None:
    with pytest.raises(ConfigError, match="--options: expected an object"):
        score_lines("contains", options, [])


def test_a_wrong_metric_or_option_is_said_before_any_line_is_read() -> None:
    def lines() -> Any:
        raise AssertionError("read")
        yield

    with pytest.raises(ConfigError, match="did you mean 'response_match_score'"):
        score_lines("response_match_scor", {}, lines())
    with pytest.raises(ConfigError, match="match_typ"):
        score_lines("tool_trajectory_avg_score", {"match_typ": 1}, lines())
