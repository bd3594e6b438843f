"""The parts, tool calls, token usage and invocations of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from unicodedata import category

from msgspec import Struct

from gate.model.bounds import Amount, Count

MAX_SECONDS = 1e15
"""The longest plausible duration, in seconds."""


class ToolCall(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A tool that the agent called, or that the author of a case expects it to call."""

    name: str
    args: Any = None
    """The arguments as the agent gave them: normally a mapping; None means absent, which differs from ``{}``."""
    id: str | None = None
    result: Any = None
    error: str | None = None
    """The error inside the tool, if the agent reports one."""
    duration: Amount | None = None
    category: str | None = None
    """Expected calls only: any tool of this category is accepted, and ``name`` is empty."""
    any_args: bool = False
    """Expected calls only: the author named the tool without its arguments."""


class Part(Struct, frozen=True, gc=False):
    """One text part of a response."""

    text: str
    thought: bool = False
    """True if the model marked it as a thought rather than an answer."""


def text_of(parts: tuple[Part, ...], *, thoughts: bool = True) -> str:
    """Return the text of the parts, joined by newlines; empty if there are none."""
    if len(parts) == 1 and (thoughts or not parts[0].thought):
        return parts[0].text  # true of nearly all
    return "\n".join(part.text for part in parts if thoughts or not part.thought)


def parts_of(text: str) -> tuple[Part, ...]:
    """Return a text as parts; none if it is empty."""
    if not text:
        return ()
    return (Part(text),)


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Mn", "Me", "Zs", "Zl", "Zp"})
"""Unicode's categories of spaces, controls, and marks that need a character to stand on."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols without a glyph."""


def is_blank(text: str) -> bool:
    """True if a reader sees nothing of a text: it is empty, or only spaces and invisible characters."""
    return all(char in _FILLERS or category(char) in _UNSEEN for char in text)


class Usage(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """Tokens, cost and calls of a turn or a trial. None means that the agent did not report it."""

    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None
    model_calls: Count | None = None
    model: str | None = None
    """The model named in the answer, else the one that was requested; None if neither is known."""
    system: str | None = None
    """The provider's fingerprint of the system that answered (``system_fingerprint``), if the answer has one."""
    cut_off: bool = False
    """True if an answer of the model says that it is not whole: it ended at the limit of its length or by a filter."""

    @property
    def tokens(self) -> int | None:
        """Return input plus output tokens; None if either was not reported, since the other alone would look cheap."""
        if self.input_tokens is None or self.output_tokens is None:
            return None
        return self.input_tokens + self.output_tokens


RESPONSE, CALLS, ARGUMENTS, RESULTS = PARTS = ("response", "calls", "arguments", "results")
"""The parts of a turn that a source may not record, such as a trace without content."""
SILENT = "-"
"""The digest of an answer without text."""


class ForeignScore(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A score that another tool gave to a recorded trial."""

    scorer: str
    value: float | None
    """From 0 to 1, where 1 is full credit. None: the scorer gave no value."""
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
    """Wall time of the request, in seconds."""
    digest: str = ""
    """Identifies the texts and calls, whose full content is on disk and not here; `SILENT` for an answer without
    text."""
    reports_calls: bool = False
    """True if the answer would have reported tool calls, so that empty ``tool_calls`` mean that none was made."""
    outcomes: tuple[tuple[str, str], ...] = ()
    """The tools that the calls on disk were of, each with the error of a call, empty if one succeeded."""
    unseen: tuple[str, ...] = ()
    """Parts (of `PARTS`) that the source did not record; a metric that needs one cannot measure the trial."""
    foreign: tuple[ForeignScore, ...] = ()
    """The scores by the tool that recorded the trial, in the last turn of a recorded trial."""

    @property
    def text(self) -> str:
        return text_of(self.response)

    @property
    def tool_outcomes(self) -> tuple[tuple[str, str], ...]:
        """Each tool that was called, with each error that it failed with; an empty one if a call succeeded."""
        if self.outcomes:
            return self.outcomes
        found: dict[tuple[str, str], None] = {}
        for call in self.tool_calls:
            error = ""
            if call.error is not None:
                error = call.error or "failed"
            found[call.name, error] = None
        return tuple(found)

    @property
    def is_silent(self) -> bool:
        """True if the user received neither visible text nor a tool call, provided that the source records both; a
        thought is not for the user."""
        if not self.user or self.tool_calls or self.digest or {RESPONSE, CALLS} & set(self.unseen):
            return False
        return is_blank(text_of(self.response, thoughts=False))

    @property
    def shows_calls(self) -> bool:
        """True if this answer shows that the agent reports its calls: it has some, or states that it has none."""
        return self.reports_calls or bool(self.tool_calls)


def total_usage(parts: Iterable[Usage | None]) -> Usage | None:
    """Return the sum of usages, field by field; None if no part reports anything.

    A field is None if a part does not report it, since the sum of the others would look cheap; model and system are
    None if the parts differ.
    """
    reported = list(parts)
    if not any(reported):
        return None
    usages = [part or Usage() for part in reported]
    total: dict[str, Any] = {}
    for name in ("input_tokens", "output_tokens", "cost_usd", "model_calls"):
        values = [getattr(usage, name) for usage in usages]
        if None not in values:
            total[name] = sum(values)
    for name in ("model", "system"):
        stated = {getattr(usage, name) for usage in usages}
        if len(stated) == 1:
            total[name] = stated.pop()
    whole = Usage(**total, cut_off=any(usage.cut_off for usage in usages))
    if whole == Usage():
        return None
    return whole


class ToolTime(Struct, frozen=True):
    """Time per call of one tool: total time / timed calls."""

    name: str
    calls: int
    timed: int = 0
    """Number of calls with a reported duration."""
    seconds: float = 0.0
    """Total seconds of the timed calls."""
    seconds_per_call: float | None = None
    """The mean over the timed calls; None if there are none."""


def tool_times(invocations: Iterable[Invocation]) -> list[ToolTime]:
    """Return calls and time of each tool, slowest in total first. Implausible durations are ignored."""
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


def total_duration(invocations: Sequence[Invocation]) -> float | None:
    """Return the total seconds of all turns; None if any is unknown."""
    durations = [invocation.duration for invocation in invocations]
    known = [duration for duration in durations if duration is not None]
    return sum(known) if known and len(known) == len(durations) else None
