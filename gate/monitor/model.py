"""A conversation from a trace, and its scores."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add

from msgspec import Struct, field
from msgspec.structs import astuple

from gate.model import Invocation, Models

MAX_PREVIEW_CHARS = 200
"""Most characters shown of a query or an output."""

NO_AGENT = "it ended in an error before any agent"
"""The beginning of the reason for a trace that failed before any agent answered."""


class WatchedTrace(Struct, frozen=True):
    """One trace of production, as far as it was captured."""

    trace: str
    """The trace's id: it decides on sampling, and is stored once."""
    invocations: tuple[Invocation, ...] = ()
    error: str | None = None
    """The reason why the agent failed, if the trace has one."""
    at: float | None = None
    """The Unix time at which it ended; None if the trace has no time."""
    lacks_question: bool = False
    """True if the user's message of a turn was not captured. `Invocation.unseen` names the lacking parts of answers."""
    unmeasured: str = ""
    """The reason why the trace cannot be scored at all; empty if it is scored."""


class Observation(Struct, frozen=True):
    """The stored part of a scored conversation."""

    trace: str
    at: float
    """Unix time of its end, or of its reading if the trace has no time."""
    passed: bool | None
    """True if it held every blocking criterion; None if that could not be measured."""
    average: float | None
    """Mean of its scores on bounded scales, from 0 to 1 (best); None if there are none."""
    scores: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    """The failures and missing scores; redacted."""
    query: str = ""
    """The beginning of the query, at most `MAX_PREVIEW_CHARS`; redacted."""
    output: str = ""
    """The beginning of the answer, bounded and redacted likewise."""
    applied: tuple[str, ...] = ()
    """The criteria that applied to it, measured or not."""
    kept: bytes = b""
    """The whole conversation, redacted and packed, if it did not pass: `gate promote` makes a case from it."""
    judges: Mapping[str, Models] = field(default_factory=dict)
    """By criterion, the models that judged it."""

    @property
    def has_no_agent(self) -> bool:
        """True if the trace ended in an error and shows no agent."""
        return self.passed is None and self.why.startswith(NO_AGENT)


class Counts(Struct, frozen=True):
    """Counts of the lines and traces read since the state was created."""

    lines: int = 0
    bad: int = 0
    """Lines that are too long, damaged, or neither a trace nor a row."""
    sampled: int = 0
    """Conversations that were scored."""
    repeated: int = 0
    """Conversations that had been scored before and were not counted again."""
    cut: int = 0
    """Traces that were scored incomplete, because the buffer was full or only their first turns are scored."""
    empty: int = 0
    """Sampled traces in which no agent was asked anything and that did not end in an error."""
    late: int = 0
    """Sampled spans that came after their trace was scored."""
    truncated: int = 0
    """Files that became shorter or started over."""
    lost: int = 0
    """Sampled traces named in unreadable lines; a line that names none counts as one."""

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(add, astuple(self), astuple(other)))
