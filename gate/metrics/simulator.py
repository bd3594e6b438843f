"""google-adk's metric for simulated users: the share of their turns that follow the scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from gate.judges.prompt import Answer, Question
from gate.metrics.base import TrialOutput, answer_text
from gate.metrics.final_response import read_label
from gate.metrics.judged import AdkJudgeOptions, JudgedMetric, by_majority, settled_by
from gate.model import Case, Invocation, Scenario, Score

if TYPE_CHECKING:
    from gate.judges.client import Judge


def _read_label(value: Any) -> Any:
    return read_label(str(value).strip().lower())


class Kept(Answer):
    """The judge's vote whether one message keeps to the scenario; read in google-adk's spellings."""

    reasoning: str = ""
    is_valid: Annotated[Literal["valid", "invalid"], BeforeValidator(_read_label)]


def _passes(vote: Kept) -> bool:
    return vote.is_valid == "valid"


class UserSimulatorOptions(AdkJudgeOptions):
    stop_signal: str = "</finished>"
    """The simulated user's words to end the conversation."""


class UserSimulatorQuality(JudgedMetric[UserSimulatorOptions]):
    """Share of a simulated user's turns that follow its scenario. Range 0–1; does not apply to written turns.

    The first turn must be the starting prompt; the judge decides whether each later one is valid, by majority of
    the readable votes; a tie is invalid. If the conversation ended too early or too late, the last turn counts as
    invalid. A turn without a readable vote counts as not valid, as in google-adk. If the judge could not be
    reached, the score is not measured. Source: google-adk 2.13, ``per_turn_user_simulator_quality_v1``; the
    wording
    of the question is ours.
    """

    options_type = UserSimulatorOptions
    samples = 5
    pass_threshold = 1.0

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        scenario, said = case.scenario, performance.invocations
        if scenario is None:
            return Score(None, reason="the user's turns are written in the case; no simulated user to judge")
        if not said:
            return Score(None, error="the trial has no turns")
        spoken = [*(turn.user for turn in said[1:]), self.options.stop_signal]
        judged = await asyncio.gather(
            *(self._turn(scenario, said[:number], text, judge) for number, text in enumerate(spoken, 1))
        )
        failed = next((verdict.error for verdict in judged if verdict.error is not None), None)
        if failed is not None:
            return Score(None, error=failed)
        *further, end = judged
        verdicts = [_first(scenario, said[0]), *further]
        if end.value == 0.0:
            verdicts[-1] = Score(0.0, f"it ended where it should not: {end.reason}")
        per_turn = tuple(verdict.value for verdict in verdicts)
        told = [f"turn {n}: {v.reason}" for n, v in enumerate(verdicts, 1) if v.value != 1.0]
        reason = "; ".join(told) or "every turn keeps to the scenario"
        return Score(sum(value or 0.0 for value in per_turn) / len(per_turn), reason=reason, per_turn=per_turn)

    async def _turn(self, scenario: Scenario, before: Sequence[Invocation], text: str, judge: Judge) -> Score:
        material = (
            ("conversation plan", scenario.plan),
            *_persona(scenario),
            ("conversation so far", _history(before)),
            ("the user's next message", text),
        )
        task = KEPT.format(signal=self.options.stop_signal)
        name = "per_turn_user_simulator_quality_v1"
        answers = await self.ask(judge, Question(name, task, material, Kept, settled=settled_by(_passes)))
        return by_majority(answers, _passes)


def _first(scenario: Scenario, turn: Invocation) -> Score:
    """Return the verdict on the first turn, which must be the scenario's start."""
    if turn.user.strip() == scenario.start.strip():
        return Score(1.0, "the starting prompt")
    return Score(0.0, "not the starting prompt")


def _persona(scenario: Scenario) -> tuple[tuple[str, str], ...]:
    persona = scenario.persona
    if persona is None:
        return ()
    lines = [persona.description or persona.id]
    for behavior in persona.behaviors:
        lines.append(f"{behavior.name}: {behavior.description}")
        for text in behavior.violations:
            lines.append(f"- violated by: {text}")
    return (("who the user is", "\n".join(lines)),)


def _history(said: Sequence[Invocation]) -> str:
    return "\n\n".join(f"user: {turn.user}\n\nagent: {answer_text(turn)}" for turn in said)


KEPT = """\
A simulated user talks to an AI agent by a plan, so that the agent can be tested. Decide whether its next message is
valid: whether it keeps to the plan, and to who the user is if that is said, after the conversation so far. `{signal}`
as the message means that the user ends the conversation there. The message is invalid if any of these holds:
- It asks again for what is done, gives details of it, wants what the plan does not have, or makes up facts.
- It ends the conversation although wishes of the plan are open and the agent has not failed twice; or it goes on
  although all wishes are fulfilled, the agent failed for the second time, or the agent handed over to a person.
- It tells details before the agent asked for them, or wants several things at once.
- It leaves a question of the agent without an answer, or answers what the plan does not say with anything but that it
  does not know.
- It takes something wrong or dangerous that the agent said or did for right.
- It does not sound like a person in a chat: stiff, overlong, or bare commands.
If it is said who the user is, what is said there comes before the last four."""
