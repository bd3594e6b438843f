"""The report for a terminal: calm columns, colour where the terminal has it, plain ASCII where it has no more.

Outside text reaches rich only as `Text`, never as markup, and only through `gate.security.escape.console`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import StringIO
from typing import TYPE_CHECKING

from msgspec.structs import replace

from gate.model import CaseResult, CriterionResult, Result, SuiteResult, Verdict
from gate.reports import explanation, headline
from gate.reports import labels as words
from gate.reports.formatting import (
    change_sample,
    deviation,
    dimensions,
    interval,
    judge_line,
    quantiles,
    sample,
    threshold,
    tool_times,
)
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
    Verdict.BELOW_THRESHOLD: ("✗", "red"),
    Verdict.REGRESSED: ("✗", "red"),
    Verdict.ERROR: ("!", "red"),
}
_UNCHECKED = ("–", "dim")
"""In place of a tick where nothing was compared, and no threshold held."""
_ASCII = str.maketrans(
    {"✓": "+", "✗": "x", "−": "-", "–": "-", "·": "-", "…": "~", "±": " ", "→": ">", "⏎": "/", "─": "-"}
)
_LISTED = 20
_WORST = 5
"""Cases that got worse, with what they did."""
_FURTHER = 3
"""Cases that fail and are not shown to be worse, with a line each."""
_WIDE = 76
"""Columns from which candidate, baseline and change stand side by side."""


def render(result: Result, *, width: int = 80, color: bool = False, encoding: str = "utf-8") -> str:
    """The whole report, ``width`` columns wide; ``encoding`` is the terminal's: ASCII replaces what it lacks."""
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
        _suite(console, suite, words.explain_line(result, suite))
    lines = words.command_lines(result.command)
    _facts(console, [("" if n else "Reproduce", escape.console(line, 500)) for n, line in enumerate(lines)])
    _line(console, 2, (words.exit_line(result.exit_code, result.verdict), "bold " + _MARKS[result.verdict][1]))
    return _encodable("\n".join(line.rstrip() for line in out.getvalue().splitlines()), encoding)


def render_line(result: Result, *, encoding: str = "utf-8") -> str:
    """A line for each suite, verdict and headline, and one for the exit code."""
    parts = [
        f"{escape.console(suite.suite_id, 100)}: {words.VERDICTS[suite.verdict]}: "
        + escape.console(explanation.headline(suite), 400)
        for suite in result.suites
    ]
    return _encodable("\n".join([*parts, words.exit_line(result.exit_code, result.verdict)]), encoding)


def _encodable(text: str, encoding: str) -> str:
    """The text itself where the encoding has its symbols; otherwise look-alikes of the same width, then ``?``."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return text.translate(_ASCII).encode("ascii", "replace").decode("ascii")
    return text


def _suite(console: Console, suite: SuiteResult, explain: str) -> None:
    mark, style = _MARKS[suite.verdict]
    console.print()
    _line(
        console,
        0,
        (f"{mark} {escape.console(suite.suite_id, 100)}", f"bold {style}"),
        (f"  {words.VERDICTS[suite.verdict]}", style),
    )
    _line(console, 2, (escape.console(explanation.headline(suite)), ""))
    if todo := headline.next_step(suite):
        _line(console, 2, ("next: ", "bold"), (escape.console(todo), ""), hang=6)
    if suite.accepted:
        _line(console, 2, ("accepted: " + escape.console(suite.accepted), "yellow"))
    console.print()
    if suite.criteria and console.width >= _WIDE:
        _columns(console, [("candidate", "dim"), ("baseline", "dim"), ("change", "dim")])
    for criterion in suite.criteria:
        _criterion(console, criterion)
    _listed(console, "Against further references", [words.further_line(one) for one in suite.further])
    _worse(console, words.worse_cases(suite))
    _further(console, words.failing_cases(suite))
    _improved(console, suite)
    _facts(console, [("details:", escape.console(explain, 500))] if explain else [])
    _listed(console, "What changed in the rules or suite", explanation.changes(suite))
    _listed(console, "How the verdict came about", headline.story(suite))
    _listed(console, "Warnings", explanation.warnings(suite), "yellow")
    _facts(
        console,
        [
            ("Cases", words.status_counts(suite)),
            ("Baseline", escape.console(words.baseline_line(suite.baseline))),
            *([("Stored", words.stored_line(suite))] if suite.stored else []),
            ("Cost", words.cost_line(suite)),
            *_times(suite),
            *([("Candidate", escape.console(suite.commit[:12]))] if suite.commit else []),
            ("Seed", str(suite.seed)),
        ],
    )


def _criterion(console: Console, result: CriterionResult) -> None:
    verdict = words.shown(result)
    mark, style = _MARKS[verdict] if words.is_ticked(result) or verdict is not Verdict.PASS else _UNCHECKED
    scale = result.criterion.scale
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
        interval(result.candidate, scale),
        words.baseline_figure(result),
        words.change_figure(result),
    ]
    rests = [sample(result.candidate), sample(result.baseline), change_sample(result)]
    if console.width >= _WIDE:
        _columns(
            console,
            [(figures[0], ""), (figures[1], ""), (figures[2], style if verdict is not Verdict.PASS else "")],
        )
        _columns(console, [(rest, "dim") for rest in rests])
    else:
        for label, value, rest in zip(("candidate", "baseline ", "change   "), figures, rests, strict=True):
            _line(console, 4, (f"{label} ", "dim"), (f"{value}  ", ""), (rest, "dim"))
    if held := ", ".join(filter(None, [deviation(result), *quantiles(result)])):
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


def _worse(console: Console, cases: Sequence[CaseResult]) -> None:
    if not cases:
        return
    _line(console, 2, (words.worse_title(cases), "bold"))
    for case in cases[:_WORST]:
        _named(console, case, "✗ ", "red")
        for reason in words.distinct(case.reasons)[:3]:
            _line(console, 4, (escape.console(reason, 300), ""))
        _diff(console, case)
        console.print()
    _more(console, len(cases) - _WORST)


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
            _line(console, 6, (f"… and {len(turn.lines) - 40:,} more lines", "dim"))


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
