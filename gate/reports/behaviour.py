"""The change of behaviour that the worse cases have in common, in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from gate.model import CaseResult, ToolCall
from gate.security.limits import shorten

MAX_NAME_CHARS = 60


def changed_behaviour(cases: Sequence[CaseResult], broken: Collection[str]) -> tuple[str, int]:
    """Return the change that most of the broken cases have in common, and the number of cases with it.

    The text, such as ``no longer calls `look_up_order` before `refund` ``, is empty if no change in the calls is common
    to at least half of them.
    """
    wanted = set(broken)
    counts: Counter[str] = Counter()
    places: dict[str, set[str]] = {}
    for case in cases:
        if case.id not in wanted:
            continue
        for sentence, place in differences_of(case).items():
            counts[sentence] += 1
            places.setdefault(sentence, set()).add(place)
    for sentence, holds in counts.most_common(1):
        if 2 * holds >= len(wanted):
            if len(places[sentence]) == 1:
                return sentence + places[sentence].pop(), holds
            return sentence, holds
    return "", 0


def differences_of(case: CaseResult) -> dict[str, str]:
    """Return the differences of a case's worst trial from a passing one, or from the expected calls.

    Each sentence maps to the call that it precedes, such as `` before `refund` ``; empty if there is none, or if no
    trial failed: then the calls are not known.
    """
    if not case.actual:
        return {}
    before = _names(case.reference) or _names(case.expected)
    now = _names(case.actual)
    if not before or case.crashes == case.trials:
        return {}
    often, often_before = Counter(now), Counter(before)
    missing = [name for name in often_before if name not in often]
    added = [name for name in often if name not in often_before]
    if len(missing) == len(added) == 1:
        return {f"calls {_name(added[0])} instead of {_name(missing[0])}": ""}
    if missing:
        return {f"no longer calls {_name(name)}": _before(name, before, now) for name in missing}
    if added:
        return {f"now also calls {_name(name)}": "" for name in added}
    said = {}
    for name, times in often_before.items():
        if often[name] != times:
            said[f"calls {_name(name)} {_times(often[name])} instead of {_times(times)}"] = ""
    if not said and before != now:
        said["calls its tools in another order"] = ""
    return said


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _names(turns: Sequence[Sequence[ToolCall] | None]) -> list[str]:
    names = []
    for turn in turns:
        names += [call.name for call in turn or () if call.name]
    return names


def _before(name: str, before: Sequence[str], now: Sequence[str]) -> str:
    """Return the call that followed a missing one and is still made, as in ``before refund``."""
    for following in before[before.index(name) + 1 :]:
        if following == name:
            continue
        if following in now:
            return f" before {_name(following)}"
        break
    return ""


def _name(name: str) -> str:
    """Return a name between backticks, with those inside it replaced."""
    plain = " ".join(name.replace("`", "'").split())
    return f"`{shorten(plain, MAX_NAME_CHARS)}`"
