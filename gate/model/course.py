"""The trials that were run for a verdict, and the share that recordings answered."""

from __future__ import annotations

from msgspec import Struct


class Course(Struct, frozen=True):
    """The runs of a verdict: how many, in how many rounds, and how they ended."""

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
    """Runs that the fixed design would take, for comparison."""
    concurrent: bool = False
    """True if both commits were run now."""
    stopped: str = ""
    """The reason why the run ended early; empty if it did not."""
    alpha: float = 0.0
    """The job's bound on the probability that an unchanged agent is called regressed."""
    suites: int = 1
    """Number of the job's suites, which share it."""
    family: int = 1
    """Jobs of the matrix, which share it."""
    reruns: int = 0
    """Reruns of all suspicious cases together."""
    baseline_reruns: int = 0
    """Runs of the baseline's agent beside them."""
    confirming: int = 0
    """Runs of both sides that confirm failures of the agent."""
    baseline_confirming: int = 0
    """The confirming runs of the baseline's agent among them."""
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
    """Runs of both sides that distinguish a regression from provider drift."""
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
    """Requests that they made."""
    difference: str = ""
    """The first difference from the recording; empty if it is not known."""


class ReplayedShare(Struct, frozen=True):
    """The share of the run's requests to the outside world that the baseline's recordings answered."""

    cases: int
    """Judged cases that were run."""
    same: int
    """The cases in all of whose trials the model was asked the same things, and answered from recordings."""
    runs: int
    """Trials that asked the real model or tools for something."""
    calls: int
    """Requests that they made."""
    replayed: int
    """Requests that recordings answered."""
    saved_usd: float | None = None
    """The cost of those requests when they were recorded; None if unknown."""
    live: tuple[LiveCase, ...] = ()
    """The other cases."""
