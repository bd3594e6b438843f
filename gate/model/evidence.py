"""The findings of the decision engine as numbers: looks, p- and e-values, bounds, and the outcome."""

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
    """The e-values of the cases did, after an epoch."""
    CASE_RERUNS = "case_reruns"
    """They did, after reruns of the suspicious cases."""
    REPEATS = "repeats"
    """Cases that failed once, asked again, did so more often than stored trials do, all of them taken together."""
    CERTIFIED = "certified"
    """Every blocking metric's loss is bounded by its margin."""
    UNPROVEN = "unproven"
    """Everything is bounded, but a case that always passed fails every time, and the baseline is too thin to
    prove it."""
    END = "end"
    """The schedule ended without either."""
    NOTHING = "nothing"
    """There were no trials to compare."""
    DRIFTED = "drifted"
    """It does not show against what the baseline's agent does now: drift since the baseline was stored, or luck."""
    MOVED_BEFORE = "moved_before"
    """It does not show against the baseline's newest runs: the agent's provider may have moved before those."""


class Stage(Struct, frozen=True):
    """The stage at which a decision ended, and the epoch."""

    kind: StageKind
    epochs: int = 0
    """The epoch after which it did, of the kinds that happen after one."""
    confirmed: bool = False
    """True if a regression shows against what the baseline's agent does now, too."""
    replayed: bool = False
    """True if everything was answered from recordings, so that no provider had a part in it."""

    @property
    def of_cases(self) -> bool:
        """True if single cases prove the regression, and not a drop of the whole suite."""
        return self.kind in (StageKind.CASES_AT_PASS, StageKind.CASE_RERUNS)

    @property
    def drift_open(self) -> bool:
        """True if a drop that names no case was proven against stored trials alone, in what a provider answered."""
        whole = self.kind in (StageKind.SUITE_LOOK, StageKind.REPEATS)
        return whole and not self.confirmed and not self.replayed

    @property
    def concurrent(self) -> bool:
        """True if running both commits now decided it."""
        return self.confirmed or self.kind is StageKind.DRIFTED


class MetricTest(Struct, frozen=True):
    """One metric in one look; all p one-sided."""

    p_mean: float
    """The p-value of the mean drop alone."""
    p_concentrated: float
    """The p-value of a drop of a few cases."""
    p_adjusted: float
    """The smallest of them, adjusted for all blocking metrics and all statistics."""
    p_shift: float | None = None
    """The p-value of a drop that all cases share; None for a metric that is not of zeros and ones."""

    @property
    def smallest(self) -> float:
        """The smallest p of its statistics, none adjusted."""
        return min(self.p_mean, self.p_concentrated, 1.0 if self.p_shift is None else self.p_shift)

    @property
    def by_mean(self) -> bool:
        """True if the mean, or a drop that all share, is the clearest of it, and not large drops of a few cases."""
        return min(self.p_mean, self.p_mean if self.p_shift is None else self.p_shift) <= self.p_concentrated


class LookTest(Struct, frozen=True):
    """One joint test of the whole suite."""

    epochs: int
    p: float
    """The p-value of all looks up to this one, combined."""
    threshold: float
    """The p from which on it blocks. From the second look on it is above what the look spends: p that would have
    blocked earlier are not paid for again."""
    relabelings: int
    metrics: Mapping[str, MetricTest]
    spent: float
    """The look's possible addition to the probability of blocking an unchanged agent, of alpha."""

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
    """The paired change of a metric. Oriented: a loss is negative; of positive metrics the log of the ratio."""

    cases: int
    trials: int
    change: float
    low: float | None
    """Low end of a 90 % interval; None: not bounded."""
    high: float | None
    margin: float
    holds: bool
    """True if the loss is bounded by the margin."""
    detectable: float | None
    blocks_regression: bool
    excluded: float | None = None
    """Lower bound of the change: the true one is below it in at most 5 % of runs, including early stopping; None
    if unbounded."""


class RepeatsTest(Struct, frozen=True):
    """One test of all cases that failed once and were asked again, together."""

    epochs: int
    p: float
    threshold: float
    """The p from which on it blocks, and what it may add to the probability of blocking an unchanged agent."""
    cases: int
    passed: int
    trials: int
    """Without the failures that the cases were picked for."""
    baseline_passed: int
    baseline_trials: int

    @property
    def blocks(self) -> bool:
        return self.p <= self.threshold


class EvidenceSummary(Struct, frozen=True):
    """The numbers behind a decision. None stands for a number beyond what a float holds."""

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
    """Cases that passed in every baseline trial and fail in every one of many now, and are not proven broken."""
    unprovable: tuple[str, ...] = ()
    """Suspicious cases that are not rerun: with these baseline trials no number of failures would prove one broken."""
    gained: Mapping[str, CaseCounts] = {}
    """Cases that are better at a false discovery rate of at most 10 %; their e-values are those of the gain."""
    perhaps_gained: Mapping[str, CaseCounts] = {}
    """The cases with the most evidence of a gain, if a regression is proven where none can be named, and the joint test
    with the sides exchanged rejects at alpha."""
    repeats: tuple[RepeatsTest, ...] = ()

    @property
    def last_look(self) -> LookTest | None:
        return self.looks[-1] if self.looks else None


class Outcome(Struct, frozen=True):
    """The answer on the pairing."""

    verdict: Literal["PASS", "REGRESSION", "INCONCLUSIVE"]
    cases: tuple[str, ...]
    """Named: broken at a false discovery rate of at most 10 %."""
    stage: Stage
    evidence: EvidenceSummary
