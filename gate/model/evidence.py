"""The results of the decision engine as numbers: looks, p- and e-values, bounds, and the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal

from msgspec import Struct


class StageKind(str, Enum):
    """The stage at which a decision ended."""

    SUITE_LOOK = "suite_look"
    """A joint test of the whole suite proved a regression after an epoch."""
    CASES_AT_PASS = "cases_at_pass"  # noqa: S105 - no password
    """The e-values of the cases proved a regression after an epoch."""
    CASE_RERUNS = "case_reruns"
    """The e-values of the cases proved a regression after reruns of the suspicious cases."""
    REPEATS = "repeats"
    """Cases that failed once were asked again, and together failed more often than their stored trials do."""
    CERTIFIED = "certified"
    """Every blocking metric's loss is bounded by its margin."""
    UNPROVEN = "unproven"
    """Everything is bounded, but a case that always passed now always fails, and the baseline is too thin to prove
    it."""
    END = "end"
    """The schedule ended with neither a proof nor a bound."""
    NOTHING = "nothing"
    """There were no trials to compare."""
    DRIFTED = "drifted"
    """The loss does not show against the baseline's agent run now: drift since the baseline was stored, or luck."""
    MOVED_BEFORE = "moved_before"
    """The loss does not show against the baseline's newest runs: the agent's provider may have moved before those."""


class Stage(Struct, frozen=True):
    """The stage at which a decision ended, and the epoch."""

    kind: StageKind
    epochs: int = 0
    """The epoch after which it ended, for the kinds that follow an epoch."""
    confirmed: bool = False
    """True if a regression also shows against the baseline's agent run now."""
    replayed: bool = False
    """True if everything was answered from recordings, so that no provider was involved."""

    @property
    def of_cases(self) -> bool:
        """True if single cases prove the regression, rather than a drop of the whole suite."""
        return self.kind in (StageKind.CASES_AT_PASS, StageKind.CASE_RERUNS)

    @property
    def drift_open(self) -> bool:
        """True if a drop without named cases was proven only against stored trials, and a provider was involved."""
        whole = self.kind in (StageKind.SUITE_LOOK, StageKind.REPEATS)
        return whole and not self.confirmed and not self.replayed

    @property
    def concurrent(self) -> bool:
        """True if running both commits now decided it."""
        return self.confirmed or self.kind is StageKind.DRIFTED


class MetricTest(Struct, frozen=True):
    """One metric in one look; all p-values are one-sided."""

    p_mean: float
    """The p-value of the mean drop alone."""
    p_concentrated: float
    """The p-value of a drop of a few cases."""
    p_adjusted: float
    """The smallest of the p-values, adjusted for all blocking metrics and all statistics."""
    p_shift: float | None = None
    """The p-value of a drop shared by all cases; None unless the metric's values are zeros and ones."""

    @property
    def smallest(self) -> float:
        """Return the smallest unadjusted p-value."""
        return min(self.p_mean, self.p_concentrated, 1.0 if self.p_shift is None else self.p_shift)

    @property
    def by_mean(self) -> bool:
        """True if the mean, or a drop shared by all cases, is the clearest sign, rather than large drops of a few
        cases."""
        return min(self.p_mean, self.p_mean if self.p_shift is None else self.p_shift) <= self.p_concentrated


class LookTest(Struct, frozen=True):
    """One joint test of the whole suite."""

    epochs: int
    p: float
    """The combined p-value of all looks up to this one."""
    threshold: float
    """The look blocks if p is at or below this. From the second look on it exceeds ``spent``, since p-values that would
    have blocked earlier are not charged again."""
    relabelings: int
    metrics: Mapping[str, MetricTest]
    spent: float
    """The most, of alpha, that the look adds to the probability of blocking an unchanged agent."""

    @property
    def blocks(self) -> bool:
        return self.p <= self.threshold


class CaseCounts(Struct, frozen=True):
    """A case that failed, or is suspected."""

    e_value: float | None
    passed: int
    trials: int
    baseline_passed: int
    baseline_trials: int


class MetricChange(Struct, frozen=True):
    """The paired change of a metric. A loss is negative; for positive metrics it is the log of the ratio."""

    cases: int
    trials: int
    change: float
    low: float | None
    """Low end of a 90 % interval; None if unbounded."""
    high: float | None
    margin: float
    holds: bool
    """True if the loss is bounded by the margin, or if so few cases often show as much by chance that the interval says
    nothing."""
    detectable: float | None
    blocks_regression: bool
    excluded: float | None = None
    """Lower bound of the change: the true change is below it in at most 5 % of runs, including early stopping; None if
    unbounded."""


class RepeatsTest(Struct, frozen=True):
    """One joint test of all cases that failed once and were asked again."""

    epochs: int
    p: float
    threshold: float
    """The test blocks if p is at or below this, which is also the most it adds to the probability of blocking an
    unchanged agent."""
    cases: int
    passed: int
    trials: int
    """Number of trials, without the failures that the cases were picked for."""
    baseline_passed: int
    baseline_trials: int

    @property
    def blocks(self) -> bool:
        return self.p <= self.threshold


class EvidenceSummary(Struct, frozen=True):
    """The numbers behind a decision. None replaces numbers that a float cannot hold."""

    epochs: int
    paired: int
    runs: Mapping[str, int]
    """Agent runs by side."""
    looks: tuple[LookTest, ...]
    e_value: float | None
    highest_e_value: float | None
    e_threshold: float
    named: tuple[str, ...]
    """Cases that are worse at a false discovery rate of at most 10 %, even if no regression is proven."""
    cases: Mapping[str, CaseCounts]
    metrics: Mapping[str, MetricChange]
    unproven: tuple[str, ...] = ()
    """Cases that passed in every baseline trial and fail in every one of many now, but are not proven broken."""
    unprovable: tuple[str, ...] = ()
    """Suspicious cases that are not rerun: with these baseline trials no number of failures would prove one broken."""
    gained: Mapping[str, CaseCounts] = {}
    """Cases that are better at a false discovery rate of at most 10 %; their e-values are for the gain."""
    perhaps_gained: Mapping[str, CaseCounts] = {}
    """The cases with the most evidence of a gain, if a regression is proven but no gain can be named, and the joint
    test with the sides exchanged rejects at alpha."""
    repeats: tuple[RepeatsTest, ...] = ()

    @property
    def last_look(self) -> LookTest | None:
        return self.looks[-1] if self.looks else None


class Outcome(Struct, frozen=True):
    """The engine's answer on the pairing."""

    verdict: Literal["PASS", "REGRESSION", "INCONCLUSIVE"]
    cases: tuple[str, ...]
    """The named cases: broken at a false discovery rate of at most 10 %."""
    stage: Stage
    evidence: EvidenceSummary
