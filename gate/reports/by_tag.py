"""Results by tag and complexity in words: the place of a loss, and the rows of a table. Escapes nothing.

The table shows no intervals. Each would be for its group alone, and among many groups a few exclude no change by
chance, which would look like proof. A test of all groups together finds the named ones; JSON has the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

from gate.model import Concentration, GroupKind, GroupResult, Scale, SuiteResult, Verdict
from gate.reports.formatting import count, figures, same_cases, value_of
from gate.security.limits import cut

SHOWN = 12
"""Maximum number of groups in a report; the rest is counted."""
NO_FIGURE = "–"
MAX_NAME = 60
"""Maximum number of characters in a tag in a sentence or a row."""


# --- the place of a loss --------------------------------------------------------------------------


def where(suite: SuiteResult) -> str:
    """Return the groups in which a loss is concentrated; empty if there are none.

    For example, ``tag refund, 100 of 1,200 cases: pass rate 98 % → 65 %, elsewhere 98.1 % → 98 %``.
    """
    if suite.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE) or not suite.concentrated:
        return ""
    first, *others = suite.concentrated
    scale = _scale(first, suite)
    change = " → ".join(figures((first.before, first.now), scale))
    elsewhere = " → ".join(figures((first.rest_before, first.rest_now), scale))
    cases = f"{first.cases:,} of {count(first.of, 'case')}"
    said = [f"{_named(first.kind, first.name)}, {cases}: {first.criterion} {change}, elsewhere {elsewhere}"]
    for one in others:
        change = " → ".join(figures((one.before, one.now), _scale(one, suite)))
        said.append(f"also {_named(one.kind, one.name)}: {change}")
    return "; ".join(said)


def _scale(found: Concentration, suite: SuiteResult) -> Scale:
    row = suite.row(found.criterion)
    if row is None:
        return Scale.BINARY
    return row.criterion.scale


def _named(kind: GroupKind, name: str) -> str:
    """Return text such as ``tag refund`` or ``complexity complex``."""
    return f"{kind.value} {_shortened(name)}"


def _shortened(name: str) -> str:
    return cut(" ".join(name.split()), MAX_NAME)


def in_named(suite: SuiteResult, tags: Sequence[str], complexity: str) -> bool:
    """True if a case is in a group in which the loss is concentrated."""
    names = {GroupKind.TAG: tags, GroupKind.COMPLEXITY: (complexity,)}
    return any(one.name in names[one.kind] for one in suite.concentrated)


# --- a table --------------------------------------------------------------------------------------


def groups(suite: SuiteResult, most: int = SHOWN) -> tuple[list[GroupResult], int]:
    """Return the groups to show, named ones first, then those that lost most, and the number of further groups.

    A tag with a single case adds nothing to the case, and is only counted if there are larger ones.
    """
    named = {(one.kind, one.name): place for place, one in enumerate(suite.concentrated)}
    found = [one for one in suite.groups if one.cases > 1] or list(suite.groups)
    found.sort(key=lambda one: named.get((one.kind, one.name), len(named)))
    shown = found[:most]
    return shown, len(suite.groups) - len(shown) + suite.further_groups


def is_named(one: GroupResult, suite: SuiteResult) -> bool:
    """True if the loss is concentrated in the group."""
    return any((one.kind, one.name) == (found.kind, found.name) for found in suite.concentrated)


def rows(suite: SuiteResult) -> tuple[list[tuple[bool, str, str, str, str]], int]:
    """Return for each group to show: True if it is named, its name, its cases, its pass rates and the changed cases,
    and the number of further groups. Names are the user's."""
    shown, left = groups(suite)
    return [
        (is_named(one, suite), _name_of(one), count(one.cases, "case"), _rates(one), moved(one)) for one in shown
    ], left


def _name_of(one: GroupResult) -> str:
    if one.kind is GroupKind.COMPLEXITY:
        return _named(one.kind, one.name)
    return _shortened(one.name)


def _rates(one: GroupResult) -> str:
    """Return the pass rate, after the baseline's if both sides have the same cases, so that it is a change."""
    if one.candidate is None:
        return NO_FIGURE
    before, now = figures([value_of(one.baseline), value_of(one.candidate)], Scale.BINARY)
    if one.change is not None and same_cases(one):
        return f"{before} → {now}"
    return now


def moved(one: GroupResult) -> str:
    """Return ``35 worse (33 broken), 2 better``: the counts of changed paired cases, however small their change.

    Those that got worse include proven broken ones.
    """
    said = []
    worse = max(one.lost, one.broken)
    if one.broken:
        said.append(f"{worse:,} worse ({one.broken:,} broken)")
    elif worse:
        said.append(f"{worse:,} worse")
    if one.gained:
        said.append(f"{one.gained:,} better")
    return ", ".join(said)
