"""What is known of a decided suite, as facts with numbers: the cause of its verdict, what changed, what weakens it.

Closed unions, one struct per kind. Reports make words of them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gate.model.findings import Apart, CaseTally, ChecksFellAway, Fact, QuantileExcused, TrialExcused, Unconfirmed
from gate.model.scale import Scale
from gate.model.verdict import Verdict


class Stated(Fact, frozen=True):
    """What a run's terms state in words of their own: of configuration, plan or rules. Kept so in the record."""

    text: str


# --- why a suite could not be measured ------------------------------------------------------------


class NoCases(Fact, frozen=True):
    """Nothing is there to judge."""


class AllQuarantined(Fact, frozen=True):
    """Every case is in quarantine."""


class Outage(Fact, frozen=True):
    """Most of what answered at the baseline now fails alike; without a baseline, every case fails."""

    cases: int
    of: int
    compared: bool
    """Whether there is a baseline at which they answered."""
    error: str
    """The commonest error, with its kind."""


class FailuresNotConfirmed(Fact, frozen=True):
    """A block would rest on failures of the agent, and asking those cases again did not confirm them."""

    failed: int
    """Trials in which the agent failed, without those of the confirmation."""
    why: Unconfirmed


class UnexplainedFailures(Fact, frozen=True):
    """The agent fails in cases in which it never did at the baseline, and was not cleared since."""

    cases: int


class LostDecide(Fact, frozen=True):
    """Counted as failed, the trials that could not be measured turn the verdict."""

    trials: int
    """That infrastructure lost."""
    unscored: int = 0
    """That were answered, and of which a blocking criterion's score could not be computed; those of the baseline are
    counted as failed likewise."""


class Collapsed(Fact, frozen=True):
    """Every value of a blocking criterion is at its worst, where the baseline's were not, and nothing proves a loss.

    The suite is too small, or its repeats are copies of one answer, as with a cache or a deterministic agent.
    """

    criterion: str
    cases: int
    trials: int
    copies: bool
    """Whether repeats are copies of one answer."""


class TooManyErrors(Fact, frozen=True):
    """More trials ended in infrastructure errors than may."""

    share: float
    most: float
    error: str
    """The commonest; empty where none is known."""


class CasesNotMeasured(Fact, frozen=True):
    """Cases of which no trial could be measured."""

    cases: tuple[str, ...]
    of: int
    error: str


class CaseMostlyLost(Fact, frozen=True):
    """A case of which most trials ended in infrastructure errors."""

    case_id: str
    lost: int
    trials: int
    error: str


class CaseNotRecorded(Fact, frozen=True):
    """A case that asked for what its recording does not hold, where nothing may go out in its place.

    It was the change that asked for it, so what was lost is no sample of what would have been.
    """

    case_id: str
    lost: int
    trials: int
    error: str


class CasesNotRun(Fact, frozen=True):
    """Of a shard: cases of its own that were not run."""

    cases: tuple[str, ...]
    of: int


Problem = (
    NoCases
    | AllQuarantined
    | Outage
    | FailuresNotConfirmed
    | UnexplainedFailures
    | LostDecide
    | Collapsed
    | TooManyErrors
    | CasesNotMeasured
    | CaseNotRecorded
    | CaseMostlyLost
    | CasesNotRun
)

# --- what the base holds and was not compared ------------------------------------------------------


class CriteriaNotCompared(Fact, frozen=True):
    """What the baseline measured of these blocking criteria is not compared."""

    criteria: tuple[str, ...]


class TooManyCasesGone(Fact, frozen=True):
    """More than a tenth of the cases that passed at the base, and at least two of them, are no longer in the suite."""

    cases: tuple[str, ...]
    of: int
    """Cases that passed at the base."""


class EditedCasesMiss(Fact, frozen=True):
    """Cases whose content was edited, that passed at the base and miss now."""

    cases: tuple[str, ...]


class NothingPaired(Fact, frozen=True):
    """The base holds cases, and none of them is compared."""

    cases: int


Gap = Stated | CriteriaNotCompared | TooManyCasesGone | EditedCasesMiss | NothingPaired | ChecksFellAway

# --- what the verdict rests on --------------------------------------------------------------------


class Uncompared(Struct, frozen=True):
    """How many cases a baseline says nothing about, or has alone."""

    new: int = 0
    edited: int = 0
    removed: int = 0


class CouldNotMeasure(Fact, frozen=True):
    problem: Problem


class ShardMeasured(Fact, frozen=True):
    """A shard knows its own cases alone, and decides nothing."""

    shard: int
    of: int
    trials: int
    cases: int


class ShardNotMeasured(Fact, frozen=True):
    shard: int
    of: int
    problem: Problem


class ThresholdsHold(Fact, frozen=True):
    """Nothing is paired with a baseline, and every threshold holds."""

    checked: int
    """Cases to which a blocking criterion applies."""
    cases: int
    uncompared: Uncompared


class NoWorse(Fact, frozen=True):
    """No worse than the baseline."""

    cases: int
    rate_cases: int
    """Cases behind the interval of the pass rate."""
    rate_low: float | None
    """The bad end of that interval, 0–1; None: it is not bounded."""
    uncompared: Uncompared


class NothingDecides(Fact, frozen=True):
    """Nothing but a baseline could fail the suite, and there is none."""


class NotEnoughEvidence(Fact, frozen=True):
    criteria: tuple[str, ...]
    suspects: tuple[str, ...]


class CasesNeverPass(Fact, frozen=True):
    """They passed in each baseline trial and fail in each of many now, with a baseline too thin to prove it."""

    cases: tuple[CaseTally, ...]


class Fell(Struct, frozen=True):
    """The mean score of a case at the baseline, and now."""

    case_id: str
    before: float
    now: float


class CasesBroke(Fact, frozen=True):
    cases: tuple[str, ...]
    moved: tuple[CaseTally, ...] = ()
    """The same cases with what proves it."""
    of: int = 0
    """Cases that are compared."""


class SuiteGotWorse(Fact, frozen=True):
    """No case can be named; the first criterion's own findings say how far."""

    criteria: tuple[str, ...]
    by_mean: bool = True
    """Whether a lower mean proves it; else large drops of a few cases do."""
    perhaps_drift: bool = False
    """Whether only stored trials prove it, so that a provider that changed since looks the same."""
    suspects: tuple[CaseTally, ...] = ()
    """Of the pass rate: the cases with the most evidence against them, the strongest first."""
    fell: tuple[Fell, ...] = ()
    """Of another criterion: the cases whose score of it fell most. It is the first that has no part among them."""
    missed: tuple[str, ...] = ()
    """Blocking criteria that fail whatever the baseline did."""
    drift_moot: bool = False
    """Whether a base that can be run was not asked about a drift, since these fail anyway."""


class BaselineMoved(Fact, frozen=True):
    """These got worse against the stored baseline, and are no worse than what the baseline's agent does now."""

    criteria: tuple[str, ...]
    before: bool = False
    """Whether they are no worse than in the newest of the stored runs; what the agent does now was not asked."""


class ControlFell(Fact, frozen=True):
    """Cases that passed in each stored trial, and fail in each trial now: the change's, and the base commit's agent's.

    Then that agent is no control: the provider moved, or it is not what was stored.
    """

    cases: tuple[str, ...]


class CopiesLost(Fact, frozen=True):
    """Cases that passed each time and now fail each time, of an agent whose repeats within a run are identical.

    A cache that drew worse answers looks like this, and so does a deterministic agent that broke.
    """

    cases: tuple[str, ...]


class TradedOff(Fact, frozen=True):
    """Cases are proven worse and others better, and no mean that is compared fell."""

    lost: tuple[CaseTally, ...]
    gained: tuple[CaseTally, ...]
    named: bool
    """Whether the lost cases are named, at a false discovery rate of at most 10 %; else they are the most suspect ones
    of a loss that is proven."""
    gained_named: bool
    """True if the gained cases are named."""


class CriterionFails(Fact, frozen=True):
    criterion: str


class CriterionNotMeasured(Fact, frozen=True):
    criterion: str


class NothingPasses(Fact, frozen=True):
    """There is no baseline, and no trial passes."""

    trials: int


class NotShownFixed(Fact, frozen=True):
    """An earlier measurement of this change was regressed, and none since has passed, this one included."""

    measurements: int
    """How many measurements ago that was; 1: the one before."""


class SameAgent(Fact, frozen=True):
    """The agent is the one of an earlier commit, whose stored trials are this commit's: nothing was run."""

    commit: str
    fell_short: bool = False
    """Whether they fell short when they were stored, which nobody accepted: that decides."""


class Incomplete(Fact, frozen=True):
    """Something that the base holds was not compared."""

    gaps: tuple[Gap, ...]


class CutShort(Fact, frozen=True):
    """The run was stopped before the first decision could be taken."""

    why: str
    epochs: int
    wanted: int


class AgentFails(Fact, frozen=True):
    """The confirmation alone proves that the agent fails where it answered at the baseline."""

    p: float


Cause = (
    CouldNotMeasure
    | ShardMeasured
    | ShardNotMeasured
    | ThresholdsHold
    | NoWorse
    | NothingDecides
    | NotEnoughEvidence
    | CasesNeverPass
    | CasesBroke
    | SuiteGotWorse
    | TradedOff
    | BaselineMoved
    | CriterionFails
    | CriterionNotMeasured
    | NothingPasses
    | NotShownFixed
    | SameAgent
    | Incomplete
    | ControlFell
    | CopiesLost
    | CutShort
    | AgentFails
)


class Course(Struct, frozen=True):
    """What was run."""

    epochs: int = 0
    """Trials of each judged case in epochs."""
    cases: int = 0
    """Judged cases."""
    rerun_cases: int = 0
    rerun_least: int = 0
    rerun_most: int = 0
    """Reruns of a suspicious case."""
    runs: int = 0
    """Agent runs, both sides."""
    baseline_runs: int = 0
    fixed_runs: int = 0
    """What the fixed design would take that runs are compared with."""
    concurrent: bool = False
    """Whether both commits were run now."""
    stopped: str = ""
    """Why the run ended early; empty: it did not."""
    alpha: float = 0.0
    """The job's bound on the probability that an unchanged agent is called regressed."""
    suites: int = 1
    """Suites of the job, which share it."""
    family: int = 1
    """Jobs of the matrix, which share it."""
    reruns: int = 0
    """Reruns of all suspicious cases together."""
    baseline_reruns: int = 0
    """Runs of the baseline's agent beside them."""
    confirming: int = 0
    """Runs of both sides that confirm failures of the agent."""
    baseline_confirming: int = 0
    """Those of the baseline's agent among them."""
    epoch_runs: int | None = None
    """Runs of the judged cases in epochs; None: all cases in each. An epoch may leave cases out, or be cut short."""
    baseline_epochs: int = 0
    """Runs of the baseline's agent in epochs."""
    quarantined: int = 0
    """Runs of cases in quarantine, which are not judged."""
    repeating: int = 0
    """Runs of both sides that tell whether repeated trials are draws of their own."""
    baseline_repeating: int = 0
    drifting: int = 0
    """Runs of both sides that tell the change from a drift of the provider."""
    baseline_drifting: int = 0
    again: int = 0
    """Runs of both sides in place of trials that were lost to infrastructure; no other count has them but ``runs``."""
    baseline_again: int = 0


class LiveCase(Struct, frozen=True):
    """A case that asked the real model or tools for something."""

    case_id: str
    runs: int
    """Its trials that did."""
    calls: int
    """What they asked for."""
    difference: str = ""
    """What differed first from what was recorded; empty where that is not known."""


class ReplayedShare(Struct, frozen=True):
    """How much of what this run asked of the outside world was answered from the baseline's recordings."""

    cases: int
    """Judged cases that were run."""
    same: int
    """Those in all of whose trials the model was asked the same things, and answered from recordings."""
    runs: int
    """Trials that asked the real model or tools for something."""
    calls: int
    """What they asked for."""
    replayed: int
    """What was answered from recordings."""
    saved_usd: float | None = None
    """What that cost when it was recorded, as far as it is known; None: not known."""
    live: tuple[LiveCase, ...] = ()
    """The other cases."""


# --- what changed in the suite and its criteria ---------------------------------------------------


class AnsweredBy(Fact, frozen=True):
    """Another model, or another system of the provider, answers than at the baseline."""

    what: Literal["model", "system"]
    now: tuple[str, ...]
    before: tuple[str, ...]


class ToolsChanged(Fact, frozen=True):
    """MCP servers describe their tools otherwise than they did at the baseline."""

    servers: tuple[str, ...]
    changes: tuple[str, ...] = ()
    """Which tool of which server, and which words of it; empty where the recordings are not there to say so."""


class NewCases(Fact, frozen=True):
    cases: tuple[str, ...]


class EditedCases(Fact, frozen=True):
    cases: tuple[str, ...]


class RenamedCases(Fact, frozen=True):
    cases: tuple[tuple[str, str], ...]
    """(id at the baseline, id now)."""


class RemovedCases(Fact, frozen=True):
    cases: tuple[str, ...]


class CriterionApart(Fact, frozen=True):
    """What the baseline measured of a criterion is not compared."""

    criterion: str
    why: Apart


class RemovedCriteria(Fact, frozen=True):
    criteria: tuple[str, ...]


class NewCriteria(Fact, frozen=True):
    criteria: tuple[str, ...]


class ByBaseRules(Fact, frozen=True):
    """Judged by the base's own rules; under the change's stricter ones it would have had this verdict."""

    verdict: Verdict


class BaseRunBeside(Fact, frozen=True):
    """No baseline is stored, so the base commit's agent was run beside: the change is compared with it."""

    commit: str
    without_rules: bool = False
    """Whether the base has no configuration, so that its agent was held to the change's rules."""


RuleChange = (
    AnsweredBy
    | BaseRunBeside
    | ToolsChanged
    | NewCases
    | EditedCases
    | RenamedCases
    | RemovedCases
    | CriterionApart
    | RemovedCriteria
    | NewCriteria
    | ByBaseRules
    | Stated
)

# --- what weakens a verdict without changing it ---------------------------------------------------


class AgentFailures(Fact, frozen=True):
    """The agent failed in trials: the suite's ``crashes`` say how often."""


class ThresholdExcused(Fact, frozen=True):
    """A mean that misses its threshold as the baseline's did."""

    criterion: str
    value: float
    before: float
    threshold: float


class LimitExcused(Fact, frozen=True):
    """A limit that the baseline broke too."""

    criterion: str
    found: TrialExcused | QuantileExcused


class FewCases(Fact, frozen=True):
    cases: int
    blind: bool
    """So few that the margin of the pass rate is most of it."""


class ThinBaseline(Fact, frozen=True):
    cases: int
    """Cases with fewer stored trials than ``wanted``."""
    wanted: int
    """What `baseline.trials` asks for, and at least what the promise needs."""
    least: int
    """Trials of the case that has the fewest."""
    typical: int = 0
    """Trials of the middle case."""
    blind: bool = False
    """Whether a single case that breaks outright could not be proven with so many."""
    drop: float | None = None
    """The drop of the pass rate, 0–1, that one look finds four times in five; about. None: not known."""
    grows: bool = True
    """Whether runs on the default branch store more; else `baseline.trials` asks for no more."""


class Wording(Struct, frozen=True):
    """How one case is worded now, and how it was at the baseline."""

    case_id: str
    before: str
    """Empty if it is not known: stored baselines keep no texts."""
    now: str


class QuietRise(Fact, frozen=True):
    """A criterion that does not block got worse, beyond its margin and beyond noise."""

    criterion: str
    change: float
    wording: Wording | None = None
    """Of a criterion of word overlap: the case that lost most."""


class ScoresUnmeasured(Fact, frozen=True):
    criterion: str
    lost: int
    of: int


class TrialsLost(Fact, frozen=True):
    """Trials that ended in infrastructure errors and left no score."""

    lost: int
    of: int


class ProviderMoved(Fact, frozen=True):
    """Since when the stored runs of one agent score otherwise, so that its provider changed."""

    since: float
    """Unix time of the first run after it."""
    commit: str | None
    """That run's."""
    metric: str
    scale: Scale
    change: float
    """In the metric's unit; of the pass rate 0–1."""
    p: float
    runs: int
    """Stored runs that were looked at."""
    baseline_is_older: bool = False
    """Whether the baseline that is compared with was measured before it."""


class Unproven(Fact, frozen=True):
    """Baselines of which nothing shows which job measured them, or runs of them."""

    compared: tuple[str, ...] = ()
    """Commits of which such a record is compared with all the same."""
    told: tuple[tuple[str, str], ...] = ()
    """What was left out or is doubtful, each with why."""
    why: str = ""
    """Why the compared ones are not proven, where that is known."""


class MeasuredBefore(Fact, frozen=True):
    """Earlier measurements of the same change that this one does not continue."""

    verdicts: tuple[Verdict, ...]
    """What the newest of them come to as they are judged now, the newest first."""
    total: int
    """All of them."""
    fingerprinted: bool
    """Whether the agent has a fingerprint; then theirs is another one."""


Note = str | ProviderMoved | Unproven | MeasuredBefore
"""What a run's terms tell its reader besides: words of its own, or a fact."""


class FailuresExcused(Fact, frozen=True):
    """Trials in which the agent failed and that do not count, since it was down."""

    failed: int
    of: int
    """Trials of that side."""
    error: str
    """The commonest, with its kind."""
    at_base: bool = False
    """Whether it was the base commit's agent."""


class BaseGone(Fact, frozen=True):
    """The base commit's agent did not answer, and was asked no more."""

    trials: int
    """Trials that were asked of it in vain."""
    error: str


class AttemptsRepeated(Fact, frozen=True):
    """Attempts that were repeated after an infrastructure error."""

    attempts: int


class RepeatsAlike(Fact, frozen=True):
    """Repeated trials give identical answers."""

    cached: bool
    """Five times faster, too: a response cache answers."""


class RepeatsOnce(Fact, frozen=True):
    """Repeats within a run give one answer, and no other run gives it: they count as one trial."""

    cases: int
    of: int
    """Cases that were asked more than once in a run."""
    lost: tuple[str, ...] = ()
    """Cases that passed each time and now fail each time, where that may be a cache or a break."""


class CallsNotReported(Fact, frozen=True):
    """Only the baseline shows that tool calls are reported."""

    criteria: tuple[str, ...]


class OneAnswer(Fact, frozen=True):
    """All answers are the same, and criteria of absence hold for it."""

    answers: int
    cases: int
    criteria: tuple[str, ...]


class CasesUnchecked(Fact, frozen=True):
    """No blocking criterion applies to these cases."""

    cases: tuple[str, ...]
    were_checked: bool = False
    """At the baseline one applied to their answers: what is checked depends on what is said."""


class NotAccepted(Fact, frozen=True):
    """Someone accepted it, and that does not count: these criteria miss a threshold, a limit or a hard rule.

    None is named if no trial passes, or if they miss it under other rules alone.
    """

    by: str
    criteria: tuple[str, ...]


Caution = (
    AgentFailures
    | ThresholdExcused
    | LimitExcused
    | FewCases
    | ThinBaseline
    | QuietRise
    | ScoresUnmeasured
    | TrialsLost
    | FailuresExcused
    | BaseGone
    | ProviderMoved
    | Unproven
    | MeasuredBefore
    | AttemptsRepeated
    | RepeatsAlike
    | RepeatsOnce
    | CallsNotReported
    | OneAnswer
    | CasesUnchecked
    | NotAccepted
    | Stated
)
