"""Rubrics of weighted dimensions with named levels: the shipped one for research agents, and the user's own."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from gate.judges.prompt import Answer
from gate.metrics.base import Options, TrialOutput
from gate.metrics.claims import FactualAccuracy, FactualAccuracyOptions
from gate.metrics.graded import LEVELS
from gate.metrics.judged import JudgedOptions, Voted, rationale
from gate.model import Case, Score

if TYPE_CHECKING:
    from gate.judges.client import Judge

LevelValue = Annotated[float, Field(ge=0, le=1, strict=True)]


class Dimension(Options):
    """One dimension of a rubric."""

    weight: float = Field(gt=0, le=1, examples=[0.5])
    """Its share of the score; the weights of all dimensions sum to 1."""
    description: str = ""
    """The question of the dimension. Default: its name."""
    method: Literal["level", "claims"] = "level"
    """``claims``: extract factual claims, verify each and weigh the major ones, instead of one level."""
    levels: Mapping[str, LevelValue | str] = Field(default_factory=dict)
    """Level → what it means in this dimension, in words for the judge, or what it is worth here (0 to 1)."""

    @field_validator("levels")
    @classmethod
    def _said(cls, levels: Mapping[str, float | str]) -> Mapping[str, float | str]:
        for name, level in levels.items():
            if isinstance(level, str) and not level.strip():
                raise ValueError(f"level {name!r} has an empty text: say what it means, or leave it out")
        return levels

    @model_validator(mode="after")
    def _graded(self) -> Dimension:
        if self.levels and self.method == "claims":
            raise ValueError("a dimension judged by claims has no levels: leave `levels` or `method: claims` out")
        return self


class LevelRubricOptions(JudgedOptions):
    """A rubric as the user writes it."""

    dimensions: Mapping[str, Dimension] = Field(
        min_length=1, examples=[{"accuracy": {"weight": 0.6}, "tone": {"weight": 0.4}}]
    )
    """Name → weight, description and levels."""
    levels: Mapping[str, float] = LEVELS
    """Level → value from 0 to 1."""

    @field_validator("levels")
    @classmethod
    def _in_range(cls, levels: Mapping[str, float]) -> Mapping[str, float]:
        if len(levels) < 2 or not all(0 <= value <= 1 for value in levels.values()):
            raise ValueError("give at least two levels, each with a value from 0 to 1")
        return levels

    @model_validator(mode="after")
    def _whole(self) -> LevelRubricOptions:
        total = math.fsum(dimension.weight for dimension in self.dimensions.values())
        if not math.isclose(total, 1.0, abs_tol=1e-6):
            raise ValueError(f"the weights sum to {total:g}, not to 1")
        for name, dimension in self.dimensions.items():
            for level in dimension.levels:
                if level not in self.levels:
                    known = ", ".join(self.levels)
                    raise ValueError(f"dimension {name!r} describes the level {level!r}; the levels are {known}")
        return self

    def value(self, dimension: str, level: str) -> float:
        """Return the value of a level in a dimension."""
        own = self.dimensions[dimension].levels.get(level)
        if isinstance(own, float):
            return own
        return self.levels[level]

    def described(self, name: str) -> str:
        """Return a dimension as the judge reads it: its question, and the meaning and value of its levels."""
        dimension = self.dimensions[name]
        lines = [f"- {name}: {dimension.description}"]
        for level in self.levels:
            said = dimension.levels.get(level)
            if isinstance(said, str):
                lines.append(f"  {level}: {said}")
            elif said is not None:
                lines.append(f"  {level}: worth {said:g} here")
        return "\n".join(lines)


RESEARCH: Mapping[str, Dimension] = {
    "factual_accuracy": Dimension(weight=0.30, method="claims", description="The claims are right."),
    "completeness": Dimension(
        weight=0.25,
        description="Every part of the question is answered, in due depth.",
        levels={
            "excellent": "Every part is answered in depth, and nothing that the reader needs next is left open.",
            "good": "Every part is answered; a minor point could go deeper.",
            "acceptable": "The main part is answered; a side question is missing or only touched.",
            "poor": "A main part is missing, or most of the answer stays on the surface.",
            "failed": "The question is not answered.",
        },
    ),
    "citation_accuracy": Dimension(
        weight=0.15,
        description="Claims carry citations, and the sources say what they are cited for.",
        levels={
            "excellent": "Every claim that needs a source has one, and each source says what it is cited for.",
            "good": "Nearly all such claims have a source that bears them out; what lacks one is minor.",
            "acceptable": "Most such claims have a source; a few sources say less than is claimed.",
            "poor": "Most such claims have no source, or several sources do not bear them out.",
            "failed": "Nothing is cited, or a source is made up.",
        },
    ),
    "source_quality": Dimension(
        weight=0.10,
        description="Sources are primary, current, reputable and diverse.",
        levels={
            "excellent": "Primary sources wherever there are some; current, reputable and independent of one another.",
            "good": "Reputable and current sources, most of them primary.",
            "acceptable": "Reputable sources, but second-hand, dated, or all from one place.",
            "poor": "Sources that a careful reader would not rely on, such as unsigned or promotional pages.",
            "failed": "No sources, or none that can be trusted.",
        },
    ),
    "tool_efficiency": Dimension(
        weight=0.20,
        description="Suitable tools, few and well-aimed calls, no repetition.",
        levels={
            "excellent": "The right tools with precise requests; each call brought something new.",
            "good": "The right tools; one or two calls could have been spared.",
            "acceptable": "The result was reached by detours: some calls were vague or repeated.",
            "poor": "Many needless or repeated calls, or a fitting tool was left unused.",
            "failed": "The wrong tools, or none where the question could not be answered without.",
        },
    ),
}


class ResearchOptions(LevelRubricOptions):
    dimensions: Mapping[str, Dimension] = RESEARCH


class DimensionLevel(Answer):
    dimension: str
    reasoning: str
    level: str


class DimensionLevels(Answer):
    dimensions: list[DimensionLevel]


class LevelRubric(Voted[LevelRubricOptions]):
    """Weighted sum of the judge's level for each dimension: Σ wᵢ·levelᵢ. Range 0–1, typically 0.7.

    Levels: excellent 1.0, good 0.8, acceptable 0.6, poor 0.3, failed 0.0, or your own; a dimension may describe
    what a level means, or give it another value. A dimension judged by claims that finds none is omitted, its
    weight shared among the others. Details: ``dimensions``, the mean value of each over the votes.
    """

    options_type = LevelRubricOptions
    answer = DimensionLevels
    default_threshold = 0.7
    pass_threshold = 0.7

    @property
    def graded(self) -> dict[str, float]:
        """The dimensions that get a level, with their weights; the others are judged by claims."""
        return {name: one.weight for name, one in self.options.dimensions.items() if one.method == "level"}

    def instructions(self, case: Case) -> str:
        listed = "\n".join(self.options.described(name) for name in self.graded)
        levels = ", ".join(f"{name} ({value:g})" for name, value in self.options.levels.items())
        return f"""\
Grade the agent's work over the whole conversation on every dimension below, each by itself, with one of the levels.
Levels and what they are worth: {levels}
Dimensions:
{listed}"""

    def mark(self, answer: Any) -> Score:
        """Return the weighted sum over the graded dimensions only, with their weights scaled to sum to 1."""
        given = {one.dimension.strip(): one for one in answer.dimensions}
        graded = self.graded
        missing = [name for name in graded if name not in given or given[name].level not in self.options.levels]
        if missing:
            return Score(None, error=f"the judge gave no known level for {', '.join(missing)}")
        values = {name: self.options.value(name, given[name].level) for name in graded}
        value = math.fsum(weight * values[name] for name, weight in graded.items()) / math.fsum(graded.values())
        worst = min(graded, key=lambda name: values[name])
        told = ", ".join(f"{name} {given[name].level}" for name in graded)
        reason = f"{told}; {worst}: {rationale(given[worst].reasoning)}"
        return Score(value, reason, details={"dimensions": values})

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        weights = {"level": 0.0, "claims": 0.0}
        for dimension in self.options.dimensions.values():
            weights[dimension.method] += dimension.weight
        asked = {}
        if weights["level"]:
            asked["level"] = super().judge_score(case, performance, judge)
        if weights["claims"]:
            own = FactualAccuracyOptions(judge_model_options=self.options.judge_model_options)
            asked["claims"] = FactualAccuracy(own).judge_score(case, performance, judge)
        scores = dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))
        total, products, reasons = 0.0, [], []
        for method, score in scores.items():
            if score.error is not None:
                return score
            if score.value is not None:
                total += weights[method]
                products.append(weights[method] * score.value)
                reasons.append(score.reason)
        if not reasons:
            return Score(None, reason=self.nothing)
        details: dict[str, Any] = {}
        if "level" in scores:
            details |= scores["level"].details
        if "claims" in scores and scores["claims"].value is not None:
            names = [name for name in self.options.dimensions if name not in self.graded]
            details["dimensions"] = {**details.get("dimensions", {}), **dict.fromkeys(names, scores["claims"].value)}
        return Score(min(math.fsum(products) / total, 1.0), "; ".join(reasons), details=details)


class ResearchRubric(LevelRubric):
    """The shipped rubric for research agents: factual accuracy .30, completeness .25, tool efficiency .20, citation
    accuracy .15, source quality .10. Range 0–1, threshold 0.7; factual accuracy is judged claim by claim."""

    version = 2  # 2: each dimension describes its levels
    options_type = ResearchOptions
