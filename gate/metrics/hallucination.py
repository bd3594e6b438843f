"""Checks the agent's statements against its sources, sentence by sentence or claim by claim."""

from __future__ import annotations

import asyncio
import statistics
from typing import TYPE_CHECKING

from pydantic import Field

from gate.judges.prompt import Answer, Question
from gate.metrics.base import TrialOutput, answer_text
from gate.metrics.judged import AdkJudgeOptions, JudgedMetric, of_turns, rationale, steps
from gate.model import Case, Invocation, Score
from gate.security.limits import shorten

if TYPE_CHECKING:
    from gate.judges.client import Judge

SUPPORTED = ("supported", "not_applicable")
NOT_SUPPORTED = ("unsupported", "contradictory", "disputed")


class HallucinationOptions(AdkJudgeOptions):
    evaluate_intermediate_nl_responses: bool = False
    """True to judge every intermediate text of the agent as a separate step."""


class Sentences(Answer):
    sentences: list[str] = Field(description="every sentence of the response, copied word by word, in order")


class LabelledSentence(Answer):
    sentence: str
    rationale: str
    label: str = Field(description="supported, unsupported, contradictory, disputed or not_applicable")


class Labels(Answer):
    sentences: list[LabelledSentence]


class HallucinationsV1(JudgedMetric[HallucinationOptions]):
    """Share of sentences that the context supports or that need no support. Range 0–1, typical threshold 0.8.

    (supported + not_applicable) / labelled per response, then the mean over responses and turns. Two calls per
    response, one vote each. Source: google-adk 2.13, ``hallucinations_v1``; the wording of the questions is ours.
    """

    options_type = HallucinationOptions
    samples = 1
    pass_threshold = 0.8

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        turns = await asyncio.gather(*(self._turn(one, judge) for one in performance.invocations))
        return of_turns(turns, average=statistics.mean)

    async def _turn(self, invocation: Invocation, judge: Judge) -> Score:
        texts = []
        if self.options.evaluate_intermediate_nl_responses:
            texts += [part.text for part in invocation.intermediate if not part.thought]
        texts.append(answer_text(invocation))
        values, reasons = [], []
        for found in await asyncio.gather(*[self._response(one, invocation, judge) for one in texts if one.strip()]):
            if found.error is not None:
                return found
            if found.value is not None:
                values.append(found.value)
            if found.reason:
                reasons.append(found.reason)
        if not values:
            return Score(None, "; ".join(reasons) or "no text to judge")
        return Score(statistics.mean(values), "; ".join(reasons))

    async def _response(self, text: str, invocation: Invocation, judge: Judge) -> Score:
        question = Question("sentences", SEGMENT, (("response", text),), Sentences, decides=_has_sentences)
        first = await self.ask(judge, question, votes=1)
        if first.nothing is not None:
            return first.nothing
        sentences = first.readable[0].sentences
        if not sentences:
            return Score(None, "the judge found no sentences")
        listed = "\n".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))
        material = (("user's request", invocation.user), ("tool calls", steps(invocation)), ("sentences", listed))
        second = await self.ask(judge, Question("labels", LABEL, material, Labels, decides=_has_labels), votes=1)
        if second.nothing is not None:
            return second.nothing
        return _supported(second.readable[0])


def _has_sentences(answer: Sentences) -> bool:
    return bool(answer.sentences)


def _has_labels(answer: Labels) -> bool:
    return _supported(answer).value is not None


def _supported(answer: Labels) -> Score:
    """Return the share of the labelled sentences that are borne out; sentences with an unknown label do not count."""
    count, against = 0, []
    for one in answer.sentences:
        label = one.label.strip().lower()
        if label in NOT_SUPPORTED:
            against.append(f"{label}: “{shorten(one.sentence, 100)}” ({rationale(one.rationale)})")
        if label in (*SUPPORTED, *NOT_SUPPORTED):
            count += 1
    if not count:
        return Score(None, "the judge labelled no sentence")
    reason = f"{len(against)} of {count} sentences not borne out"
    if against:
        reason += f": {'; '.join(against[:3])}"
    return Score((count - len(against)) / count, reason)


SEGMENT = """\
Split the response into its sentences. Copy each one word by word and leave nothing out; add nothing. Every list
item is a sentence of its own, sub-items too; a table is one sentence. Symbols alone are no sentence."""

LABEL = """\
Label every numbered sentence by its relation to the context, which is the user's request and the tool calls
with their results:
supported: the context entails it entirely.
unsupported: the context does not entail it.
contradictory: the context says otherwise.
disputed: the context has both support for it and something against it.
not_applicable: it needs no support (greeting, question, opinion, plan, disclaimer, plain arithmetic).
Be strict: without plain evidence in the context a factual sentence is unsupported. Use no knowledge of your own
beyond the trivial. A call that failed supports nothing. Return every sentence with its label."""
