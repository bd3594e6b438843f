from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gate.metrics.base import Composite, TrialOutput
from gate.model import Case, Score
from tests.unit.metrics.build import metric

CASE = Case("c", ())


def combine(scores: Mapping[str, Score], **options: object) -> Score:
    weighted = metric("weighted_score", **options)
    assert isinstance(weighted, Composite)
    return weighted.combine(CASE, scores)


def test_weighted_mean() -> None:
    score = combine({"a": Score(1.0), "b": Score(0.5), "c": Score(0.0)}, weights={"a": 0.5, "b": 0.3, "c": 0.2})
    assert score.value == 0.65
    assert score.reason == "0.5·a 1.00 + 0.3·b 0.50 + 0.2·c 0.00"


def test_ranges_bring_scores_to_one_scale() -> None:
    scores = {"judge": Score(4.0), "quality": Score(80.0)}
    options = {"weights": {"judge": 0.5, "quality": 0.5}, "ranges": {"judge": [1, 5], "quality": [0, 100]}}
    assert combine(scores, **options).value == pytest.approx(0.775)


@pytest.mark.parametrize("weights", [{"a": 0.5}, {"a": 0.6, "b": 0.6}, {"a": 1.5, "b": -0.5}, {"a": float("nan")}])
def test_weights_must_sum_to_one(weights: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        combine({}, weights=weights)


def test_weights_that_sum_to_one_in_decimal_are_taken() -> None:
    assert combine({f"m{n}": Score(1.0) for n in range(10)}, weights={f"m{n}": 0.1 for n in range(10)}).value == 1.0


def test_a_part_that_was_not_measured_leaves_the_whole_unmeasured() -> None:
    score = combine({"a": Score(1.0), "b": Score(None, error="no judge")}, weights={"a": 0.9, "b": 0.1})
    assert (score.value, score.error) == (None, "b could not be measured: no judge")


def test_a_part_that_is_no_criterion_leaves_the_whole_unmeasured() -> None:
    assert "'b'" in (combine({"a": Score(1.0)}, weights={"a": 0.9, "b": 0.1}).error or "")


def test_a_part_that_does_not_apply_is_left_out_and_named() -> None:
    score = combine({"a": Score(1.0), "b": Score(None), "c": Score(0.0)}, weights={"a": 0.3, "b": 0.4, "c": 0.3})
    assert score.value == 0.5
    assert score.reason.endswith("does not apply here: b")
    assert combine({"a": Score(None)}, weights={"a": 1}).error is None


def test_a_score_outside_its_range_is_an_error() -> None:
    score = combine({"a": Score(4.0)}, weights={"a": 1})
    assert score.value is None
    assert "give its range" in (score.error or "")


def test_without_weights_it_does_not_apply() -> None:
    assert combine({"a": Score(1.0)}) == Score(None, reason="no weights are given for this case")


def test_alone_it_cannot_be_measured() -> None:
    assert metric("weighted_score", weights={"a": 1}).score(CASE, TrialOutput(())).error is not None


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0, 1)), min_size=1, max_size=6))
def test_the_mean_lies_between_its_parts(parts: list[tuple[int, float]]) -> None:
    total = sum(weight for weight, _ in parts)
    scores = {f"m{n}": Score(value) for n, (_, value) in enumerate(parts)}
    score = combine(scores, weights={f"m{n}": weight / total for n, (weight, _) in enumerate(parts)})
    values = [value for _, value in parts]
    assert score.value is not None
    assert min(values) - 1e-9 <= score.value <= max(values) + 1e-9
