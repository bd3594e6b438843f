"""The reports' sentences on replayed recordings: the effects of the change on the model's requests."""

from __future__ import annotations

from collections.abc import Mapping

from gate.model import CaseResult, CaseStatus, SuiteResult, Trial
from gate.reports.formatting import count, dollars
from gate.security.escape import console

SAME = "same requests"
"""The status of a case that passes because the model got the same requests: nothing was measured again."""
ASKED_THE_SAME = "the model was asked the same things"
MOST_DIFFERENCES = 20
MOST_LISTED = 200
MOST_NAMED = 3
"""Maximum number of cases named for one difference."""


def line(suite: SuiteResult) -> str:
    """Return ``84 of 100 cases: nothing the model sees changed (0 calls). 16 went live: 21 runs.``

    Empty if there were no recordings.
    """
    share = suite.replayed
    if share is None:
        return ""
    said = f"{share.same:,} of {count(share.cases, 'case')}: nothing the model sees changed (0 calls)."
    if share.live:
        said += f" {len(share.live):,} went live: {count(share.runs, 'run')}."
    return said


def calls(suite: SuiteResult) -> str:
    """Return the share of calls answered from recordings, and the saved cost; empty if nothing was replayed."""
    share = suite.replayed
    if share is None or not share.replayed:
        return ""
    said = f"{count(share.replayed, 'call')} answered from recordings, {share.calls:,} live"
    if share.saved_usd is not None:
        said += f"; {dollars(share.saved_usd)} saved"
    return said


def differences(suite: SuiteResult, most: int = MOST_DIFFERENCES) -> tuple[str, ...]:
    """Return the first difference of each live case, the most frequent first: the effects of the change."""
    share = suite.replayed
    if share is None:
        return ()
    return _by_difference({case.case_id: case.difference for case in share.live}, most)


def asked_text(cases: int, differing: Mapping[str, str], partly: int, unknown: int) -> str:
    """Return the comparison of two records' requests to the outside world, for a terminal.

    Args:
        cases: number of cases that could be compared.
        differing: case → its first difference.
        partly: number of other cases compared only up to the point where the model answered differently.
        unknown: number of shared cases whose recordings are missing.
    """
    same = cases - len(differing)
    lines = [f"{same:,} of {count(cases, 'case')}: nothing the model sees changed. {len(differing):,} differ."]
    lines += [f"  {console(told, 600)}" for told in _by_difference(differing, MOST_LISTED)]
    if partly:
        lines.append(f"{count(partly, 'case')} compared only until the model answered differently")
    if unknown:
        lines.append(f"{count(unknown, 'case')} not compared: what they asked is not recorded on both sides")
    return "\n".join(lines)


def _by_difference(differing: Mapping[str, str], most: int) -> tuple[str, ...]:
    """Return the cases by their first difference, the most frequent difference first."""
    groups: dict[str, list[str]] = {}
    for case_id, what in differing.items():
        groups.setdefault(what, []).append(case_id)
    ordered = sorted(groups.items(), key=lambda one: (not one[0], -len(one[1])))
    told = [_difference(what, ids) for what, ids in ordered[:most]]
    if len(ordered) > most:
        told.append(count(len(ordered) - most, "further difference"))
    return tuple(told)


def _difference(what: str, ids: list[str]) -> str:
    cases = ", ".join(ids[:MOST_NAMED])
    if len(ids) > MOST_NAMED:
        cases += ", …"
    if len(ids) > 1:
        cases = f"{count(len(ids), 'case')} ({cases})"
    return f"{cases}: {what or 'no recording to compare with'}"


def of_case(case: CaseResult) -> str:
    """Return the facts from a case's recordings; empty if it has none."""
    if case.same_world:
        return ASKED_THE_SAME
    if case.difference:
        return f"went live: {case.difference}"
    return ""


def of_trial(trial: Trial) -> str:
    """Return the source of a trial's answers, from its record; empty if it had no recording."""
    replay = trial.replay
    if replay is None or not replay.source:
        return ""
    told = f"{count(replay.replayed, 'call')} answered from recordings, {replay.live:,} live"
    if replay.difference:
        return f"{told}: {replay.difference}"
    if not replay.live:
        return f"{told}: {ASKED_THE_SAME}"
    return told


def is_same(case: CaseResult) -> bool:
    """True if a case passes because nothing that the model sees changed in it."""
    return case.same_world and case.status is CaseStatus.OK
