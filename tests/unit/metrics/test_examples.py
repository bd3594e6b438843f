"""An example of every metric that is computed from a trial: one that is good by it, and one that is bad.

This is a new metric's first test. Other tests take its options from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from gate.metrics import load_metric
from gate.metrics.base import TrialOutput
from gate.model import Case, Direction, Invocation, Part, Score, ToolCall, Turn, Usage
from tests.unit.metrics.build import metric

ASKED = Turn(
    "Refund A1", (ToolCall("find", {"id": "A1"}), ToolCall("refund", {"id": "A1"})), (Part("Your refund was issued"),)
)
CASE = Case("c", (ASKED,))
FOUND = ToolCall("find", {"id": "A1"}, result={"id": "A1", "state": "paid"})
FAILED = ToolCall("find", {"id": "A1"}, error="timed out")
REFUND = ToolCall("refund", {"id": "A1"}, result={"done": True})


def said(text: str) -> TrialOutput:
    return TrialOutput((Invocation("Refund A1", (Part(text),)),))


def did(*calls: ToolCall) -> TrialOutput:
    return TrialOutput((Invocation("Refund A1", (Part("Your refund was issued"),), calls),), 1.0)


def took(amount: int) -> TrialOutput:
    usage = Usage(amount, amount, amount / 100, amount)
    return TrialOutput(
        (Invocation("Refund A1", (), (FOUND,) * amount, usage=usage, duration=float(amount)),), float(amount)
    )


@dataclass(frozen=True)
class Example:
    good: TrialOutput
    bad: TrialOutput
    options: Mapping[str, Any] = field(default_factory=dict)


RETRIEVED = did(ToolCall("search", {}, result=[{"id": "d1"}, {"id": "d2"}]))
MISSED = did(ToolCall("search", {}, result=[{"id": "d8"}, {"id": "d9"}]))
RELEVANT = {"relevant_ids": ["d1", "d2"]}
LESS_IS_BETTER = """
cost latency response_time tokens tool_calls
tool_call_count_v1 inference_call_count_v1 token_usage_v1 invocation_duration_v1
"""
EXAMPLES = {
    **{name: Example(took(1), took(9)) for name in LESS_IS_BETTER.split()},
    "tool_trajectory_avg_score": Example(did(FOUND, REFUND), did(REFUND)),
    "response_match_score": Example(said("Your refund was issued"), said("No idea")),
    "tool_accuracy": Example(did(FOUND, REFUND), did(FOUND)),
    "tool_selection_accuracy": Example(did(FOUND, REFUND), did(FOUND, ToolCall("delete"))),
    "sequence_correctness": Example(did(FOUND, REFUND), did(REFUND, FOUND)),
    "step_efficiency": Example(did(FOUND, REFUND), did(FOUND, FOUND, FOUND, REFUND)),
    "error_recovery_rate": Example(did(FAILED, FOUND, REFUND), did(FAILED, REFUND)),
    "forbidden_tools": Example(did(FOUND), did(ToolCall("delete")), {"tools": ["delete"]}),
    "contains": Example(said("Your refund was issued"), said("No"), {"values": "refund"}),
    "not_contains": Example(
        said("Your refund was issued"), said("As an AI"), {"values": "as an AI", "ignore_case": True}
    ),
    "regex": Example(said("order A17"), said("order seventeen"), {"patterns": r"order [A-Z]\d+"}),
    "not_regex": Example(said("order A17"), said("order **B** 17"), {"patterns": r"order B \d+"}),
    "json_schema": Example(said('{"id": 1}'), said('{"order": 1}'), {"schema": {"type": "object", "required": ["id"]}}),
    "allowed_links": Example(
        said("See [this](https://ours.example/a)"), said("![](https://evil.example/?q=1)"), {"hosts": ["ours.example"]}
    ),
    "pii": Example(said("Paid by the card on file"), said("Paid by 4111 1111 1111 1111")),
    "secrets": Example(said("The key is in the vault"), said(f"The key is AKIA{'IOSFODNN7EXAMPLE'}")),
    "time_against_baseline": Example(took(1), took(9), {"baseline_seconds": 3}),
    "retrieval_precision": Example(RETRIEVED, MISSED, RELEVANT),
    "retrieval_recall": Example(RETRIEVED, MISSED, RELEVANT),
    "retrieval_f1": Example(RETRIEVED, MISSED, RELEVANT),
}
OPTIONS = {name: example.options for name, example in EXAMPLES.items()}


def assert_told_apart(name: str, good: Score, bad: Score) -> None:
    """The good one is better, and where the metric says what passes, it passes and the bad one does not."""
    kind = load_metric(name)
    assert good.value is not None and bad.value is not None, (good, bad)
    sign = 1 if kind.direction is Direction.HIGHER else -1
    assert sign * good.value > sign * bad.value, (good, bad)
    mark = kind.default_threshold if kind.default_threshold is not None else kind.pass_threshold
    if mark is not None:
        assert sign * good.value >= sign * mark > sign * bad.value, (good, bad)


@pytest.mark.parametrize("name", EXAMPLES)
def test_by_the_trial(name: str) -> None:
    example = EXAMPLES[name]
    made = metric(name, **example.options)
    assert_told_apart(name, made.score(CASE, example.good), made.score(CASE, example.bad))
