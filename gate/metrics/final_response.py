"""The final response under google-adk's names: valid against a reference, or graded from 1 to 5."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from gate.judges.prompt import Answer, Question
from gate.metrics.base import TrialOutput, answer_text, mean, unpaired
from gate.metrics.judged import AdkJudgeOptions, JudgedMetric, by_majority, of_turns, rationale, settled_by
from gate.model import Case, Invocation, Scale, Score, Turn, text_of

if TYPE_CHECKING:
    from gate.judges.client import Judge

_NEGATED = {
    **dict.fromkeys(("true", "invalid", "yes"), "invalid"),
    **dict.fromkeys(("false", "valid", "no"), "valid"),
}
"""The label that an answer to the opposite question means."""


def read_label(value: Any) -> Any:
    """Return ``valid`` or ``invalid`` for a label that google-adk reads as that, which is case-sensitive. Any other
    value stays and is refused."""
    text = value
    if isinstance(value, bool):
        text = str(value).lower()
    if text in ("valid", "true"):
        return "valid"
    if text in ("invalid", "false", "almost", "partially", "partially_valid", "partially valid"):
        return "invalid"
    return value


class Validity(Answer):
    """The judge's vote whether a response is valid; further spellings of google-adk's are read as it reads them."""

    reasoning: str = ""
    is_the_agent_response_valid: Annotated[Literal["valid", "invalid"], BeforeValidator(read_label)]

    @model_validator(mode="before")
    @classmethod
    def _negated(cls, data: Any) -> Any:
        """Negate the answer if the model answered the opposite question, as some do."""
        if isinstance(data, dict) and "is_the_agent_response_valid" not in data:
            label = _NEGATED.get(str(data.get("is_the_agent_response_invalid")).lower())
            if label is not None:
                return {**data, "is_the_agent_response_valid": label}
        return data


class FinalResponseMatchV2(JudgedMetric[AdkJudgeOptions]):
    """Share of turns whose final response the judge finds valid, compared with the expected one. Range 0–1.

    The majority of the readable votes decides each turn, a tie is invalid; the score is the mean over judged turns.
    Source: google-adk 2.13, ``final_response_match_v2``; the wording of the question is ours.
    """

    options_type = AdkJudgeOptions
    samples = 5
    pass_threshold = 1.0

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        pairs = zip(case.turns, performance.invocations, strict=True)
        return of_turns(await asyncio.gather(*(self._turn(turn, done, judge) for turn, done in pairs)))

    async def _turn(self, turn: Turn, invocation: Invocation, judge: Judge) -> Score:
        if turn.response is None:
            return Score(None)
        intermediate = self.options.include_intermediate_responses_in_final
        material = (
            ("user's request", turn.user),
            ("reference response", text_of(turn.response)),
            ("agent's response", answer_text(invocation, intermediate=intermediate)),
        )
        question = Question("final_response_match_v2", MATCH, material, Validity, settled=settled_by(_passes))
        return by_majority(await self.ask(judge, question), _passes)


MATCH = """\
Decide whether the agent's response is valid as an answer to the user's request, given the reference response,
which is known to be right. It is valid if it conveys what the reference conveys in every respect that matters
to the user: the same facts, figures, names, units and conclusions, nothing essential missing, nothing that
contradicts the reference. Different wording, order, formatting or harmless further detail do not make it
invalid. A response that is right in part only is invalid. If the reference asks a question back or declines, a
valid response does so too."""


def _passes(vote: Validity) -> bool:
    return vote.is_the_agent_response_valid == "valid"


class Grade(Answer):
    """The grade of a response, from 1 to 5."""

    reasoning: str
    score: int = Field(ge=1, le=5)


class ResponseEvaluationScore(JudgedMetric[AdkJudgeOptions]):
    """Coherence of the final response, 1 (incoherent) to 5 (clear, logical, concise); typical threshold 3.5.

    Mean of the votes per turn, then the mean over judged turns. google-adk's ``response_evaluation_score`` asks a
    cloud service for the same property; ours asks the run's judge.
    """

    options_type = AdkJudgeOptions
    samples = 5
    scale = Scale.LIKERT
    pass_threshold = 3.5

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        return of_turns(await asyncio.gather(*(self._turn(one, judge) for one in performance.invocations)))

    async def _turn(self, invocation: Invocation, judge: Judge) -> Score:
        intermediate = self.options.include_intermediate_responses_in_final
        material = (
            ("user's request", invocation.user),
            ("agent's response", answer_text(invocation, intermediate=intermediate)),
        )
        answers = await self.ask(judge, Question("response_evaluation_score", COHERENCE, material, Grade))
        if answers.nothing is not None:
            return answers.nothing
        value = mean([float(vote.score) for vote in answers.readable])
        worst = min(answers.readable, key=lambda vote: vote.score)
        return Score(value, f"{value:.2g} of 5: {rationale(worst.reasoning)}")


COHERENCE = """\
Grade the coherence of the agent's response to the user's request, from 1 to 5.
5: reads as one clear, logically ordered answer; every part serves the request.
4: clear and ordered, with a small lapse in flow or focus.
3: understandable, but with gaps, repetition or parts that do not belong.
2: hard to follow; parts contradict one another or lead nowhere.
1: incoherent, empty, or no answer to the request at all.
Judge coherence alone, not whether the facts are right."""
