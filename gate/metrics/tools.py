"""The agent's choice and use of tools: recall, precision, steps, recovery. Arguments do not count here."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from gate.metrics.base import NO_CONTENT, Metric, NotMeasurableError, Options, TrialOutput, result_value, unpaired
from gate.metrics.matching import NAMES_ONLY, Matcher, assign, trajectory_words
from gate.model import Case, Scale, Score, ToolCall

Pairs = Sequence[tuple[Sequence[ToolCall], Sequence[ToolCall]]]
"""The expected and the actual calls of each turn that states expectations."""


def stated_turns(case: Case, performance: TrialOutput) -> Pairs:
    """Return the expected and the actual calls of the turns that state which tools they expect."""
    pairs = zip(case.turns, performance.invocations, strict=True)
    return [(turn.tools, invocation.tool_calls) for turn, invocation in pairs if turn.tools is not None]


def whole_conversation(case: Case, performance: TrialOutput) -> Pairs:
    """Return all calls that any turn expects, paired with all calls that were made."""
    expected = [call for turn in case.turns for call in turn.tools or ()]
    return [(expected, performance.tool_calls)]


class ToolOptions(Options):
    """The turns in which an expected tool may be called."""

    whole_conversation: bool = False
    """True if a tool expected in one turn may be called in another."""


class _ToolChoice(Metric[ToolOptions]):
    """Base of the shares of expected calls that were made, counted over the whole trial."""

    options_type = ToolOptions
    scale = Scale.SHARE
    reads_tools = True
    pass_threshold = 1.0
    compares_calls = True
    reads = NO_CONTENT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        pairs = stated_turns(case, performance)
        if not pairs:
            return Score(None, reason="the case does not say which tools it expects")
        if self.options.whole_conversation:
            pairs = whole_conversation(case, performance)
        same = Matcher(self.context, NAMES_ONLY)
        hits, missing, wrong = 0, list[ToolCall](), list[ToolCall]()
        try:
            for expected, actual in pairs:
                found = assign(expected, actual, same)
                hits += len(found)
                missing += [call for index, call in enumerate(expected) if index not in found]
                taken = set(found.values())
                wrong += [call for index, call in enumerate(actual) if index not in taken]
        except NotMeasurableError as error:
            return Score(None, error=str(error))
        return self.share(hits, missing, wrong)

    @abstractmethod
    def share(self, hits: int, missing: Sequence[ToolCall], wrong: Sequence[ToolCall]) -> Score:
        """Return the score, from the number of expected calls that were made, those that were not, and all other
        calls."""


class ToolAccuracy(_ToolChoice):
    """Recall over the expected tools: expected calls that were made / expected calls, over all turns of the trial.

    Range 0–1 (shown in percent). Names or categories only; a tool expected twice must be called twice. It does
    not apply to a case that expects no calls. Typical threshold 0.9. Source: recall.
    """

    def share(self, hits: int, missing: Sequence[ToolCall], wrong: Sequence[ToolCall]) -> Score:
        expected = hits + len(missing)
        if not expected:
            return Score(None, reason="the case expects no tool to be called")
        reason = f"{hits} of {expected} expected tools were called"
        if missing:
            reason += f"; missing: {trajectory_words(missing, args=False)}"
        return Score(hits / expected, reason=reason, details={"hits": hits, "expected": expected})


class ToolSelectionAccuracy(_ToolChoice):
    """Precision of the choice of tools: correct selections / total selections, over all turns of the trial.

    Range 0–1 (shown in percent). Names or categories only; a second call of a tool expected once is a wrong
    selection. No calls score 1 if none were expected, else 0. Typical threshold 0.9.
    Source: precision.
    """

    refuses_other_calls = True

    def share(self, hits: int, missing: Sequence[ToolCall], wrong: Sequence[ToolCall]) -> Score:
        made = hits + len(wrong)
        details = {"hits": hits, "selections": made}
        if not made and missing:
            return Score(0.0, reason="no tool was called, though some were expected", details=details)
        if not made:
            return Score(1.0, reason="no tool was expected or called", details=details)
        reason = f"{hits} of {made} calls were of expected tools"
        if wrong:
            reason += f"; not expected: {trajectory_words(wrong, args=False)}"
        return Score(hits / made, reason=reason, details=details)


class StepOptions(Options):
    """The length of the shortest way."""

    steps: int | None = Field(default=None, ge=0)
    """Calls that the task needs; by default as many as the case expects."""


class StepEfficiency(Metric[StepOptions]):
    """Necessary steps / actual steps, at most 1. A step is a tool call.

    Range 0–1. It does not check that the steps are right: combine it with ``tool_accuracy``. No calls score 0 if
    some are necessary. Typical threshold 0.7. Source: path efficiency of agent benchmarks.
    """

    reads_tools = True
    options_type = StepOptions
    reads = NO_CONTENT

    @property
    def compares_calls(self) -> bool:
        return self.options.steps is None

    @property
    def refuses_other_calls(self) -> bool:
        return self.compares_calls

    def score(self, case: Case, performance: TrialOutput) -> Score:
        necessary, taken = self.options.steps, performance.tool_calls
        if necessary is None:
            problem = unpaired(case, performance)
            if problem is not None:
                return problem
            pairs = stated_turns(case, performance)
            if not pairs:
                return Score(None, reason="the case does not say which tools it expects")
            necessary = sum(len(expected) for expected, _ in pairs)
            taken = [call for _, actual in pairs for call in actual]
        details = {"necessary": necessary, "taken": len(taken)}
        reason = f"steps: {necessary} necessary, {len(taken)} taken"
        if not taken:
            return Score(float(not necessary), reason=reason, details=details)
        return Score(min(1.0, necessary / len(taken)), reason=reason, details=details)


class RecoveryOptions(Options):
    """The signs of a failure besides errors."""

    empty_results: bool = False
    """True if an empty result (none, ``""``, ``[]``, ``{}``) is an incorrect response, provided the agent reports
    results."""
    incorrect: tuple[Annotated[str, StringConstraints(min_length=1)], ...] = ()
    """Texts that mark a response as incorrect, anywhere in the result, in upper or lower case: ``not found``."""


class ErrorRecoveryRate(Metric[RecoveryOptions]):
    """Recovered tool failures / tool failures: a failure is recovered if a later call for the same goal succeeds.

    The same goal means the same tool, or one of the same category. An error is one that the agent reports, or a
    result that states it, also as JSON text: ``{"error": …}``, ``{"isError": true}``, ``{"status": "error"}``, or text
    that starts with "Error". Options make incorrect responses failures, too: empty results, and results with certain
    texts. Range 0–1, typical threshold 0.8. It does not apply to a trial without failures. Source: recovery rate of
    agent benchmarks; ADK-TS, "tool failures and incorrect responses".
    """

    version = 2  # 2: reads results that are JSON text
    reads_tools = True
    options_type = RecoveryOptions
    reads = NO_CONTENT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        calls = performance.tool_calls
        if not calls:
            return Score(None, reason="no tool was called")
        if all(call.result is None and call.error is None for call in calls):
            return Score(None, error="the agent reports neither results nor errors of its tools")
        told = any(call.result is not None for call in calls)
        failed = [index for index, call in enumerate(calls) if self._failed(call, told)]
        if not failed:
            return Score(None, reason="no tool call failed")
        lost = [calls[index] for index in failed if not self._recovered(calls[index], calls[index + 1 :])]
        recovered = len(failed) - len(lost)
        wrong = sum(not is_tool_error(calls[index]) for index in failed)
        what = "tool errors"
        if wrong:
            what = f"tool errors and incorrect responses ({wrong})"
        reason = f"{recovered} of {len(failed)} {what} were recovered"
        if lost:
            reason += f"; not recovered: {trajectory_words(lost, args=False)}"
        details = {"errors": len(failed) - wrong, "incorrect": wrong, "recovered": recovered}
        return Score(recovered / len(failed), reason=reason, details=details)

    def _failed(self, call: ToolCall, told: bool) -> bool:
        """True if a call failed or got an incorrect response; ``told``: True if the agent reports results at all."""
        if is_tool_error(call):
            return True
        if self.options.empty_results and told and result_value(call.result) in (None, "", [], {}):
            return True
        if not self.options.incorrect or call.result is None:
            return False
        text = _text_of(call.result).casefold()
        return any(sign.casefold() in text for sign in self.options.incorrect)

    def _recovered(self, failed: ToolCall, later: Sequence[ToolCall]) -> bool:
        goal = {failed.name}
        for tools in self.context.tool_categories.values():
            if failed.name in tools:
                goal |= tools
        return any(call.name in goal and call.result is not None and not self._failed(call, True) for call in later)


def is_tool_error(call: ToolCall) -> bool:
    """True if a call failed, according to the agent's report or to its result."""
    return call.error is not None or _says_error(call.result)


def _text_of(result: Any) -> str:
    if isinstance(result, str):
        return result
    try:
        return json.dumps(result, ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return ""


def _says_error(result: Any) -> bool:
    result = result_value(result)
    if isinstance(result, str):
        return result.lstrip()[:5].lower() == "error"
    if not isinstance(result, Mapping):
        return False
    flagged = any(result.get(key) for key in ("error", "isError", "is_error"))
    return flagged or str(result.get("status", "")).lower() in ("error", "failed", "failure")
