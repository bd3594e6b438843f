"""Qualities that a judge grades by named levels, over the whole conversation; one question each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from gate.judges.client import Judge
from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput, mean
from gate.metrics.judged import JudgedMetric, JudgedOptions, Material, Voted, VoteMark, rationale
from gate.model import Case, Scale, Score
from gate.security.limits import shorten

LEVELS: Mapping[str, float] = {"excellent": 1.0, "good": 0.8, "acceptable": 0.6, "poor": 0.3, "failed": 0.0}
"""The named levels of every grade and rubric, and what they are worth."""
Level = Literal["excellent", "good", "acceptable", "poor", "failed"]
SCALE = """\
Levels: excellent (nothing to improve), good (small lapses), acceptable (does its job with clear lapses),
poor (mostly fails), failed (fails altogether, or nothing there)."""


class Grade(Answer):
    """A level with its reason."""

    reasoning: str
    level: Level


class Graded(Voted[JudgedOptions]):
    """Base: a level per vote, its value by `LEVELS`, the score their mean. Range 0–1, typical threshold 0.7."""

    options_type = JudgedOptions
    answer = Grade
    pass_threshold = 0.6
    asked: ClassVar[str]

    def instructions(self, case: Case) -> str:
        return f"Grade one quality of the agent's answers over the whole conversation.\n{self.asked}\n{SCALE}"

    def mark(self, answer: Any) -> VoteMark:
        return VoteMark(LEVELS[answer.level], f"{answer.level}: {rationale(answer.reasoning)}")


class Relevance(Graded):
    """How well the answers meet the query, its context and the intent behind it. Range 0–1, typically 0.75."""

    asked = """\
Relevance: do the answers address what the user asked, in the context that the conversation gave, and the intent
behind it? What does not serve the request lowers the grade, however true."""


class Clarity(Graded):
    """How easily the answers are understood: order, wording, length. Range 0–1, typically 0.7."""

    asked = """\
Clarity: can the user understand the answers at first reading? Order, plain wording, one thing at a time, neither
too long nor too terse. Whether the content is right does not matter here."""


class Accuracy(Graded):
    """How right the answers are, by references, tools' results and general knowledge. Range 0–1, typically 0.9."""

    asked = """\
Accuracy: are the statements right? Expected responses, where given, and results of tools count first, then
well-established general knowledge. A wrong figure, name, date or promise weighs heavily."""


class Consistency(Graded):
    """Whether the answers agree with what was said in earlier turns. Range 0–1, typically 0.8; several turns only."""

    nothing = "a conversation of one turn has no earlier turns to agree with"
    asked = """\
Consistency: do later answers agree with earlier ones, and with what the user said earlier? A change of mind that
the agent explains by new facts is no lapse."""

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        return super().material(case, performance) if len(performance.invocations) > 1 else None


class SourceAttribution(Graded):
    """Whether what comes from sources is attributed to them, and rightly. Range 0–1, typically 0.7."""

    asked = """\
Source attribution: where an answer rests on a document, a policy or a tool's result, does it say which, and is that
the right one? An invented source is a failure. Where nothing rests on a source, grade excellent."""


class CitedSource(Answer):
    source: str
    reasoning: str
    level: Level


class CitedSources(Answer):
    sources: list[CitedSource]


class SourceQuality(Voted[JudgedOptions]):
    """How reliable and fitting the cited sources are: the mean level over the sources. Range 0–1, typically 0.7.

    Each source gets one of the `LEVELS`: primary where a primary one is to be had, reputable, current, and saying what
    it is cited for. Answers that cite nothing have no sources to grade: the metric does not apply, and
    ``citation_coverage`` asks whether sources are cited at all. Source: ADK-TS, "Accuracy and reliability of cited
    sources"; "appropriate primary sources were used" of the evaluation of research agents.
    """

    options_type = JudgedOptions
    answer = CitedSources
    pass_threshold = 0.6
    nothing = "the answers cite no source"
    question = f"""\
List every source that the agent's answers cite or name as their ground (documents, policies, pages, data, results of
tools), each once, and grade each: is it a primary source where one is to be had, reputable and reliable for this
question, current, and does it say what it is cited for? A source that appears to be made up is failed. Where the
answers rest on no source, list none.
{SCALE}"""

    def mark(self, answer: Any) -> VoteMark:
        if not answer.sources:
            return VoteMark(None)
        worst = min(answer.sources, key=lambda one: LEVELS[one.level])
        told = f"{len(answer.sources)} cited; {shorten(worst.source, 80)} {worst.level}: {rationale(worst.reasoning)}"
        return VoteMark(mean([LEVELS[one.level] for one in answer.sources]), told)


class FollowUpHandling(Graded):
    """How well natural follow-up questions are addressed. Range 0–1, typically 0.7.

    Those that the user asks in later turns, in the context of what was said before; and those that the answer itself
    raises, if the user has not asked yet. Source: ADK-TS, "Addressing natural follow-up questions".
    """

    asked = """\
Follow-up handling: are natural follow-up questions addressed? A question that the user asks in a later turn is taken in
the context of what was said before, without making the user repeat it. A question that the answer obviously raises
(how long, how much, what next, what if it fails) is answered or offered, and no more than that."""


class DetailLevel(Graded):
    """Whether the answers have the depth that the question asks for. Range 0–1, typically 0.7.

    Too shallow and too deep are both lapses. Source: ADK-TS, "Appropriate depth".
    """

    asked = """\
Detail level: is the depth right for this question and this user? Enough to act on, with the figures, conditions and
steps that are needed; no detail that the user did not ask for and does not need. A short question to which a short
answer is complete deserves one. Whether the content is right does not matter here."""


class Appropriateness(Graded):
    """Whether the answers fit the situation, the user and the role. Range 0–1, typically 0.8."""

    asked = """\
Appropriateness: do the answers fit the situation, the user's state and the agent's role? Tact, boundaries, no
familiarity or advice that is out of place."""


class Engagement(Graded):
    """Whether the answers help the user on: next steps, questions in place, interest. Range 0–1, typically 0.6."""

    asked = """\
Engagement: do the answers help the user on? Attention to what the user said, useful next steps, a question where
one is needed; no filler."""


class ErrorHandling(Graded):
    """How the agent handles what goes wrong on the way. Range 0–1, typically 0.7."""

    reads_tools = True
    asked = """\
Error handling: when a tool failed, a result was odd or the request was impossible, did the agent notice, take a
sensible other way, and say what it could not do? Where nothing went wrong, grade excellent."""


class ApiUsage(Graded):
    """How well tools and interfaces are used: choice, arguments, number of calls. Range 0–1, typically 0.7."""

    reads_tools = True
    asked = """\
API usage: suitable calls with right arguments, none superfluous, none missing, paging and limits respected."""


class DataHandling(Graded):
    """How data are treated on the way: complete, unaltered, no more than needed. Range 0–1, typically 0.8."""

    reads_tools = True
    asked = """\
Data handling: were values carried from results to arguments and answers unaltered and complete, units and formats
kept, and no more personal data used or shown than the task needs?"""


class SatisfactionProxy(Graded):
    """How satisfied the customer probably is, by what the customer wrote. Range 0–1, typically 0.7."""

    asked = """\
Satisfaction: from the user's words, tone and whether the matter was settled, how satisfied is this user likely to be
with the service? Judge as the user would, not as an expert."""


class Aspect(Answer):
    aspect: str
    reasoning: str
    covered: bool


class Aspects(Answer):
    aspects: list[Aspect]


class CompletenessOptions(JudgedOptions):
    aspects: tuple[str, ...] = ()
    """What a complete answer covers; left out, the judge extracts the aspects from the user's requests."""


class Completeness(Voted[CompletenessOptions]):
    """Share of the requested aspects that the answers cover: covered / aspects. Range 0–1, typically 0.8.

    Aspects are listed in the options of the criterion or the case, or extracted from the requests by the judge.
    """

    options_type = CompletenessOptions
    answer = Aspects
    pass_threshold = 0.8
    nothing = "the user asked for nothing that an answer could cover"

    def instructions(self, case: Case) -> str:
        if not self.options.aspects:
            source = "List every aspect that the user asked for over the conversation, each once"
        else:
            listed = "\n".join(f"- {aspect}" for aspect in self.options.aspects)
            source = f"These aspects are to be covered; list exactly these:\n{listed}\n"
        return f"{source}, and say of each whether the agent's answers cover it. Named but not answered is not covered."

    def mark(self, answer: Any) -> VoteMark:
        total = max(len(answer.aspects), len(self.options.aspects))
        if not total:
            return VoteMark(None)
        covered = sum(one.covered for one in answer.aspects)
        missing = ", ".join(one.aspect for one in answer.aspects if not one.covered)
        told = f"{covered} of {total} aspects covered"
        return VoteMark(covered / total, f"{told}; missing: {rationale(missing)}" if missing else told)


class ResponseQuality(JudgedMetric[CompletenessOptions]):
    """Mean of relevance, completeness, clarity and accuracy, each by its own question. Range 0–1, typically 0.75.

    If these are criteria of the same run, the answers are shared and paid for once. Details: ``dimensions``, the four.
    """

    options_type = CompletenessOptions
    pass_threshold = 0.6

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge | None) -> Score:
        plain = JudgedOptions(judge_model_options=self.options.judge_model_options)
        parts: dict[str, JudgedMetric[Any]] = {
            "relevance": Relevance(plain),
            "completeness": Completeness(self.options),
            "clarity": Clarity(plain),
            "accuracy": Accuracy(plain),
        }
        scores = await asyncio.gather(*(part.judge_score(case, performance, judge) for part in parts.values()))
        found = dict(zip(parts, scores, strict=True))
        failed = [f"{name}: {score.error}" for name, score in found.items() if score.error is not None]
        if failed:
            return Score(None, error="; ".join(failed))
        values = {name: score.value for name, score in found.items() if score.value is not None}
        worst = min(values, key=lambda name: values[name])
        told = ", ".join(f"{name} {value:.2f}" for name, value in values.items())
        details = {"dimensions": values}
        return Score(mean(list(values.values())), f"{told}; {worst}: {found[worst].reason}", details=details)


MOST_POINTS = 25
"""For each of the four counts of `OutputQuality`."""


class Quarters(Answer):
    reasoning: str
    answers_the_question: int = Field(ge=0, le=MOST_POINTS)
    accurate: int = Field(ge=0, le=MOST_POINTS)
    structured: int = Field(ge=0, le=MOST_POINTS)
    follows_instructions: int = Field(ge=0, le=MOST_POINTS)


class OutputQuality(Voted[JudgedOptions]):
    """Points from 0 to 100: answers the question, accurate, structured, follows instructions, 25 each; typically 70.

    Details: ``dimensions``, for each of the four its mean share of the 25 points, 0 to 1.
    """

    options_type = JudgedOptions
    answer = Quarters
    scale = Scale.PERCENT
    pass_threshold = 70.0
    question = """\
Give the agent's answers points from 0 to 25 on each of four counts: they answer the question; they are accurate by the
expected responses, the tools' results and general knowledge; they are well structured; they follow the instructions
that the user gave on form and content."""

    def mark(self, answer: Any) -> VoteMark:
        counts = answer.model_dump(exclude={"reasoning"})
        told = ", ".join(f"{name.replace('_', ' ')} {points}" for name, points in counts.items())
        shares = {name: points / MOST_POINTS for name, points in counts.items()}
        return VoteMark(float(sum(counts.values())), f"{told}: {rationale(answer.reasoning)}", shares)
