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
"""Stored trials of each case beyond which more add little: a change's own few trials are what is uncertain then."""
AtLeastOne = Annotated[int, Meta(ge=1)]


class Goal(Struct, frozen=True, forbid_unknown_fields=True):
    """The power of the stored trials: to find a drop of the pass rate in so many changes."""

    drop: float = POWER_DROP
    """0 to 1."""
    find: float = POWER_FIND
    """Share of changes."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules by which a suite is judged. Three fields keep the keys that terms in records were first written
    with."""

    alpha: float = ALPHA
    """Bound on P(regressed | unchanged agent), over all that the job compares."""
    threshold_alpha: float = 0.005
    """Bound on P(a case misses its own threshold, or a quantile its limit, by chance), over the whole job. The suite's
    thresholds are apart: there the mean decides."""
    max_epochs: int = field(default=MOST_EPOCHS, name="max_passes")
    exact_epochs: int | None = field(default=None, name="exact_passes")
    """Exactly this many epochs and one look."""
    rerun: Rerun = "never"
    pass_rate_margin: float | None = None
    max_error_rate: float = MAX_ERROR_RATE
    """Share of the candidate's trials that may end in infrastructure errors."""
    confirm_after: float | None = CONFIRM_AFTER
    """Seconds until failures of the agent that a block needs are asked for again. None: of recordings, never."""
    on_inconclusive: Literal["warn", "block"] = ON_INCONCLUSIVE
    quarantine: Mapping[str, str] = field(default_factory=dict)
    """Case id → owner, reason and expiry, of the entries in force."""
    runs: int | None = None
    """The most agent runs, both sides together."""
    kept_epochs: int = 0
    """Epochs that the run always makes, for later changes to compare with."""
    comparisons: AtLeastOne = 1
    """The comparisons of one job that share ``alpha``: of each suite with each of its references."""
    suites: AtLeastOne = 1
    """The suites of one job, which share ``threshold_alpha``."""
    family: AtLeastOne = 1
    """The jobs of one matrix, which share both."""
    stored_trials: int = STORED_TRIALS
    """Trials of each case that a run on the default branch leaves for later changes; 0: as many as it needs."""
    goal: Goal | None = None
    """The power that the trials of several such runs are to add up to; None: no more than one leaves."""

    @property
    def own_alpha(self) -> float:
        """The part of ``alpha`` that one comparison may spend."""
        return self.alpha / (self.family * self.comparisons)

    @property
    def own_threshold_alpha(self) -> float:
        """The part of ``threshold_alpha`` that one suite may spend."""
        return self.threshold_alpha / (self.family * self.suites)

    @property
    def looks(self) -> int:
        """The most looks of the sequential test at the whole suite."""
        return 1 if self.exact_epochs is not None else self.max_epochs

    @property
    def most_epochs(self) -> int:
        """The most epochs that a verdict takes."""
        return self.exact_epochs or self.max_epochs
