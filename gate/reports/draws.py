"""Earlier measurements of the same change: how they are told, and where."""

from __future__ import annotations

from gate.model import SuiteResult, Verdict
from gate.model.finding import Finding
from gate.reports.words import tell, tell_short

FELL_SHORT = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)


def in_headline(suite: SuiteResult) -> str:
    """``measurement 3 of this change (before: pass, regressed)``, where one of them fell short; else empty.

    Whatever a further one comes to, it is one of several, and a lucky one is not to hide the others.
    """
    found = _of(suite)
    if found is None or not any(verdict in FELL_SHORT for verdict in found["verdicts"]):
        return ""
    return tell_short(found)


def below_headline(suite: SuiteResult) -> str:
    """The whole sentence, where the headline does not tell it; empty if this is the first measurement."""
    found = _of(suite)
    return "" if found is None or in_headline(suite) else tell(found)


def _of(suite: SuiteResult) -> Finding | None:
    return next((one for one in suite.warnings if one.kind == "measured_before"), None)
