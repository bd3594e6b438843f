"""The shipped weighted scores, with the weights and the minimums of their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from gate.metrics.weighted import Bound, Weight, WeightedOptions, WeightedScore
from gate.model import Case, Scale, Score


class AgentScoreOptions(WeightedOptions):
    weights: Mapping[str, Weight] = {
        "tool_trajectory_avg_score": 0.4,
        "accuracy": 0.3,
        "relevance": 0.2,
        "step_efficiency": 0.1,
    }
    minimums: Mapping[str, Bound] = {"tool_trajectory_avg_score": 0.85, "accuracy": 0.90, "relevance": 0.75}


class AgentScore(WeightedScore):
    """Trajectory .4, accuracy .3, relevance .2, efficiency .1. Range 0–1, threshold 0.80.

    A part below its minimum (trajectory .85, accuracy .90, relevance .75) makes the score 0, so that the trial fails at
    any threshold, regardless of the other scores. The parts are criteria of the same run. Source: ADK-TS, weights and
    minimums of its example.
    """

    version = 2  # 2: a part below its minimum makes the score 0, not a share of the default threshold

    options_type: ClassVar[type[WeightedOptions]] = AgentScoreOptions
    default_threshold = 0.80
    pass_threshold = 0.80


class OverallScoreOptions(WeightedOptions):
    weights: Mapping[str, Weight] = {"tool_accuracy": 0.3, "output_quality": 0.5, "sequence_correctness": 0.2}
    ranges: Mapping[str, tuple[Bound, Bound]] = {"output_quality": (0.0, 100.0)}


class OverallScore(WeightedScore):
    """100 · (tool accuracy .3 + output quality .5 + sequence .2). Range 0–100, typical ``min_score`` 70.

    The parts are criteria of the same run. Source: EvalView's score.
    """

    options_type: ClassVar[type[WeightedOptions]] = OverallScoreOptions
    scale = Scale.PERCENT
    pass_threshold = 70.0

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        score = super().combine(case, scores)
        if score.value is None:
            return score
        return Score(100 * score.value, score.reason, details=score.details)
