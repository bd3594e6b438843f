"""Whatever checks something in another tool's suite is in what `gate import` writes, or is listed as a lost check.

Each check that is generated holds a mark of its own, which is then looked for. test_promptfoo does it for promptfoo.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gate.suites import load
from gate.suites.base import Loss
from gate.suites.convert import convert
from tests.unit.suites.files import write

MARK = st.from_regex(r"m[0-9]{4}", fullmatch=True)
LIMITS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


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
