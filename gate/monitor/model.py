"""A watched conversation out of a trace, and its scores."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from gate.model import Invocation

MAX_PREVIEW_CHARS = 200
"""Most characters of a query or an output that are shown."""

NO_AGENT = "it ended in an error before any agent"
"""The beginning of the reason of a trace that tells of a failure, and of nobody who answered."""


class WatchedTrace(Struct, frozen=True):
    """One trace of production, as far as it was captured."""

    trace: str
    """Its id: what it is sampled by, and stored under once."""
    invocations: tuple[Invocation, ...] = ()
    error: str | None = None
    """The reason why the agent failed, if the trace says that it did."""
    at: float | None = None
    """When it ended, in Unix time; None where the trace does not say."""
    not_captured: frozenset[str] = frozenset()
    """The parts that the trace leaves out of a conversation: ``input``, ``output``, ``calls``. It cannot be measured,
    so no score may be made of it."""
    unmeasured: str = ""
    """The reason why nothing can be said of all of it; empty if it is scored."""


class Observation(Struct, frozen=True):
    """The stored part of a scored conversation."""

    trace: str
    at: float
    """Unix time; of its reading where the trace has none."""
    passed: bool | None
    """True if it held every blocking criterion; None: that could not be measured."""
    average: float | None
    """Mean of its scores on bounded scales, 0–1, 1 the best; None: it has none."""
    scores: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    """The failures and missing scores; redacted."""
    query: str = ""
    """The beginning of what was asked, at most `MAX_PREVIEW_CHARS`; redacted."""
    output: str = ""
    """The beginning of the answer, likewise."""
    applied: tuple[str, ...] = ()
    """Criteria that had something to say of it, measured or not."""
    kept: bytes = b""
    """The whole conversation, redacted and packed, where it did not pass: what `gate promote` makes a case of."""

    @property
    def has_no_agent(self) -> bool:
        """True if the trace ended in an error, and no agent is in it."""
        return self.passed is None and self.why.startswith(NO_AGENT)


class Counts(Struct, frozen=True):
    """The counts of what was read, since the state was made."""

    lines: int = 0
    bad: int = 0
    """Lines that are neither a trace nor a row, too long or damaged."""
    sampled: int = 0
    """Conversations that were scored."""
    repeated: int = 0
    """Conversations that had been scored before, and were not counted again."""
    cut: int = 0
    """Traces that were scored before they were complete, since the buffer was full, or by their first turns alone."""
    empty: int = 0
    """Traces of the sample in which no agent was asked anything, and that did not end in an error."""
    late: int = 0
    """Spans of the sample that came once their trace was scored."""
    truncated: int = 0
    """Files that became shorter, or began anew."""
    lost: int = 0
    """Number of sampled traces named by unreadable lines, or one for a line that names none."""

    def __add__(self, other: Counts) -> Counts:
        pairs = ((getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        return Counts(*(one + two for one, two in pairs))
