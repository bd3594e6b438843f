"""The numbers that a decision is based on, and its answers; knows neither agents nor records.

`gate decide` reads a `State` from JSON: names and bounds of fields are those of its protocol.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from gate.model import Direction, MetricKind, Scale, Side
from gate.model.defaults import ALPHA, MOST_EPOCHS
from gate.statistics.permutation import FINE

CONCURRENT = "concurrent"
"""Tag of rounds that run the baseline's agent now, to distinguish an effect of the change from provider drift."""

Row = Sequence[float | None]
"""The values of one trial in metric order; None for values not measured. Metric 0 is the trial's 0/1 success."""

Rerun = Literal["never", "match", "beside"]
"""The way to run the baseline's agent: ``never``, ``match``, or ``beside`` if its trials are from this job, so that no
check for drift is needed."""


Natural = Annotated[int, Meta(ge=0)]


class Metric(Struct, frozen=True):
    """The properties of a metric that the engine needs."""

    name: str = ""
    kind: MetricKind = "bounded"
    direction: Direction = Direction.HIGHER
    margin: Annotated[float, Meta(ge=0)] | None = None
    """The loss still called unchanged, in the metric's unit; relative for positive metrics. None: default."""
    blocks_regression: bool = field(default=True, name="gating")
    slope: Annotated[float, Meta(gt=0, le=1)] = 1.0
    """The factor by which a true difference shows in these values: below 1 if a calibrated judge errs."""
    slope_error: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """The standard error of the slope."""


TINY = 2
"""Up to this many cases, a margin of two cases would cover any loss: TINY_MARGIN applies instead."""
TINY_MARGIN = 0.5
DEFAULT_MARGINS = {scale.kind: scale.default_margin for scale in (Scale.BINARY, Scale.UNIT, Scale.COUNT)}
"""Margins by kind of metric, for metrics without one."""


def margin_of(metric: Metric, cases: int) -> float:
    """Return the loss still called unchanged, on the oriented scale; for success at least two cases' worth, or half of
    all for one or two cases."""
    margin = metric.margin
    if margin is None:
        margin = DEFAULT_MARGINS[metric.kind]
    if metric.kind == "binary":
        return max(margin, TINY_MARGIN if cases <= TINY else 2 / cases)
    if metric.kind == "bounded":
        return margin
    if metric.direction is Direction.LOWER:
        return math.log1p(margin)
    return -math.log1p(-min(margin, 0.99))


class Config(Struct, frozen=True):
    """The error rate and the number of runs that a decision may cost."""

    alpha: Annotated[float, Meta(gt=0, lt=1)] = ALPHA
    """Bound on P(regressed | unchanged agent) over all metrics, looks and reruns."""
    max_epochs: int = MOST_EPOCHS
    exact_epochs: int | None = None
    """Exactly this many epochs and one look, no reruns."""
    rerun: Rerun = "never"
    can_run: bool = True
    """False to judge the trials so far. Trials of a single round are looked at once, at the full budget; those of
    several rounds as in the schedule that ran them."""
    runs_left: Natural | None = None
    """Maximum number of further agent runs; None: no limit. 0 ends the schedule here."""
    kept_epochs: Natural = 0
    """Epochs that will run in any case, for later changes to compare with: these come before reruns."""
    fineness: int = FINE
    """Fineness of the permutation tests. A simulation of many decisions can use a lower one."""

    def affords(self, requests: Iterable[Request]) -> bool:
        """True if the runs that are left suffice for these requests."""
        return self.runs_left is None or runs_of(requests) <= self.runs_left


class Partner(Struct, frozen=True):
    """The stored trial whose randomness a trial shares because its recording answered it."""

    stored: Natural
    """Position of that trial among the baseline's trials of the case; each has at most one partner."""
    whole: bool = False
    """True if the recording answered everything: the model got the same requests."""


class Round(Struct, frozen=True):
    """Trials that ran together."""

    tag: str
    side: Side
    trials: Mapping[str, Sequence[Row]]
    links: Mapping[str, Sequence[Partner | None]] = field(default_factory=dict, name="coupled")
    """The partner of each trial, for cases with coupled trials."""

    def links_of(self, case_id: str) -> Sequence[Partner | None]:
        """Return the partner of each trial of a case."""
        return self.links.get(case_id) or (None,) * len(self.trials[case_id])


class State(Struct, frozen=True):
    """Everything known so far. A decision is a pure function of it."""

    metrics: Annotated[tuple[Metric, ...], Meta(min_length=1)]
    """Metric 0 is the trial's success."""
    baseline: Mapping[str, Sequence[Row]]
    rounds: tuple[Round, ...]
    config: Config = field(default_factory=Config)
    seed: int = 0
    clusters: Mapping[str, str] = {}
    """Case id → its cluster, for cases whose trials within an epoch depend on each other."""
    frozen: bool = False
    """True if the candidate answers a case the same way every time, so that reruns add no information."""
    newest: Mapping[str, Sequence[int]] = {}
    """Case id → positions of the baseline's trials measured by its newest runs; empty if age does not matter."""
    recorded: bool = False
    """True if the baseline's trials were recorded, so that the change's trials may run in the same world."""


class Request(Struct, frozen=True):
    """Trials to run next: ``n`` more of each case."""

    side: Side
    tag: str
    cases: tuple[str, ...]
    n: int
    left_out: tuple[str, ...] = ()
    """Cases left out of an epoch because another trial of them would add no information."""

    @property
    def runs(self) -> int:
        return len(self.cases) * self.n


def runs_of(requests: Iterable[Request]) -> int:
    """Return the number of agent runs in these requests."""
    return sum([request.runs for request in requests])


def epochs_spent(epochs: int, narrowing: int, cases: int) -> int:
    """Return the number of epochs that have run or were replaced: trials that narrow the interval of the change take
    the place of an epoch."""
    return epochs + math.ceil(narrowing / max(1, cases))


class More(Struct, frozen=True):
    """Undecided; these trials should run next, all in one round."""

    requests: tuple[Request, ...]
    why: str
    round: int = 0
    """The ``round`` number of these trials; the engine leaves it to its caller."""
    again: bool = False
    """True if they replace trials of the current round that could not be measured."""
    pause: float = 0.0
    """Seconds to wait before running them."""

    @property
    def runs(self) -> int:
        """Number of agent runs in these trials."""
        return runs_of(self.requests)


def round_of(requests: Iterable[Request], why: str) -> More | None:
    """Return these requests as the next trials; None if there are none."""
    requests = tuple(requests)
    return More(requests, why) if requests else None
