"""The ledger's entries on the record that a run is compared with: who accepted it, and how it fell short."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, datetime

from gate.baselines import Store
from gate.baselines.ledger import LAPSED, Ledger, Mark
from gate.baselines.reference import Reference
from gate.pipeline.git_context import GitContext
from gate.records.keys import key_of
from gate.reports.formatting import count
from gate.security.limits import shorten

LUCKY = "if it was picked for its result, an unchanged agent is blocked more often than `gate.alpha` says"


def acceptance_of(ledger: Ledger, where: GitContext, runs: Set[str]) -> str:
    """Return who accepted these very runs, and when. Other runs of the commit were not seen, so they are not
    accepted."""
    key = key_of(where.head)
    found = ledger.accepted(key) if where.anchored else None
    if found is None or not runs:
        return ""
    seen = {mark.run for mark in ledger.marks if mark.key == key and mark.at <= found.at}
    if not runs <= seen:
        return ""
    return f"{found.by} at {datetime.fromtimestamp(found.at, UTC).isoformat(timespec='seconds')}"


def ended_acceptance(ledger: Ledger, where: GitContext) -> str:
    """Return a description of the newest acceptance of a record of this history that has ended; empty if none has."""
    near = {key_of(commit) for commit in where.ancestors}
    if where.head is not None:
        near.add(where.head)
    for found in reversed(ledger.ended):
        if found.key in near:
            return f"the acceptance of {found.key[:12]} by {shorten(found.by, 60)} ended on {found.last_day}"
    return ""


def note_of_shortfall(mark: Mark, own: Reference, *, is_ancestor: bool) -> str:
    """Return a note on how the base's own record fell short, which a comparison with it does not show.

    It may have been compared with earlier runs of the same commit.
    """
    commit = (own.commit or "")[:12]
    base = f"the base commit {commit}" if is_ancestor else f"{commit}, which was saved last,"
    is_its_own = key_of(mark.anchor) == mark.key
    came_out = f"{mark.verdict.replace('_', ' ')} on {datetime.fromtimestamp(mark.at, UTC):%Y-%m-%d}"
    if mark.verdict == LAPSED:
        held = "its own earlier runs" if is_its_own else mark.anchor[:12]
        fell = f"{base} passed only against {held}, whose acceptance has ended"
    elif is_its_own:
        fell = f"{base} was run again, and held to its own earlier runs came out {came_out}"
    else:
        held = f", compared with {mark.anchor[:12]}" if mark.anchor else ""
        fell = f"{base} itself came out {came_out}{held}"
    return f"{fell}; this change is compared with it all the same"


def note_of_picked_run(ledger: Ledger, own: Reference) -> str:
    """Return a note if the record of the base was picked from several runs; else empty."""
    mark = ledger.newest_mark(key_of(own.commit))
    if mark is None or not mark.left_out:
        return ""
    others = count(mark.left_out, "other run")
    return f"the baseline was picked by hand, {others} of its commit left out: {LUCKY}"


def note_of_lost_record(ledger: Ledger, store: Store, suite_id: str, where: GitContext) -> str:
    """Return a note if the ledger names a record of this history that is gone; else empty."""
    marked = {mark.key for mark in ledger.marks} - {entry.key for entry in store.entries(suite_id)}
    for key in map(key_of, where.ancestors):
        if key in marked:
            lost = "deleted, renamed, or no plain file any more"
            return f"a baseline was stored: the ledger names a record of {key[:12]}, which is gone ({lost})"
    return ""
