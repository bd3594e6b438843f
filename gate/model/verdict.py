"""What the gate can say of a criterion or a suite, from best to worst."""

from __future__ import annotations

from enum import Enum
from typing import Literal

OnTradeoff = Literal["block", "warn", "accept"]
"""What a change does that breaks cases and improves others, with no lower mean."""


class Verdict(str, Enum):
    """The gate's verdict on a criterion or a suite."""

    NOT_APPLIED = "not_applied"
    """Criteria only: it applies to no selected case, gets no tick, and decides nothing."""
    PASS = "pass"  # noqa: S105 - a verdict
    INCONCLUSIVE = "inconclusive"
    NOT_MEASURED = "not_measured"
    BELOW_THRESHOLD = "below_threshold"
    REGRESSED = "regressed"
    ERROR = "error"


SEVERITY = (
    Verdict.NOT_APPLIED,
    Verdict.PASS,
    Verdict.INCONCLUSIVE,
    Verdict.NOT_MEASURED,
    Verdict.BELOW_THRESHOLD,
    Verdict.REGRESSED,
    Verdict.ERROR,
)
"""From best to worst; the verdict of several is the worst of them."""


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of the verdicts; PASS for none, so callers refuse emptiness before asking."""
    return max(verdicts, key=SEVERITY.index, default=Verdict.PASS)
