"""The base of every metric that asks a model: its options, how the judge sees a conversation, and how turns make a
score. The caller passes the judge."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from msgspec.structs import replace
from pydantic import Field

from gate.judges.options import JudgeModelOptions
from gate.judges.prompt import A, Answer, Answers, Question
from gate.metrics.base import MAX_REASON_CHARS, Judged, Options, TrialOutput, answer_text, mean
from gate.model import Case, Invocation, Scale, Score, ToolCall, text_of
from gate.security.limits import shorten

if TYPE_CHECKING:
    from gate.judges.client import Judge

MAX_RESULT_CHARS = 20_000
"""The most characters of one tool's arguments or result that a judge sees."""
MAX_RATIONALE = 300
"""The most characters of a judge's rationale that a reason repeats."""


class JudgedOptions(Options):
    """The options of every judged criterion."""

    judge_model_options: JudgeModelOptions = Field(default_factory=JudgeModelOptions)
    """The model, votes and sampling of this criterion, which override the run's judge."""
    min_kappa: float | None = Field(default=None, ge=-1, le=1)
    """Lowest agreement between judge and human labels (Cohen's κ) at which the criterion may block."""


class AdkJudgeOptions(JudgedOptions):
    """ADK's options of a judged metric."""

    include_intermediate_responses_in_final: bool = False
    """Judge what the agent said before its final response, too."""


JudgedT = TypeVar("JudgedT", bound=JudgedOptions)
Material = tuple[tuple[str, str], ...]


class JudgedMetric(Judged[JudgedT]):
    """Base of metrics that ask the run's judge with a prompt."""

    options_type: ClassVar[type[JudgedOptions]] = JudgedOptions
    samples: ClassVar[int] = 3
    """Votes if neither the criterion nor the configuration sets a number; 5, ADK's default, under ADK's names."""

    @property
    def min_kappa(self) -> float | None:
        return self.options.min_kappa

    async def ask(self, judge: Judge, question: Question[A], *, votes: int | None = None) -> Answers[A]:
        """Return the votes on one question under this criterion's options; ``votes`` overrides the user's number."""
        overrides = self.options.judge_model_options
        if votes is not None:
            overrides = overrides.model_copy(update={"num_samples": votes})
        return await judge.ask(replace(question, samples=self.samples, overrides=overrides))


class Voted(JudgedMetric[JudgedT]):
    """Base of metrics that ask one question about the whole conversation: the score is the mean over the votes."""

    question: ClassVar[str]
    answer: ClassVar[type[Answer]]
    nothing: ClassVar[str] = "nothing to judge in this conversation"
    """The reason if every vote found nothing to judge: the metric then does not apply."""

    @abstractmethod
    def mark(self, answer: Any) -> Score:
        """Return the score by one vote: without a value if it found nothing to judge, with an error if it does not
        answer the question, with ``dimensions`` in its details if it is composed."""

    def instructions(self, case: Case) -> str:
        return self.question

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        """Return the text for the judge; None: the metric does not apply to this case."""
        return (("conversation", conversation(performance.invocations)), *reference(case))

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        if not performance.invocations:
            return Score(None, error="the trial has no turns")
        material = self.material(case, performance)
        if material is None:
            return Score(None, reason=self.nothing)
        question = Question(self.answer.__name__, self.instructions(case), material, self.answer, decides=self._decides)
        if self.scale is Scale.BINARY:
            question = replace(question, settled=self._settled)
        answers = await self.ask(judge, question)
        if answers.failure is not None:
            return Score(None, error=answers.failure)
        marks = [self.mark(answer) for answer in answers.readable]
        found = [(mark.value, mark.reason, mark.dimensions) for mark in marks if mark.value is not None]
        if not found:
            error = next((mark.error for mark in marks if mark.error), None)
            if error is not None:
                return Score(None, error=error)
            return Score(None, reason=self.nothing)
        values = [value for value, _, _ in found]
        details: dict[str, Any] = {}
        if len(values) > 1:
            details["votes"] = values
        dimensions = mean_by_name([parts for _, _, parts in found])
        if dimensions:
            details["dimensions"] = dimensions
        _, worst, _ = min(found, key=lambda mark: mark[:2])
        return Score(self.combine(values), shorten(worst, MAX_REASON_CHARS), details=details)

    def _decides(self, answer: Any) -> bool:
        return self.mark(answer).error is None

    def _settled(self, answers: Sequence[Any], to_come: int) -> bool:
        values = [mark.value for mark in map(self.mark, answers) if mark.value is not None]
        passing = sum(values)
        return majority_is_certain(passing, len(values) - passing, to_come)

    def combine(self, votes: Sequence[float]) -> float:
        """Return the value of several votes: their mean, or the majority if votes are yes or no; a tie is 0."""
        if self.scale is not Scale.BINARY:
            return mean(votes)
        return float(2 * sum(votes) > len(votes))


def mean_by_name(votes: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return for each name the mean over the votes that have it, in order of first appearance."""
    found: dict[str, list[float]] = {}
    for vote in votes:
        for name, value in vote.items():
            found.setdefault(name, []).append(value)
    return {name: mean(values) for name, values in found.items()}


def reference(case: Case) -> Material:
    """Return the author's expected responses, if any."""
    stated = []
    for number, turn in enumerate(case.turns, 1):
        if turn.response is not None:
            stated.append(f"Turn {number}: {text_of(turn.response)}")
    if not stated:
        return ()
    return (("expected responses", "\n".join(stated)),)


def majority_is_certain(passing: float, failing: float, to_come: int) -> bool:
    """True if that many further votes cannot change the majority; a tie is a failure."""
    return passing > failing + to_come or failing >= passing + to_come


def settled_by(passes: Callable[[A], bool]) -> Callable[[Sequence[A], int], bool]:
    """Return a function that tells whether answers settle a majority question, whatever the remaining votes are."""

    def settled(answers: Sequence[A], to_come: int) -> bool:
        passing = sum(map(passes, answers))
        return majority_is_certain(passing, len(answers) - passing, to_come)

    return settled


def by_majority(answers: Answers[Any], passes: Callable[[Any], bool]) -> Score:
    """Return the majority of the votes on validity, with the reason that one of them gives; a tie is invalid."""
    if answers.nothing is not None:
        return answers.nothing
    votes = [(passes(vote), vote.reasoning) for vote in answers.readable]
    count = sum(valid for valid, _ in votes)
    found = count > len(votes) - count
    why = next((reason for valid, reason in votes if valid == found), "")
    label = "invalid"
    if found:
        label = "valid"
    return Score(float(found), f"{label} by {count} of {len(votes)} votes for valid: {rationale(why)}")


def of_turns(turns: Sequence[Score], *, average: Callable[[Sequence[float]], float] = mean) -> Score:
    """Return the mean over the judged turns, as in google-adk: turns without a readable verdict are left out.

    Unlike in google-adk, a failed call leaves the whole score unmeasured: an outage must not let the other turns pass.
    """
    per_turn = tuple(turn.value for turn in turns)
    values, told, unread = [], [], []
    for number, turn in enumerate(turns, 1):
        if turn.error is not None:
            return Score(None, error=turn.error, per_turn=per_turn)
        if turn.value is not None:
            values.append(turn.value)
            if turn.reason and len(turns) > 1:
                told.append(f"turn {number}: {turn.reason}")
            elif turn.reason:
                told.append(turn.reason)
        elif turn.reason:
            unread.append(f"turn {number}: {turn.reason}")
    if unread and not values:
        return Score(None, error="; ".join(unread[:3]), per_turn=per_turn)
    if not values:
        return Score(None, "no turn of this case states what is judged", per_turn=per_turn)
    if unread:
        told.insert(0, f"left out, not readable: {', '.join(unread)}")
    return Score(average(values), shorten("; ".join(told), 2 * MAX_REASON_CHARS), per_turn=per_turn)


def conversation(invocations: Sequence[Invocation]) -> str:
    """Return a conversation for the judge to read: turns, tool calls with arguments and results, answers."""
    return "\n\n".join(f"Turn {number}\n{_turn(invocation)}" for number, invocation in enumerate(invocations, 1))


def _turn(invocation: Invocation) -> str:
    lines = [f"User: {invocation.user}"]
    if invocation.tool_calls:
        lines.append(steps(invocation))
    lines.extend(f"Agent (before its answer): {part.text}" for part in invocation.intermediate if not part.thought)
    lines.append(f"Agent: {answer_text(invocation)}")
    return "\n".join(lines)


def steps(invocation: Invocation) -> str:
    """Return the tool calls of a turn with their results, in order."""
    if not invocation.tool_calls:
        return "(no tool was called)"
    return "\n".join(_call(number, call) for number, call in enumerate(invocation.tool_calls, 1))


def _call(number: int, call: ToolCall) -> str:
    outcome = f"error: {call.error}"
    if call.error is None:
        outcome = f"result: {_json(call.result)}"
    return f"Tool call {number}: {call.name}({_json(call.args)})\n  {shorten(outcome, MAX_RESULT_CHARS)}"


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        text = "(cannot be shown)"
    return shorten(text, MAX_RESULT_CHARS)


def rationale(text: str) -> str:
    """Return a judge's rationale on one line, shortened."""
    return shorten(" ".join(text.split()), MAX_RATIONALE)
