"""A trial, its scores, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct, field

from gate.model.conversation import Invocation, Usage, total_usage


class Score(Struct, frozen=True, gc=False):
    """The score of a metric in one trial.

    ``value`` None with ``error`` set: could not be measured, which fails closed.
    ``value`` None without: the metric does not apply to this case (the author stated nothing to compare with).
    """

    value: float | None
    reason: str = ""
    error: str | None = None
    per_turn: tuple[float | None, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further figures that a report may show; JSON values only."""

    @property
    def unmeasured(self) -> bool:
        """True if the value could not be computed, and the error says why."""
        return self.value is None and bool(self.error)

    @property
    def does_not_apply(self) -> bool:
        """True if the metric has nothing to say of this case."""
        return self.value is None and not self.error

    @property
    def dimensions(self) -> dict[str, float]:
        """Return the parts of the value, if the details name them: name → 0 to 1."""
        found = self.details.get("dimensions") if self.details else None
        if not isinstance(found, Mapping):
            return {}
        known = ((name, value) for name, value in found.items() if isinstance(value, int | float))
        return {str(name): float(value) for name, value in known if 0 <= value <= 1}


class ErrorKind(str, Enum):
    """The reason why a trial brought no answer; `ENDS` says whose fault it is."""

    TIMEOUT = "timeout"
    CRASH = "crash"
    """The agent's process ended, its code raised, its server answered 5xx or dropped the connection, or it said so."""
    PROTOCOL = "protocol"
    """An answer that cannot be read: garbage, too large, closed early, wrong shape."""
    UNREACHABLE = "unreachable"
    """A refused connection, an unknown host, or a status that says try later (429, 503)."""
    LIMIT = "limit"
    """The agent passed on a provider's refusal: rate limit, overloaded, quota."""
    HOST = "host"
    """This machine could not run it: no disk, no memory, no process."""
    MISSING = "missing"
    """The recording that is replayed does not hold it."""
    SIMULATOR = "simulator"
    """The model that plays the user could not be asked, or said nothing."""
    CANCELLED = "cancelled"


class End(str, Enum):
    """The three ends of a trial, which are never mixed."""

    ANSWERED = "answered"
    """There is an answer, and it is scored."""
    FAILED = "failed"
    """The agent failed: a failed trial of its case, counted and compared like any other outcome."""
    UNMEASURED = "unmeasured"
    """Infrastructure failed: run again within bounds, then unmeasured. Neither a failure nor a pass."""


ENDS: Mapping[ErrorKind, End] = {
    ErrorKind.TIMEOUT: End.FAILED,
    ErrorKind.CRASH: End.FAILED,
    ErrorKind.PROTOCOL: End.FAILED,
    ErrorKind.UNREACHABLE: End.UNMEASURED,
    ErrorKind.LIMIT: End.UNMEASURED,
    ErrorKind.HOST: End.UNMEASURED,
    ErrorKind.MISSING: End.UNMEASURED,
    ErrorKind.SIMULATOR: End.UNMEASURED,
    ErrorKind.CANCELLED: End.UNMEASURED,
}
"""The one table that says whether an error is the agent's or the infrastructure's. Records hold the kind alone, so old
ones are read by it too."""


class TrialError(Struct, frozen=True, gc=False):
    kind: ErrorKind
    message: str
    excused: bool = False
    """True if a failure of the agent is taken for infrastructure in one decision; never stored."""

    @property
    def end(self) -> End:
        return End.UNMEASURED if self.excused else ENDS[self.kind]


class Side(str, Enum):
    """The side whose agent a trial was run with."""

    CANDIDATE = "candidate"
    BASELINE = "baseline"


FULL = "full"
"""Tag of a round that runs every case once."""
CONFIRM = "confirm"
"""Tag of a round that reruns suspicious cases."""
STORED = "stored"
"""Tag of an epoch that is run in any case, to be stored for later changes: it counts like any other once it is
whole."""
BASE = "base"
"""Tag of an epoch of the base commit's agent where no baseline is stored: what the other trials of its record are
compared with, and no part of what is judged in it."""
PROBE = "probe"
"""Tag of a round that asks, a while later, whether the agent still fails: failing cases between such as answered."""

REPEAT = "repeat"
"""Tag of a round that asks a few steady cases again, to see whether repeated trials are draws of their own."""


class Replay(Struct, frozen=True, gc=False):
    """The share of a trial's outside world that an earlier trial's recording answered.

    The gate's proxy says so, never the agent.
    """

    source: str
    """The recorded trial that it was coupled with, the ``recording`` of a trial of the same case; empty where none."""
    replayed: int
    """Calls answered from the recording."""
    live: int
    """Calls that went to the real model or tool."""
    difference: str = ""
    """The first difference, in words: bounded and redacted."""
    recording: str = ""
    """By what name later trials replay this one, ``<run id>:<trial number>:<digest>`` as it was numbered when it was
    run; empty where nothing of it was recorded. It stays when stored records are united and trials numbered anew. The
    digest is that of what it was answered: a recording that somebody else wrote has another one."""
    saved_usd: float | None = None
    """The cost of the replayed calls when they were recorded, as far as it is known."""
    tools: tuple[str, ...] = ()
    """The lists of tools that MCP servers offered: ``<server> <digest>`` each."""
    tools_changed: tuple[str, ...] = ()
    """The differences of those lists from the recording's, tool by tool, in words: bounded and redacted."""

    @property
    def whole(self) -> bool:
        """True if every call was answered from the recording."""
        return self.coupled and not self.live

    @property
    def same(self) -> bool:
        """True if the model was asked the same things: every call was answered, and none was left out."""
        return self.whole and not self.difference

    @property
    def coupled(self) -> bool:
        """True if the trial shares a part of what is random with its source."""
        return bool(self.source) and self.replayed > 0


class Trial(Struct, frozen=True, gc=False):
    """One execution of a case, scored."""

    case_id: str
    number: int
    """From 1, counted per case and side."""
    round: int = 1
    """The round of the schedule that asked for it, from 1."""
    tag: str = FULL
    side: Side = Side.CANDIDATE
    invocations: tuple[Invocation, ...] = ()
    scores: Mapping[str, Score] = field(default_factory=dict)
    """By criterion name. Where ``error`` is set, only what hard criteria found in the turns before it."""
    error: TrialError | None = None
    duration: float | None = None
    """Seconds spent inside requests to the agent, all turns."""
    attempts: int = 1
    """Number of attempts; each one but the last ended in an infrastructure error."""
    started: float | None = None
    """Unix time."""
    again: bool = False
    """True if it replaced an unmeasured trial of its round."""
    answer: str = ""
    """A short digest of the whole answer, responses and tool calls of all turns; empty where none is known."""
    process: str = ""
    """The name of the agent's process that answered, one of those that answer many trials; empty where the gate starts
    none. What a process has cached ends with it."""
    run: str = ""
    """The run of a trial out of a stored record; never stored, since the header says so."""
    log: str = ""
    """The end of the agent's output beside its answers, tracebacks and the body of an HTTP error included."""
    replay: Replay | None = None
    """None: nothing was recorded or replayed."""

    @property
    def end(self) -> End:
        return End.ANSWERED if self.error is None else self.error.end

    @property
    def answered(self) -> bool:
        return self.error is None

    @property
    def failed(self) -> bool:
        """True if the agent failed."""
        return self.error is not None and self.error.end is End.FAILED

    @property
    def excused(self) -> bool:
        """True if the agent failed in it and that does not count, since it was down."""
        return self.error is not None and self.error.excused

    @property
    def measured(self) -> bool:
        """True if it counts: an answer, or a failure of the agent."""
        return self.error is None or self.error.end is End.FAILED

    @property
    def is_of_epoch(self) -> bool:
        """True if the candidate ran it in an epoch, and not again because of an outcome."""
        return self.side is Side.CANDIDATE and self.tag in (FULL, STORED)

    @property
    def saved_usd(self) -> float | None:
        """The cost that the replay saved; None if it is not known."""
        if self.replay is None or not self.replay.coupled:
            return None
        if self.replay.saved_usd is None and self.replay.whole and self.usage is not None:
            return self.usage.cost_usd
        return self.replay.saved_usd

    @property
    def usage(self) -> Usage | None:
        """Usage summed over the turns; None where no turn reported any."""
        return total_usage(tuple(i.usage for i in self.invocations if i.usage is not None))
