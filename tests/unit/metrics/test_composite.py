from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gate.metrics.weighted import AgentScore, AgentScoreOptions, OverallScore, OverallScoreOptions
from gate.model import Case, Score

CASE = Case("c", ())


def agent(trajectory: float, accuracy: float, relevance: float, efficiency: float, **options: Any) -> Score:
    parts = {
        "tool_trajectory_avg_score": Score(trajectory),
        "accuracy": Score(accuracy),
        "relevance": Score(relevance),
        "step_efficiency": Score(efficiency),
    }
    return AgentScore(AgentScoreOptions.model_validate(options)).combine(CASE, parts)


def test_agent_score_is_the_weighted_mean() -> None:
    assert agent(1.0, 0.9, 0.8, 0.5).value == pytest.approx(0.4 + 0.27 + 0.16 + 0.05)
    assert agent(1, 1, 1, 1).value == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ((0.84, 1, 1, 1), "tool_trajectory_avg_score"),
        ((1, 0.89, 1, 1), "accuracy"),
        ((1, 1, 0.74, 1), "relevance"),
    ],
)
def test_a_part_below_its_minimum_fails_at_any_threshold(parts: tuple[float, ...], name: str) -> None:
    score = agent(*parts)
    assert score.value == 0.0
    assert score.reason.startswith(f"{name} {min(parts)} is below its minimum ")
    assert score.details["without_minimums"] == agent(*parts, minimums={}).value
    relaxed = agent(*parts, minimums={})
    assert relaxed.value is not None and relaxed.value > 0.80


def test_a_part_at_its_minimum_is_not_below_it() -> None:
    assert agent(0.85, 0.90, 0.75, 0.0).value == pytest.approx(0.4 * 0.85 + 0.3 * 0.90 + 0.2 * 0.75)


def test_minimums_of_the_users_own_hold_for_any_criterion_and_the_shipped_ones_for_what_is_weighed() -> None:
    halves = {"relevance": 0.5, "step_efficiency": 0.5}
    assert agent(0.1, 0.1, 0.8, 1.0, weights=halves).value == pytest.approx(0.9)
    assert agent(0.1, 0.1, 0.7, 1.0, weights=halves).value == 0.0
    assert agent(0.1, 0.1, 0.8, 1.0, weights=halves, minimums={"accuracy": 0.2}).value == 0.0
    missing = agent(1, 1, 1, 1, minimums={"tone": 0.2})
    assert (missing.value, missing.error) == (None, "minimum for 'tone', which is not a criterion of this run")


def test_minimums_of_the_other_weighted_scores() -> None:
    parts = {"tool_accuracy": Score(1.0), "output_quality": Score(59.0), "sequence_correctness": Score(1.0)}
    metric = OverallScore(OverallScoreOptions.model_validate({"minimums": {"output_quality": 60}}))
    assert metric.combine(CASE, parts).value == 0.0
    assert metric.combine(CASE, {**parts, "output_quality": Score(60.0)}).value == pytest.approx(80.0)
    lost = metric.combine(CASE, {**parts, "output_quality": Score(None, error="judge down")})
    assert lost.value is None and lost.error is not None


def test_overall_score_is_in_points() -> None:
    parts = {"tool_accuracy": Score(1.0), "output_quality": Score(70.0), "sequence_correctness": Score(0.5)}
    metric = OverallScore(OverallScoreOptions())
    assert metric.combine(CASE, parts).value == pytest.approx(30 + 35 + 10)
    unmeasured = metric.combine(CASE, {**parts, "output_quality": Score(None, error="judge down")})
    assert unmeasured.value is None
    assert "judge down" in (unmeasured.error or "")


def test_weights_sum_to_one_and_parts_are_criteria_of_the_run() -> None:
    with pytest.raises(ValidationError, match="sum to"):
        AgentScoreOptions.model_validate({"weights": {"accuracy": 0.5}})
    assert "not a criterion of this run" in (AgentScore(AgentScoreOptions()).combine(CASE, {}).error or "")
