"""Results by tag and complexity in words: where a loss is, and the rows of a table. Escapes nothing.

No interval stands in the table. Each would be that of its group alone, and of many groups a few lie below no change by
chance, so one would read as a proof. What is named is found by a test of all groups together; JSON has the intervals.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from gate.model import Concentration, GroupKind, GroupResult, Scale, SuiteResult, Verdict
from gate.reports.formatting import change, count, figures, same_cases
from gate.security.limits import cut

SHOWN = 12
"""Groups that a report lists; the rest is counted."""
NO_FIGURE = "–"
MAX_NAME = 60
"""Characters of a tag in a sentence or a row."""


def named(kind: GroupKind, name: str) -> str:
    """``tag refund``, ``complexity complex``."""
    return f"{kind.value} {cut(' '.join(name.split()), MAX_NAME)}"


def where(suite: SuiteResult) -> str:
    """The groups that a loss is concentrated in; empty where it is in none.

    ``tag refund, 100 of 1,200 cases: pass rate 98 % → 65 %, elsewhere 98.1 % → 98 %; also tag billing: 90 % → 60 %``
    """
    if suite.verdict not in (Verdict.REGRESSED, Verdict.INCONCLUSIVE) or not suite.concentrated:
        return ""
    first, *others = suite.concentrated
    moved = f"{first.criterion} {_moved(first, suite)}"
    elsewhere = f"elsewhere {_moved(first, suite, rest=True)}"
    cases = f"{first.cases:,} of {count(first.of, 'case')}"
    also = [f"also {named(one.kind, one.name)}: {_moved(one, suite)}" for one in others]
    return "; ".join([f"{named(first.kind, first.name)}, {cases}: {moved}, {elsewhere}", *also])


def _moved(found: Concentration, suite: SuiteResult, *, rest: bool = False) -> str:
    rows = (row.criterion.scale for row in suite.criteria if row.criterion.name == found.criterion)
    scale = next(rows, Scale.BINARY)
    ends = (found.rest_before, found.rest_now) if rest else (found.before, found.now)
    return " → ".join(figures(ends, scale))


def in_named(suite: SuiteResult, tags: Sequence[str], complexity: str) -> bool:
    """True if a case is in a group that the loss is concentrated in."""
    mine = {(GroupKind.TAG, tag) for tag in tags} | {(GroupKind.COMPLEXITY, complexity)}
    return any((one.kind, one.name) in mine for one in suite.concentrated)


class Row(Struct, frozen=True):
    """A group as a table shows it; the name is the user's."""

    group: GroupResult
    name: str
    cases: str
    candidate: str
    baseline: str
    rates: str
    """``100 % → 66 %``; the candidate's alone where the baseline's is of other cases."""
    change: str
    """Over paired cases."""
    moved: str
    """``33 broken, 35 worse, 2 better``; of paired cases, by however little."""
    is_named: bool
    """True if the loss is concentrated in it."""


def rows(suite: SuiteResult, most: int = SHOWN) -> tuple[list[Row], int]:
    """The groups to show: those that are named, then those that lost most; and how many more there are.

    A tag of a single case says what the case says, and is counted with the rest where others are there.
    """
    known = {(one.kind, one.name): place for place, one in enumerate(suite.concentrated)}
    groups = [one for one in suite.groups if one.cases > 1] or list(suite.groups)
    order = sorted(groups, key=lambda one: known.get((one.kind, one.name), len(known)))
    left = len(suite.groups) - len(order[:most]) + suite.further_groups
    return [_row(one, is_named=(one.kind, one.name) in known) for one in order[:most]], left


def is_paired(one: GroupResult) -> bool:
    """True if both sides are of the same cases, so that one can be read as what became of the other."""
    return one.change is not None and same_cases(one)


def _row(one: GroupResult, *, is_named: bool) -> Row:
    now, before, moved = one.candidate, one.baseline, one.change
    known = [side.value if side is not None else None for side in (now, before)]
    texts = figures(known, Scale.BINARY)
    rate, was = (NO_FIGURE if value is None else text for value, text in zip(known, texts, strict=True))
    return Row(
        one,
        named(one.kind, one.name) if one.kind is GroupKind.COMPLEXITY else cut(" ".join(one.name.split()), MAX_NAME),
        f"{one.cases:,}",
        rate,
        was,
        f"{was} → {rate}" if is_paired(one) else rate,
        change(moved.value, Scale.BINARY) if moved is not None else NO_FIGURE,
        ", ".join(f"{n:,} {word}" for n, word in _counts(one) if n),
        is_named,
    )


def _counts(one: GroupResult) -> tuple[tuple[int, str], ...]:
    """Return the counts; cases that got worse include those that are proven broken."""
    worse = f"worse ({one.broken:,} broken)" if one.broken else "worse"
    return (max(one.lost, one.broken), worse), (one.gained, "better")
