"""Metrics of the single claims in answers, checked against references, tool results and citations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from gate.judges.prompt import Answer
from gate.metrics.base import TrialOutput
from gate.metrics.judged import JudgedOptions, Material, Voted, rationale, reference
from gate.model import Case, Score


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


class FactualAccuracy(Voted[FactualAccuracyOptions]):
    """Weighted share of the answers' factual claims that are correct: Σ w·[right] / Σ w, major claims weighing 2.

    Range 0–1, typically 0.9. Claims are verified against given facts, expected responses, tool results, then
    general knowledge; an unverifiable claim counts as wrong.
    """

    options_type = FactualAccuracyOptions
    answer = Claims
    pass_threshold = 0.8
    nothing = "the answers claim nothing that could be checked"

    def instructions(self, case: Case) -> str:
        facts = "\n".join(f"- {fact}" for fact in self.options.facts)
        return f"""\
List every factual claim in the agent's answers, each once. Say of each whether it is major (the user would act on it,
or the answer rests on it) or minor, and verify it: right, wrong, or unverifiable. Verify against the known facts, then
expected responses and results of tools, then well-established general knowledge.
Known facts: {facts or "none given"}"""

    def mark(self, answer: Any) -> Score:
        claims: Sequence[Claim] = answer.claims
        weights, right, against = [], [], []
        for one in claims:
            weight = 1.0
            if one.importance == "major":
                weight = self.options.major_weight
            weights.append(weight)
            if one.verdict == "right":
                right.append(weight)
            else:
                against.append(f"{one.verdict} ({one.importance}): {one.claim}")
        if not sum(weights):
            return Score(None)
        told = f"{len(right)} of {len(claims)} claims right"
        if against:
            told += f"; {rationale('; '.join(against))}"
        return Score(sum(right) / sum(weights), told)


class Compared(Answer):
    claim: str
    stated_by: Literal["both", "answer", "reference"]


class Comparison(Answer):
    claims: list[Compared]


class FactualCorrectness(Voted[JudgedOptions]):
    """F1 of the answers' facts against the expected responses': 2·TP / (2·TP + FP + FN). Range 0–1, typically 0.7.

    TP: stated by both; FP: only by the answers; FN: only by the reference. Source: Ragas, factual correctness.
    """

    options_type = JudgedOptions
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


class ClaimShare(Voted[JudgedOptions]):
    """Share of the listed claims without a fault: sound / claims. Range 0–1."""

    options_type = JudgedOptions
    sound: ClassVar[str]
    """Words for claims without a fault."""
    after_calls: ClassVar[bool] = False
    """True if the metric applies only to conversations with tool calls."""

    @staticmethod
    def fault(claim: Any) -> str | None:
        """Return the claim's fault in words, empty if there is none; None if the claim does not count."""
        raise NotImplementedError

    def material(self, case: Case, performance: TrialOutput) -> Material | None:
        if self.after_calls and not any(invocation.tool_calls for invocation in performance.invocations):
            return None
        return super().material(case, performance)

    def mark(self, answer: Any) -> Score:
        found = [self.fault(claim) for claim in answer.claims]
        counted = [fault for fault in found if fault is not None]
        if not counted:
            return Score(None)
        faults = [fault for fault in counted if fault]
        sound = len(counted) - len(faults)
        told = f"{sound} of {len(counted)} {self.sound}"
        if faults:
            told += f"; {rationale('; '.join(faults))}"
        return Score(sound / len(counted), told)
