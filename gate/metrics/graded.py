"""Grades by named levels: the judge's answer, and the metric of one quality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedOptions, Material, Voted, rationale
from gate.model import Case, Score

LEVELS: Mapping[str, float] = {"excellent": 1.0, "good": 0.8, "acceptable": 0.6, "poor": 0.3, "failed": 0.0}
"""The named levels of every grade and rubric, with their values."""
Level = Literal["excellent", "good", "acceptable", "poor", "failed"]
SCALE = """\
Levels: excellent (nothing to improve), good (small lapses), acceptable (does its job with clear lapses),
poor (mostly fails), failed (fails altogether, or nothing there)."""


class Grade(Answer):
    """A level with its reason."""

    reasoning: str
    level: Level


class Graded(Voted[JudgedOptions]):
    """A level per vote, its value by `LEVELS`; the score is their mean. Range 0–1, typical threshold 0.7."""

    answer = Grade
    pass_threshold = 0.6
    asked: ClassVar[str]
    fewest_turns: ClassVar[int] = 1

    def instructions(self, case: Case) -> str:
        return f"Grade one quality of the agent's answers over the whole conversation.\n{self.asked}\n{SCALE}"

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        if len(performance.invocations) < self.fewest_turns:
            return None
        return super().material(case, performance)

    def mark(self, answer: Any) -> Score:
        return Score(LEVELS[answer.level], f"{answer.level}: {rationale(answer.reasoning)}")
