"""Results by tag and by complexity as tables: where in a suite the losses are."""

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
    """A table of tags and one of complexities, those first that the loss is in, then those that lost most."""
    found, left = rows(suite, _MOST)
    axis = axis_of(list(_rates(found)), Scale.BINARY.range)
    tables = []
    for kind in GroupKind:
        mine = [_row(one, axis) for one in found if one.group.kind is kind]
        if kind is GroupKind.TAG or len(mine) > 1:
            more = f", and {left:,} that are not shown" if left and kind is GroupKind.TAG else ""
            noun = kind.value.capitalize()
            tables.append({"noun": noun, "rows": mine[:_SHOWN], "rest": mine[_SHOWN:], "more": more})
    return [table for table in tables if table["rows"]]


def _rates(found: Sequence[Row]) -> list[float]:
    sides = [side for one in found for side in (one.group.candidate, one.group.baseline)]
    return [side.value for side in sides if side is not None]


def _row(one: Row, axis: Axis) -> Mapping[str, Any]:
    group = one.group
    now, before = _value(group.candidate), _value(group.baseline) if is_paired(group) else None
    said, was = figures((now, before), Scale.BINARY)
    was = "" if before is None else was
    return {
        "name": group.name,
        "link": page.link(group.kind.value, group.name),
        "named": one.is_named,
        "cases": one.cases,
        "lost": f"{group.lost:,}" if group.lost else "",
        "gained": f"{group.gained:,}" if group.gained else "",
        "now": said,
        "before": was,
        "plot": movement(before, now, axis, f"pass rate {said}" + (f", was {was}" if was else "")),
    }


def _value(side: Estimate | None) -> float | None:
    return None if side is None else side.value
