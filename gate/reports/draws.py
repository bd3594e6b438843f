"""Earlier measurements of the same change: how they are told, and where."""

from __future__ import annotations

from gate.model import SuiteResult, Verdict
from gate.model.facts import MeasuredBefore
from gate.reports.formatting import listing

FELL_SHORT = (Verdict.REGRESSED, Verdict.BELOW_THRESHOLD)


def in_headline(suite: SuiteResult) -> str:
    """``measurement 3 of this change (before: pass, regressed)``, where one of them fell short; else empty.

    Whatever a further one comes to, it is one of several, and a lucky one is not to hide the others.
    """
    found = _of(suite)
    if found is None or not any(verdict in FELL_SHORT for verdict in found.verdicts):
        return ""
    return f"{_number(found)} ({_before(found)})"


def below_headline(suite: SuiteResult) -> str:
    """The whole sentence, where the headline does not tell it; empty if this is the first measurement."""
    found = _of(suite)
    return "" if found is None or in_headline(suite) else sentence(found)


def sentence(found: MeasuredBefore) -> str:
    why = (
        "another fingerprint of the agent" if found.fingerprinted else "without a fingerprint of the agent each commit"
    )
    down = ", what could not be measured, too" if Verdict.ERROR in found.verdicts else ""
    anew = f"{why} is measured anew{down}, and the error rate is that of one measurement"
    return f"{_number(found)}; {_before(found)} ({anew})"


def _number(found: MeasuredBefore) -> str:
    return f"measurement {found.total + 1:,} of this change"


def _before(found: MeasuredBefore) -> str:
    told = listing([verdict.value.replace("_", " ") for verdict in found.verdicts])
    some = len(found.verdicts) < found.total
    return f"the newest {len(found.verdicts)} of {found.total:,} before: {told}" if some else f"before: {told}"


def _of(suite: SuiteResult) -> MeasuredBefore | None:
    return next((one for one in suite.warnings if isinstance(one, MeasuredBefore)), None)
