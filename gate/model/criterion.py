"""A metric with the demands on its scores."""

from __future__ import annotations

from msgspec import Struct, field

from gate.model.calibration import JudgeCalibration
from gate.model.scale import Direction, Scale


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """A metric with its threshold and options, as the user set them."""

    name: str
    """The unique key under ``criteria``."""
    metric: str
    """The registered metric, or a dotted path."""
    scale: Scale
    direction: Direction = Direction.HIGHER
    threshold: float | None = None
    """Lowest acceptable mean of the suite. None: judged against the baseline only."""
    limit: float | None = None
    """The highest value that a single trial may reach (``max``)."""
    quantiles: tuple[tuple[float, float], ...] = ()
    """Limits on quantiles of the suite: ((0.95, 3.0),) means that p95 may be at most 3."""
    margin: float | None = None
    """The loss still called unchanged; relative for cost, latency, tokens and counts."""
    pass_threshold: float | None = field(default=None, name="pass_mark")
    """The score from which a single trial passes; None: the criterion does not decide whether a trial passes."""
    blocking: bool = True
    """True if it can fail the gate by threshold or limit."""
    blocks_regression: bool = field(default=True, name="gate_regression")
    """True if a change against the baseline can fail the gate; off by default for cost and latency."""
    ratchet: bool = True
    """True if a mean that was below the threshold at the baseline may stay there without blocking."""
    hard: bool = False
    """True if one failing trial fails the gate (forbidden tools, safety)."""
    fingerprint: str = ""
    """Fingerprint of metric, options, version and judge, without thresholds."""
    reads_tools: bool = False
    """True if it reads tool calls, and means nothing if the agent's answers do not report them."""
    absence: bool = False
    """True if an answer without text satisfies it."""
    lexical: bool = False
    """True if it compares words with words, so that different wording lowers it."""
    parts: tuple[str, ...] = ()
    """The criteria that it is computed from."""
    k: int = 0
    """The number of trials of a case that must all pass, for ``pass_k``."""
    calibration: JudgeCalibration | None = None
    """The agreement of the judge with people's labels; None if no calibration matches the current judge, question and
    options."""

    @property
    def has_threshold(self) -> bool:
        """True if it is held to a threshold or limit of its own, not only to the baseline."""
        return self.threshold is not None or self.limit is not None or bool(self.quantiles)

    def is_idle(self, threshold: float) -> bool:
        """True if every score reaches a threshold."""
        return self.worst is not None and not self.direction.is_worse(self.worst, threshold)

    @property
    def margin_or_default(self) -> float:
        """Return the loss still called unchanged: its own margin, or its scale's."""
        if self.margin is None:
            return self.scale.default_margin
        return self.margin

    @property
    def worst(self) -> float | None:
        """Return the worst value of its scale; None if it is unbounded (seconds, dollars)."""
        least, most = self.scale.range
        if self.direction is Direction.HIGHER:
            return least
        return most if self.scale.is_bounded else None

    @property
    def best(self) -> float | None:
        """Return the best value of its scale; None if it is unbounded."""
        least, most = self.scale.range
        if self.direction is Direction.LOWER:
            return least
        return most if self.scale.is_bounded else None
