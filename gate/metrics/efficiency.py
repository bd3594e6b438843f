"""The costs of a trial: money, time, tokens, calls. Lower is better; an amount that the agent did not report never
counts as 0."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from msgspec.structs import asdict

from gate.metrics.base import NO_CONTENT, Metric, NoOptions, TrialOutput, mean
from gate.model import Case, Direction, Invocation, Scale, Score, Usage, tool_times
from gate.security.limits import shorten
from gate.system.prices import turn_cost

MAX_FIGURE = 1e15
"""More than any trial can use of anything, and small enough to add up."""

MAX_TOOLS = 50
"""The most tools in the details of a score."""

NO_TOKENS = "the agent reports 0 tokens, as if its usage was lost"

Measure = Callable[[Invocation], float | None]


def _tokens(invocation: Invocation) -> float | None:
    return (invocation.usage or Usage()).tokens


def _is_lost(performance: TrialOutput) -> bool:
    """True if all turns report 0 tokens, and not each says that it called no model: their usage was lost."""
    usages = [invocation.usage or Usage() for invocation in performance.invocations]
    return all(usage.tokens == 0 for usage in usages) and any(usage.model_calls != 0 for usage in usages)


def _reported_tokens(invocation: Invocation) -> float | None:
    usage = invocation.usage or Usage()
    known = [count for count in (usage.input_tokens, usage.output_tokens) if count is not None]
    return sum(known) if known else None


def _model_calls(invocation: Invocation) -> float | None:
    return (invocation.usage or Usage()).model_calls


def _duration(invocation: Invocation) -> float | None:
    return invocation.duration


def _tool_calls(invocation: Invocation) -> float:
    return float(len(invocation.tool_calls))


def _measured(performance: TrialOutput, measure: Measure) -> tuple[float | None, ...]:
    """Return the reported figure of each turn."""
    return tuple(plausible(measure(invocation)) for invocation in performance.invocations)


def plausible(value: float | None) -> float | None:
    """Return the figure; None if it is implausible: negative, NaN, or too large."""
    if value is None or not 0 <= value <= MAX_FIGURE:
        return None
    return value


def _sum_or_error(values: Sequence[float | None], what: str) -> Score:
    """Return the total over the turns; an unreported turn makes the total unknown."""
    if not values:
        return Score(None, error="the trial has no turns")
    missing = [str(turn) for turn, value in enumerate(values, 1) if value is None]
    if missing:
        if len(missing) < len(values):
            what += f" for turn {', '.join(missing[:5])}"
        return Score(None, error=f"the agent reports no {what}", per_turn=tuple(values))
    return Score(float(sum(value for value in values if value is not None)), per_turn=tuple(values))


class _LowerIsBetter(Metric[NoOptions]):
    direction: ClassVar[Direction] = Direction.LOWER
    reads = NO_CONTENT


class Cost(_LowerIsBetter):
    """The trial's cost in US dollars: the sum over its turns, as the agent reports them. Range 0 and up.

    A turn that reports tokens and a model, but no cost or a cost of 0, is priced by genai-prices. If a turn has no
    known cost, the trial's cost is unknown.
    """

    version = 2  # 2: prices tokens
    scale = Scale.USD

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values: list[float | None] = []
        problems: list[str] = []
        for turn, invocation in enumerate(performance.invocations, 1):
            value, problem = _cost(invocation.usage or Usage())
            values.append(value)
            if value is None and len(performance.invocations) > 1:
                problem = f"turn {turn}: {problem}"
            if value is None:
                problems.append(problem)
        if problems:
            return Score(None, error=shorten("; ".join(dict.fromkeys(problems[:3])), 500), per_turn=tuple(values))
        score = _with_reason(_sum_or_error(values, "cost"), _dollars)
        if score.value == 0 and _is_lost(performance):
            return Score(None, error=NO_TOKENS, per_turn=score.per_turn)
        usages = [invocation.usage or Usage() for invocation in performance.invocations]
        if score.value is None or [usage.cost_usd for usage in usages] == values:
            return score
        models = sorted({usage.model for usage in usages if usage.model})
        if not models:
            return score
        reason = shorten(f"{score.reason}, by the list price of {', '.join(models)}", 300)
        return Score(score.value, reason, per_turn=score.per_turn)


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

    scale = Scale.COUNT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        score = _sum_or_error(_measured(performance, _tokens), "input_tokens or output_tokens")
        if score.value == 0 and _is_lost(performance):
            return Score(None, error=NO_TOKENS, per_turn=score.per_turn)
        return _with_reason(score, "{:,.0f} tokens".format)


class Latency(_LowerIsBetter):
    """Seconds spent inside requests to the agent: the sum over the turns of the trial. Range 0 and up.

    Details: ``tool_calls``; if the agent times its tools, ``tool_seconds``, ``seconds_per_tool_call`` (total time /
    timed calls) and ``tools``, the same for each tool: ``{calls, timed, seconds, seconds_per_call}``.
    Typical limits: the longest time that a user would wait, as ``max`` per trial or ``p95`` over the suite.
    """

    scale = Scale.SECONDS

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values = _measured(performance, _duration)
        whole = plausible(performance.duration)
        score = Score(whole, per_turn=values)
        if whole is None:
            score = _sum_or_error(values, "duration")
        score = _with_reason(score, _seconds)
        return Score(score.value, score.reason, score.error, score.per_turn, _tool_times(performance))


class ToolCalls(_LowerIsBetter):
    """Number of the trial's tool calls, over all turns. Range 0 and up. Details: the count of each tool."""

    reads_tools = True
    scale = Scale.COUNT
    refuses_other_calls = True  # with a limit

    def score(self, case: Case, performance: TrialOutput) -> Score:
        score = _with_reason(
            _sum_or_error(_measured(performance, _tool_calls), "tool calls"), "{:.0f} tool calls".format
        )
        names = Counter(call.name for call in performance.tool_calls)
        return Score(score.value, score.reason, score.error, score.per_turn, dict(names.most_common(50)))


def _with_reason(score: Score, form: Callable[[float], str]) -> Score:
    if score.value is None:
        return score
    return Score(score.value, reason=form(score.value), per_turn=score.per_turn)


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
    timed = [seconds for call in calls if (seconds := plausible(call.duration)) is not None]
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
    scale = Scale.COUNT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return _mean_of_known(_measured(performance, _tool_calls), "tool calls")


class InferenceCallCountV1(_LowerIsBetter):
    """Model calls per turn: the mean over the turns that report them, as in google-adk 2.13."""

    scale = Scale.COUNT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return _mean_of_known(_measured(performance, _model_calls), "model calls")


class TokenUsageV1(_LowerIsBetter):
    """Tokens per turn: all reported tokens / all turns, as in google-adk 2.13, where a turn that reports none counts
    as 0 if others report some."""

    scale = Scale.COUNT

    def score(self, case: Case, performance: TrialOutput) -> Score:
        values = _measured(performance, _reported_tokens)
        if all(value is None for value in values):
            return Score(None, error="the agent reports no input_tokens or output_tokens", per_turn=values)
        value = sum(value for value in values if value is not None) / len(values)
        return Score(value, reason=f"{value:,.1f} tokens per turn", per_turn=values)


class InvocationDurationV1(_LowerIsBetter):
    """Seconds per turn: the mean over timed turns, rounded to milliseconds, as in google-adk 2.13."""

    scale = Scale.SECONDS

    def score(self, case: Case, performance: TrialOutput) -> Score:
        score = _mean_of_known(_measured(performance, _duration), "seconds")
        if score.value is None:
            return score
        return Score(round(score.value, 3), reason=f"{score.value:.3f} seconds per turn", per_turn=score.per_turn)


def _mean_of_known(values: Sequence[float | None], what: str) -> Score:
    known = [value for value in values if value is not None]
    if not known:
        return Score(None, error=f"the agent reports no {what}", per_turn=tuple(values))
    value = mean(known)
    return Score(value, reason=f"{value:.2f} {what} per turn", per_turn=tuple(values))
