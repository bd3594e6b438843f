"""Results by tag and by complexity as tables, which show where the losses are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gate.model import GroupKind, GroupResult, Scale, SuiteResult
from gate.reports.by_tag import groups, is_named, is_paired
from gate.reports.formatting import figures, value_of
from gate.reports.html import page
from gate.reports.html.plots import Axis, axis_of, movement

_SHOWN = 12
_MOST = 200


def by_tag(suite: SuiteResult) -> list[Mapping[str, Any]]:
    """Return a table of tags and one of complexities: first the groups with the concentrated loss, then by loss."""
    found, left = groups(suite, _MOST)
    axis = _axis(found)
    tables: list[Mapping[str, Any]] = []
    for kind, fewest in ((GroupKind.TAG, 1), (GroupKind.COMPLEXITY, 2)):
        mine = [_row(one, suite, axis) for one in found if one.kind is kind]
        if len(mine) >= fewest:
            more = f", and {left:,} that are not shown" if left and kind is GroupKind.TAG else ""
            noun = kind.value.capitalize()
            tables.append({"noun": noun, "rows": mine[:_SHOWN], "rest": mine[_SHOWN:], "more": more})
    return tables


def _axis(found: Sequence[GroupResult]) -> Axis:
    rates = []
    for one in found:
        rates += [side.value for side in (one.candidate, one.baseline) if side is not None]
    return axis_of(rates, Scale.BINARY.range)


def _row(group: GroupResult, suite: SuiteResult, axis: Axis) -> Mapping[str, Any]:
    now, before = value_of(group.candidate), None
    if is_paired(group):
        before = value_of(group.baseline)
    said, was = figures((now, before), Scale.BINARY)
    name = f"pass rate {said}"
    if before is None:
        was = ""
    else:
        name += f", was {was}"
    return {
        "name": group.name,
        "link": page.link(group.kind.value, group.name),
        "named": is_named(group, suite),
        "cases": f"{group.cases:,}",
        "lost": f"{group.lost:,}" if group.lost else "",
        "gained": f"{group.gained:,}" if group.gained else "",
        "now": said,
        "before": was,
        "plot": movement(before, now, axis, name),
    }
