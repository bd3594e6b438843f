from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.metrics.domain import SupportOptions
from gate.model import Case, Invocation, Score, ToolCall, Turn

CASE = Case("c", (Turn("find"),))


@pytest.mark.parametrize("results", [(None,), (None, None)])
def test_a_search_that_finds_nothing_is_a_miss(results: tuple[None, ...]) -> None:
    score = retrieval("recall", *results)
    assert (score.value, score.reason) == (0.0, "0 of 4 relevant ids among 0 retrieved; no call has a result")


def retrieval(name: str, *results: Any, tool: str = "search", **options: Any) -> Score:
    metric_type = load_metric(f"retrieval_{name}")
    metric = metric_type(metric_type.options_type.model_validate({"relevant_ids": ["a", "b", "c", 7], **options}))
    calls = tuple(ToolCall(tool, {}, result=result) for result in results)
    return metric.score(CASE, TrialOutput((Invocation("find", tool_calls=calls),)))


@pytest.mark.parametrize(("name", "value"), [("precision", 3 / 5), ("recall", 3 / 4), ("f1", 6 / 9)])
def test_figures_over_the_ids_of_all_calls(name: str, value: float) -> None:
    first = {"documents": [{"id": "a"}, {"id": "x"}, {"meta": {"doc_id": "b"}}]}
    second = json.dumps([{"id": 7, "title": "c"}, {"id": "a"}, {"id": "y"}])
    score = retrieval(name, first, second, None, "no json", 3)
    assert score.value == pytest.approx(value)
    assert score.reason == "3 of 4 relevant ids among 5 retrieved"


def test_only_the_named_tools_fields_and_places_count() -> None:
    rows = [{"key": "a"}, {"key": "b"}, {"key": "z"}]
    assert retrieval("recall", rows).value == 0.0
    assert retrieval("recall", rows, id_fields=["key"]).value == 0.5
    assert retrieval("recall", rows, id_fields=["key"], top=1).value == 0.25
    assert retrieval("recall", rows, id_fields=["key"], tools=["other"]).value == 0.0


@pytest.mark.parametrize("name", ["precision", "recall", "f1"])
def test_nothing_retrieved_is_zero_and_nothing_stated_does_not_apply(name: str) -> None:
    assert retrieval(name).value == 0.0
    score = retrieval(name, [{"id": "a"}], relevant_ids=[])
    assert (score.value, score.error) == (None, None)


def test_deep_results_end() -> None:
    deep: Any = {"id": "a"}
    for _ in range(2000):
        deep = {"in": [deep]}
    assert retrieval("recall", deep).value == 0.0


def time_against(duration: float | None, **options: Any) -> Score:
    metric_type = load_metric("time_against_baseline")
    metric = metric_type(metric_type.options_type.model_validate(options))
    return metric.score(CASE, TrialOutput((Invocation("do"),), duration))


def test_time_is_a_share_of_the_stated_baseline() -> None:
    assert time_against(3.0, baseline_seconds=12).value == 0.25
    assert time_against(3.0).error is None
    assert time_against(3.0).value is None
    assert time_against(None, baseline_seconds=12).error


def test_a_call_of_an_escalation_tool_needs_no_judge() -> None:
    for name in ("resolution_rate", "containment_rate", "first_contact_resolution"):
        metric: Any = load_metric(name)(SupportOptions(escalation_tools=("transfer",)))
        done = TrialOutput((Invocation("help", tool_calls=(ToolCall("transfer"),)),))
        score = asyncio.run(metric.judge_score(CASE, done, None))
        assert score.value == 0.0
        assert "transfer" in score.reason
