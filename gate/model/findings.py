"""The findings on a criterion, as facts with numbers: a closed union, one struct per kind. Reports word them.

Changes are as a reader means them: candidate minus baseline, relative for money, time and counts.
"""

from __future__ import annotations

import re
from typing import ClassVar

from msgspec import Struct

from gate.model.evidence import Stage
from gate.model.verdict import Verdict


def kind_name(name: str) -> str:
    """``MeanHolds`` → ``mean_holds``, the ``kind`` of a fact in JSON."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Fact(Struct, frozen=True, tag_field="kind", tag=kind_name):
    """Something that was found; in JSON its ``kind`` names it."""


# --- why something is not compared with the baseline ----------------------------------------------


class ScorerChanged(Fact, frozen=True):
    """The criterion's options, scorer or judge changed."""


class CasesGone(Fact, frozen=True):
    """No case on which the baseline measured it is compared."""

    cases: int


class NoLongerMeasured(Fact, frozen=True):
    """The baseline's criterion is not one of this record's."""


class ComparedWithout(Fact, frozen=True):
    """Of the pass rate: these blocking criteria say nothing in its comparison."""

    criteria: tuple[str, ...]


class ChecksFellAway(Fact, frozen=True):
    """A blocking criterion has nothing to check in cases in which it always had at the baseline."""

    criterion: str
    cases: tuple[str, ...]
    of: int
    """Cases in which it applied at the baseline."""


Apart = ScorerChanged | CasesGone | NoLongerMeasured | ComparedWithout | ChecksFellAway

# --- why a block that needs failures of the agent was not confirmed -------------------------------


class NothingRerun(Fact, frozen=True):
    """Nothing could be run again a while later."""


class ConfirmationLost(Fact, frozen=True):
    """Too many of the confirming trials were lost to infrastructure."""

    lost: int
    trials: int


class FailuresGone(Fact, frozen=True):
    """The failing cases answered a while later."""

    trials: int


class PerhapsProvider(Fact, frozen=True):
    """The failures came again, and what is compared with them fails too often to tell the agent from its provider."""

    failed: int
    trials: int
    other_failed: int
    other_trials: int
    """Of the base commit's agent, run now, or of cases that had answered; 0: nothing was run beside."""
    at_base: bool


class SlowedDown(Fact, frozen=True):
    """Answers took longer than the latency margin allows: seconds now and at the baseline."""

    now: float
    before: float


Unconfirmed = NothingRerun | ConfirmationLost | FailuresGone | PerhapsProvider | SlowedDown

# --- findings of a criterion ----------------------------------------------------------------------


class Finding(Fact, frozen=True):
    """One thing that was found of a criterion."""

    verdict: ClassVar[Verdict] = Verdict.PASS
    settles: ClassVar[bool] = False
    """Whether it is final: no further trial can change it."""


class NothingHeld(Finding, frozen=True):
    """Nothing was held against the criterion: no threshold, no comparison. No tick stands beside it."""


class SameTrials(Finding, frozen=True):
    """The trials are the stored ones themselves, so nothing of the criterion can be lost."""


class NotApplied(Finding, frozen=True):
    """It applies to none of the selected cases."""

    verdict: ClassVar[Verdict] = Verdict.NOT_APPLIED


class NothingChecked(Finding, frozen=True):
    """Of the pass rate: no blocking criterion applies to any of the cases."""

    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED


class NoTrialMeasured(Finding, frozen=True):
    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED


class NeverFailed(Finding, frozen=True):
    """A hard rule that no trial broke."""


class HardFailure(Finding, frozen=True):
    """A hard rule that a trial broke."""

    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD
    settles: ClassVar[bool] = True

    case_id: str
    more: int
    """Further cases that broke it."""
    reason: str
    """The metric's own; empty where it gave none."""


class CasesNotScored(Finding, frozen=True):
    """Cases that were answered, and of which no trial has a score."""

    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED

    case_id: str
    cases: int
    of: int
    error: str


class ScoresLost(Finding, frozen=True):
    """Too many scores that ended in an error."""

    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED

    lost: int
    of: int
    most: float
    """The share that may be lost."""
    error: str


class AppliesToNone(Finding, frozen=True):
    """No case states what the criterion compares with."""

    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED


class AppliesNoMore(Finding, frozen=True):
    """It went with the cases that it applied to."""

    verdict: ClassVar[Verdict] = Verdict.NOT_COMPARED


class HeldMean(Struct, frozen=True):
    """The mean over cases that is held against a threshold."""

    value: float
    threshold: float
    cases: int
    case_id: str = ""
    """The case whose own threshold it is; empty: the suite's."""
    failed: int = 0
    """Trials in which the agent failed; each counts as ``failed_as``."""
    failed_as: float = 0.0
    before: float | None = None
    """The baseline's mean, where it missed the threshold too."""
    new_cases: int = 0
    """Cases without a baseline, where these alone are held to it."""
    new_value: float = 0.0
    measured: float | None = None
    """Of a calibrated judge: the plain mean of the scores, where the others are corrected."""


class MeanHolds(Finding, frozen=True):
    mean: HeldMean


class MeanExcused(Finding, frozen=True):
    """It misses its threshold as the baseline did: below, as before."""

    mean: HeldMean


class MeanMisses(Finding, frozen=True):
    """The mean is on the wrong side of the suite's threshold."""

    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD

    mean: HeldMean
    trials: int
    error: float | None
    """Standard error of the mean over epochs of an unchanged agent; None if it is not known."""
    base_cases: bool = False
    """Whether the mean is over the base's cases alone: new cases lift it over the threshold."""


class MeanUnsure(Finding, frozen=True):
    """The mean misses its threshold, and would not if every trial that could not be measured were a hit."""

    verdict: ClassVar[Verdict] = Verdict.NOT_MEASURED

    mean: HeldMean
    lost: int
    """Trials that could not be measured."""


class OwnThresholdMissed(Finding, frozen=True):
    """A case misses a threshold of its own, beyond chance or in every one of at least three trials."""

    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD
    settles: ClassVar[bool] = True

    mean: HeldMean
    trials: int
    more: int = 0
    """Further cases that miss their own."""


class OwnThresholdsHold(Finding, frozen=True):
    """No case with a threshold of its own misses it beyond chance, unless it did at the baseline."""

    cases: int
    excused: int = 0
    """Those of them that miss theirs, as they did at the baseline."""
    short: int = 0
    """Those of them that are below theirs, but not beyond chance."""


class NoTrialBeyond(Finding, frozen=True):
    """No trial is above the most that a single one may reach."""


class TrialBeyond(Finding, frozen=True):
    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD
    settles: ClassVar[bool] = True

    case_id: str
    value: float
    limit: float
    trials: int
    """All that are above their limits; this is the highest."""


class TrialExcused(Finding, frozen=True):
    """The baseline was above the limit too."""

    case_id: str
    value: float
    limit: float


class QuantileHolds(Finding, frozen=True):
    q: float
    value: float
    limit: float


class QuantileExcused(Finding, frozen=True):
    """The baseline was above the limit too."""

    q: float
    value: float
    limit: float


class QuantileRisen(Finding, frozen=True):
    """Above its limit as at the baseline, and beyond the margin of that."""

    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD
    settles: ClassVar[bool] = True

    q: float
    value: float
    limit: float
    before: float


class QuantileOver(Finding, frozen=True):
    """More trials are above the limit than chance explains."""

    verdict: ClassVar[Verdict] = Verdict.BELOW_THRESHOLD
    settles: ClassVar[bool] = True

    q: float
    value: float
    limit: float
    over: int
    trials: int


class QuantileOpen(Finding, frozen=True):
    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    q: float
    value: float
    limit: float
    trials: int
    too_few: bool


class Change(Struct, frozen=True):
    """The paired change with its 90 % interval; None where nothing bounds it."""

    value: float
    low: float | None
    high: float | None
    cases: int


class ChangeAllowed(Finding, frozen=True):
    """No reason to block: within its margin, not proven, or of a metric that only warns."""

    change: Change


class SuggestsDrop(Finding, frozen=True):
    """Within its margin, but one test suggests a drop."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    change: Change


class CaseTally(Struct, frozen=True):
    """How often a case passes, now and at the baseline."""

    case_id: str
    passed: int
    trials: int
    passed_before: int
    trials_before: int


class NeverPass(Finding, frozen=True):
    """Cases that passed in each baseline trial and fail in each of many now, with a baseline too thin to prove it."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    cases: tuple[CaseTally, ...]


class Drifted(Finding, frozen=True):
    """Worse than the stored baseline, and no worse than what the baseline's agent does now."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    change: Change
    before: bool = False
    """Whether it is no worse than in the newest of the stored runs; what the agent does now was not asked."""


class ChangeUnbounded(Finding, frozen=True):
    """Too few trials to bound the change."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    change: Change


class LossNotExcluded(Finding, frozen=True):
    """The interval reaches beyond the margin."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    change: Change
    worst: float
    """The bad end of the interval."""
    margin: float


class GotWorse(Finding, frozen=True):
    """Proven worse than the baseline."""

    verdict: ClassVar[Verdict] = Verdict.REGRESSED
    settles: ClassVar[bool] = True

    change: Change
    broken: tuple[str, ...] = ()
    """Of the pass rate: the cases that broke."""


class NotTested(Finding, frozen=True):
    """Of the pass rate: the engine ended undecided, and nothing of it could be compared."""

    verdict: ClassVar[Verdict] = Verdict.INCONCLUSIVE

    stage: Stage


class FailuresConfirmed(Finding, frozen=True):
    """The agent fails where it answered at the baseline, also when asked again a while later."""

    verdict: ClassVar[Verdict] = Verdict.REGRESSED

    p: float


class NotCompared(Finding, frozen=True):
    """What follows was found, but what the baseline measured of it is not compared."""

    verdict: ClassVar[Verdict] = Verdict.NOT_COMPARED

    why: Apart


AnyFinding = (
    NothingHeld
    | NotApplied
    | SameTrials
    | NothingChecked
    | NoTrialMeasured
    | NeverFailed
    | HardFailure
    | CasesNotScored
    | ScoresLost
    | AppliesToNone
    | AppliesNoMore
    | MeanHolds
    | MeanExcused
    | MeanMisses
    | MeanUnsure
    | OwnThresholdMissed
    | OwnThresholdsHold
    | NoTrialBeyond
    | TrialBeyond
    | TrialExcused
    | QuantileHolds
    | QuantileExcused
    | QuantileRisen
    | QuantileOver
    | QuantileOpen
    | ChangeAllowed
    | SuggestsDrop
    | NeverPass
    | Drifted
    | ChangeUnbounded
    | LossNotExcluded
    | GotWorse
    | NotTested
    | FailuresConfirmed
    | NotCompared
)
"""Every kind there is."""
