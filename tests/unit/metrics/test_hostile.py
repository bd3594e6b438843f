"""No deterministic metric raises, or gives a number that means nothing, whatever an agent did."""

import json
import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.metrics import METRICS, load_metric
from gate.metrics.base import Composite, Context, TrialOutput
from gate.metrics.judged import JudgedMetric
from gate.model import Case, Invocation, Part, ToolCall, Turn, Usage
from tests.properties import examples
from tests.unit.metrics.build import metric
from tests.unit.metrics.test_examples import OPTIONS as EXAMPLE_OPTIONS

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Mapping[str, Any]] = {
    **EXAMPLE_OPTIONS,
    "forbidden_tools": {"tools": ["a", "writes"]},
    "contains": {"values": ["x"], "ignore_case": True},
}
CONTEXT = Context({"writes": frozenset({"b"})})
JUDGED = {name for name in METRICS if issubclass(load_metric(name), JudgedMetric | Composite)}

text = st.text(alphabet=st.characters(), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
numbers = st.none() | st.floats() | st.sampled_from([math.nan, math.inf, -1.0])
counts = st.none() | st.integers(-5, 10**30) | st.just(10**400)
calls = st.lists(
    st.builds(ToolCall, st.sampled_from("ab") | text, values, result=values, error=st.none() | text, duration=numbers),
    max_size=4,
)
expected_calls = st.lists(
    st.builds(ToolCall, st.sampled_from("ab"), values, category=st.sampled_from([None, None, "writes", "unknown"])),
    max_size=4,
)
parts = st.lists(st.builds(Part, text, st.booleans()), max_size=3).map(tuple)
invocations = st.builds(
    Invocation,
    response=parts,
    tool_calls=calls.map(tuple),
    usage=st.none() | st.builds(Usage, counts, counts, numbers, counts),
    duration=numbers,
)
turns = st.builds(Turn, st.just("q"), st.none() | expected_calls.map(tuple), st.none() | parts)


@pytest.mark.parametrize("name", sorted(METRICS.keys() - JUDGED))
@given(st.lists(turns, max_size=3), st.lists(invocations, max_size=3), numbers)
@settings(max_examples=examples(20))
def test_a_score_is_finite_or_none_with_words_about_why(
    name: str, written: list[Turn], played: list[Invocation], duration: float | None
) -> None:
    case = Case("c", tuple(written))
    score = metric(name, CONTEXT, **OPTIONS.get(name, {})).score(case, TrialOutput(tuple(played), duration))
    assert score.value is None or math.isfinite(score.value)
    assert score.reason or score.error
    assert not (score.value is not None and score.error)
    json.dumps(dict(score.details), allow_nan=False)
