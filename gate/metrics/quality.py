"""Qualities of the whole conversation, which a judge grades by named levels; one question each."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import Field

from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput, mean
from gate.metrics.graded import LEVELS, SCALE, Level
from gate.metrics.judged import JudgedMetric, JudgedOptions, Voted, rationale
from gate.metrics.presets import PRESETS
from gate.model import Case, Scale, Score
from gate.security.limits import shorten

if TYPE_CHECKING:
    from gate.judges.client import Judge


class CitedSource(Answer):
    source: str
    reasoning: str
    level: Level


class CitedSources(Answer):
    sources: list[CitedSource]


class SourceQuality(Voted[JudgedOptions]):
    """Mean level of the cited sources: how reliable and suitable they are. Range 0–1, typically 0.7.

    Each source gets one of the ``LEVELS``: primary if available, reputable, current, and supporting the citation. The
    metric does not apply to answers that cite nothing; ``citation_coverage`` checks whether answers cite sources.
    Source: ADK-TS, "Accuracy and reliability of cited sources"; "appropriate primary sources were used" of the
    evaluation of research agents.
    """

    answer = CitedSources
    pass_threshold = 0.6
    nothing = "the answers cite no source"
    question = f"""\
List every source that the agent's answers cite or name as their ground (documents, policies, pages, data, results of
tools), each once, and grade each: is it a primary source where one is to be had, reputable and reliable for this
question, current, and does it say what it is cited for? A source that appears to be made up is failed. Where the
answers rest on no source, list none.
{SCALE}"""

    def mark(self, answer: Any) -> Score:
        if not answer.sources:
            return Score(None)
        worst = min(answer.sources, key=lambda one: LEVELS[one.level])
        told = f"{len(answer.sources)} cited; {shorten(worst.source, 80)} {worst.level}: {rationale(worst.reasoning)}"
        return Score(mean([LEVELS[one.level] for one in answer.sources]), told)


class Aspect(Answer):
    aspect: str
    reasoning: str
    covered: bool


class Aspects(Answer):
    aspects: list[Aspect]


class CompletenessOptions(JudgedOptions):
    aspects: tuple[str, ...] = ()
    """The aspects of a complete answer. Default: the judge extracts them from the user's requests."""


class Completeness(Voted[CompletenessOptions]):
    """Share of the requested aspects that the answers cover: covered / aspects. Range 0–1, typically 0.8.

    List aspects in the options of the criterion or the case, or let the judge extract them from the requests.
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

    def mark(self, answer: Any) -> Score:
        total = max(len(answer.aspects), len(self.options.aspects))
        if not total:
            return Score(None)
        covered = sum(one.covered for one in answer.aspects)
        missing = ", ".join(one.aspect for one in answer.aspects if not one.covered)
        told = f"{covered} of {total} aspects covered"
        if missing:
            told += f"; missing: {rationale(missing)}"
        return Score(covered / total, told)


class ResponseQuality(JudgedMetric[CompletenessOptions]):
    """Mean of relevance, completeness, clarity and accuracy, each with its own question. Range 0–1, typically 0.75.

    If these are criteria of the same run, they share the judge's answers, which are paid for once. Details:
    ``dimensions``, the four.
    """

    options_type = CompletenessOptions
    pass_threshold = 0.6

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        plain = JudgedOptions(judge_model_options=self.options.judge_model_options)
        parts: dict[str, JudgedMetric[Any]] = {"relevance": PRESETS["relevance"](plain)}
        parts["completeness"] = Completeness(self.options)
        parts |= {name: PRESETS[name](plain) for name in ("clarity", "accuracy")}
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
"""The most points for each of the four parts of `OutputQuality`."""


class Quarters(Answer):
    reasoning: str
    answers_the_question: int = Field(ge=0, le=MOST_POINTS)
    accurate: int = Field(ge=0, le=MOST_POINTS)
    structured: int = Field(ge=0, le=MOST_POINTS)
    follows_instructions: int = Field(ge=0, le=MOST_POINTS)


class OutputQuality(Voted[JudgedOptions]):
    """Points from 0 to 100: answers the question, accurate, structured, follows instructions, 25 each; typically 70.

    Details: ``dimensions``, the mean share of the 25 points for each of the four, 0 to 1.
    """

    answer = Quarters
    scale = Scale.PERCENT
    pass_threshold = 70.0
    question = """\
Give the agent's answers points from 0 to 25 on each of four counts: they answer the question; they are accurate by the
expected responses, the tools' results and general knowledge; they are well structured; they follow the instructions
that the user gave on form and content."""

    def mark(self, answer: Any) -> Score:
        counts = answer.model_dump(exclude={"reasoning"})
        told = ", ".join(f"{name.replace('_', ' ')} {points}" for name, points in counts.items())
        shares = {name: points / MOST_POINTS for name, points in counts.items()}
        details = {"dimensions": shares}
        return Score(float(sum(counts.values())), f"{told}: {rationale(answer.reasoning)}", details=details)
