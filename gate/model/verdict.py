"""The verdicts on a criterion or a suite, from best to worst."""

from __future__ import annotations

from enum import Enum


class Verdict(str, Enum):
    """The gate's verdict on a criterion or a suite."""

    NOT_APPLIED = "not_applied"
    """Criteria only: it applies to no selected case and decides nothing."""
    PASS = "pass"  # noqa: S105 - a verdict
    INCONCLUSIVE = "inconclusive"
    """Only noise is left: a margin's bound does not hold when sampling ends."""
    NOT_MEASURED = "not_measured"
    """Criteria only: if the criterion blocks, the suite is an error."""
    ERROR = "error"
    """The suite could not be measured."""
    NOT_COMPARED = "not_compared"
    """Some part of the base was not compared."""
    BELOW_THRESHOLD = "below_threshold"
    REGRESSED = "regressed"


SEVERITY = (
    Verdict.NOT_APPLIED,
    Verdict.PASS,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_MEASURED,
    Verdict.ERROR,
    Verdict.NOT_COMPARED,
    Verdict.BELOW_THRESHOLD,
    Verdict.REGRESSED,
)
"""From best to worst; the verdict of several suites is the worst of theirs, and so is the exit code."""


def worst(verdicts: list[Verdict]) -> Verdict:
    """Return the worst verdict; PASS for an empty list, so callers must refuse those."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.PASS)
