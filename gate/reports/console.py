"""The report for a terminal: calm columns, colour where the terminal has it, plain ASCII where it has no more.

Outside text reaches rich only as `Text`, never as markup, and only through `gate.security.escape.console`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gate.model import CaseResult, Result, SuiteResult, Verdict
from gate.reports import by_tag
from gate.reports import labels as words
from gate.reports.formatting import (
    count,
    deviation,
    figure,
    finer_sides,
    listing,
    of_means,
    quantiles,
    same_cases,
)
from gate.reports.reasons import failed_as, with_failures
from gate.reports.sparkline import encodable
from gate.reports.trajectory_diff import differences
from gate.reports.view import RowView, View, views_of
from gate.security import escape
from gate.security.limits import cut

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MARKS = {
    Verdict.NOT_APPLIED: ("–", "dim"),
    Verdict.PASS: ("✓", "green"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    Verdict.NOT_MEASURED: ("?", "yellow"),
    Verdict.NOT_COMPARED: ("✗", "red"),
    Verdict.BELOW_THRESHOLD: ("✗", "red"),
    Verdict.REGRESSED: ("✗", "red"),
    Verdict.ERROR: ("!", "red"),
}
_UNCHECKED = ("–", "dim")
"""In place of a tick where nothing was compared, and no threshold held."""
_LISTED = 20
_WORST = 5
"""Cases that got worse, with what they did."""
_DIFFERENCES = 6
"""Differences from what was recorded, each with the cases that show it."""
_TAGS = 6
"""Tags that are shown without ``-v``: those that lost."""
_FURTHER = 3
"""Cases that fail and are not shown to be worse, with a line each."""
_WIDE = 76
"""Columns from which candidate, baseline and change stand side by side."""


def render(
    result: Result, *, width: int = 80, color: bool = False, encoding: str = "utf-8", verbose: bool = False
) -> str:
    """The report, ``width`` columns wide; ``encoding`` is the terminal's: ASCII replaces what it lacks.

    What passes has a line; ``verbose`` adds its figures, every case with its own reasons, and what agents wrote.
    """
    from rich.console import Console  # weight: no other command needs it

    out = StringIO()
    console = Console(
        file=out,
        width=max(width, 30),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )
    for view in views_of(result):
        _suite(console, view, verbose=verbose)
    lines = words.command_lines(result.command)
    _facts(console, [("" if n else "Reproduce", escape.console(line, 500)) for n, line in enumerate(lines)])
    _line(console, 2, (words.end_line(result, result.verdict, escape.console), "bold " + _MARKS[result.verdict][1]))
    return encodable("\n".join(line.rstrip() for line in out.getvalue().splitlines()), encoding)


def render_line(result: Result, *, encoding: str = "utf-8") -> str:
    """A line for each suite, verdict and headline, and one for the exit code."""
    parts = [
        f"{escape.console(suite.suite_id, 100)}: {escape.console(words.verdict_line(suite), 400)}"
        for suite in result.suites
    ]
    return encodable("\n".join([*parts, words.end_line(result, result.verdict, escape.console)]), encoding)


def _suite(console: Console, view: View, *, verbose: bool) -> None:
    suite = view.suite
    mark, style = _MARKS[suite.verdict]
    console.print()
    title = f"{mark} {escape.console(suite.suite_id, 100)}"
    _line(console, 0, (title, f"bold {style}"), (f"  {view.verdict}", style))
    for line in (view.headline, *view.opening):
        _line(console, 2, (escape.console(line), ""))
    if view.next_step:
        _line(console, 2, ("next: ", "bold"), (escape.console(view.next_step), ""), hang=6)
    if suite.accepted:
        _line(console, 2, ("accepted: " + escape.console(suite.accepted), "yellow"))
    console.print()
    _criteria(console, view, verbose=verbose)
    _by_tag(console, suite, verbose=verbose)
    _listed(console, "Against further references", [one.line for one in view.further])
    _worse(console, view, verbose=verbose)
    _further(console, view)
    _improved(console, view)
    _facts(console, [("details:", escape.console(view.explain, 500))] if view.explain else [])
    _listed(console, "What changed in the rules or suite", view.changes)
    _listed(console, "What the model sees now", view.differences(_DIFFERENCES))
    _listed(console, "How the verdict came about", view.story)
    _listed(console, "Warnings", view.warnings, "yellow")
    facts = {name: escape.console(said) for name, said in view.facts.items() if said}
    if "Trend" in facts:
        facts["Trend"] = view.facts["Trend"]  # a picture, whose spaces count
    last = [(name, facts.pop(name)) for name in ("Candidate", "Seed") if name in facts]
    _facts(console, [*facts.items(), *_times(view), *last])


def _criteria(console: Console, view: View, *, verbose: bool) -> None:
    """What does not pass with its figures, then what passes in a line each."""
    whole = [row for row in view.rows if verbose or not _is_brief(row)]
    if whole and console.width >= _WIDE:
        _columns(console, [("candidate", "dim"), ("baseline", "dim"), ("change", "dim")])
    for row in whole:
        _criterion(console, row, verbose=verbose)
    brief = [row for row in view.rows if not any(row is other for other in whole)]
    for row in brief:
        _brief(console, row)
        if row.found.judge is not None and row.found.judge.candidate is not None:  # what decides is not the mean above
            _line(console, 4, (row.judge, "dim"))
    if brief:
        console.print()


def _is_brief(row: RowView) -> bool:
    """Whether a line says it all: it passes, or its cause is told with something else."""
    return not row.needs_words or bool(row.same_cause)


def _brief(console: Console, row: RowView) -> None:
    mark, style = _MARKS[row.sign]
    found, scale = row.found, row.found.criterion.scale
    said = row.candidate.text
    if found.baseline is not None:
        sides = (found.candidate, found.baseline)
        n, of = ("", "") if same_cases(found) else (f" (n = {side.n:,})" if side else "" for side in sides)
        said += f"{n}, was {figure(found.baseline.value, scale, finer=finer_sides(found))}{of}"
    if row.same_cause:
        said += f": {row.same_cause}"
    elif found.change is not None:
        said += f"; {'' if scale.is_relative else 'change '}{row.change.text}"
    said = "; ".join([said, *quantiles(found)])
    name, room = escape.console(row.name, 80), max(console.width - 4, 10)
    name = cut(name, max(room - len(said) - 2, room // 2))
    if of_means(found):  # without its end the line would say of the means what is true of a typical case alone
        _line(console, 2, (f"{mark} ", style), (name, "bold"), (f"  {escape.console(said)}", ""), hang=2)
        return
    _line(console, 2, (f"{mark} ", style), (name, "bold"), ("  " + cut(escape.console(said), room - len(name) - 2), ""))
    if held := with_failures(found):  # the mean above is of what was scored
        _line(console, 4, (f"{failed_as(held)}: mean {figure(held.value, scale)} for the threshold", ""))


def _by_tag(console: Console, suite: SuiteResult, *, verbose: bool) -> None:
    """A line for each tag, where something is not as it should be; otherwise with ``-v``."""
    if not suite.groups or (suite.verdict is Verdict.PASS and not verbose):
        return
    shown, left = by_tag.rows(suite)
    if not verbose:
        moved = [row for row in shown if row.is_named or row.group.lost or row.group.baseline is None][:_TAGS]
        shown, left = moved, left + len(shown) - len(moved)
    if not shown:
        return
    _line(console, 2, ("By tag", "bold"), ("  cases, pass rate, change", "dim"))
    room = max(console.width - 4, 10)
    names = [escape.console(row.name, by_tag.MAX_NAME) for row in shown]
    widest = min(max(map(len, names)), max(room // 3, 8))
    digits, rates = (max(map(len, column)) for column in zip(*((row.cases, row.rates) for row in shown), strict=True))
    for name, row in zip(names, shown, strict=True):
        cells = [cut(name, widest).ljust(widest), row.cases.rjust(digits), row.rates.ljust(rates)]
        cells += [row.change if row.group.change else "", row.moved]
        style = "red" if row.is_named else ""
        _line(console, 2, ("✗ " if row.is_named else "  ", style), ("  ".join(filter(None, cells)), style), hang=4)
    _more(console, left)
    console.print()


def _criterion(console: Console, row: RowView, *, verbose: bool) -> None:
    mark, style = _MARKS[row.sign] if row.shows_verdict else _UNCHECKED
    of_change = style if row.verdict is not Verdict.PASS else ""
    criterion = row.found.criterion
    note = "" if criterion.blocking or criterion.blocks_regression else ", warns only"
    _line(
        console,
        2,
        (f"{mark} ", style),
        (escape.console(row.name, 80), "bold"),
        (f"  {row.wanted}{note}", "dim"),
        (f"  {row.standing}", style),
    )
    figures = (row.candidate, row.baseline, row.change)
    if console.width >= _WIDE:
        _columns(console, [(one.text, of_change if one is row.change else "") for one in figures])
        _columns(console, [(one.rests_on, "dim") for one in figures])
        _columns(console, [("", ""), ("", ""), (row.picture, of_change or "dim")])
    else:
        for label, one in zip(("candidate", "baseline ", "change   "), figures, strict=True):
            _line(console, 4, (f"{label} ", "dim"), (f"{one.text}  ", ""), (one.rests_on, "dim"))
        if row.picture:
            _line(console, 14, (row.picture, of_change or "dim"))
    if held := ", ".join(filter(None, [deviation(row.found) if verbose else "", *quantiles(row.found)])):
        _line(console, 4, (held, "dim"))
    if row.judge:
        _line(console, 4, (row.judge, "dim"))
    for name, said in row.dimensions[:_LISTED]:
        _line(console, 6, (f"{escape.console(name, 80)}  ", ""), (said, "dim"))
    if row.told:
        _line(console, 4, (escape.console("; ".join(row.told)), ""))
    console.print()


def _times(view: View) -> list[tuple[str, str]]:
    times = [f"{escape.console(name, 80)} {said}" for name, said in view.tool_times]
    more = [f"… and {len(times) - _FURTHER:,} more"] if len(times) > _FURTHER else []
    return [("Tools", "; ".join([*times[:_FURTHER], *more]))] if times else []


def _columns(console: Console, cells: Sequence[tuple[str, str]]) -> None:
    from rich.padding import Padding
    from rich.table import Table

    if not any(text for text, _ in cells):
        return
    grid = Table.grid(padding=(0, 2, 0, 0), expand=True)
    for _ in cells:
        grid.add_column(ratio=1, overflow="fold")
    grid.add_row(*[_text((text, style)) for text, style in cells])
    console.print(Padding(grid, (0, 0, 0, 4)))


def _worse(console: Console, view: View, *, verbose: bool) -> None:
    """A case for each distinct reason, and the names of the others; ``verbose``: every case."""
    cases = view.worse
    if not cases:
        return
    _line(console, 2, (view.worse_title, "bold"))
    shown, complete = (cases[:_LISTED], False) if verbose else words.kinds(cases, _WORST)
    for case in shown:
        _named(console, case, "✗ ", "red")
        for reason in words.distinct(case.reasons)[:3]:
            _line(console, 4, (escape.console(reason, 300), ""))
        _diff(console, case)
        _log(console, case if verbose else None)
        console.print()
    rest = [case for case in cases if not any(case is other for other in shown)]
    if rest:
        same = f", same {'reason' if len(shown) == 1 else 'reasons'}" if complete else ""
        named = listing(f"{escape.console(case.id, 60)} {words.score(case)}" for case in rest)
        _line(console, 4, (f"… and {len(rest):,} more{same}: {named}", "dim"))
        console.print()


def _log(console: Console, case: CaseResult | None) -> None:
    """The end of what the agent wrote in the trial that is shown."""
    lines = words.log_lines(case.log, _LISTED) if case is not None else []
    if lines:
        _line(console, 4, ("the agent wrote:", "dim"))
    for text in lines:
        _line(console, 6, (text, "dim"))


def _further(console: Console, view: View) -> None:
    cases = view.failing
    if not cases:
        return
    _line(console, 2, (view.failing_title, "bold"))
    for case in cases[:_FURTHER]:
        _named(console, case, "· ", "yellow")
        for reason in case.reasons[:1]:
            _line(console, 4, (escape.console(cut(reason, 160), 160), ""))
        _diff(console, replace(case, expected=(), actual=(), reference=()))
    _more(console, len(cases) - _FURTHER)
    console.print()


def _improved(console: Console, view: View) -> None:
    cases = view.improved
    if not cases:
        return
    _line(console, 2, ("Passed more often than in the baseline", "bold"))
    for case in cases[:_WORST]:
        _line(
            console,
            2,
            ("✓ ", "green"),
            (f"{escape.console(case.id, 120)}  ", ""),
            (words.improvement(case, view.suite), "dim"),
        )
    _more(console, len(cases) - _WORST)
    console.print()


def _named(console: Console, case: CaseResult, mark: str, style: str) -> None:
    place = f"  {escape.console(str(case.location), 120)}" if case.location else ""
    status = f"  {words.status(case)}"
    name = escape.console(case.id, 120)
    _line(console, 2, (mark, style), (name, "bold" if style == "red" else ""), (status, style), (place, "dim"))
    _line(console, 4, (words.tally(case), ""))


def _more(console: Console, left: int) -> None:
    if left > 0:
        _line(console, 4, (f"… and {left:,} more", "dim"))


def _diff(console: Console, case: CaseResult) -> None:
    styles = {"-": "red", "+": "green"}
    for turn in differences(case):
        _line(console, 4, (turn.title, "dim"))
        for mark, text in turn.lines[:40]:
            _line(console, 6, (f"{mark} {escape.console(text, 500)}", styles.get(mark, "")), hang=4)
        if len(turn.lines) > 40:
            _line(console, 6, (f"… and {count(len(turn.lines) - 40, 'more line')}", "dim"))


def _listed(console: Console, title: str, texts: Sequence[str], style: str = "") -> None:
    if not texts:
        return
    _line(console, 2, (title, f"bold {style}".strip()))
    for text in texts[:_LISTED]:
        _line(console, 2, ("· " + escape.console(text), ""), hang=2)
    _more(console, len(texts) - _LISTED)
    console.print()


def _facts(console: Console, facts: Iterable[tuple[str, str]]) -> None:
    rows = list(facts)
    for label, value in rows:
        _line(console, 2, (f"{label:<10}", "dim"), (value, ""), hang=10)
    if rows:
        console.print()


def _line(console: Console, indent: int, *parts: tuple[str, str], hang: int = 0) -> None:
    """Parts of text with their styles, wrapped; the lines after the first ``hang`` further in."""
    lines = _text(*parts).wrap(console, max(console.width - indent - hang, 10), overflow="fold")
    for number, line in enumerate(lines):
        line.rstrip()
        console.print(_text((" " * (indent + (hang if number else 0)), "")) + line, soft_wrap=True)


def _text(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)
