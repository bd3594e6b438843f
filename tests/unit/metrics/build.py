"""Cases and trials in one line, for the tests of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.metrics import load_metric
from gate.metrics.base import Context, Metric, TrialOutput
from gate.model import Case, Invocation, Part, Score, ToolCall, Turn, Usage

Calls = Sequence[ToolCall | str] | None


def metric(name: str, context: Context | None = None, /, **options: Any) -> Metric[Any]:
    kind = load_metric(name)
    return kind(kind.options_type.model_validate(options), context)


def call(name: str, /, **args: Any) -> ToolCall:
    return ToolCall(name, args)


def calls(given: Calls) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(one, {}) if isinstance(one, str) else one for one in given or ())


def tool_score(
    name: str, expected: Sequence[Calls], actual: Sequence[Calls], context: Context | None = None, **options: Any
) -> Score:
    """The score of a trial whose turns expected and made these calls; expected None states nothing."""
    turns = tuple(Turn("q", None if one is None else calls(one)) for one in expected)
    invocations = tuple(Invocation("q", tool_calls=calls(one)) for one in actual)
    return metric(name, context, **options).score(Case("c", turns), TrialOutput(invocations))


def said_score(name: str, answers: Sequence[str], expected: Sequence[str | None] = (), **options: Any) -> Score:
    """The score of a trial that answered this, where that was expected."""
    wanted = list(expected) or [None] * len(answers)
    turns = tuple(Turn("q", response=None if one is None else (Part(one),)) for one in wanted)
    invocations = tuple(Invocation("q", (Part(one),)) for one in answers)
    return metric(name, **options).score(Case("c", turns), TrialOutput(invocations))


def used_score(
    name: str, usages: Sequence[Mapping[str, Any] | None], durations: Sequence[float | None] = (), **trial: Any
) -> Score:
    """The score of a trial whose turns reported this usage and took this long."""
    times = list(durations) or [None] * len(usages)
    invocations = tuple(
        Invocation("q", usage=None if usage is None else Usage(**usage), duration=time)
        for usage, time in zip(usages, times, strict=True)
    )
    return metric(name).score(Case("c", (Turn("q"),) * len(invocations)), TrialOutput(invocations, **trial))
