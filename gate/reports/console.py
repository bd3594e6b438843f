"""The report for a terminal: calm columns, colour where the terminal has it, plain ASCII where it has no more.

Outside text reaches rich only as `Text`, never as markup, and only through `gate.security.escape.console`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gate.model import CaseResult, CriterionResult, Result, SuiteResult, Verdict
from gate.reports import by_tag, explanation, headline, replayed
from gate.reports import labels as words
from gate.reports.formatting import (
    change_sample,
    count,
    deviation,
    dimensions,
    figure,
    finer_sides,
    judge_line,
    listing,
    of_means,
    quantiles,
    same_cases,
    sample,
    threshold,
    tool_times,
)
from gate.reports.reasons import failed_as, with_failures
from gate.reports.sparkline import encodable
from gate.reports.trajectory_diff import differences
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
    for suite in result.suites:
        _suite(console, suite, words.explain_line(result, suite), verbose=verbose)
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


def _suite(console: Console, suite: SuiteResult, explain: str, *, verbose: bool) -> None:
    mark, style = _MARKS[suite.verdict]
    console.print()
    _line(
        console,
        0,
        (f"{mark} {escape.console(suite.suite_id, 100)}", f"bold {style}"),
        (f"  {words.VERDICTS[suite.verdict]}", style),
    )
    _line(console, 2, (escape.console(explanation.headline(suite)), ""))
    for line in explanation.opening(suite):
        _line(console, 2, (escape.console(line), ""))
    if todo := headline.next_step(suite):
        _line(console, 2, ("next: ", "bold"), (escape.console(todo), ""), hang=6)
    if suite.accepted:
        _line(console, 2, ("accepted: " + escape.console(suite.accepted), "yellow"))
    console.print()
    _criteria(console, suite, verbose=verbose)
    _by_tag(console, suite, verbose=verbose)
    _listed(console, "Against further references", [words.further_line(one) for one in suite.further])
    _worse(console, words.worse_cases(suite), verbose=verbose)
    _further(console, words.failing_cases(suite))
    _improved(console, suite)
    _facts(console, [("details:", escape.console(explain, 500))] if explain else [])
    _listed(console, "What changed in the rules or suite", explanation.further_changes(suite))
    _listed(console, "What the model sees now", replayed.differences(suite, _DIFFERENCES))
    _listed(console, "How the verdict came about", headline.story(suite))
    _listed(console, "Warnings", explanation.warnings(suite), "yellow")
    _facts(
        console,
        [
            ("Cases", words.status_counts(suite)),
            ("Baseline", escape.console(words.baseline_line(suite.baseline))),
            *([("Trend", "  ".join(trend))] if (trend := words.trend_line(suite))[0] else []),
            *([("Stored", words.stored_line(suite))] if suite.stored else []),
            *([("Replayed", escape.console(line))] if (line := replayed.line(suite)) else []),
            *([("Calls", calls)] if (calls := replayed.calls(suite)) else []),
            ("Cost", words.cost_line(suite)),
            *_times(suite),
            *([("Candidate", escape.console(words.commit_line(suite)))] if suite.commit else []),
            ("Seed", str(suite.seed)),
        ],
    )


def _criteria(console: Console, suite: SuiteResult, *, verbose: bool) -> None:
    """What does not pass with its figures, then what passes in a line each."""
    whole = [row for row in suite.criteria if verbose or not _is_brief(row, suite)]
    if whole and console.width >= _WIDE:
        _columns(console, [("candidate", "dim"), ("baseline", "dim"), ("change", "dim")])
    for row in whole:
        _criterion(console, row, suite, verbose=verbose)
    brief = [row for row in suite.criteria if not any(row is other for other in whole)]
    for row in brief:
        _brief(console, row, suite)
        if row.judge is not None and row.judge.candidate is not None:  # what decides is not the mean above
            _line(console, 4, (judge_line(row), "dim"))
    if brief:
        console.print()


def _is_brief(row: CriterionResult, suite: SuiteResult) -> bool:
    """Whether a line says it all: it passes, or its cause is told with something else."""
    return not words.needs_words(row) or bool(words.same_cause(row, suite))


def _brief(console: Console, row: CriterionResult, suite: SuiteResult) -> None:
    mark, style = _MARKS[words.shown(row)]
    scale = row.criterion.scale
    said = words.candidate_figure(row)
    if row.baseline is not None:
        sides = (row.candidate, row.baseline)
        n, of = ("", "") if same_cases(row) else (f" (n = {side.n:,})" if side else "" for side in sides)
        said += f"{n}, was {figure(row.baseline.value, scale, finer=finer_sides(row))}{of}"
    if same := words.same_cause(row, suite):
        said += f": {same}"
    elif row.change is not None:
        said += f"; {'' if scale.is_relative else 'change '}{words.change_figure(row)}"
    said = "; ".join([said, *quantiles(row)])
    name, room = escape.console(row.criterion.name, 80), max(console.width - 4, 10)
    name = cut(name, max(room - len(said) - 2, room // 2))
    if of_means(row):  # without its end the line would say of the means what is true of a typical case alone
        _line(console, 2, (f"{mark} ", style), (name, "bold"), (f"  {escape.console(said)}", ""), hang=2)
        return
    _line(console, 2, (f"{mark} ", style), (name, "bold"), ("  " + cut(escape.console(said), room - len(name) - 2), ""))
    if held := with_failures(row):  # the mean above is of what was scored
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


def _criterion(console: Console, result: CriterionResult, suite: SuiteResult, *, verbose: bool) -> None:
    verdict = words.shown(result)
    mark, style = _MARKS[verdict] if words.is_ticked(result) or verdict is not Verdict.PASS else _UNCHECKED
    note = "" if result.criterion.blocking or result.criterion.blocks_regression else ", warns only"
    _line(
        console,
        2,
        (f"{mark} ", style),
        (escape.console(result.criterion.name, 80), "bold"),
        (f"  {threshold(result.criterion)}{note}", "dim"),
        (f"  {words.standing(result)}", style),
    )
    figures = [
        words.candidate_figure(result),
        words.baseline_figure(result),
        words.change_figure(result),
    ]
    rests = [sample(result.candidate), sample(result.baseline), change_sample(result)]
    picture = words.change_picture(result, suite)
    if console.width >= _WIDE:
        _columns(
            console,
            [(figures[0], ""), (figures[1], ""), (figures[2], style if verdict is not Verdict.PASS else "")],
        )
        _columns(console, [(rest, "dim") for rest in rests])
        _columns(console, [("", ""), ("", ""), (picture, style if verdict is not Verdict.PASS else "dim")])
    else:
        for label, value, rest in zip(("candidate", "baseline ", "change   "), figures, rests, strict=True):
            _line(console, 4, (f"{label} ", "dim"), (f"{value}  ", ""), (rest, "dim"))
        if picture:
            _line(console, 14, (picture, style if verdict is not Verdict.PASS else "dim"))
    if held := ", ".join(filter(None, [deviation(result) if verbose else "", *quantiles(result)])):
        _line(console, 4, (held, "dim"))
    if judge := judge_line(result):
        _line(console, 4, (judge, "dim"))
    for name, figures_of in dimensions(result)[:_LISTED]:
        _line(console, 6, (f"{escape.console(name, 80)}  ", ""), (figures_of, "dim"))
    if told := "; ".join(words.telling(result, with_broken=False)):
        _line(console, 4, (escape.console(told), ""))
    console.print()


def _times(suite: SuiteResult) -> list[tuple[str, str]]:
    times = [f"{escape.console(name, 80)} {said}" for name, said in tool_times(suite)]
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


def _worse(console: Console, cases: Sequence[CaseResult], *, verbose: bool) -> None:
    """A case for each distinct reason, and the names of the others; ``verbose``: every case."""
    if not cases:
        return
    _line(console, 2, (words.worse_title(cases), "bold"))
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


def _further(console: Console, cases: Sequence[CaseResult]) -> None:
    if not cases:
        return
    _line(console, 2, ("Failing, not shown to be worse", "bold"))
    for case in cases[:_FURTHER]:
        _named(console, case, "· ", "yellow")
        for reason in case.reasons[:1]:
            _line(console, 4, (escape.console(cut(reason, 160), 160), ""))
        _diff(console, replace(case, expected=(), actual=(), reference=()))
    _more(console, len(cases) - _FURTHER)
    console.print()


def _improved(console: Console, suite: SuiteResult) -> None:
    cases = words.improved_cases(suite)
    if not cases:
        return
    _line(console, 2, ("Passed more often than in the baseline", "bold"))
    for case in cases[:_WORST]:
        _line(
            console,
            2,
            ("✓ ", "green"),
            (f"{escape.console(case.id, 120)}  ", ""),
            (words.improvement(case, suite), "dim"),
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
