"""Decides from outcomes alone what the newest traces show about the pass rate.

The newest parts of the window (the last 30, 60, 120 … and all of it) are tested from the shortest to the longest, each
with an exact interval; the first that excludes a limit decides on it. If none does, the status stays on its side of the
limit; once the window is full, the pass rate itself may lift it again. So one bad trace changes nothing, a sudden drop
is seen before the whole window has turned over, and a rate near a limit does not flap. `benchmarks/monitor.py`
simulates how often an agent at a limit is called worse, and how soon a drop is seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from gate.config.production import MonitorSection
from gate.model import Scale
from gate.model.defaults import MAX_ERROR_RATE
from gate.reports.formatting import figure, figures
from gate.statistics.intervals import beta_quantile

CLOCK_SECONDS = 60.0
"""Seconds by which clocks are set back in normal operation."""


class Status(str, Enum):
    """The status of the window."""

    HEALTHY = "healthy"
    """Not shown to be below a limit."""
    WARNING = "warning"
    """The pass rate is shown to be below ``monitor.warning``."""
    CRITICAL = "critical"
    """The pass rate is shown to be below ``monitor.critical``."""
    INSUFFICIENT_DATA = "insufficient_data"
    """Too few traces were measured to decide, or no new ones."""


WORSE = (Status.INSUFFICIENT_DATA, Status.HEALTHY, Status.WARNING, Status.CRITICAL)
"""From no decision to the worst."""


ALPHA = 0.002
"""Bound on the probability that one look calls a pass rate at or above a limit lower, over all parts."""


def parts(section: MonitorSection) -> tuple[int, ...]:
    """Return the numbers of newest traces that are tested: ``min_samples``, twice that …, and the window."""
    found = []
    size = section.min_samples
    while size < section.window:
        found.append(size)
        size *= 2
    return (*found, section.window)


class PassShare(Struct, frozen=True):
    """The share of measured traces that passed, with an exact interval (Clopper and Pearson 1934)."""

    passed: int
    measured: int
    low: float = 0.0
    high: float = 1.0

    @property
    def rate(self) -> float | None:
        return self.passed / self.measured if self.measured else None


class WindowFinding(Struct, frozen=True):
    """The finding on a window."""

    status: Status
    share: PassShare
    """The pass share of the whole window, with the interval at the level of the decision."""
    evidence: PassShare | None = None
    """The part of the window that decided, at the level of the decision; None if no limit was excluded."""
    unmeasured: int = 0
    """Traces of the window without an outcome."""
    why: str = ""
    blind: bool = False
    """True if there are or were traces but none can be measured; False if there are just few so far."""


def decide(
    outcomes: Sequence[bool | None],
    before: Status,
    section: MonitorSection,
    max_unmeasured: float = MAX_ERROR_RATE,
) -> WindowFinding:
    """Return the finding on a window.

    Args:
        outcomes: whether each trace passed, the oldest first; None if that could not be measured.
        before: the status so far.
        section: the limits and the evidence needed.
        max_unmeasured: share of the traces that may be without an outcome, for example while the judge is down.
    """
    outcomes = outcomes[-section.window :]
    measured = [outcome for outcome in outcomes if outcome is not None]
    unmeasured = len(outcomes) - len(measured)
    share = _share(sum(measured), len(measured), ALPHA / len(parts(section)))
    too_many = unmeasured > max_unmeasured * len(outcomes)
    if too_many and len(outcomes) >= section.min_samples:
        why = f"{unmeasured} of {len(outcomes)} traces could not be measured"
        return WindowFinding(Status.INSUFFICIENT_DATA, share, None, unmeasured, why, blind=True)
    if len(measured) < section.min_samples:
        why = f"{len(measured)} of the {section.min_samples} measured traces that a status needs"
        return WindowFinding(Status.INSUFFICIENT_DATA, share, None, unmeasured, why)
    evidence: PassShare | None = None
    for status, limit in ((Status.CRITICAL, section.critical), (Status.WARNING, section.warning)):
        is_below, shown = _is_below(measured, limit, section, was_below=WORSE.index(before) >= WORSE.index(status))
        evidence = shown or evidence
        if is_below:
            return WindowFinding(status, share, shown, unmeasured, _words(status, limit, shown))
    return WindowFinding(Status.HEALTHY, share, evidence, unmeasured, "")


def after_silence(found: WindowFinding, silent: float, limit: float) -> WindowFinding:
    """Return the finding on a window after ``silent`` seconds without a new trace: beyond ``limit``, a status better
    than `CRITICAL` becomes `INSUFFICIENT_DATA`.

    Otherwise an agent that is down for a week would keep the exit code of its last ``warning``. If the newest trace was
    read in the future, the silence is unknown.
    """
    if -CLOCK_SECONDS <= silent <= limit or found.status not in (Status.HEALTHY, Status.WARNING):
        return found
    why = f"no trace was scored for {_lasted(silent)}: the window tells of the past"
    if silent < 0:
        why = f"the newest trace was scored {_lasted(-silent)} after now: the clock was set back, and nothing new came"
    return replace(found, status=Status.INSUFFICIENT_DATA, why=why, blind=True)


def _lasted(seconds: float) -> str:
    """Return an elapsed time in the largest unit of which it is two or more."""
    for unit, size in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "less than a second"


def _is_below(
    measured: Sequence[bool], limit: float, section: MonitorSection, *, was_below: bool
) -> tuple[bool, PassShare | None]:
    """True if the rate counts as below a limit, and the part of the window that shows its side."""
    if section.rule == "rate":
        rate = sum(measured) / len(measured)
        return rate < limit, PassShare(sum(measured), len(measured), rate, rate)
    sizes = parts(section)
    for size in sizes:
        newest = measured[-size:]
        part = _share(sum(newest), len(newest), ALPHA / len(sizes))
        if part.high < limit:
            return True, part
        if part.low >= limit:
            return False, part
        if len(newest) < size:
            break
    recovered = len(measured) >= section.window and sum(measured) >= limit * len(measured)
    return was_below and not recovered, None


def _words(status: Status, limit: float, shown: PassShare | None) -> str:
    if shown is None:
        bound = figure(limit, Scale.BINARY)
        return f"it was {status.value} before, and nothing shows yet that {bound} is reached again"
    most, bound = figures((shown.high, limit), Scale.BINARY)
    at_most = "" if shown.low == shown.high == shown.rate else "at most "
    return f"{shown.passed} of the last {shown.measured} passed: {at_most}{most}, below {bound}"


@lru_cache(maxsize=100_000)
def _share(passed: int, measured: int, tail: float) -> PassShare:
    """Return the exact interval; each end is missed with probability at most ``tail``."""
    low = 0.0 if passed == 0 else beta_quantile(tail, passed, measured - passed + 1)
    high = 1.0 if passed == measured else beta_quantile(1 - tail, passed + 1, measured - passed)
    return PassShare(passed, measured, low, high)
