"""Properties that a judge affirms or denies: google-adk's rubric metrics, and the conversation metrics built on
them."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field, field_validator

from gate.judges.prompt import Answer, Answers
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
from gate.model import Case, Invocation, Rubric, Score
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

    def question(self, rubrics: Sequence[Rubric]) -> str:
        properties = []
        for one in rubrics:
            told = {"id": one.id, "property": one.text}
            if one.description:
                told["note"] = one.description
            properties.append(told)
        listed = json.dumps(properties, ensure_ascii=False, indent=1)
        return f"{self.task}\n\nFor every property below give its id, a rationale, and the verdict yes or no.\n{listed}"

    async def judge_rubrics(self, rubrics: Sequence[Rubric], material: Material, judge: Judge) -> TurnVotes:
        def decides(answer: RubricAnswer) -> bool:
            return all(passing + failing for passing, failing in _counts(rubrics, (answer,)).values())

        def settled(answers: Sequence[RubricAnswer], to_come: int) -> bool:
            counts = _counts(rubrics, answers).values()
            return all(majority_is_certain(passing, failing, to_come) for passing, failing in counts)

        answers = await self.ask(
            judge,
            self.question(rubrics),
            material,
            RubricAnswer,
            name="rubrics",
            decides=decides,
            settled=settled,
        )
        return TurnVotes(rubrics, answers)

    async def judge_conversation(self, rubrics: Sequence[Rubric], performance: TrialOutput, judge: Judge) -> Score:
        """Return the score of rubrics about the whole conversation, which counts at its last turn."""
        material = (("conversation", conversation(performance.invocations)),)
        turn = await self.judge_rubrics(rubrics, material, judge)
        return score_of([turn], before=len(performance.invocations) - 1)


class TurnVotes:
    """The counted votes of one turn."""

    def __init__(self, rubrics: Sequence[Rubric], answers: Answers[RubricAnswer]) -> None:
        self.failed = answers.error
        self.unread = answers.failure if rubrics else None
        self.texts = {rubric.id: rubric.text for rubric in rubrics}
        self.values: dict[str, float] = {}
        self.denials: dict[str, str] = {}
        for name, votes in _by_rubric(rubrics, answers.readable).items():
            against = [vote.rationale for vote in votes if vote.value == 0.0]
            passing = sum(vote.value == 1.0 for vote in votes)
            if passing > len(against):
                self.values[name] = 1.0
            elif against:
                self.values[name] = 0.0
                self.denials[name] = against[0]

    @property
    def value(self) -> float | None:
        if not self.values:
            return None
        return statistics.mean(self.values.values())


def _by_rubric(rubrics: Sequence[Rubric], answers: Sequence[RubricAnswer]) -> dict[str, list[RubricVote]]:
    found: dict[str, list[RubricVote]] = {rubric.id: [] for rubric in rubrics}
    for answer in answers:
        for vote in answer.verdicts:
            if vote.id.strip() in found:
                found[vote.id.strip()].append(vote)
    return found


def _counts(rubrics: Sequence[Rubric], answers: Sequence[RubricAnswer]) -> dict[str, tuple[int, int]]:
    """Return the number of votes for and against each rubric."""
    counts = {}
    for name, votes in _by_rubric(rubrics, answers).items():
        values = [vote.value for vote in votes]
        counts[name] = values.count(1.0), values.count(0.0)
    return counts


def score_of(turns: Sequence[TurnVotes], *, before: int = 0) -> Score:
    """Return the mean over all (turn, rubric) verdicts; the first ``before`` turns were not judged separately."""
    per_turn = (None,) * before + tuple(turn.value for turn in turns)
    unread = [turn.unread for turn in turns if turn.unread]
    values: list[float] = []
    by_rubric: dict[str, list[float]] = {}
    for turn in turns:
        if turn.failed is not None:
            return Score(None, error=turn.failed, per_turn=per_turn)
        values += turn.values.values()
        for name in turn.texts:
            own = by_rubric.setdefault(name, [])
            if name in turn.values:
                own.append(turn.values[name])
    if not values:
        unread.append("the judge gave no verdict on any rubric")
        return Score(None, error=unread[0], per_turn=per_turn)
    dimensions = {name: statistics.mean(own) for name, own in by_rubric.items() if own}
    details = {"dimensions": dimensions}
    return Score(statistics.mean(values), _reason(turns, before), per_turn=per_turn, details=details)


def _reason(turns: Sequence[TurnVotes], before: int) -> str:
    told: list[str] = []
    for number, turn in enumerate(turns, before + 1):
        where = ""
        if len(turns) > 1:
            where = f"turn {number}: "
        for name, why in turn.denials.items():
            told.append(f"{where}no to {name!r} ({shorten(turn.texts[name], 80)}): {rationale(why)}")
        missing = [name for name in turn.texts if name not in turn.values]
        if missing:
            told.append(f"{where}no verdict on {', '.join(missing)}, left out")
    return shorten("; ".join(told), 2 * MAX_REASON_CHARS) or "every rubric affirmed"


class _AdkRubrics(RubricMetric[RubricOptions]):
    """The criterion's rubrics, and those of the case and the turn that have the metric's type."""

    options_type = RubricOptions

    def rubrics_of_turn(self, *others: Sequence[Rubric]) -> list[Rubric]:
        """Return the rubrics for one turn; empty if neither the criterion nor the case states any.

        Raises ValueError for a duplicate id.
        """
        rubrics = [option.rubric() for option in self.options.rubrics]
        for group in others:
            rubrics += [rubric for rubric in group if rubric.type == self.rubric_type]
        ids = [rubric.id for rubric in rubrics]
        for name in ids:
            if ids.count(name) > 1:
                raise ValueError(f"rubric {name!r} is defined twice for the same turn")
        return rubrics

    @property
    def none_stated(self) -> Score:
        """The score if no rubric is stated: the metric does not apply. Typed rubrics of other cases do not change
        that."""
        return Score(None, reason=f"neither the criterion nor the case states a rubric of type {self.rubric_type}")


class _PerTurnRubrics(_AdkRubrics):
    def material(self, invocation: Invocation) -> Material:
        raise NotImplementedError

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        try:
            rubrics = [self.rubrics_of_turn(case.rubrics, turn.rubrics) for turn in case.turns]
        except ValueError as error:
            return Score(None, error=str(error))
        if not any(rubrics):
            return self.none_stated
        pairs = zip(rubrics, performance.invocations, strict=True)
        return score_of(await asyncio.gather(*(self._judge_turn(some, done, judge) for some, done in pairs)))

    async def _judge_turn(self, rubrics: Sequence[Rubric], done: Invocation, judge: Judge) -> TurnVotes:
        """Judge one turn; a turn without rubrics is skipped."""
        if not rubrics:
            return TurnVotes((), Answers())
        return await self.judge_rubrics(rubrics, self.material(done), judge)


class FinalResponseQuality(_PerTurnRubrics):
    """Share of rubrics that the final responses meet. Range 0–1, typical threshold 0.8.

    Source: google-adk 2.13, ``rubric_based_final_response_quality_v1``; the wording of the question is ours.
    """

    rubric_type = "FINAL_RESPONSE_QUALITY"
    task = """\
Decide for each property whether the agent's final response has it. Judge the final response; the tool calls and
their results show what it rests on. A property about a fact holds only where the material bears it out. A
property that does not arise in this turn is met unless the response violates it."""

    def material(self, invocation: Invocation) -> Material:
        intermediate = self.options.include_intermediate_responses_in_final
        return (
            ("user's request", invocation.user),
            ("tool calls", steps(invocation)),
            ("agent's final response", answer_text(invocation, intermediate=intermediate)),
        )


class ToolUseQuality(_PerTurnRubrics):
    """Share of rubrics that the tool calls meet. Range 0–1, typical threshold 0.8.

    Source: google-adk 2.13, ``rubric_based_tool_use_quality_v1``; the wording of the question is ours.
    """

    reads_tools = True
    rubric_type = "TOOL_USE_QUALITY"
    task = """\
Decide for each property whether the agent's tool calls have it: which tools were called, in which order, with
which arguments. Judge the calls, not the answer given to the user. A call that is not listed was not made."""

    def material(self, invocation: Invocation) -> Material:
        return (("user's request", invocation.user), ("tool calls", steps(invocation)))


class MultiTurnTrajectoryRubrics(_AdkRubrics):
    """Share of rubrics that the whole conversation meets, judged once, at its last turn. Range 0–1, typically 0.8.

    Source: google-adk 2.13, ``rubric_based_multi_turn_trajectory_quality_v1``; the wording of the question is ours.
    """

    reads_tools = True
    rubric_type = "TRAJECTORY_QUALITY"
    task = """\
Decide for each property whether the agent's conduct over the whole conversation has it: what it said, which
tools it called and in which order, and where it ended."""

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        try:
            rubrics = self.rubrics_of_turn(case.rubrics, case.turns[-1].rubrics)
        except ValueError as error:
            return Score(None, error=str(error))
        if not rubrics:
            return self.none_stated
        return await self.judge_conversation(rubrics, performance, judge)


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
        return await self.judge_conversation(rubrics, performance, judge)
