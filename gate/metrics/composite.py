"""The shipped weighted scores: which criteria count how much, and what each must reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from gate.metrics.weighted import Bound, Weight, WeightedOptions, WeightedScore
from gate.model import Case, Scale, Score


class AgentScoreOptions(WeightedOptions):
    weights: Mapping[str, Weight] = {
        "tool_trajectory_avg_score": 0.4,
        "accuracy": 0.3,
        "relevance": 0.2,
        "step_efficiency": 0.1,
    }
    minimums: Mapping[str, Bound] = Field(
        default={"tool_trajectory_avg_score": 0.85, "accuracy": 0.90, "relevance": 0.75}
    )
    """Criterion → the least it must reach in a trial, on its own scale."""


class AgentScore(WeightedScore):
    """Trajectory .4, accuracy .3, relevance .2, efficiency .1. Range 0–1, threshold 0.80.

    A part below its minimum (trajectory .85, accuracy .90, relevance .75) keeps the score below the threshold: at most
    0.80 · part / minimum, whatever the others reach. The parts are criteria of the same run.
    """

    options_type: ClassVar[type[WeightedOptions]] = AgentScoreOptions
    default_threshold = 0.80
    pass_mark = 0.80

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        score = super().combine(case, scores)
        if score.value is None or not isinstance(self.options, AgentScoreOptions):
            return score
        value, reason = score.value, score.reason
        for name, least in self.options.minimums.items():
            part = scores.get(name)
            if part is not None and part.value is not None and part.value < least:
                value = min(value, self.default_threshold * part.value / least)
                reason += f"; {name} {part.value:.2f} is below its minimum {least:g}"
        return Score(value, reason, details=score.details)


class OverallScoreOptions(WeightedOptions):
    weights: Mapping[str, Weight] = {"tool_accuracy": 0.3, "output_quality": 0.5, "sequence_correctness": 0.2}
    ranges: Mapping[str, tuple[Bound, Bound]] = {"output_quality": (0.0, 100.0)}


class OverallScore(WeightedScore):
    """100 · (tool accuracy .3 + output quality .5 + sequence .2). Range 0–100, typical ``min_score`` 70.

    The parts are criteria of the same run. Source: EvalView's score.
    """

    options_type: ClassVar[type[WeightedOptions]] = OverallScoreOptions
    scale = Scale.PERCENT
    pass_mark = 70.0

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        score = super().combine(case, scores)
        return score if score.value is None else Score(100 * score.value, score.reason, details=score.details)
