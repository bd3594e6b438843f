"""A metric with the demands on its scores."""

from __future__ import annotations

from msgspec import Struct, field

from gate.model.calibration import JudgeCalibration
from gate.model.scale import Direction, Scale


class Criterion(Struct, frozen=True, forbid_unknown_fields=True):
    """A metric with its threshold and options, as the user set them."""

    name: str
    """The key under ``criteria``; unique."""
    metric: str
    """The registered metric, or a dotted path."""
    scale: Scale
    direction: Direction = Direction.HIGHER
    threshold: float | None = None
    """Least acceptable suite mean. None: judged against the baseline only."""
    limit: float | None = None
    """Per trial: the most a single trial may reach (``max``)."""
    quantiles: tuple[tuple[float, float], ...] = ()
    """Suite limits on quantiles: ((0.95, 3.0),) says that p95 may be at most 3."""
    margin: float | None = None
    """The loss that is still called unchanged; relative for cost, latency, tokens and counts."""
    pass_threshold: float | None = field(default=None, name="pass_mark")
    """The score from which a single trial passes; None: the criterion does not decide whether a trial passes."""
    blocking: bool = True
    """True if it can fail the gate by threshold or limit."""
    blocks_regression: bool = field(default=True, name="gate_regression")
    """True if a change against the baseline can fail the gate; off by default for cost and latency."""
    ratchet: bool = True
    """True if a mean that was below the threshold at the baseline may stay there without blocking."""
    hard: bool = False
    """One failing trial fails the gate (forbidden tools, safety)."""
    fingerprint: str = ""
    """Fingerprint of metric, options, version, judge; not of thresholds."""
    stands_for: str = ""
    """The criterion that this one is the previous version of: compared with what baselines hold of it, held to nothing
    else."""
    reads_tools: bool = False
    """True if it looks at tool calls, and means nothing if the agent's answers do not report them."""
    absence: bool = False
    """True if an answer that says nothing satisfies it."""
    lexical: bool = False
    """True if it compares words with words, so that another wording lowers it."""
    parts: tuple[str, ...] = ()
    """The criteria that it is computed from."""
    k: int = 0
    """The number of trials of a case that have to pass together, of ``pass_k``."""
    calibration: JudgeCalibration | None = None
    """The agreement of the judge with people's labels; None if no calibration applies to judge, question and options as
    they are."""
