"""Properties that a judge affirms or denies: google-adk's rubric metrics, and the conversation metrics built on
them."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from gate.judges.prompt import Answer, Answers, Question
from gate.metrics.base import MAX_REASON_CHARS, Options, TrialOutput, answer_text, unpaired
from gate.metrics.judged import (
    AdkJudgeOptions,
    JudgedMetric,
    JudgedT,
    Material,
    conversation,
    majority_is_certain,
    rationale,
    steps,
)
from gate.model import Case, Rubric, Score, Turn
from gate.model.strict import NonBlank
from gate.security.limits import shorten

if TYPE_CHECKING:
    from gate.judges.client import Judge


class RubricContent(Options):
    text_property: NonBlank
    """The property, as a sentence that holds or not."""


class RubricOption(Options):
    """One rubric as google-adk writes it."""

    rubric_id: str = Field(min_length=1, examples=["polite"])
    """Its name in scores and reasons; unique in a turn."""
    rubric_content: RubricContent = Field(examples=[{"text_property": "The answer is polite."}])
    """The property that a judge affirms or denies."""
    type: str | None = None
    """The metric that reads it, for rubrics of cases and turns."""
    description: str | None = None
    """A note for the judge."""

    def rubric(self) -> Rubric:
        return Rubric(self.rubric_id, self.rubric_content.text_property, self.type, self.description)


class RubricOptions(AdkJudgeOptions):
    """Rubrics for every case of the suite; cases and turns may add their own."""

    rubrics: tuple[RubricOption, ...] = ()
    """The rubrics of every case."""

    @field_validator("rubrics")
    @classmethod
    def _unique(cls, rubrics: tuple[RubricOption, ...]) -> tuple[RubricOption, ...]:
        ids = [rubric.rubric_id for rubric in rubrics]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"rubric_id {name!r} is given twice")
        return rubrics


class RubricVote(Answer):
    id: str
    rationale: str
    verdict: str = Field(description='"yes" or "no"')

    @property
    def value(self) -> float | None:
        """google-adk's reading: 1 if it contains "yes", else 0 if it contains "no", else None."""
        text = self.verdict.lower()
        if "yes" in text:
            return 1.0
        if "no" in text:
            return 0.0
        return None


class RubricAnswer(Answer):
    verdicts: list[RubricVote]


class RubricMetric(JudgedMetric[JudgedT]):
    """Base: one vote per rubric, a tie is no; the score is the mean over all rubrics of all judged turns."""

    samples = 5
    pass_threshold = 1.0
    task: ClassVar[str]

    def materials(self, performance: TrialOutput) -> list[Material]:
        """Return the text for the judge, one for each judged turn: the whole conversation, judged at its last turn."""
        return [(("conversation", conversation(performance.invocations)),)]

    async def judge_rubrics(
        self, rubrics: Sequence[Sequence[Rubric]], materials: Sequence[Material], judge: Judge, *, before: int
    ) -> Score:
        """Return the mean over all verdicts on the last turns; the ``before`` turns before them are not judged."""
        asked = (self._votes(*one, judge) for one in zip(rubrics, materials, strict=True))
        return _mean_of_verdicts(rubrics, await asyncio.gather(*asked), before)

    async def _votes(self, rubrics: Sequence[Rubric], material: Material, judge: Judge) -> Answers[RubricAnswer]:
        """Return the votes on one turn; without rubrics there are none."""
        if not rubrics:
            return Answers()

        def decides(answer: RubricAnswer) -> bool:
            return all(approved or denied for approved, denied in _votes_on(rubrics, [answer]).values())

        def settled(answers: Sequence[RubricAnswer], to_come: int) -> bool:
            votes = _votes_on(rubrics, answers).values()
            return all(majority_is_certain(len(approved), len(denied), to_come) for approved, denied in votes)

        properties = []
        for one in rubrics:
            told = {"id": one.id, "property": one.text}
            if one.description:
                told["note"] = one.description
            properties.append(told)
        listed = json.dumps(properties, ensure_ascii=False, indent=1)
        task = f"{self.task}\n\nFor every property below give its id, a rationale, and the verdict yes or no.\n{listed}"
        return await self.ask(
            judge, Question("rubrics", task, material, RubricAnswer, decides=decides, settled=settled)
        )


def _votes_on(
    rubrics: Sequence[Rubric], answers: Sequence[RubricAnswer]
) -> dict[str, tuple[list[RubricVote], list[RubricVote]]]:
    """Return the votes for and against each rubric."""
    found: dict[str, tuple[list[RubricVote], list[RubricVote]]] = {rubric.id: ([], []) for rubric in rubrics}
    for answer in answers:
        for vote in answer.verdicts:
            approved, denied = found.get(vote.id.strip(), ([], []))
            if vote.value == 1.0:
                approved.append(vote)
            elif vote.value == 0.0:
                denied.append(vote)
    return found


def _mean_of_verdicts(
    rubrics: Sequence[Sequence[Rubric]], turns: Sequence[Answers[RubricAnswer]], before: int
) -> Score:
    """Return the mean over the majorities on every rubric of every turn; a rubric without a vote is left out."""
    per_turn: list[float | None] = [None] * before
    verdicts: dict[str, list[float]] = {}
    told, unread = [], []
    for number, (asked, answers) in enumerate(zip(rubrics, turns, strict=True), before + 1):
        where = ""
        if len(turns) > 1:
            where = f"turn {number}: "
        if asked and answers.failure:
            unread.append(answers.failure)
        values, missing = [], []
        votes = _votes_on(asked, answers.readable)
        for rubric in asked:
            own = verdicts.setdefault(rubric.id, [])
            approved, denied = votes[rubric.id]
            if not approved and not denied:
                missing.append(rubric.id)
                continue
            holds = len(approved) > len(denied)
            if not holds:
                why = rationale(denied[0].rationale)
                told.append(f"{where}no to {rubric.id!r} ({shorten(rubric.text, 80)}): {why}")
            values.append(float(holds))
            own.append(float(holds))
        if missing:
            told.append(f"{where}no verdict on {', '.join(missing)}, left out")
        per_turn.append(statistics.mean(values) if values else None)
    error = next((answers.error for answers in turns if answers.error is not None), None)
    dimensions = {name: statistics.mean(own) for name, own in verdicts.items() if own}
    if error is None and not dimensions:
        error = next(iter(unread), "the judge gave no verdict on any rubric")
    if error is not None:
        return Score(None, error=error, per_turn=tuple(per_turn))
    value = statistics.mean(chain.from_iterable(verdicts.values()))
    reason = shorten("; ".join(told), 2 * MAX_REASON_CHARS) or "every rubric affirmed"
    return Score(value, reason, per_turn=tuple(per_turn), details={"dimensions": dimensions})


class AdkRubrics(RubricMetric[RubricOptions]):
    """Base: the criterion's rubrics, and those of the case and the turn that have the metric's type."""

    options_type = RubricOptions

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        materials = self.materials(performance)
        before = len(case.turns) - len(materials)
        try:
            rubrics = [self.rubrics_of(case, turn) for turn in case.turns[before:]]
        except ValueError as error:
            return Score(None, error=str(error))
        if not any(rubrics):  # typed rubrics of other cases do not change that
            return Score(None, reason=f"neither the criterion nor the case states a rubric of type {self.rubric_type}")
        return await self.judge_rubrics(rubrics, materials, judge, before=before)

    def rubrics_of(self, case: Case, turn: Turn) -> list[Rubric]:
        """Return the rubrics for one turn; empty if neither the criterion nor the case states any.

        Raises ValueError for a duplicate id.
        """
        rubrics = [option.rubric() for option in self.options.rubrics]
        rubrics += [rubric for rubric in (*case.rubrics, *turn.rubrics) if rubric.type == self.rubric_type]
        ids = [rubric.id for rubric in rubrics]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"rubric {name!r} is defined twice for the same turn")
        return rubrics


class FinalResponseQuality(AdkRubrics):
    """Share of rubrics that the final responses meet. Range 0–1, typical threshold 0.8.

    Source: google-adk 2.13, ``rubric_based_final_response_quality_v1``; the wording of the question is ours.
    """

    rubric_type = "FINAL_RESPONSE_QUALITY"
    task = """\
Decide for each property whether the agent's final response has it. Judge the final response; the tool calls and
their results show what it rests on. A property about a fact holds only where the material bears it out. A
property that does not arise in this turn is met unless the response violates it."""

    def materials(self, performance: TrialOutput) -> list[Material]:
        intermediate = self.options.include_intermediate_responses_in_final
        return [
            (
                ("user's request", turn.user),
                ("tool calls", steps(turn)),
                ("agent's final response", answer_text(turn, intermediate=intermediate)),
            )
            for turn in performance.invocations
        ]


class ToolUseQuality(AdkRubrics):
    """Share of rubrics that the tool calls meet. Range 0–1, typical threshold 0.8.

    Source: google-adk 2.13, ``rubric_based_tool_use_quality_v1``; the wording of the question is ours.
    """

    reads_tools = True
    rubric_type = "TOOL_USE_QUALITY"
    task = """\
Decide for each property whether the agent's tool calls have it: which tools were called, in which order, with
which arguments. Judge the calls, not the answer given to the user. A call that is not listed was not made."""

    def materials(self, performance: TrialOutput) -> list[Material]:
        return [(("user's request", turn.user), ("tool calls", steps(turn))) for turn in performance.invocations]


class MultiTurnTrajectoryRubrics(AdkRubrics):
    """Share of rubrics that the whole conversation meets, judged once, at its last turn. Range 0–1, typically 0.8.

    Source: google-adk 2.13, ``rubric_based_multi_turn_trajectory_quality_v1``; the wording of the question is ours.
    """

    reads_tools = True
    rubric_type = "TRAJECTORY_QUALITY"
    task = """\
Decide for each property whether the agent's conduct over the whole conversation has it: what it said, which
tools it called and in which order, and where it ended."""


class ConversationProperties(RubricMetric[AdkJudgeOptions]):
    """Share of fixed properties that the whole conversation has. Range 0–1, typical threshold 0.8."""

    reads_tools = True
    options_type = AdkJudgeOptions
    pass_threshold = 0.8
    task = MultiTurnTrajectoryRubrics.task
    properties: ClassVar[Mapping[str, str]]

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        if not performance.invocations:
            return Score(None, error="the trial has no turns")
        rubrics = [Rubric(name, text) for name, text in self.properties.items()]
        materials = self.materials(performance)
        return await self.judge_rubrics([rubrics], materials, judge, before=len(performance.invocations) - 1)
