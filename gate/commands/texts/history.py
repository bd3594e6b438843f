"""The text of `gate history`: pass rates by case over several records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gate.decision.history import case_history
from gate.errors import MeasureError
from gate.pipeline.drift import drift_in
from gate.pipeline.judge_stored import read_whole
from gate.pipeline.verdict import cases_of
from gate.reports.table import table


def history_of_records(paths: Sequence[Path]) -> str:
    """Pass rates by case over records in the order of their creation; flaky cases are flagged."""
    found = [read_whole(path, complete=False) for path in paths]
    records = sorted((r for r in found if r.footer is not None and r.trials), key=lambda record: record.header.created)
    if not records:
        raise MeasureError("none of these records is finished", hint="continue a run with --resume")
    skipped = f"\n{len(found) - len(records)} unfinished records are left out" if len(records) < len(found) else ""
    newest = records[-1].header
    other = next((r.header.suite_id for r in records if r.header.suite_id != newest.suite_id), None)
    if other is not None:
        raise MeasureError(f"records of two suites: {other!r} and {newest.suite_id!r}", hint="name one suite's records")
    cases = {case.id: case for case in cases_of(newest)}
    rows = [("case", "pass rate", "95 % interval", "trials", "", "by record")]
    for case in case_history([record.trials for record in records], newest.criteria, cases):
        by_record = " ".join(f"{passed}/{trials}" for passed, trials in case.by_record)
        bounds = f"{case.low:.2f}–{case.high:.2f}"
        rows.append((case.id, f"{case.rate:.2f}", bounds, str(case.trials), "flaky" if case.flaky else "", by_record))
    drift = drift_in(list(reversed(records)))
    return table(rows) + (f"\n{drift.words}" if drift is not None else "") + skipped
