"""The tone of answers (friendly, professional or neutral), judged by a model or counted offline by keywords."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput, answer_text
from gate.metrics.judged import JudgedOptions, Voted, rationale
from gate.model import Case, Score
from gate.model.strict import NonBlank

if TYPE_CHECKING:
    from gate.judges.client import Judge

Tone = Literal["friendly", "professional", "neutral"]
HeardByWords = Literal["friendly", "professional"]
_FRIENDLY = """
please, thank you, thanks, happy to, glad, great, awesome, welcome, hope, wonderful, enjoy, no problem, no worries, hi,
hey, hello, cheers, sure thing, of course, lovely, sorry to hear
"""
_PROFESSIONAL = """
regarding, furthermore, consequently, we would, kindly, assist, assistance, accordingly, in accordance, we apologize,
we regret, sincerely, dear, inquiry, request, confirm, provide, ensure, per your
"""
KEYWORDS: Mapping[HeardByWords, tuple[str, ...]] = {
    "friendly": tuple(" ".join(_FRIENDLY.split()).split(", ")),
    "professional": tuple(" ".join(_PROFESSIONAL.split()).split(", ")),
}
"""The documented lists; whole words, regardless of case. Exclamation marks and smileys count as friendly.

Both begin with ADK-TS's words: please, thank you, happy to help; regarding, furthermore, consequently.
"""
HEARD = "keywords hear no irony, and English only"
_MARKS = re.compile(r"!|[\U0001F600-\U0001F64F\u263A]|[:;]-?\)")


class ToneOptions(JudgedOptions):
    expected: Tone | None = None
    """The expected tone; for all cases, or in a case's options."""
    backend: Literal["keywords", "judge"] = "judge"
    """``judge`` asks the model; ``keywords`` counts words, offline."""
    words: Mapping[HeardByWords, tuple[NonBlank, ...]] = Field(default_factory=dict)
    """Tone → its keywords, replacing the shipped list; for the backend ``keywords``."""

    @model_validator(mode="after")
    def _heard(self) -> ToneOptions:
        if self.words and self.backend != "keywords":
            raise ValueError("words needs `backend: keywords`; the judge uses none")
        return self


class HeardTone(Answer):
    reasoning: str
    tone: Tone


def detect_tone(text: str, words: Mapping[HeardByWords, Sequence[str]] = KEYWORDS) -> Tone:
    """Return the tone with the most keywords; neutral if there is a tie or there are none.

    ``words`` replace the shipped ones, tone by tone.
    """
    heard = {**KEYWORDS, **words}
    friendly = len(_MARKS.findall(text)) + sum(_count(text, word) for word in heard["friendly"])
    professional = sum(_count(text, word) for word in heard["professional"])
    if friendly == professional:
        return "neutral"
    if friendly > professional:
        return "friendly"
    return "professional"


def _count(text: str, word: str) -> int:
    return len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE))


class ToneMatch(Voted[ToneOptions]):
    """Share of votes (judge) or turns (keywords) with the expected tone. Range 0–1, typically 0.8.

    With keywords, a turn has the tone with the most words; it is neutral if there is a tie or none.
    """

    version = 2  # 2: "please" and "thank you" count as friendly, "consequently" as professional

    options_type = ToneOptions
    answer = HeardTone
    pass_threshold = 0.5
    nothing = "no tone is expected of this case"
    question = """\
Say which tone the agent's answers have over the conversation. friendly: warm, personal, encouraging. professional:
courteous, formal, businesslike. neutral: matter-of-fact, neither warm nor formal."""

    @property
    def needs_judge(self) -> bool:
        return self.options.backend == "judge"

    @property
    def caveat(self) -> str:
        if self.needs_judge:
            return ""
        return HEARD

    def score(self, case: Case, performance: TrialOutput) -> Score:
        if self.needs_judge:
            return super().score(case, performance)
        if self.options.expected is None or not performance.invocations:
            return Score(None, reason=self.nothing)
        heard = [detect_tone(answer_text(invocation), self.options.words) for invocation in performance.invocations]
        per_turn = tuple(float(tone == self.options.expected) for tone in heard)
        told = f"{', '.join(heard)}, expected {self.options.expected} ({HEARD})"
        return Score(sum(per_turn) / len(per_turn), told, per_turn=per_turn)

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        if self.options.expected is None:
            return Score(None, reason=self.nothing)
        return await super().judge_score(case, performance, judge)

    def mark(self, answer: Any) -> Score:
        expected = self.options.expected
        return Score(
            float(answer.tone == expected), f"{answer.tone}, expected {expected}: {rationale(answer.reasoning)}"
        )
