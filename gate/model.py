"""The nouns of the gate: what is said, measured and decided. Frozen values; no I/O, no clock, no environment.

Units everywhere: durations in seconds, money in US dollars, probabilities and shares in 0–1.
A value that was not measured is None with an error beside it, never 0 and never NaN.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, Literal

from msgspec import Struct, field

MAX_SECONDS = 1e15
"""More than anything takes; a duration beyond it cannot be meant."""

# --- a conversation -------------------------------------------------------------------------------


class ToolCall(Struct, frozen=True):
    """One tool that the agent called, or that the author of a case expects it to call."""

    name: str
    args: Any = None
    """The arguments as the agent gave them: normally a mapping; None means absent, which differs from ``{}``."""
    id: str | None = None
    result: Any = None
    error: str | None = None
    """What went wrong inside the tool, where the agent reports it."""
    duration: float | None = None
    category: str | None = None
    """Expected calls only: any tool of this category will do, and ``name`` is then empty."""
    any_args: bool = False
    """Expected calls only: the author named the tool and said nothing of its arguments."""


class Part(Struct, frozen=True):
    """One text part of a response."""

    text: str
    thought: bool = False
    """Whether the model marked it as a thought rather than an answer."""


def text_of(parts: tuple[Part, ...], *, thoughts: bool = True) -> str:
    """The text of the parts, joined by newlines; empty where there are none."""
    return "\n".join(part.text for part in parts if thoughts or not part.thought)


class Usage(Struct, frozen=True):
    """What a turn or a trial consumed. None means that the agent did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None
    model: str | None = None

    @property
    def tokens(self) -> int | None:
        """Input plus output tokens; None where neither was reported."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        return (self.input_tokens or 0) + (self.output_tokens or 0)


SILENT = "-"
"""The digest of an answer that says nothing."""


class Invocation(Struct, frozen=True):
    """What happened in one turn of one trial."""

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
    """Whether the answer would have told of tool calls: then none in ``tool_calls`` means that none was made."""

    @property
    def text(self) -> str:
        return text_of(self.response)

    @property
    def shows_calls(self) -> bool:
        """Whether this answer is evidence that the agent reports its calls: it has some, or says that it has none."""
        return self.reports_calls or bool(self.tool_calls)


# --- a suite --------------------------------------------------------------------------------------


class Complexity(str, Enum):
    """How hard the author thinks a case is; medium where nothing is said."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


class Rubric(Struct, frozen=True):
    """One property that a judge checks, as the author wrote it."""

    id: str
    text: str
    type: str | None = None
    description: str | None = None


class Turn(Struct, frozen=True):
    """What the author wrote for one turn."""

    user: str
    tools: tuple[ToolCall, ...] | None = None
    """Expected calls in order; empty means that none is expected, None that nothing is stated."""
    response: tuple[Part, ...] | None = None
    """The expected response; None where nothing is stated."""
    rubrics: tuple[Rubric, ...] = ()


class Location(Struct, frozen=True):
    """Where something was written: a path relative to the working directory, and a line from 1."""

    path: str
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


class Case(Struct, frozen=True):
    """One conversation to hold with the agent."""

    id: str
    turns: tuple[Turn, ...]
    tags: frozenset[str] = frozenset()
    complexity: Complexity = Complexity.MEDIUM
    metadata: Mapping[str, Any] = field(default_factory=dict)
    state: Mapping[str, Any] = field(default_factory=dict)
    """Initial session state, handed to the agent."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Per criterion: options of this case alone, laid over the criterion's (``contains``, ``forbidden_tools`` …)."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """Per criterion: this case's own threshold."""
    rubrics: tuple[Rubric, ...] = ()
    app: Mapping[str, str] = field(default_factory=dict)
    """ADK's session input: ``app_name`` and ``user_id``, where given."""
    location: Location | None = None
    content: Any = None
    """What the case's fingerprint is taken of; None means the fields above."""


class RecordedTrial(Struct, frozen=True):
    """One execution that was recorded elsewhere, as read from a file beside its case."""

    case_id: str
    number: int
    invocations: Sequence[Invocation]
    error: str | None = None
    origin: str = ""
    """Where it was read from and the number that it has there, for messages."""


class Suite(Struct, frozen=True):
    """The cases that are run together, judged together and compared together."""

    id: str
    """Names the suite in baselines and comments; text, never a file name."""
    cases: tuple[Case, ...]
    criteria: Mapping[str, Any] | None = None
    """Raw criteria of a ``test_config.json`` beside the files, where there is one."""
    recorded: tuple[RecordedTrial, ...] = ()
    """Trials that came with the cases, for ``replay``."""
    source: str = ""
    """Where it was read from, for messages."""
    brought: Mapping[str, Any] | None = None
    """Raw criteria that the files of cases bring themselves; a configuration's refine them."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how it was read."""


# --- a measurement --------------------------------------------------------------------------------


class Score(Struct, frozen=True):
    """What a metric found in one trial.

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
    def dimensions(self) -> dict[str, float]:
        """What the value is made of, where the details say so: name → 0 to 1."""
        found = self.details.get("dimensions") if self.details else None
        if not isinstance(found, Mapping):
            return {}
        known = ((name, value) for name, value in found.items() if isinstance(value, int | float))
        return {str(name): float(value) for name, value in known if 0 <= value <= 1}


class ErrorKind(str, Enum):
    """Why a trial brought no answer; `ENDS` says whose fault that is."""

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
    CANCELLED = "cancelled"


class End(str, Enum):
    """What a trial ended in; the three are never mixed."""

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
    ErrorKind.CANCELLED: End.UNMEASURED,
}
"""The one table that says whether an error is the agent's or the infrastructure's. Records hold the kind alone, so old
ones are read by it too."""


class TrialError(Struct, frozen=True):
    kind: ErrorKind
    message: str
    excused: bool = False
    """Whether a failure of the agent is taken for infrastructure in one decision; never stored."""

    @property
    def end(self) -> End:
        return End.UNMEASURED if self.excused else ENDS[self.kind]


class Side(str, Enum):
    """Whose agent a trial was run with."""

    CANDIDATE = "candidate"
    BASELINE = "baseline"


FULL = "full"
"""Tag of a round that runs every case once."""
CONFIRM = "confirm"
"""Tag of a round that reruns suspicious cases."""
PROBE = "probe"
"""Tag of a round that asks, a while later, whether the agent still fails: failing cases between such as answered."""


class Trial(Struct, frozen=True):
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
    """How often it was tried; each one but the last ended in an infrastructure error."""
    started: float | None = None
    """Unix time."""
    again: bool = False
    """Whether it was run in place of an earlier trial of its round that could not be measured."""

    @property
    def end(self) -> End:
        return End.ANSWERED if self.error is None else self.error.end

    @property
    def answered(self) -> bool:
        return self.error is None

    @property
    def failed(self) -> bool:
        """Whether the agent failed."""
        return self.error is not None and self.error.end is End.FAILED

    @property
    def measured(self) -> bool:
        """Whether it counts: an answer, or a failure of the agent."""
        return self.error is None or self.error.end is End.FAILED

    @property
    def usage(self) -> Usage | None:
        """Usage summed over the turns; None where no turn reported any."""
        return total_usage(tuple(i.usage for i in self.invocations if i.usage is not None))


def total_usage(parts: tuple[Usage, ...]) -> Usage | None:
    """Adds up usages field by field. A field is None where no part reports it, the model where several differ."""
    if not parts:
        return None

    def add(values: list[Any]) -> Any:
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    models = {part.model for part in parts}
    return Usage(
        add([p.input_tokens for p in parts]),
        add([p.output_tokens for p in parts]),
        add([p.cost_usd for p in parts]),
        add([p.model_calls for p in parts]),
        models.pop() if len(models) == 1 else None,
    )


class ToolTime(Struct, frozen=True):
    """How long one tool took, over some calls of it: total time / timed calls."""

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


# --- criteria -------------------------------------------------------------------------------------


class Scale(str, Enum):
    """What values a metric takes; decides how it is shown, compared and bounded."""

    BINARY = "binary"
    """0 or 1."""
    UNIT = "unit"
    """0 to 1."""
    LIKERT = "likert"
    """1 to 5."""
    PERCENT = "percent"
    """0 to 100."""
    SECONDS = "seconds"
    USD = "usd"
    COUNT = "count"


RANGES: Mapping[Scale, tuple[float, float]] = {
    Scale.BINARY: (0.0, 1.0),
    Scale.UNIT: (0.0, 1.0),
    Scale.LIKERT: (1.0, 5.0),
    Scale.PERCENT: (0.0, 100.0),
    Scale.SECONDS: (0.0, math.inf),
    Scale.USD: (0.0, math.inf),
    Scale.COUNT: (0.0, math.inf),
}
"""The least and the most that a score of a scale can be."""


class Direction(str, Enum):
    HIGHER = "higher"
    LOWER = "lower"


class Criterion(Struct, frozen=True):
    """A metric with its threshold and options, as the user set them."""

    name: str
    """The key under ``criteria``; unique."""
    metric: str
    """The registered metric, or a dotted path."""
    scale: Scale
    direction: Direction = Direction.HIGHER
    threshold: float | None = None
    """Least acceptable suite mean. None: judged against the baseline only."""
    limit: float | None = None
    """Per trial: the most a single trial may reach (``max``)."""
    quantiles: tuple[tuple[float, float], ...] = ()
    """Suite limits on quantiles: ((0.95, 3.0),) says that p95 may be at most 3."""
    margin: float | None = None
    """The loss that is still called unchanged; relative for cost, latency, tokens and counts."""
    pass_mark: float | None = None
    """The score from which a single trial passes; None: the criterion does not decide whether a trial passes."""
    blocking: bool = True
    """Whether it can fail the gate by threshold or limit."""
    gate_regression: bool = True
    """Whether a change against the baseline can fail the gate; off by default for cost and latency."""
    strict: bool = False
    """Compare the plain mean with the threshold, without statistics."""
    ratchet: bool = True
    """Where the baseline was already below the threshold, staying there does not block."""
    hard: bool = False
    """One failing trial fails the gate (forbidden tools, safety)."""
    fingerprint: str = ""
    """Of metric, options, version, judge; not of thresholds."""
    stands_for: str = ""
    """The criterion that this one is the previous version of: compared with what baselines hold of it, held to nothing
    else."""
    reads_tools: bool = False
    """Whether it looks at tool calls, and means nothing if the agent's answers do not report them."""
    absence: bool = False
    """Whether an answer that says nothing satisfies it."""
    parts: tuple[str, ...] = ()
    """The criteria that it is computed from."""


# --- decisions ------------------------------------------------------------------------------------


class Verdict(str, Enum):
    """What the gate says of a criterion or a suite."""

    NOT_APPLIED = "not_applied"
    """Of a criterion alone: it applies to none of the selected cases, has no tick, and decides nothing."""
    PASS = "pass"  # noqa: S105 - a verdict
    INCONCLUSIVE = "inconclusive"
    NOT_MEASURED = "not_measured"
    BELOW_THRESHOLD = "below_threshold"
    REGRESSED = "regressed"
    ERROR = "error"


SEVERITY = (
    Verdict.NOT_APPLIED,
    Verdict.PASS,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_MEASURED,
    Verdict.BELOW_THRESHOLD,
    Verdict.REGRESSED,
    Verdict.ERROR,
)
"""From best to worst; the verdict of several is the worst of them."""


class ExitCode(IntEnum):
    """The process's exit code; docs/guide/exit-codes.md has the table."""

    PASS = 0
    FAILED = 1
    CONFIGURATION = 2
    NOT_MEASURED = 3
    BASELINE = 4
    PUBLISH = 5
    BASELINE_WRITE = 6
    UNTRUSTED = 7
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


EXIT_PRECEDENCE = (
    ExitCode.CONFIGURATION,
    ExitCode.UNTRUSTED,
    ExitCode.FAILED,
    ExitCode.NOT_MEASURED,
    ExitCode.BASELINE,
    ExitCode.BASELINE_WRITE,
    ExitCode.PUBLISH,
    ExitCode.PASS,
)
"""Where several apply, the first of these is the answer. Cancellation is no part of it: it ends the process at once."""


class Estimate(Struct, frozen=True):
    """A mean with its interval and what it rests on."""

    value: float
    low: float
    high: float
    n: int
    """Cases behind the value."""
    trials: int = 0
    """Trials behind the value."""
    level: float = 0.95
    sd: float | None = None
    """Standard deviation (n − 1) of the trials' scores; None for fewer than two trials."""
    sd_cases: float | None = None
    """Standard deviation (n − 1) of the cases' means; None for fewer than two cases."""


class CriterionResult(Struct, frozen=True):
    """What was found for one criterion over the suite."""

    criterion: Criterion
    verdict: Verdict
    reason: str
    """One sentence that a reviewer can act on."""
    candidate: Estimate | None = None
    baseline: Estimate | None = None
    change: Estimate | None = None
    """Candidate minus baseline over paired cases; relative for money, time and counts."""
    p_value: float | None = None
    detectable: float | None = None
    """The smallest drop that this suite, with these trials, could have found with 80 % power."""
    spent: float | None = None
    """Share of the error budget used, 0–1."""
    not_measured: int = 0
    """Trials of which the score is None with an error."""
    quantiles: tuple[tuple[float, Estimate], ...] = ()
    dimensions: Mapping[str, tuple[Estimate | None, Estimate | None]] = field(default_factory=dict)
    """Of a rubric or another score that is made of several: the candidate's mean and the baseline's of each, 0 to 1."""
    crashes: int = 0
    """Trials without a score because the agent failed; a threshold counts them as the worst score there is."""
    not_compared: str = ""
    """Why what the baseline measured of it is not compared; such a criterion has no tick, whatever its verdict."""
    checked: bool = True
    """Whether anything was held against it: a comparison, a threshold, a limit. Without, it has no tick either."""


class CaseStatus(str, Enum):
    BROKEN = "broken"
    """Named: worse than its baseline, at a false discovery rate of at most 10 %."""
    SUSPECT = "suspect"
    FLAKY = "flaky"
    OK = "ok"
    NEW = "new"
    REMOVED = "removed"
    ERROR = "error"
    FAILED = "failed"
    """A hard failure, or below its own threshold."""
    QUARANTINED = "quarantined"
    UNCHECKED = "unchecked"
    """No blocking criterion applies to it: nothing was checked, so it neither passed nor failed."""


class CaseResult(Struct, frozen=True):
    """What was found for one case."""

    id: str
    status: CaseStatus
    location: Location | None = None
    passed: int = 0
    trials: int = 0
    errors: int = 0
    """Trials lost to infrastructure."""
    baseline_passed: int = 0
    baseline_trials: int = 0
    e_value: float | None = None
    reasons: tuple[str, ...] = ()
    """Why trials failed, worst first."""
    expected: tuple[tuple[ToolCall, ...] | None, ...] = ()
    """Expected calls, per turn."""
    actual: tuple[tuple[ToolCall, ...], ...] = ()
    """Calls of the worst candidate trial, per turn."""
    reference: tuple[tuple[ToolCall, ...], ...] = ()
    """Calls of a passing baseline trial, per turn, where one is stored."""
    scores: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """By criterion: the candidate's mean and the baseline's."""
    quarantine: str = ""
    """Owner, reason and expiry, where the case is quarantined."""
    expected_text: tuple[str | None, ...] = ()
    """Expected responses, per turn and cut to 2,000 characters; only where a failing criterion looks at them."""
    actual_text: tuple[str | None, ...] = ()
    """Responses of the worst candidate trial, likewise; empty where they were not kept."""
    duration: float | None = None
    """Seconds that the agent took for the candidate's trials together; None where it is not known of all."""
    improvement: float | None = None
    """E-value for passing more often than at the baseline; ``e_value`` is the same for passing less often."""
    crashes: int = 0
    """Trials in which the agent failed instead of answering; they are among ``trials``."""
    baseline_crashes: int = 0


class CrashFacts(Struct, frozen=True):
    """How often the agent failed instead of answering: exception, bad exit, 5xx, unreadable answer, time-out."""

    cases: tuple[str, ...]
    """The candidate's cases with such a trial, the most frequent first."""
    failed: int
    trials: int
    """Measured trials of these cases; ``failed`` are among them."""
    baseline_failed: int
    baseline_trials: int
    """The same cases at the baseline; 0 trials where none is stored."""
    message: str = ""
    """The commonest error, with its kind."""
    unexplained: tuple[str, ...] = ()
    """Cases that failed so, never did at the baseline, and were not cleared since: they keep a verdict from PASS."""
    doubt: str = ""
    """Why a block that needs these failures was not confirmed; empty where it was, or none needs them."""


class BaselineInfo(Struct, frozen=True):
    """What the candidate was compared with."""

    commit: str | None
    distance: int | None = None
    """First-parent commits between the commit measured against and the record found."""
    trials_per_case: float = 0.0
    records: int = 1
    source: str = ""
    missing: str = ""
    """Why there is none, where there is none."""


class SuiteResult(Struct, frozen=True):
    """The verdict on one suite, and everything that a report shows of it."""

    suite_id: str
    verdict: Verdict
    headline: str
    """One line: what happened."""
    criteria: tuple[CriterionResult, ...]
    cases: tuple[CaseResult, ...]
    baseline: BaselineInfo | None = None
    story: tuple[str, ...] = ()
    """How the verdict came about, in words."""
    changes: tuple[str, ...] = ()
    """What changed in the suite and its criteria against the baseline: new, removed, not comparable, loosened."""
    warnings: tuple[str, ...] = ()
    agent_runs: int = 0
    errors: int = 0
    """Trials that ended in an infrastructure error."""
    cost_usd: float | None = None
    judge_cost_usd: float | None = None
    duration: float = 0.0
    commit: str | None = None
    seed: int = 0
    accepted: str = ""
    """Who accepted a regression or a doubt and when, where someone did."""
    doubt: str = ""
    """Why a suite that would have passed is inconclusive: what it was to be held to is no longer compared, or gone."""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """The numbers behind the verdict: looks, p- and e-values, bounds, error budget; JSON values only."""
    further: tuple[SuiteResult, ...] = ()
    """The same record against further references, such as the anchor; the verdict is the worst of all."""
    reference: str = ""
    """What it was compared with, where it is one of several: ``anchor``."""
    decided_by: str = ""
    """The ``reference`` among ``further`` that verdict and headline are from; empty: they are this suite's own."""
    scope: str = ""
    """What of the suite was run, where it was not all: ``24 of 120 cases, tag smoke``; the headline ends with it."""
    tools: tuple[ToolTime, ...] = ()
    """Time per tool over the candidate's trials, the longest first; of the turns in which the agent times its tools."""
    crashes: CrashFacts | None = None
    """Where the agent failed instead of answering, on both sides; None where it never did in this run."""
    retried: int = 0
    """Attempts that ended in an infrastructure error and were repeated."""


class Result(Struct, frozen=True):
    """What a whole run of the gate says."""

    suites: tuple[SuiteResult, ...]
    verdict: Verdict
    exit_code: ExitCode
    command: str = ""
    """The command that reproduces it locally."""
    version: str = ""
    duration: float = 0.0
    record_paths: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """What went wrong after the verdict."""


MetricKind = Literal["binary", "bounded", "positive"]
"""What the decision engine needs to know of a scale."""


def kind_of(scale: Scale) -> MetricKind:
    if scale is Scale.BINARY:
        return "binary"
    if scale in (Scale.SECONDS, Scale.USD, Scale.COUNT):
        return "positive"
    return "bounded"


def acceptable(suite: SuiteResult) -> tuple[Verdict, ...]:
    """What of the suite someone may accept."""
    return (Verdict.REGRESSED, Verdict.INCONCLUSIVE) if suite.doubt else (Verdict.REGRESSED,)


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of the verdicts; PASS for none, so callers refuse emptiness before asking."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.PASS)
