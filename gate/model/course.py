"""What was run for a verdict, and how much of it was answered from recordings."""

from __future__ import annotations

from msgspec import Struct


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
