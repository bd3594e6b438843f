"""Results by tag and complexity in words: where a loss is, and the rows of a table. Escapes nothing.

No interval stands in the table. Each would be that of its group alone, and of many groups a few lie below no change by
chance, so one would read as a proof. What is named is found by a test of all groups together; JSON has the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gate.model import Concentration, GroupKind, GroupResult, Scale, SuiteResult, Verdict
from gate.reports.formatting import count, figures, same_cases
from gate.security.limits import cut

SHOWN = 12
"""Groups that a report lists; the rest is counted."""
NO_FIGURE = "–"
MAX_NAME = 60
"""Characters of a tag in a sentence or a row."""


# --- where a loss is ------------------------------------------------------------------------------


def where(suite: SuiteResult) -> str:
    """Return the groups that a loss is concentrated in; empty if it is in none.

    ``tag refund, 100 of 1,200 cases: pass rate 98 % → 65 %, elsewhere 98.1 % → 98 %; also tag billing: 90 % → 60 %``
    """
    if suite.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE) or not suite.concentrated:
        return ""
    first, *others = suite.concentrated
    scale = _scale(first, suite)
    moved = " → ".join(figures((first.before, first.now), scale))
    elsewhere = " → ".join(figures((first.rest_before, first.rest_now), scale))
    cases = f"{first.cases:,} of {count(first.of, 'case')}"
    said = [f"{_named(first.kind, first.name)}, {cases}: {first.criterion} {moved}, elsewhere {elsewhere}"]
    for one in others:
        moved = " → ".join(figures((one.before, one.now), _scale(one, suite)))
        said.append(f"also {_named(one.kind, one.name)}: {moved}")
    return "; ".join(said)


def _scale(found: Concentration, suite: SuiteResult) -> Scale:
    for row in suite.criteria:
        if row.criterion.name == found.criterion:
            return row.criterion.scale
    return Scale.BINARY


def _named(kind: GroupKind, name: str) -> str:
    """``tag refund``, ``complexity complex``."""
    return f"{kind.value} {_shortened(name)}"


def _shortened(name: str) -> str:
    return cut(" ".join(name.split()), MAX_NAME)


def in_named(suite: SuiteResult, tags: Sequence[str], complexity: str) -> bool:
    """True if a case is in a group that the loss is concentrated in."""
    mine = {(GroupKind.TAG, tag) for tag in tags} | {(GroupKind.COMPLEXITY, complexity)}
    return any((one.kind, one.name) in mine for one in suite.concentrated)


# --- a table --------------------------------------------------------------------------------------


class Row(Struct, frozen=True):
    """A group as a table shows it; the name is the user's."""

    group: GroupResult
    name: str
    cases: str
    candidate: str
    baseline: str
    rates: str
    """``100 % → 66 %``; the candidate's alone if the baseline's is of other cases."""
    moved: str
    """``35 worse (33 broken), 2 better``; of paired cases, by however little."""
    is_named: bool
    """True if the loss is concentrated in it."""


def rows(suite: SuiteResult, most: int = SHOWN) -> tuple[list[Row], int]:
    """Return the groups to show: those that are named, then those that lost most; and how many more there are.

    A tag of a single case says what the case says, and is counted with the rest if others are there.
    """
    named = {(one.kind, one.name): place for place, one in enumerate(suite.concentrated)}
    groups = [one for one in suite.groups if one.cases > 1] or list(suite.groups)
    groups.sort(key=lambda one: named.get((one.kind, one.name), len(named)))
    left = len(suite.groups) - len(groups[:most]) + suite.further_groups
    return [_row(one, is_named=(one.kind, one.name) in named) for one in groups[:most]], left


def is_paired(one: GroupResult) -> bool:
    """True if both sides are of the same cases, so that one can be read as what became of the other."""
    return one.change is not None and same_cases(one)


def _row(one: GroupResult, *, is_named: bool) -> Row:
    now = None if one.candidate is None else one.candidate.value
    before = None if one.baseline is None else one.baseline.value
    candidate, baseline = figures((now, before), Scale.BINARY)
    if now is None:
        candidate = NO_FIGURE
    if before is None:
        baseline = NO_FIGURE
    return Row(
        group=one,
        name=_named(one.kind, one.name) if one.kind is GroupKind.COMPLEXITY else _shortened(one.name),
        cases=f"{one.cases:,}",
        candidate=candidate,
        baseline=baseline,
        rates=f"{baseline} → {candidate}" if is_paired(one) else candidate,
        moved=_moved(one),
        is_named=is_named,
    )


def _moved(one: GroupResult) -> str:
    """Return the counts; cases that got worse include proven broken ones."""
    said = []
    if worse := max(one.lost, one.broken):
        said.append(f"{worse:,} worse ({one.broken:,} broken)" if one.broken else f"{worse:,} worse")
    if one.gained:
        said.append(f"{one.gained:,} better")
    return ", ".join(said)
