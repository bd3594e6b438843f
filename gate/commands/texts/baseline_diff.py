"""The text of `gate baseline diff`: what differs between two records."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gate.baselines import RecordDiff, diff
from gate.pipeline.judge_stored import read_whole
from gate.reports.formatting import count
from gate.reports.table import table
from gate.reports.trajectory_diff import call_text
from gate.security.escape import console

# --- differences ----------------------------------------------------------------------------------


def diff_records(old: Path, new: Path, width: int | None = None) -> str:
    """What differs between two records, case by case."""
    found = diff(read_whole(old), read_whole(new))
    lines = [f"{name}: {a!r} → {b!r}" for name, (a, b) in found.header.items()]
    lines += [f"criterion {name}: {a or 'absent'} → {b or 'absent'}" for name, (a, b) in found.criteria.items()]
    rows = [("criterion", "old", "new")]
    rows += [(name, _mean(a), _mean(b)) for name, (a, b) in found.means.items()]
    return "\n".join(
        ["\n".join(map(console, lines)) or "same plan and criteria", table(rows, width), *_case_diffs(found)]
    )


def _mean(mean: Any) -> str:
    return "–" if mean.value is None else f"{mean.value:.3f} (n = {mean.n})"


def _case_diffs(found: RecordDiff) -> Iterable[str]:
    for case in found.cases:
        if case.status == "same" and not case.old_only and not case.new_only:
            continue
        yield f"{console(case.id)}: {case.status}, {case.old_trials} → {count(case.new_trials, 'trial')}"
        for sign, ways in (("-", case.old_only), ("+", case.new_only)):
            for way in ways[:3]:
                calls = " | ".join(", ".join(call_text(c) for c in turn) or "(no call)" for turn in way.turns)
                yield f"  {sign} {way.count}× {calls}"
