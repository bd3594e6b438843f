"""Results by tag and by complexity as tables, which show where the losses are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.model import Estimate, GroupKind, Scale, SuiteResult
from gate.reports.by_tag import Row, is_paired, rows
from gate.reports.formatting import figures
from gate.reports.html import page
from gate.reports.html.plots import Axis, axis_of, movement

_SHOWN = 12
_MOST = 200


def by_tag(suite: SuiteResult) -> list[Mapping[str, Any]]:
    """Return a table of tags and one of complexities: first the groups with the concentrated loss, then by loss."""
    found, left = rows(suite, _MOST)
    axis = _axis(found)
    tables: list[Mapping[str, Any]] = []
    for kind, fewest in ((GroupKind.TAG, 1), (GroupKind.COMPLEXITY, 2)):
        mine = [_row(one, axis) for one in found if one.group.kind is kind]
        if len(mine) >= fewest:
            more = f", and {left:,} that are not shown" if left and kind is GroupKind.TAG else ""
            noun = kind.value.capitalize()
            tables.append({"noun": noun, "rows": mine[:_SHOWN], "rest": mine[_SHOWN:], "more": more})
    return tables


def _axis(found: Sequence[Row]) -> Axis:
    rates = []
    for one in found:
        rates += [side.value for side in (one.group.candidate, one.group.baseline) if side is not None]
    return axis_of(rates, Scale.BINARY.range)


def _row(one: Row, axis: Axis) -> Mapping[str, Any]:
    group = one.group
    now = _value(group.candidate)
    before = _value(group.baseline) if is_paired(group) else None
    said, was = figures((now, before), Scale.BINARY)
    name = f"pass rate {said}"
    if before is None:
        was = ""
    else:
        name += f", was {was}"
    return {
        "name": group.name,
        "link": page.link(group.kind.value, group.name),
        "named": one.is_named,
        "cases": one.cases,
        "lost": f"{group.lost:,}" if group.lost else "",
        "gained": f"{group.gained:,}" if group.gained else "",
        "now": said,
        "before": was,
        "plot": movement(before, now, axis, name),
    }


def _value(side: Estimate | None) -> float | None:
    return None if side is None else side.value
