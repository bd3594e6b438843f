"""Compares the agent's answer with the expected one, word by word."""

from __future__ import annotations

from typing import Literal

from gate.metrics.base import Options, PerTurn
from gate.metrics.rouge import rouge_1, rouge_1_sets
from gate.model import Invocation, Score, Turn, text_of


class ResponseMatchOptions(Options):
    """Options for reading and comparing answers; the defaults are google-adk's."""

    thoughts: Literal["include", "exclude"] = "include"
    """Include or exclude parts of the answer that the model marked as thoughts. google-adk includes them."""
    flavor: Literal["adk", "adk-ts"] = "adk"
    """The comparison of words: as google-adk (counted, stemmed, any script) or as ADK-TS (a set, not stemmed, ASCII
    only)."""


class ResponseMatch(PerTurn[ResponseMatchOptions]):
    """ROUGE-1 F between answer and expected answer: 2·p·r / (p + r) over shared words; the mean over turns.

    Range 0–1; 1 means the same words, in any order. Typical threshold 0.3–0.8: google-adk's default is 0.8, its
    samples use 0.1–0.4. An empty expected answer scores 0, as in google-adk.
    Source: Lin 2004; google-adk 2.13 ``response_match_score``.
    """

    options_type = ResponseMatchOptions
    lexical = True
    reads_response = True
    satisfied = "every answer has the expected words"

    def judge_turn(self, turn: Turn, invocation: Invocation) -> Score:
        if turn.response is None:
            return Score(None)
        thoughts = self.options.thoughts == "include"
        answer, expected = text_of(invocation.response, thoughts=thoughts), text_of(turn.response, thoughts=thoughts)
        compare = rouge_1
        if self.options.flavor == "adk-ts":
            compare = rouge_1_sets
        precision, recall, f = compare(answer, expected)
        if not answer.strip():
            return Score(f, "the answer is empty")
        said, wanted = _percents(recall), _percents(precision)
        return Score(f, f"{said} of the expected words were said, {wanted} of the said words were expected")


def _percents(share: float) -> str:
    """Return a share in whole percent; 0% and 100% only if the share is exactly that."""
    whole = round(100 * share)
    if 0 < share < 1:
        whole = min(99, max(1, whole))
    return f"{whole}%"
