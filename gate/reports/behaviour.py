"""What the agent does otherwise than before, in one sentence that the cases which got worse have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from gate.model import CaseResult, CaseStatus, SuiteResult, ToolCall
from gate.security.limits import shorten

MOST_CASES = 200
"""Cases that are looked at."""
MAX_NAME_CHARS = 60
Calls = Sequence[Sequence[ToolCall]]


def changed_behaviour(suite: SuiteResult) -> str:
    """Return what most of the broken cases have in common: ``no longer calls look_up_order before refund``.

    Empty if nothing of the calls is common to at least half of them.
    """
    broken = [case for case in suite.cases if case.status in (CaseStatus.BROKEN, CaseStatus.FAILED)][:MOST_CASES]
    counts = Counter(sentence for case in broken for sentence in _sentences(case))
    if not counts:
        return ""
    sentence, cases = counts.most_common(1)[0]
    return sentence if 2 * cases >= len(broken) else ""


def _sentences(case: CaseResult) -> list[str]:
    """Return what a case's worst trial does otherwise than a passing one, or than its author expects."""
    before = _names(case.reference) or _names([turn or () for turn in case.expected])
    now = _names(case.actual)
    if not before or case.crashes == case.trials:
        return []
    missing = list((Counter(before) - Counter(now)).keys())
    added = list((Counter(now) - Counter(before)).keys())
    if missing and added and len(missing) == len(added) == 1:
        return [f"calls {_name(added[0])} instead of {_name(missing[0])}"]
    if missing:
        return [f"no longer calls {_name(name)}{_before(name, before, now)}" for name in missing]
    if added:
        return [f"now also calls {_name(name)}" for name in added]
    return ["calls its tools in another order"] if before != now else []


def _names(turns: Calls) -> list[str]:
    return [call.name for turn in turns for call in turn if call.name]


def _before(name: str, before: Sequence[str], now: Sequence[str]) -> str:
    """Return the call that followed a missing one and is still made, as ``before refund``."""
    following = before[before.index(name) + 1 :]
    kept = next((one for one in following if one != name), "")
    return f" before {_name(kept)}" if kept and kept in now else ""


def _name(name: str) -> str:
    return shorten(" ".join(name.split()), MAX_NAME_CHARS)
