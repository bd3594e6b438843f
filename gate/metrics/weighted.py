"""One score made of several criteria's scores: with the user's weights, and the shipped ones with theirs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import Field, field_validator, model_validator

from gate.metrics.base import Composite, Options
from gate.model import Case, Scale, Score

Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Bound = Annotated[float, Field(allow_inf_nan=False)]


class WeightedOptions(Options):
    """The weights; for all cases, or in a case's options."""

    weights: Mapping[str, Weight] = Field(default_factory=dict)
    """Criterion → weight; weights sum to 1."""
    ranges: Mapping[str, tuple[Bound, Bound]] = Field(default_factory=dict)
    """Criterion → its lowest and highest score, if these are not 0 and 1: ``[1, 5]``, ``[0, 100]``."""
    without: tuple[str, ...] = ()
    """Criteria to omit, their weight shared among the others in proportion."""
    minimums: Mapping[str, Bound] = Field(default_factory=dict)
    """Criterion → the lowest acceptable score in a trial, on its own scale."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The criteria that the score uses: those with a weight or a minimum."""
        return tuple(dict.fromkeys([*self.effective_weights, *self.demanded]))

    @property
    def effective_weights(self) -> Mapping[str, float]:
        """The weights that count."""
        return {name: weight for name, weight in self.weights.items() if weight > 0 and name not in self.without}

    @field_validator("weights")
    @classmethod
    def _whole(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        total = math.fsum(weights.values())
        if weights and not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ValueError(f"the weights sum to {total:g}, not to 1")
        return weights

    @model_validator(mode="after")
    def _ordered(self) -> WeightedOptions:
        for name, (low, high) in self.ranges.items():
            if low >= high:
                raise ValueError(f"the range of {name} is empty: {low:g} to {high:g}")
        return self

    @property
    def demanded(self) -> Mapping[str, float]:
        """The minimums that apply: the user's own, and the shipped ones of parts that have a weight."""
        own = "minimums" in self.model_fields_set
        return {name: least for name, least in self.minimums.items() if own or name in self.effective_weights}


class WeightedScore(Composite[WeightedOptions]):
    """Weighted mean of other criteria's scores of the same trial: Σ wᵢ·sᵢ, with each score scaled to 0–1 by its range.

    Range 0–1, typical threshold 0.8. If a part is not measured, neither is this score. A criterion that does not
    apply to the case is omitted, its weight shared among the others in proportion, and the reason says so. A part
    below its minimum makes the score 0, regardless of the others.
    """

    options_type = WeightedOptions

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.options.effective_weights)

    @property
    def missing(self) -> str:
        if not self.options.effective_weights:
            return "weights"
        return ""

    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        weights, minimums = self.options.effective_weights, self.options.demanded
        if not weights:
            return Score(None, reason="no weights are given for this case")
        applying: dict[str, float] = {}
        for name in self.options.parts:
            score = scores.get(name)
            if score is None:
                what = "weight on" if name in weights else "minimum for"
                return Score(None, error=f"{what} {name!r}, which is not a criterion of this run")
            if score.error is not None:
                return Score(None, error=f"{name} could not be measured: {score.error}")
            if score.value is not None and name in weights:
                low, high = self.options.ranges.get(name, (0.0, 1.0))
                if not low <= score.value <= high:
                    return Score(None, error=f"{name} is {score.value:g}, outside {low:g} to {high:g}: give its range")
                applying[name] = (score.value - low) / (high - low)
        if not applying:
            return Score(None, reason="no weighted criterion applies to this case")
        total = math.fsum(weights[name] for name in applying)
        mean = math.fsum(weights[name] * part for name, part in applying.items()) / total
        value, details = min(max(mean, 0.0), 1.0), dict(applying)
        reason = " + ".join(f"{weights[name]:g}·{name} {part:.2f}" for name, part in applying.items())
        left_out = [name for name in weights if name not in applying]
        if left_out:
            reason += f"; does not apply here: {', '.join(left_out)}"
        short = []
        for name, least in minimums.items():
            found = scores[name].value
            if found is not None and found < least:
                short.append(f"{name} {found:.4g} is below its minimum {least:g}")
        if not short:
            return Score(value, reason, details=details)
        reason = f"{'; '.join(short)}: 0 in place of {value:.2f}; {reason}"  # 0 is the lowest on any scale
        return Score(0.0, reason, details={**details, "without_minimums": value})


# --- the shipped ones ------------------------------------------------------------------------------


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
