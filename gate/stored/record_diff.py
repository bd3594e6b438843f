"""The text of `gate baseline diff`: what differs between two records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gate.baselines import RecordDiff, diff
from gate.baselines.diff import Mean
from gate.decision.consistency import compared
from gate.decision.outcomes import RATE_METRIC
from gate.decision.power import outcomes_by_case
from gate.model import Scale
from gate.records import Record, cases_of
from gate.reports.formatting import NOT_MEASURED, count, figure
from gate.reports.labels import UNCOMMITTED
from gate.reports.table import table
from gate.reports.trajectory_diff import call_text
from gate.security.escape import console
from gate.stored.judging import read_whole

NAMES = {"suite_id": "suite", "agent": "agent's fingerprint", "gate_version": "gate version", "dirty": "work tree"}
"""The names of a record's header fields, where their own do not say it."""
SHORT = 12
"""Characters of a commit or a fingerprint."""

# --- differences ----------------------------------------------------------------------------------


def diff_records(old: Path, new: Path, width: int | None = None) -> str:
    """Return the differences between two records, case by case."""
    before, after = read_whole(old), read_whole(new)
    found = diff(before, after)
    lines = [f"{NAMES.get(name, name)}: {_plain(name, a)} → {_plain(name, b)}" for name, (a, b) in found.header.items()]
    lines += [f"criterion {name}: {a or 'absent'} → {b or 'absent'}" for name, (a, b) in found.criteria.items()]
    scales = {one.name: one.scale for record in (before, after) for one in record.header.criteria}
    rows = [("criterion", "old", "new")]
    rows += [(name, _mean(a, scales[name]), _mean(b, scales[name])) for name, (a, b) in found.means.items()]
    cases = _case_diffs(found, _passes(before), _passes(after))
    return "\n".join(["\n".join(map(console, lines)) or "same plan and criteria", table(rows, width), *cases])


def _plain(name: str, value: Any) -> str:
    if name == "dirty":
        return UNCOMMITTED if value else "clean"
    if not value:
        return "unknown" if name != "commit" else "no commit"
    return str(value)[:SHORT] if name in ("commit", "agent") else str(value)


def _mean(mean: Mean, scale: Scale) -> str:
    return "–" if mean.value is None else f"{figure(mean.value, scale)} (n = {mean.n})"


def _passes(record: Record) -> Mapping[str, tuple[int, int]]:
    """By case: its trials that pass, and those of which that is known; by the record's own criteria and thresholds."""
    cases = {case.id: case for case in cases_of(record.header)}
    criteria = [one for one in record.header.criteria if one.metric != RATE_METRIC]
    trials = compared(list(cases.values()), record.header.criteria, record.trials)
    outcomes = outcomes_by_case(trials, criteria, cases)
    return {case_id: (sum(passes), len(passes)) for case_id, passes in outcomes.items()}


def _case_diffs(
    found: RecordDiff, before: Mapping[str, tuple[int, int]], after: Mapping[str, tuple[int, int]]
) -> Iterable[str]:
    for case in found.cases:
        sides = before.get(case.id, (0, 0)), after.get(case.id, (0, 0))
        moved = sides[0][0] * sides[1][1] != sides[1][0] * sides[0][1]
        if case.status == "same" and not case.old_only and not case.new_only and not moved:
            continue
        trials = f"{case.old_trials} → {count(case.new_trials, 'trial')}"
        yield f"{console(case.id)}: {STATUSES.get(case.status, case.status)}, passed {_of(*sides)}, {trials}"
        for sign, ways in (("-", case.old_only), ("+", case.new_only)):
            for way in ways[:3]:
                calls = " | ".join(", ".join(call_text(c) for c in turn) or "(no call)" for turn in way.turns)
                yield f"  {sign} {way.count}× {calls}"


STATUSES = {"same": "same case", "changed": "edited case", "added": "added case", "removed": "removed case"}
"""The change of the case itself; its results are told beside it."""


def _of(old: tuple[int, int], new: tuple[int, int]) -> str:
    """``5/5 → 0/11``."""
    return " → ".join(f"{good}/{known}" if known else NOT_MEASURED for good, known in (old, new))
