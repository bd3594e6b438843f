"""Metrics of the single claims in answers, checked against references, tool results and citations."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedOptions, JudgedT, Material, Voted, rationale, reference
from gate.model import Case, Score


class ClaimShare(Voted[JudgedT]):
    """Weighted share of the listed claims without a fault: Σ w·[sound] / Σ w. Range 0–1."""

    sound: ClassVar[str]
    """Words for claims without a fault."""
    after_calls: ClassVar[bool] = False
    """True if the metric applies only to conversations with tool calls."""

    @staticmethod
    def fault(claim: Any) -> str | None:
        """Return the claim's fault in words, empty if there is none; None if the claim does not count."""
        raise NotImplementedError

    def weight(self, claim: Any) -> float:
        return 1.0

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        if self.after_calls and not any(invocation.tool_calls for invocation in performance.invocations):
            return None
        return super().material(case, performance)

    def mark(self, answer: Any) -> Score:
        weights, sound, faults = [], [], []
        for claim in answer.claims:
            fault = self.fault(claim)
            if fault is None:
                continue
            weights.append(self.weight(claim))
            if fault:
                faults.append(fault)
            else:
                sound.append(weights[-1])
        if not sum(weights):
            return Score(None)
        told = f"{len(sound)} of {len(weights)} {self.sound}"
        if faults:
            told += f"; {rationale('; '.join(faults))}"
        return Score(sum(sound) / sum(weights), told)


class Claim(Answer):
    claim: str
    reasoning: str
    importance: Literal["major", "minor"]
    verdict: Literal["right", "unverifiable", "wrong"]


class Claims(Answer):
    claims: list[Claim]


class FactualAccuracyOptions(JudgedOptions):
    facts: tuple[str, ...] = ()
    """Known facts, against which the judge verifies claims."""
    major_weight: float = 2.0
    """Weight of a major claim; a minor one has 1."""


class FactualAccuracy(ClaimShare[FactualAccuracyOptions]):
    """Weighted share of the answers' factual claims that are correct: Σ w·[right] / Σ w, major claims weighing 2.

    Range 0–1, typically 0.9. Claims are verified against given facts, expected responses, tool results, then
    general knowledge; an unverifiable claim counts as wrong.
    """

    options_type = FactualAccuracyOptions
    answer = Claims
    pass_threshold = 0.8
    sound = "claims right"
    nothing = "the answers claim nothing that could be checked"

    def instructions(self, case: Case) -> str:
        facts = "\n".join(f"- {fact}" for fact in self.options.facts)
        return f"""\
List every factual claim in the agent's answers, each once. Say of each whether it is major (the user would act on it,
or the answer rests on it) or minor, and verify it: right, wrong, or unverifiable. Verify against the known facts, then
expected responses and results of tools, then well-established general knowledge.
Known facts: {facts or "none given"}"""

    @staticmethod
    def fault(claim: Claim) -> str:
        if claim.verdict == "right":
            return ""
        return f"{claim.verdict} ({claim.importance}): {claim.claim}"

    def weight(self, claim: Claim) -> float:
        if claim.importance == "major":
            return self.options.major_weight
        return 1.0


class Borne(Answer):
    claim: str
    reasoning: str
    verdict: Literal["borne_out", "not_mentioned", "contradicted"]


class BorneClaims(Answer):
    claims: list[Borne]


class Cited(Answer):
    claim: str
    cited: bool
    reasoning: str
    citation_is_right: bool | None


class CitedClaims(Answer):
    claims: list[Cited]


class Compared(Answer):
    claim: str
    stated_by: Literal["both", "answer", "reference"]


class Comparison(Answer):
    claims: list[Compared]


class FactualCorrectness(Voted[JudgedOptions]):
    """F1 of the answers' facts against the expected responses': 2·TP / (2·TP + FP + FN). Range 0–1, typically 0.7.

    TP: stated by both; FP: only by the answers; FN: only by the reference. Source: Ragas, factual correctness.
    """

    answer = Comparison
    pass_threshold = 0.6
    nothing = "no expected response states facts to compare with"
    question = """\
Break the agent's answers and the expected responses into single facts. List each fact once and say who states it: both
(with the same meaning), the answer alone, or the reference alone. A fact that the answer states differently counts as
two: one stated by the answer alone, one by the reference alone."""

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        if not reference(case):
            return None
        return super().material(case, performance)

    def mark(self, answer: Any) -> Score:
        by = [one.stated_by for one in answer.claims]
        if not by:
            return Score(None)
        both, extra, missing = by.count("both"), by.count("answer"), by.count("reference")
        return Score(2 * both / (2 * both + extra + missing), f"{both} facts agree, {extra} added, {missing} missing")
