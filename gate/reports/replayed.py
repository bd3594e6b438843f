"""What reports say of recordings that were replayed: what the change made the model see, and what it did not."""

from __future__ import annotations

from gate.model import CaseResult, CaseStatus, SuiteResult
from gate.model.facts import ReplayedShare
from gate.reports.formatting import count, dollars

SAME = "same requests"
"""The status of a case that passes because the model was asked the same things: nothing of it was measured again."""
ASKED_THE_SAME = "the model was asked the same things"
MOST_DIFFERENCES = 20
MOST_NAMED = 3
"""Cases that are named beside one difference."""


def line(suite: SuiteResult) -> str:
    """``84 of 100 cases: nothing the model sees changed (0 calls). 16 went live: 21 runs.``

    Empty where there were no recordings.
    """
    share = suite.replayed
    if share is None:
        return ""
    live = len(share.live)
    parts = [f"{share.same:,} of {count(share.cases, 'case')}: nothing the model sees changed (0 calls)."]
    if live:
        parts.append(f"{live:,} went live: {count(share.runs, 'run')}.")
    return " ".join(parts)


def calls(suite: SuiteResult) -> str:
    """What was answered from recordings, and what that spared; empty where nothing was."""
    share = suite.replayed
    if share is None or not share.replayed:
        return ""
    money = "" if share.saved_usd is None else f"; {dollars(share.saved_usd)} saved"
    return f"{count(share.replayed, 'call')} answered from recordings, {share.calls:,} live{money}"


def differences(suite: SuiteResult, most: int = MOST_DIFFERENCES) -> tuple[str, ...]:
    """What differed first in each case that went live, the most frequent difference first: what the change changed."""
    share = suite.replayed
    if share is None:
        return ()
    groups = _by_difference(share)
    told = [_difference(what, ids) for what, ids in groups[:most]]
    return (*told, *([f"{len(groups) - most:,} further differences"] if len(groups) > most else ()))


def _by_difference(share: ReplayedShare) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for case in share.live:
        groups.setdefault(case.difference, []).append(case.case_id)
    return sorted(groups.items(), key=lambda one: (not one[0], -len(one[1])))


def _difference(what: str, ids: list[str]) -> str:
    named = ", ".join(ids[:MOST_NAMED]) + (", …" if len(ids) > MOST_NAMED else "")
    cases = named if len(ids) == 1 else f"{count(len(ids), 'case')} ({named})"
    return f"{cases}: {what or 'no recording to compare with'}"


def of_case(case: CaseResult) -> str:
    """What a case's recordings say; empty where it has none."""
    if case.same_world:
        return ASKED_THE_SAME
    return f"went live: {case.difference}" if case.difference else ""


def is_same(case: CaseResult) -> bool:
    """Whether a case counts as held because nothing that the model sees changed in it."""
    return case.same_world and case.status is CaseStatus.OK
