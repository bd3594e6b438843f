"""The rules by which a suite is judged, and what that may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gate.decision.engine.state import Rerun
from gate.model.defaults import (
    ALPHA,
    CONFIRM_AFTER,
    MAX_ERROR_RATE,
    MOST_EPOCHS,
    ON_INCONCLUSIVE,
    POWER_DROP,
    POWER_FIND,
    STORED_TRIALS,
)

MOST_STORED = 25
"""Stored trials per case beyond which more add little: the uncertainty is then in the change's own few trials."""
MOST_ADDED = 10
"""Maximum number of trials per case that a run adds to the stored ones for the goal: twice what a merge stores."""
AtLeastOne = Annotated[int, Meta(ge=1)]


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """The power of the stored trials: the share of changes in which a given drop of the pass rate is found."""

    drop: float = POWER_DROP
    """0 to 1."""
    find: float = POWER_FIND
    """Share of changes."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules by which a suite is judged. Three fields keep the keys under which records first stored them."""

    alpha: float = ALPHA
    """Bound on P(regressed | unchanged agent), over all that the job compares."""
    threshold_alpha: float = 0.005
    """Bound on P(a case misses its own threshold, or a quantile its limit, by chance), over the whole job. The suite's
    thresholds do not share it: the mean decides those."""
    max_epochs: int = field(default=MOST_EPOCHS, name="max_passes")
    exact_epochs: int | None = field(default=None, name="exact_passes")
    """Exactly this many epochs and a single look."""
    rerun: Rerun = "never"
    pass_rate_margin: float | None = None
    max_error_rate: float = MAX_ERROR_RATE
    """Share of the candidate's trials that may end in infrastructure errors."""
    confirm_after: float | None = CONFIRM_AFTER
    """Seconds until agent failures that a block needs are rerun. None for recordings: never."""
    on_inconclusive: Literal["warn", "block"] = ON_INCONCLUSIVE
    quarantine: Mapping[str, str] = field(default_factory=dict)
    """Case id → owner, reason and expiry, of the entries in force."""
    runs: int | None = None
    """Maximum number of agent runs, both sides together."""
    kept_epochs: int = 0
    """Number of epochs that the run always makes, for later changes to compare with."""
    comparisons: AtLeastOne = 1
    """Number of comparisons in one job that share ``alpha``: each suite with each of its references."""
    suites: AtLeastOne = 1
    """Number of suites in one job, which share ``threshold_alpha``."""
    family: AtLeastOne = 1
    """Number of jobs in one matrix, which share both."""
    stored_trials: int = STORED_TRIALS
    """Trials per case that a run on the default branch stores for later changes; 0: as many as needed."""
    goal: Goal | None = None
    """The power that the trials of several such runs should reach together; None: no more trials than one run
    stores."""

    @property
    def own_alpha(self) -> float:
        """The part of ``alpha`` available to one comparison."""
        return self.alpha / (self.family * self.comparisons)

    @property
    def own_threshold_alpha(self) -> float:
        """The part of ``threshold_alpha`` available to one suite."""
        return self.threshold_alpha / (self.family * self.suites)

    @property
    def looks(self) -> int:
        """Maximum number of looks of the sequential test at the whole suite."""
        return 1 if self.exact_epochs is not None else self.max_epochs

    @property
    def most_epochs(self) -> int:
        """Maximum number of epochs before a verdict."""
        return self.exact_epochs or self.max_epochs
