"""A trial, its scores, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Any

from msgspec import Meta, Struct, field

from gate.model.bounds import Amount, Count
from gate.model.conversation import Invocation, Usage, total_usage

Models = tuple[tuple[str, str], ...]
"""Models that the gate asked for a measurement, each with a name by which it answered: a requested name may lead to
another model later. Models that did not state a name are left out."""


class Score(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The score of a metric in one trial.

    ``value`` is None with ``error`` set: it could not be measured, which fails closed. ``value`` is None without
    ``error``: the metric does not apply to this case (the author stated nothing to compare with).
    """

    value: float | None
    reason: str = ""
    error: str | None = None
    per_turn: tuple[float | None, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further figures that a report may show; JSON values only."""
    judges: Models = ()
    """The models that judged it."""

    @property
    def unmeasured(self) -> bool:
        """True if the value could not be computed; the error is the reason."""
        return self.value is None and bool(self.error)

    @property
    def does_not_apply(self) -> bool:
        """True if the metric does not apply to the case."""
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
    """The reason why a trial has no answer; `ENDS` tells whose fault that is."""

    TIMEOUT = "timeout"
    CRASH = "crash"
    """The agent's process ended, its code raised, its server answered 5xx or dropped the connection, or it reported
    so."""
    PROTOCOL = "protocol"
    """An answer that cannot be read: garbage, too large, closed early, wrong shape."""
    SETUP = "setup"
    """The agent, or a service that it asks, refused because of how it is set up: an unknown model, a wrong key or
    address. No other attempt helps."""
    UNREACHABLE = "unreachable"
    """A refused connection, an unknown host, or a status that means "try later" (429, 503)."""
    LIMIT = "limit"
    """The agent passed on a provider's refusal: rate limit, overloaded, quota."""
    HOST = "host"
    """This machine could not run it: no disk, no memory, no process."""
    MISSING = "missing"
    """The recording that is replayed does not contain it."""
    SIMULATOR = "simulator"
    """The model that plays the user could not be reached, or said nothing."""
    CANCELLED = "cancelled"


class End(str, Enum):
    """The three possible ends of a trial, which are never mixed."""

    ANSWERED = "answered"
    """There is an answer, and it is scored."""
    FAILED = "failed"
    """The agent failed: a failed trial of its case, counted and compared like any other outcome."""
    UNMEASURED = "unmeasured"
    """Infrastructure failed: run again within limits, then unmeasured. Neither a failure nor a pass."""


ENDS: Mapping[ErrorKind, End] = {
    ErrorKind.TIMEOUT: End.FAILED,
    ErrorKind.CRASH: End.FAILED,
    ErrorKind.PROTOCOL: End.FAILED,
    ErrorKind.SETUP: End.FAILED,
    ErrorKind.UNREACHABLE: End.UNMEASURED,
    ErrorKind.LIMIT: End.UNMEASURED,
    ErrorKind.HOST: End.UNMEASURED,
    ErrorKind.MISSING: End.UNMEASURED,
    ErrorKind.SIMULATOR: End.UNMEASURED,
    ErrorKind.CANCELLED: End.UNMEASURED,
}
"""The only table that assigns an error to the agent or the infrastructure. Records hold just the kind, so it applies to
old ones too."""


class TrialError(Struct, frozen=True, gc=False):
    kind: ErrorKind
    message: str
    excused: bool = False
    """True if one decision treats a failure of the agent as infrastructure; never stored."""

    @property
    def end(self) -> End:
        return End.UNMEASURED if self.excused else ENDS[self.kind]


class Side(str, Enum):
    """The side whose agent ran a trial."""

    CANDIDATE = "candidate"
    BASELINE = "baseline"


FULL = "full"
"""Tag of a round that runs every case once."""
CONFIRM = "confirm"
"""Tag of a round that reruns suspicious cases."""
NARROW = "narrow"
"""Tag of a round in place of the last epoch: the cases that vary most run again, to narrow the change's interval."""
STORED = "stored"
"""Tag of an epoch that is always run, to be stored for later changes: once complete, it counts like any other."""
BASE = "base"
"""Tag of an epoch of the base commit's agent if no baseline is stored: the record's other trials are compared with it,
and it is not judged itself."""
PROBE = "probe"
"""Tag of a round that checks, a while later, if the agent still fails: failing cases, and between them answered
ones."""

REPEAT = "repeat"
"""Tag of a round that repeats a few steady cases, to see if repeated trials are independent."""


MAX_ADDRESS = 200
"""The most characters in the name of a recording."""
MAX_DIFFERENCE = 500
"""The most characters of a difference in words."""
MOST_LISTS = 100
"""The most lists of tools told to a trial, and the most tools that changed in them."""
_Address = Annotated[str, Meta(max_length=MAX_ADDRESS)]
_Difference = Annotated[str, Meta(max_length=MAX_DIFFERENCE)]


class Replay(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """The share of a trial's outside world that was answered from an earlier trial's recording.

    The gate's proxy reports it, never the agent.
    """

    source: _Address = ""
    """The ``recording`` of the trial of the same case that it was coupled with; empty if there is none."""
    replayed: Count = 0
    """Calls answered from the recording."""
    live: Count = 0
    """Calls that went to the real model or tool."""
    difference: _Difference = ""
    """The first difference, in words: limited in length and redacted."""
    recording: _Address = ""
    """The name by which later trials replay this one, ``<run id>:<trial number>:<digest>``, with the number from its
    run; empty if nothing was recorded. It stays when stored records are united and trials renumbered. The digest is
    that of its answers, so that a recording written by somebody else has a different one."""
    saved_usd: Amount | None = None
    """The known part of the cost of the replayed calls when they were recorded."""
    tools: Annotated[tuple[_Address, ...], Meta(max_length=MOST_LISTS)] = ()
    """The lists of tools that MCP servers offered, each as ``<server> <digest>``."""
    tools_changed: Annotated[tuple[_Difference, ...], Meta(max_length=MOST_LISTS)] = ()
    """The differences of those lists from the recording's, tool by tool, in words: limited in length and redacted."""

    @property
    def whole(self) -> bool:
        """True if every call was answered from the recording."""
        return self.coupled and not self.live

    @property
    def same(self) -> bool:
        """True if the model got the same requests: every call was answered from the recording, and none was left
        out."""
        return self.whole and not self.difference

    @property
    def coupled(self) -> bool:
        """True if the trial shares some of its randomness with its source."""
        return bool(self.source) and self.replayed > 0


class Trial(Struct, frozen=True, gc=False):
    """One execution of a case, scored."""

    case_id: str
    number: int
    """Counted from 1, per case and side."""
    round: int = 1
    """The round of the schedule that requested it, from 1."""
    tag: str = FULL
    side: Side = Side.CANDIDATE
    invocations: tuple[Invocation, ...] = ()
    scores: Mapping[str, Score] = field(default_factory=dict)
    """By criterion name. If ``error`` is set, only the results of hard criteria on the turns before it."""
    error: TrialError | None = None
    duration: float | None = None
    """Seconds spent in requests to the agent, over all turns."""
    attempts: int = 1
    """Number of attempts; all but the last ended in an infrastructure error."""
    started: float | None = None
    """Unix time."""
    again: bool = False
    """True if it replaced an unmeasured trial of its round."""
    answer: str = ""
    """A short digest of the whole answer, responses and tool calls of all turns; empty if unknown."""
    process: str = ""
    """The name of the agent process that answered, if processes answer several trials; empty if the gate starts none. A
    process's caches end with it."""
    run: str = ""
    """The run of a trial from a stored record; never stored, since the header states it."""
    log: str = ""
    """The end of the agent's output other than its answers, including tracebacks and the body of an HTTP error."""
    replay: Replay | None = None
    """None if nothing was recorded or replayed."""
    users: Models = ()
    """The models that played the user."""
    earlier: tuple[tuple[Invocation, ...], ...] = ()
    """The turns of each earlier attempt that got that far. The trial was run again, but what they did was done: hard
    criteria read them, too."""

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
        """True if the agent failed in it, but that does not count because the agent was down."""
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
        """Return the cost saved by the replay; None if unknown."""
        if self.replay is None or not self.replay.coupled:
            return None
        if self.replay.saved_usd is None and self.replay.whole and self.usage is not None:
            return self.usage.cost_usd
        return self.replay.saved_usd

    @property
    def usage(self) -> Usage | None:
        """Return the total usage of the turns; None if no turn reported any."""
        return total_usage(turn.usage for turn in self.invocations)
