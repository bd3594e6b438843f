"""The trials that were run for a verdict, and the share answered from recordings."""

from __future__ import annotations

from msgspec import Struct


class Course(Struct, frozen=True):
    """The runs behind a verdict: how many, in how many rounds, and how they ended."""

    epochs: int = 0
    """Trials per judged case in epochs."""
    cases: int = 0
    """Judged cases."""
    rerun_cases: int = 0
    rerun_least: int = 0
    rerun_most: int = 0
    """The most reruns of any suspicious case."""
    runs: int = 0
    """Agent runs on both sides."""
    baseline_runs: int = 0
    fixed_runs: int = 0
    """Runs that the fixed design would need, for comparison."""
    concurrent: bool = False
    """True if both commits were run now."""
    stopped: str = ""
    """The reason why the run ended early; empty if it did not."""
    alpha: float = 0.0
    """The upper bound, for the whole job, on the probability that an unchanged agent is called regressed."""
    suites: int = 1
    """Number of suites in the job, which share alpha."""
    family: int = 1
    """Number of jobs in the matrix, which share alpha."""
    reruns: int = 0
    """Total reruns of all suspicious cases."""
    baseline_reruns: int = 0
    """Runs of the baseline's agent made alongside the reruns."""
    confirming: int = 0
    """Runs of both sides that confirm failures of the agent."""
    baseline_confirming: int = 0
    """The confirming runs made with the baseline's agent."""
    epoch_runs: int | None = None
    """Runs of the judged cases in epochs; None: all cases in each. An epoch may skip cases, or be cut short."""
    baseline_epochs: int = 0
    """Runs of the baseline's agent in epochs."""
    quarantined: int = 0
    """Runs of cases in quarantine, which are not judged."""
    repeating: int = 0
    """Runs of both sides to find out if repeated trials are independent."""
    baseline_repeating: int = 0
    narrowing: int = 0
    """Runs in place of the last epoch that narrow the interval of the change."""
    drifting: int = 0
    """Runs of both sides that distinguish a regression from provider drift."""
    baseline_drifting: int = 0
    again: int = 0
    """Runs of both sides in place of trials lost to infrastructure; no other count but ``runs`` includes them."""
    baseline_again: int = 0


class LiveCase(Struct, frozen=True):
    """A case in which something was requested from the real model or tools."""

    case_id: str
    runs: int
    """Trials of the case with such requests."""
    calls: int
    """Number of those requests."""
    difference: str = ""
    """The first difference from the recording; empty if unknown."""


class ReplayedShare(Struct, frozen=True):
    """The share of the run's requests to the outside world that were answered from the baseline's recordings."""

    cases: int
    """Judged cases that were run."""
    same: int
    """Cases in which, in every trial, the model got the same requests and the answers came from recordings."""
    runs: int
    """Trials with requests to the real model or tools."""
    calls: int
    """Number of those requests."""
    replayed: int
    """Number of requests answered from recordings."""
    saved_usd: float | None = None
    """The cost of the replayed requests when they were recorded; None if unknown."""
    live: tuple[LiveCase, ...] = ()
    """The other cases."""
