"""Metrics of particular fields: customer support, information retrieval, task automation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from gate.judges.prompt import Answer
from gate.metrics.base import NO_CONTENT, Metric, Options, TrialOutput, result_value
from gate.metrics.efficiency import plausible
from gate.metrics.judged import JudgedOptions, Voted, rationale
from gate.model import RESULTS, Case, Direction, Scale, Score

if TYPE_CHECKING:
    from gate.judges.client import Judge


class SupportOptions(JudgedOptions):
    escalation_tools: tuple[str, ...] = ()
    """Tools that hand the conversation to a person; calling one is an escalation, regardless of the judge's vote."""


class Outcome(Answer):
    reasoning: str
    outcome: Literal["resolved", "escalated", "unresolved"]
    follow_up_needed: bool


class SupportOutcome(Voted[SupportOptions]):
    """1 if the support conversation ended as it should. All outcomes share one question; the majority decides."""

    options_type = SupportOptions
    answer = Outcome
    scale = Scale.BINARY
    pass_threshold = 1.0

    question = """\
Say how this support conversation ended. resolved: the customer's matter was settled, or rightly declined, by the agent
itself. escalated: it was handed to a person or another team, or the customer was told to contact one. unresolved:
neither. Say also whether the customer will have to come back for the same matter."""

    @property
    def needs_calls(self) -> bool:
        return bool(self.options.escalation_tools)

    async def judge_score(self, case: Case, performance: TrialOutput, judge: Judge) -> Score:
        for invocation in performance.invocations:
            for call in invocation.tool_calls:
                if call.name in self.options.escalation_tools:
                    return Score(0.0, f"escalated by a call of {call.name}")
        return await super().judge_score(case, performance, judge)

    @staticmethod
    def counts(answer: Outcome) -> bool:
        """True if the conversation ended as it should."""
        raise NotImplementedError

    def mark(self, answer: Any) -> Score:
        told = answer.outcome
        if answer.follow_up_needed:
            told += ", to come back"
        return Score(float(self.counts(answer)), f"{told}: {rationale(answer.reasoning)}")


class Automation(Answer):
    reasoning: str
    completed: bool
    interventions: int = Field(ge=0)


class TaskCompletion(Voted[JudgedOptions]):
    """1 if the agent completed the task without human intervention, else 0; majority of votes. Typically 0.9."""

    answer = Automation
    scale = Scale.BINARY
    pass_threshold = 1.0
    question = """\
Say whether the agent completed the task that it was given, by the results of its tools and not by its own word alone,
and how many times a person had to step in: to correct it, to supply what it should have found, or to do a part by hand.
Information or consent that only the user can give is no intervention."""

    def mark(self, answer: Any) -> Score:
        told = f"completed, {answer.interventions} interventions"
        if not answer.completed:
            told = f"not {told}"
        return Score(float(answer.completed and not answer.interventions), f"{told}: {rationale(answer.reasoning)}")


class BaselineOptions(Options):
    baseline_seconds: float | None = Field(default=None, gt=0)
    """The time that the task took before, by hand or with the last version; for all cases, or in a case's options."""


class TimeAgainstBaseline(Metric[BaselineOptions]):
    """Seconds of the trial divided by the stated baseline: below 1 is faster. Range 0 and up, typically at most 1."""

    options_type = BaselineOptions
    scale = Scale.COUNT
    direction = Direction.LOWER
    needed_option = "baseline_seconds"
    reads = NO_CONTENT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        baseline = self.options.baseline_seconds
        if baseline is None:
            return Score(None, reason="no baseline_seconds is given for this case")
        duration = plausible(performance.duration)
        if duration is None:
            return Score(None, error="the duration of this trial is not known")
        return Score(duration / baseline, f"{duration:.2f} s against {baseline:g} s")


class RetrievalOptions(Options):
    relevant_ids: tuple[str | int, ...] = ()
    """The documents to find; set in each case's options."""
    tools: tuple[str, ...] = ()
    """The tools that retrieve. Default: every tool."""
    id_fields: tuple[str, ...] = ("id", "doc_id", "document_id", "source_id", "chunk_id")
    """The keys of a result that hold an id."""
    top: int | None = Field(default=None, ge=1)
    """Use at most this many ids from each call."""


class _Retrieval(Metric[RetrievalOptions]):
    """Base: compares the ids in tool results with the relevant ids, each counted once."""

    reads_tools = True
    options_type = RetrievalOptions
    pass_threshold = 0.5
    reads = frozenset({RESULTS})
    needed_option = "relevant_ids"

    def score(self, case: Case, performance: TrialOutput) -> Score:
        relevant = {str(one) for one in self.options.relevant_ids}
        if not relevant:
            return Score(None, reason="no relevant_ids are given for this case")
        found = self._found(performance)
        hits = len(found & relevant)
        told = f"{hits} of {len(relevant)} relevant ids among {len(found)} retrieved"
        calls = performance.tool_calls
        if calls and all(call.result is None and call.error is None for call in calls):
            told += "; no call has a result"
        return Score(self.value(hits, len(found), len(relevant)), told)

    def value(self, hits: int, found: int, relevant: int) -> float:
        raise NotImplementedError

    def _found(self, performance: TrialOutput) -> set[str]:
        found: set[str] = set()
        for invocation in performance.invocations:
            for call in invocation.tool_calls:
                if not self.options.tools or call.name in self.options.tools:
                    ids = dict.fromkeys(_ids(result_value(call.result), self.options.id_fields))
                    found.update(list(ids)[: self.options.top])
        return found


def _ids(result: Any, fields: tuple[str, ...], depth: int = 0) -> Iterator[str]:
    """Return the ids in a tool's result, in order."""
    if depth > 50:
        return
    if isinstance(result, list | tuple):
        for item in result:
            yield from _ids(item, fields, depth + 1)
    elif isinstance(result, dict):
        for key, value in result.items():
            if key in fields and isinstance(value, str | int):
                yield str(value)
            else:
                yield from _ids(value, fields, depth + 1)


class RetrievalPrecision(_Retrieval):
    """Share of the retrieved ids that are relevant: hits / retrieved; 0 if nothing was retrieved. Typically 0.7."""

    def value(self, hits: int, found: int, relevant: int) -> float:
        if not found:
            return 0.0
        return hits / found


class RetrievalRecall(_Retrieval):
    """Share of the relevant ids that were retrieved: hits / relevant. Range 0–1, typically 0.8."""

    def value(self, hits: int, found: int, relevant: int) -> float:
        return hits / relevant


class RetrievalF1(_Retrieval):
    """Harmonic mean of retrieval precision and recall: 2·hits / (retrieved + relevant). Range 0–1, typically 0.75."""

    def value(self, hits: int, found: int, relevant: int) -> float:
        return 2 * hits / (found + relevant)
