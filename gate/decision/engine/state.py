"""The numbers a decision is made of, and what it answers; knows neither agents nor records."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from gate.model import CONFIRM, FULL, Direction, MetricKind, Scale, Side
from gate.model.defaults import ALPHA, MOST_EPOCHS
from gate.statistics.permutation import FINE

CONCURRENT = "concurrent"
"""Tag of a round that tells the change from a drift of the provider, by the baseline's agent run now."""

Row = Sequence[float | None]
"""The values of one trial in metric order; None where one was not measured. Metric 0 is the trial's 0/1 success."""

Rerun = Literal["never", "match", "beside"]
"""The way to run the baseline's agent: ``match``, or ``beside`` if its trials are of this very job, so that no drift is
looked for."""

__all__ = [
    "CONCURRENT",
    "CONFIRM",
    "FULL",
    "Config",
    "Continue",
    "Metric",
    "Partner",
    "Request",
    "Round",
    "Row",
    "State",
    "margin_of",
]


class Metric(Struct, frozen=True):
    """The properties of a metric that the engine needs."""

    name: str
    kind: MetricKind
    direction: Direction = Direction.HIGHER
    margin: float | None = None
    """The loss still called unchanged, in the metric's unit; relative for positive metrics. None: default."""
    blocks_regression: bool = True
    slope: float = 1.0
    """The factor by which a true difference shows in these values: below 1 if a calibrated judge errs."""
    slope_error: float = 0.0
    """Its standard error."""


TINY = 2
"""Cases of which two cases' worth is all there is to lose: nothing would fail such a margin."""
TINY_MARGIN = 0.5
DEFAULT_MARGINS = {scale.kind: scale.default_margin for scale in (Scale.BINARY, Scale.UNIT, Scale.COUNT)}
"""By kind, of metrics that give none."""


def margin_of(metric: Metric, cases: int) -> float:
    """The loss still called unchanged, on the oriented scale; for success at least two cases' worth, or half of what
    fewer than three cases have to lose."""
    margin = DEFAULT_MARGINS[metric.kind] if metric.margin is None else metric.margin
    if metric.kind == "binary":
        return max(margin, TINY_MARGIN if cases <= TINY else 2 / cases)
    if metric.kind == "positive":
        return math.log1p(margin) if metric.direction is Direction.LOWER else -math.log1p(-min(margin, 0.99))
    return margin


class Config(Struct, frozen=True):
    """The error and the runs that a decision may cost."""

    alpha: float = ALPHA
    """Bound on P(regressed | unchanged agent) over all metrics, looks and reruns."""
    max_epochs: int = MOST_EPOCHS
    exact_epochs: int | None = None
    """Exactly this many epochs and one look, no reruns."""
    rerun: Rerun = "never"
    can_run: bool = True
    """False: judge what there is. Trials run all in one round are looked at once, at the full budget; trials of several
    rounds as the schedule that ran them would have."""
    runs_left: int | None = None
    """Agent runs that may still be asked for; None: no limit. 0 ends the schedule where it stands."""
    kept_epochs: int = 0
    """Epochs that will be run in any case, for later changes to compare with: those come before reruns."""
    fineness: int = FINE
    """The fineness of the permutation tests. A simulation of many decisions makes do with less."""


class Partner(Struct, frozen=True):
    """The stored trial whose randomness a trial shares, because its recording answered it."""

    stored: int
    """The position of that trial in the baseline's trials of the case; each is the partner of one trial at most."""
    whole: bool = False
    """True if everything was answered from the recording: the model was asked the same things."""


class Round(Struct, frozen=True):
    """Trials that were run together."""

    tag: str
    side: Side
    trials: Mapping[str, Sequence[Row]]
    links: Mapping[str, Sequence[Partner | None]] = {}
    """The partner of each trial, of cases with coupled trials."""


class State(Struct, frozen=True):
    """Everything known so far. A decision is a pure function of it."""

    metrics: tuple[Metric, ...]
    baseline: Mapping[str, Sequence[Row]]
    rounds: tuple[Round, ...]
    config: Config = field(default_factory=Config)
    seed: int = 0
    clusters: Mapping[str, str] = {}
    """Case id → its cluster, of cases whose trials of one epoch depend on one another."""
    frozen: bool = False
    """True if the candidate answers a case alike however often it is asked, so that no rerun says anything new."""
    newest: Mapping[str, Sequence[int]] = {}
    """Case id → the positions of the baseline's trials that its newest runs measured; empty: age is no matter."""
    recorded: bool = False
    """True if the baseline's trials were recorded, so that the change's may meet the same world."""


class Request(Struct, frozen=True):
    """Trials that would help: ``n`` more of each case."""

    side: Side
    tag: str
    cases: tuple[str, ...]
    n: int
    left_out: tuple[str, ...] = ()
    """Cases that an epoch does without, since a further trial of them would say nothing new."""

    @property
    def runs(self) -> int:
        return len(self.cases) * self.n


class Continue(Struct, frozen=True):
    """Undecided; these trials are wanted next."""

    requests: tuple[Request, ...]
    why: str
