"""The result of a run: judged suites with their criteria and cases. Facts; reports put them into words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from gate.errors import ExitCode
from gate.model.conversation import ToolCall, ToolTime
from gate.model.course import Course, ReplayedShare
from gate.model.criterion import Criterion
from gate.model.evidence import Outcome
from gate.model.finding import CaseTally, Finding, KindName
from gate.model.groups import Concentration, GroupKind
from gate.model.suite import Complexity, Location
from gate.model.verdict import Verdict


class Estimate(Struct, frozen=True):
    """A mean with its interval and the data behind it."""

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


class CalibratedJudge(Struct, frozen=True):
    """The agreement of a criterion's judge with people, and the criterion's estimates corrected for it."""

    labels: int
    agreed: int
    """Number of labelled answers on which judge and people agree."""
    kappa: float | None
    """Cohen's kappa: agreement beyond chance; None if all labels or all judgements are equal."""
    sensitivity: Estimate | None
    """The share of the answers passed by people that the judge passes, exact; ``n`` counts labels. None without such
    labels."""
    specificity: Estimate | None
    """The share of the answers failed by people that the judge fails."""
    candidate: Estimate | None = None
    """The candidate's mean as people would judge it, with the error of its trials and of the labels; None if it is not
    corrected. The criterion's own estimates are of uncorrected scores."""
    baseline: Estimate | None = None
    slope: float = 1.0
    """The factor by which a true change appears in the scores; the criterion's ``change`` is divided by it."""


class CriterionResult(Struct, frozen=True):
    """The result of one criterion over the suite."""

    criterion: Criterion
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    """Findings on the criterion; those with its own verdict are the reason for the verdict."""
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
    """Trials whose score is None with an error."""
    quantiles: tuple[tuple[float, Estimate], ...] = ()
    dimensions: Mapping[str, tuple[Estimate | None, Estimate | None]] = field(default_factory=dict)
    """The means of the candidate and the baseline in each dimension of a rubric or another composed score, 0 to 1."""
    crashes: int = 0
    """Trials without a score because the agent failed; a threshold counts them as the worst possible score."""
    not_compared: Finding | None = None
    """The reason why its baseline scores are not compared; such a criterion gets no tick, regardless of its verdict."""
    judge: CalibratedJudge | None = None
    """The agreement of a calibrated judge."""
    checked: bool = True
    """True if a comparison, a threshold or a limit judged it; if not, it gets no tick either."""
    compared: tuple[float, float] | None = None
    """The baseline's and the candidate's mean over the cases that both have; the estimates are over all cases of
    each."""

    @property
    def is_below(self) -> bool:
        """True if its mean, a limit or a hard rule failed, whatever its verdict."""
        return any(finding.verdict is Verdict.BELOW_THRESHOLD for finding in self.findings)

    @property
    def has_excused_mean(self) -> bool:
        """True if its mean misses the threshold, and passes only because the baseline's did too."""
        return any(finding.kind == "mean" and finding.is_excused for finding in self.findings)

    def finding(self, kind: KindName, verdict: Verdict | None = None) -> Finding | None:
        """Return the first finding of a kind, with this verdict if one is given; None if there is none."""
        for finding in self.findings:
            if finding.kind == kind and verdict in (None, finding.verdict):
                return finding
        return None


class GroupResult(Struct, frozen=True):
    """The result of the judged cases that share a tag or a complexity; for display only."""

    kind: GroupKind
    name: str
    cases: int
    candidate: Estimate | None
    """Pass rate over the trials of whole epochs."""
    baseline: Estimate | None
    """The mean of the group's paired cases."""
    change: Estimate | None
    """Candidate minus baseline over paired cases, with a 90 % interval for this group alone; level 0 if unknown."""
    lost: int = 0
    """Paired cases that pass less often than at the baseline, however slightly."""
    gained: int = 0
    """Paired cases that pass more often."""
    broken: int = 0
    """Cases named as broken."""
    scores: Mapping[str, tuple[Estimate | None, Estimate | None]] = field(default_factory=dict)
    """The candidate's mean and the baseline's, by criterion."""


class CaseStatus(str, Enum):
    BROKEN = "broken"
    """Named as worse than at the baseline, at a false discovery rate of at most 10 %."""
    SUSPECT = "suspect"
    FLAKY = "flaky"
    NEVER_PASSED = "never_passed"
    """No trial passed, now or at the baseline: nothing got worse, but nothing is ok."""
    OK = "ok"
    NEW = "new"
    EDITED = "edited"
    """Its content differs at the baseline."""
    REMOVED = "removed"
    ERROR = "error"
    FAILED = "failed"
    """A hard failure, or a miss of the case's own threshold."""
    QUARANTINED = "quarantined"
    UNCHECKED = "unchecked"
    """No blocking criterion applies to it: nothing was checked, so it neither passed nor failed."""


class CaseResult(Struct, frozen=True, gc=False):
    """The result of one case."""

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
    """The reasons why trials failed, worst first."""
    expected: tuple[tuple[ToolCall, ...] | None, ...] = ()
    """Expected calls per turn."""
    actual: tuple[tuple[ToolCall, ...], ...] = ()
    """Calls of the worst candidate trial, per turn."""
    reference: tuple[tuple[ToolCall, ...], ...] = ()
    """Calls of a passing baseline trial, per turn, if one is stored."""
    scores: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    """The candidate's mean and the baseline's, by criterion."""
    quarantine: str = ""
    """Owner, reason and expiry, if the case is quarantined."""
    expected_text: tuple[str | None, ...] = ()
    """Expected responses per turn, cut to 2,000 characters; only if a failing criterion reads them."""
    actual_text: tuple[str | None, ...] = ()
    """Responses of the worst candidate trial, in the same form; empty if they were not kept."""
    duration: float | None = None
    """Total seconds that the agent took for the candidate's trials; None if any is unknown."""
    improvement: float | None = None
    """E-value for passing more often than at the baseline; ``e_value`` is the same for passing less often."""
    crashes: int = 0
    """Trials in which the agent failed instead of answering, included in ``trials``."""
    baseline_crashes: int = 0
    tags: tuple[str, ...] = ()
    complexity: Complexity = Complexity.MEDIUM
    log: str = ""
    """The end of the agent's output other than its answers in the worst candidate trial, with its traceback."""
    same_world: bool = False
    """True if each trial sent the model the same requests as a recorded trial, and was answered from it."""
    difference: str = ""
    """The first difference from the recording, if a request went live; empty if unknown."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """The case's own thresholds, by criterion."""


class CrashFacts(Struct, frozen=True):
    """Failures of the agent to answer: exception, bad exit, 5xx, unreadable answer, time-out."""

    cases: tuple[str, ...]
    """The candidate's cases with such a trial, most frequent first."""
    failed: int
    trials: int
    """Measured trials of these cases, including ``failed``."""
    baseline_failed: int
    baseline_trials: int
    """Trials of the same cases at the baseline; 0 if none is stored."""
    message: str = ""
    """The most common error, with its kind."""
    unexplained: tuple[str, ...] = ()
    """Cases that failed this way, never did at the baseline, and were not cleared since: they prevent the verdict
    PASS."""


class BaselineInfo(Struct, frozen=True):
    """The baseline that the candidate was compared with."""

    commit: str | None
    distance: int | None = None
    """First-parent commits between the base and the record that was found."""
    trials_per_case: float = 0.0
    records: int = 1
    source: str = ""
    missing: str = ""
    """The reason why there is no baseline; empty if there is one."""
    none_yet: bool = False
    """True if there is no baseline because nothing was ever stored."""
    never_stored: int = 0
    """Commits of the base's history that have the configuration, if no record of the suite was ever stored."""
    of_itself: bool = False
    """True if there is no baseline because everything stored was measured at this very commit, or by this very run."""
    provenance: Literal["", "proven", "unproven"] = ""
    """``proven`` if a trusted job is known to have measured all of it; empty if not looked up, or without a
    baseline."""
    dirty: bool = False
    """True if its newest record was measured with uncommitted changes."""
    fell_short: str = ""
    """The verdict of its record if it fell short when it was stored and nobody accepted that; else empty."""


class StoredForLater(Struct, frozen=True):
    """The epochs that a run on the default branch always makes, so that later changes have trials to compare with."""

    trials: int
    """The fewest measured trials of any case in this record."""
    epochs: int
    """Further epochs."""
    runs: int


class SuiteResult(Struct, frozen=True):
    """The verdict on one suite, and everything that reports show of it."""

    suite_id: str
    verdict: Verdict
    cause: Finding
    """The finding that decides the verdict; reports open with it."""
    criteria: tuple[CriterionResult, ...]
    cases: tuple[CaseResult, ...]
    baseline: BaselineInfo | None = None
    has_baseline: bool = True
    """True if there was any baseline data to compare with."""
    course: Course | None = None
    """The runs of the verdict; None for a shard, which decides nothing."""
    changes: tuple[Finding, ...] = ()
    """Changes of the suite and its criteria since the baseline: new, removed, not comparable, loosened."""
    warnings: tuple[Finding, ...] = ()
    """Findings that weaken the verdict without changing it."""
    agent_runs: int = 0
    errors: int = 0
    """Trials that ended in an infrastructure error."""
    cost_usd: float | None = None
    """The known part of the agent's cost: reported, or its tokens at list price."""
    cost_basis: Literal["", "reported", "list price", "partly list price"] = ""
    """The source of ``cost_usd``; empty if it is unknown."""
    cost_unknown: int = 0
    """Runs that answered or failed, and whose cost is not or not fully known."""
    judge_cost_usd: float | None = None
    duration: float = 0.0
    commit: str | None = None
    dirty: bool = False
    """True if the work tree differed from that commit, so that uncommitted changes were measured."""
    subject: str = ""
    """First line of the commit's message."""
    branch: str = ""
    """Name of the measured branch."""
    seed: int = 0
    accepted: str = ""
    """The person who accepted a loss or a gap, and the time; empty if nobody did."""
    if_accepted: Verdict = Verdict.PASS
    """The verdict that remains once everything acceptable is accepted."""
    below: tuple[str, ...] = ()
    """Blocking criteria that miss a threshold, under any rules and against any reference; nobody can accept these."""
    expired: str = ""
    """A description of an acceptance of this, or of its baseline, that has ended."""
    outcome: Outcome | None = None
    """The engine's answer on the pairing, and the numbers behind it; None if nothing is paired."""
    finds: float | None = None
    """The smallest drop of the pass rate, 0 to 1, that the rule finds in four of five changes of a suite that passes;
    None if there is none, or nothing is paired."""
    further: tuple[SuiteResult, ...] = ()
    """The results against further references, such as the anchor; the verdict is the worst of all."""
    reference: str = ""
    """The name of the reference if the suite was compared with several: ``anchor``."""
    decided_by: str = ""
    """The ``reference`` among ``further`` that verdict and headline come from; empty: they are this suite's own."""
    scope: str = ""
    """The part of the suite that was run, if not all of it: ``24 of 120 cases were run: tag smoke``; the headline
    ends with it."""
    tools: tuple[ToolTime, ...] = ()
    """Time per tool over the candidate's trials, slowest first; only of turns in which the agent times its tools."""
    crashes: CrashFacts | None = None
    """The agent's failures to answer, on both sides; None if it never failed in this run."""
    retried: int = 0
    """Attempts that ended in an infrastructure error and were repeated."""
    stored: StoredForLater | None = None
    """Further epochs run for later changes; ``agent_runs`` and costs include them, the verdict does not."""
    started: float = 0.0
    """Unix time at which its record was begun; 0 if the record does not tell."""
    groups: tuple[GroupResult, ...] = ()
    """Results by tag and by complexity, those with the largest losses first; at most the largest 200."""
    further_groups: int = 0
    """Number of groups left out."""
    concentrated: tuple[Concentration, ...] = ()
    """The groups in which a loss is concentrated, proven or not; mostly none."""
    replayed: ReplayedShare | None = None
    """The share answered from recordings; None if nothing could be replayed."""
    trend: tuple[float, ...] = ()
    """Pass rate of each earlier stored run, oldest first, then of this one; empty if there are fewer than two.

    Those are commits of the default branch if the store has them, else the runs behind the baseline.
    """

    def warning(self, kind: KindName) -> Finding | None:
        """Return the first warning of a kind; None if there is none."""
        return next((one for one in self.warnings if one.kind == kind), None)

    def row(self, name: str) -> CriterionResult | None:
        """Return the result of a criterion; None if the suite has no such criterion."""
        for row in self.criteria:
            if row.criterion.name == name:
                return row
        return None

    @property
    def gained(self) -> Sequence[CaseTally]:
        """Return the cases for which others were lost in a trade; empty without a trade."""
        if self.cause.kind != "cases_broke":
            return ()
        gained: Sequence[CaseTally] = self.cause["gained"]
        return gained

    @property
    def trade(self) -> Finding | None:
        """Return the finding of a proven loss that is a trade of some cases for others; None if it is not."""
        return self.cause if self.gained else None

    @property
    def is_acceptable(self) -> bool:
        """True if somebody may accept the verdict: a loss or an incomplete comparison, without a missed threshold."""
        can = self.verdict in (Verdict.REGRESSED, Verdict.NOT_COMPARED)
        return can and not self.below and self.if_accepted is not Verdict.BELOW_THRESHOLD

    @property
    def beyond_accepting(self) -> tuple[str, ...]:
        """Return the blocking criteria that nobody can accept: those below, or else those excused only by the
        baseline."""
        if self.below or self.if_accepted is not Verdict.BELOW_THRESHOLD:
            return self.below
        rows = [row for one in (self, *self.further) for row in one.criteria if row.criterion.blocking]
        names = [row.criterion.name for row in rows if row.has_excused_mean]
        return tuple(dict.fromkeys(names))

    @property
    def deciding(self) -> SuiteResult:
        """Return the comparison that verdict and headline come from: the suite itself, or one of its further ones."""
        return next((one for one in self.further if self.decided_by and one.reference == self.decided_by), self)

    @property
    def commits_before_base(self) -> int:
        """Return how far the baseline is behind the base commit; if it is, losses of other changes count, too."""
        return 0 if self.baseline is None or self.reference else self.baseline.distance or 0

    @property
    def standing(self) -> Verdict:
        """Return the verdict that counts: the remaining one if the suite was accepted."""
        return self.if_accepted if self.accepted else self.verdict


class Result(Struct, frozen=True):
    """The result of a whole run of the gate."""

    suites: tuple[SuiteResult, ...]
    verdict: Verdict
    exit_code: ExitCode
    command: str = ""
    """The command that reproduces it locally."""
    version: str = ""
    duration: float = 0.0
    record_paths: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    """Problems that occurred after the verdict."""

    def __bool__(self) -> bool:
        """Refuse ``assert gate.run(…)``, which would hold whatever the verdict is."""
        raise TypeError("a Result is neither true nor false: compare its exit_code with 0")


def accepted_by(suite: SuiteResult, by: str) -> SuiteResult:
    """Return the suite as accepted. A suite that nobody may accept is returned as it is, with a warning."""
    if suite.is_acceptable:
        return replace(suite, accepted=by)
    if not suite.below and suite.if_accepted is not Verdict.BELOW_THRESHOLD:
        return suite
    refused = Finding.of("not_accepted", by=by, criteria=suite.beyond_accepting)
    return replace(suite, warnings=(*suite.warnings, refused))
