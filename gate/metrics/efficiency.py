"""The costs of a trial: money, time, tokens, calls. Lower is better; an amount that the agent did not report never
counts as 0."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from msgspec.structs import asdict, replace

from gate.metrics.base import NO_CONTENT, Metric, NoOptions, TrialOutput, mean
from gate.model import Case, Direction, Scale, Score, Usage, tool_times
from gate.security.limits import shorten
from gate.system.prices import turn_cost

MAX_FIGURE = 1e15
"""More than any trial can use of anything, and small enough to add up."""

MAX_TOOLS = 50
"""The most tools in the details of a score."""

NO_TOKENS = "the agent reports 0 tokens, as if its usage was lost"

Turns = tuple[float | None, ...]
"""A figure of each turn; None if the agent does not report it, or not plausibly."""


def plausible(value: float | None) -> float | None:
    """Return a reported figure, or None if it cannot be meant: negative, NaN, or too large."""
    if value is None or not 0 <= value <= MAX_FIGURE:
        return None
    return value


def _usages(performance: TrialOutput) -> list[Usage]:
    return [invocation.usage or Usage() for invocation in performance.invocations]


def _plausible(values: Iterable[float | None]) -> Turns:
    return tuple([plausible(value) for value in values])


def _durations(performance: TrialOutput) -> Turns:
    return _plausible(invocation.duration for invocation in performance.invocations)


def _calls(performance: TrialOutput) -> Turns:
    return tuple([float(len(invocation.tool_calls)) for invocation in performance.invocations])


def _usage_is_lost(performance: TrialOutput) -> bool:
    """True if all turns report 0 tokens, and not each says that it called no model: their usage was lost."""
    usages = _usages(performance)
    return all(usage.tokens == 0 for usage in usages) and any(usage.model_calls != 0 for usage in usages)


def _total(values: Turns, what: str, form: Callable[[float], str]) -> Score:
    """Return the total over the turns; an unreported turn makes the total unknown."""
    if not values:
        return Score(None, error="the trial has no turns")
    missing = [str(turn) for turn, value in enumerate(values, 1) if value is None]
    if missing:
        if len(missing) < len(values):
            what += f" for turn {', '.join(missing[:5])}"
        return Score(None, error=f"the agent reports no {what}", per_turn=values)
    total = float(sum(value for value in values if value is not None))
    return Score(total, form(total), per_turn=values)


def _mean_of_known(values: Turns, what: str) -> Score:
    known = [value for value in values if value is not None]
    if not known:
        return Score(None, error=f"the agent reports no {what}", per_turn=values)
    value = mean(known)
    return Score(value, reason=f"{value:.2f} {what} per turn", per_turn=values)


class _LowerIsBetter(Metric[NoOptions]):
    direction: ClassVar[Direction] = Direction.LOWER
    scale: ClassVar[Scale] = Scale.COUNT
    reads = NO_CONTENT


class Cost(_LowerIsBetter):
    """The trial's cost in US dollars: the sum over its turns, as the agent reports them. Range 0 and up.

    A turn that reports tokens and a model, but no cost or a cost of 0, is priced by genai-prices. If a turn has no
    known cost, the trial's cost is unknown.
    """

    version = 2  # 2: prices tokens
    scale = Scale.USD

    def score(self, case: Case, performance: TrialOutput) -> Score:
        usages = _usages(performance)
        costs = [_cost(usage) for usage in usages]
        values = tuple([value for value, _ in costs])
        problems = []
        for turn, (value, problem) in enumerate(costs, 1):
            if value is None and len(costs) > 1:
                problems.append(f"turn {turn}: {problem}")
            elif value is None:
                problems.append(problem)
        if problems:
            return Score(None, error=shorten("; ".join(dict.fromkeys(problems[:3])), 500), per_turn=values)
        score = _total(values, "cost", _dollars)
        if score.value == 0 and _usage_is_lost(performance):
            return Score(None, error=NO_TOKENS, per_turn=values)
        models = sorted({usage.model for usage in usages if usage.model})
        if score.value is None or not models or [usage.cost_usd for usage in usages] == list(values):
            return score
        reason = shorten(f"{score.reason}, by the list price of {', '.join(models)}", 300)
        return Score(score.value, reason, per_turn=values)


def _cost(usage: Usage) -> tuple[float | None, str]:
    """Return one turn's cost in US dollars, or the reason why it is unknown."""
    if usage.cost_usd is not None:
        return plausible(turn_cost(usage)), "the cost that the agent reports cannot be meant"
    if plausible(usage.input_tokens) is None or plausible(usage.output_tokens) is None:
        return None, "the agent reports no cost, nor input and output tokens to price"
    if usage.tokens == 0:
        return 0.0, ""
    if usage.model is None:
        return None, "the agent reports tokens but neither cost nor model, so they have no price"
    found = turn_cost(usage)
    if found is None:
        return None, f"no price is known for model {shorten(usage.model, 80)!r}: report cost_usd"
    return plausible(found), "the price is beyond anything that is counted here"


class Tokens(_LowerIsBetter):
    """Input plus output tokens of the trial: the sum over its turns, as the agent reports them. A trial of 0 tokens is
    not measured, because its usage was lost, unless the agent reports 0 model calls. Range 0 and up."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values = _plausible(usage.tokens for usage in _usages(performance))
        score = _total(values, "input_tokens or output_tokens", "{:,.0f} tokens".format)
        if score.value == 0 and _usage_is_lost(performance):
            return Score(None, error=NO_TOKENS, per_turn=values)
        return score


class Latency(_LowerIsBetter):
    """Seconds spent inside requests to the agent: the sum over the turns of the trial. Range 0 and up.

    Details: ``tool_calls``; if the agent times its tools, ``tool_seconds``, ``seconds_per_tool_call`` (total time /
    timed calls) and ``tools``, the same for each tool: ``{calls, timed, seconds, seconds_per_call}``.
    Typical limits: the longest time that a user would wait, as ``max`` per trial or ``p95`` over the suite.
    """

    scale = Scale.SECONDS

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values = _durations(performance)
        whole = plausible(performance.duration)
        if whole is None:
            score = _total(values, "duration", _seconds)
        else:
            score = Score(whole, _seconds(whole), per_turn=values)
        return replace(score, details=_tool_times(performance))


class ToolCalls(_LowerIsBetter):
    """Number of the trial's tool calls, over all turns. Range 0 and up. Details: the count of each tool."""

    reads_tools = True
    refuses_other_calls = True  # with a limit

    def score(self, case: Case, performance: TrialOutput) -> Score:
        names = Counter(call.name for call in performance.tool_calls)
        score = _total(_calls(performance), "tool calls", "{:.0f} tool calls".format)
        return replace(score, details=dict(names.most_common(50)))


def _dollars(value: float) -> str:
    return f"${value:.{_places(value, 4)}f}"


def _seconds(value: float) -> str:
    return f"{value:.{_places(value, 2)}f} s"


def _places(value: float, least: int) -> int:
    """Return the number of decimal places, enough that a small value is not shown as 0."""
    if value <= 0:
        return least
    return min(12, max(least, 1 - math.floor(math.log10(value))))


def _tool_times(performance: TrialOutput) -> dict[str, Any]:
    calls = performance.tool_calls
    durations = [plausible(call.duration) for call in calls]
    timed = [seconds for seconds in durations if seconds is not None]
    details: dict[str, Any] = {"tool_calls": len(calls)}
    if timed:
        details |= {"tool_seconds": sum(timed), "seconds_per_tool_call": sum(timed) / len(timed)}
        details["tools"] = {}
        for time in tool_times(performance.invocations)[:MAX_TOOLS]:
            told = asdict(time)
            details["tools"][told.pop("name")] = told
    return details


# --- google-adk's four: means per turn ------------------------------------------------------------


class ToolCallCountV1(_LowerIsBetter):
    """Tool calls per turn: the mean over the turns. google-adk 2.13 refuses thresholds on it."""

    reads_tools = True

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return _mean_of_known(_calls(performance), "tool calls")


class InferenceCallCountV1(_LowerIsBetter):
    """Model calls per turn: the mean over the turns that report them, as in google-adk 2.13."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return _mean_of_known(_plausible(usage.model_calls for usage in _usages(performance)), "model calls")


class TokenUsageV1(_LowerIsBetter):
    """Tokens per turn: all reported tokens / all turns, as in google-adk 2.13, where a turn that reports none counts
    as 0 if others report some."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values: list[float | None] = []
        for usage in _usages(performance):
            known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
            values.append(plausible(sum(known)) if known else None)
        found = [value for value in values if value is not None]
        if not found:
            error = "the agent reports no input_tokens or output_tokens"
            return Score(None, error=error, per_turn=tuple(values))
        value = sum(found) / len(values)
        return Score(value, reason=f"{value:,.1f} tokens per turn", per_turn=tuple(values))


class InvocationDurationV1(_LowerIsBetter):
    """Seconds per turn: the mean over timed turns, rounded to milliseconds, as in google-adk 2.13."""

    scale = Scale.SECONDS

    def score(self, case: Case, performance: TrialOutput) -> Score:
        score = _mean_of_known(_durations(performance), "seconds")
        if score.value is None:
            return score
        return Score(round(score.value, 3), reason=f"{score.value:.3f} seconds per turn", per_turn=score.per_turn)
