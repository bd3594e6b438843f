"""Results by tag and by complexity: where in a suite the losses are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from gate.model import Case, CaseResult, Scale, SuiteResult
from gate.reports import labels as words
from gate.reports.formatting import figure
from gate.reports.html import page
from gate.reports.html.plots import Axis, movement

_SHOWN = 12


class _Sums(Struct):
    cases: int = 0
    worse: int = 0
    better: int = 0
    now: float = 0.0
    counted: int = 0
    before: float = 0.0
    stored: int = 0

    def add(self, case: CaseResult, *, worse: bool, better: bool) -> None:
        self.cases += 1
        self.worse += worse
        self.better += better
        if case.trials:
            self.now += case.passed / case.trials
            self.counted += 1
        if case.baseline_trials:
            self.before += case.baseline_passed / case.baseline_trials
            self.stored += 1


def by_tag(suite: SuiteResult, cases: Sequence[Case]) -> list[Mapping[str, Any]]:
    """Tables of tags and of complexities, those that lost most first; none of what all cases share."""
    plan = {case.id: case for case in cases}
    worse = {case.id for case in words.worse_cases(suite)}
    better = {case.id for case in words.improved_cases(suite)}
    tags: dict[str, _Sums] = {}
    levels: dict[str, _Sums] = {}
    for case in suite.cases:
        known = plan.get(case.id)
        if known is None:
            continue
        found = [tags.setdefault(tag, _Sums()) for tag in known.tags]
        for sums in (*found, levels.setdefault(known.complexity.value, _Sums())):
            sums.add(case, worse=case.id in worse, better=case.id in better)
    tables = [("Tag", "tag", tags), ("Complexity", "complexity", levels if len(levels) > 1 else {})]
    return [_table(noun, key, found) for noun, key, found in tables if found]


def _table(noun: str, key: str, found: Mapping[str, _Sums]) -> Mapping[str, Any]:
    order = sorted(found.items(), key=lambda one: (-one[1].worse / one[1].cases, -one[1].worse, one[0]))
    rows = [_row(key, name, sums) for name, sums in order]
    return {"noun": noun, "rows": rows[:_SHOWN], "rest": rows[_SHOWN:200], "more": max(0, len(rows) - 200)}


def _row(key: str, name: str, sums: _Sums) -> Mapping[str, Any]:
    now = sums.now / sums.counted if sums.counted else None
    before = sums.before / sums.stored if sums.stored else None
    said = figure(now, Scale.BINARY)
    was = figure(before, Scale.BINARY) if before is not None else ""
    return {
        "name": name,
        "link": page.link(key, name),
        "cases": f"{sums.cases:,}",
        "worse": f"{sums.worse:,}" if sums.worse else "",
        "better": f"{sums.better:,}" if sums.better else "",
        "now": said,
        "before": was,
        "plot": movement(before, now, Axis(0.0, 1.0), f"pass rate {said}" + (f", was {was}" if was else "")),
    }
