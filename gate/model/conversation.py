"""The parts, tool calls, token usage and invocations of a conversation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

MAX_SECONDS = 1e15
"""The longest duration that can be meant, in seconds."""


class ToolCall(Struct, frozen=True, gc=False):
    """One tool that the agent called, or that the author of a case expects it to call."""

    name: str
    args: Any = None
    """The arguments as the agent gave them: normally a mapping; None means absent, which differs from ``{}``."""
    id: str | None = None
    result: Any = None
    error: str | None = None
    """The error inside the tool, if the agent reports it."""
    duration: float | None = None
    category: str | None = None
    """Expected calls only: any tool of this category will do, and ``name`` is then empty."""
    any_args: bool = False
    """Expected calls only: the author named the tool and said nothing of its arguments."""


class Part(Struct, frozen=True, gc=False):
    """One text part of a response."""

    text: str
    thought: bool = False
    """True if the model marked it as a thought rather than an answer."""


def text_of(parts: tuple[Part, ...], *, thoughts: bool = True) -> str:
    """The text of the parts, joined by newlines; empty if there are none."""
    if len(parts) == 1 and (thoughts or not parts[0].thought):
        return parts[0].text  # as nearly all are
    return "\n".join(part.text for part in parts if thoughts or not part.thought)


class Usage(Struct, frozen=True, gc=False):
    """Tokens, cost and calls of a turn or a trial. None means that the agent did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    model: str | None = None
    """The model as the answer names it, where it does; else the one that was asked for, where that is known."""
    system: str | None = None
    """The provider's fingerprint of the system that answered (``system_fingerprint``), where the answer has one."""

    @property
    def tokens(self) -> int | None:
        """Input plus output tokens; None where neither was reported."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


RESPONSE, CALLS, ARGUMENTS, RESULTS = PARTS = ("response", "calls", "arguments", "results")
"""The parts of a turn that a recording may leave out, such as a trace without content."""
SILENT = "-"
"""The digest of an answer that says nothing."""


class ForeignScore(Struct, frozen=True, gc=False):
    """A score that another tool gave a recorded trial."""

    scorer: str
    value: float | None
    """0–1; 1 is the whole credit. None: the scorer could not say."""
    reason: str = ""


class Invocation(Struct, frozen=True, gc=False):
    """One turn of one trial: message, answer, calls and usage."""

    user: str = ""
    response: tuple[Part, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    """The trajectory: every call of the turn in order, sub-agents' included."""
    intermediate: tuple[Part, ...] = ()
    """Natural-language responses before the final one."""
    usage: Usage | None = None
    duration: float | None = None
    """Wall time of the request alone, in seconds."""
    digest: str = ""
    """Tells what was said and called from anything else, where the whole of it is on disk and not here; `SILENT` of an
    answer without text."""
    reports_calls: bool = False
    """True if the answer would have told of tool calls: then none in ``tool_calls`` means that none was made."""
    unseen: tuple[str, ...] = ()
    """Parts (of `PARTS`) that the source did not record; a metric that needs one cannot measure the trial."""
    foreign: tuple[ForeignScore, ...] = ()
    """The scores of the tool that recorded the trial, in the last turn of a recorded trial."""

    @property
    def text(self) -> str:
        return text_of(self.response)

    @property
    def is_silent(self) -> bool:
        """True if the user was given neither text nor a tool call, as far as the source records both."""
        if not self.user or self.tool_calls or self.digest or {RESPONSE, CALLS} & set(self.unseen):
            return False
        return not self.text.strip()

    @property
    def shows_calls(self) -> bool:
        """True if this answer is evidence that the agent reports its calls: it has some, or says that it has none."""
        return self.reports_calls or bool(self.tool_calls)


def total_usage(parts: tuple[Usage, ...]) -> Usage | None:
    """Adds up usages field by field. A field is None where no part reports it, model or system where they differ."""
    if not parts:
        return None

    def add(values: list[Any]) -> Any:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    def same(values: set[str | None]) -> str | None:
        return values.pop() if len(values) == 1 else None

    return Usage(
        add([p.input_tokens for p in parts]),
        add([p.output_tokens for p in parts]),
        add([p.cost_usd for p in parts]),
        add([p.model_calls for p in parts]),
        same({p.model for p in parts}),
        same({p.system for p in parts}),
    )


class ToolTime(Struct, frozen=True):
    """Time per call of one tool: total time / timed calls."""

    name: str
    calls: int
    timed: int = 0
    """Calls of which the agent reported a duration."""
    seconds: float = 0.0
    """In the timed calls together."""
    seconds_per_call: float | None = None
    """The mean over the timed calls; None where none was timed."""


def tool_times(invocations: Iterable[Invocation]) -> list[ToolTime]:
    """Calls and time of each tool, the one that took longest first. A duration that cannot be meant is none."""
    found: dict[str, list[float | None]] = {}
    for invocation in invocations:
        for call in invocation.tool_calls:
            known = call.duration is not None and 0 <= call.duration <= MAX_SECONDS
            found.setdefault(call.name, []).append(call.duration if known else None)
    times = []
    for name, durations in found.items():
        timed = [seconds for seconds in durations if seconds is not None]
        total = sum(timed)
        times.append(ToolTime(name, len(durations), len(timed), total, total / len(timed) if timed else None))
    return sorted(times, key=lambda time: (-time.seconds, -time.calls, time.name))


def total_duration(invocations: list[Invocation]) -> float | None:
    """Seconds of all turns together; None where one of them is not known."""
    durations = [invocation.duration for invocation in invocations]
    known = [duration for duration in durations if duration is not None]
    return sum(known) if known and len(known) == len(durations) else None
