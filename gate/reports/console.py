"""The report for a terminal: in colour if the terminal supports it, in plain ASCII if necessary.

The order is that of the comment: the outcome, its certainty, the cases that show it, and the next step. ``-v`` adds the
numbers. Text from outside reaches rich only as `Text`, never as markup, and only through
`gate.security.escape.console`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import zip_longest
from typing import TYPE_CHECKING

from gate.model import CaseResult, Result, SuiteResult
from gate.reports import by_tag
from gate.reports.cases import distinct, improvement, status, status_counts, tally
from gate.reports.formatting import count, listing
from gate.reports.labels import CASE_TONES, TONES, command_lines, end_line, log_lines
from gate.reports.rows import RowView
from gate.reports.sparkline import encodable
from gate.reports.table import table
from gate.reports.trajectory_diff import TurnDiff, differences
from gate.reports.view import View, views_of
from gate.security import escape

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

SIGNS = {
    "good": ("✓", "green"),
    "bad": ("✗", "red"),
    "error": ("!", "red"),
    "warn": ("?", "yellow"),
    "shaky": ("~", "magenta"),
    "mute": ("–", "dim"),
}
"""Sign and colour of each tone."""
_CODE = re.compile(r"`[^`\n]{1,50}`")
_JOINED = "\ue000"
"""Replaces the spaces of a command, at which no line may be broken."""
_LISTED = 20
_MANY = 200
"""Maximum number of cases that ``-v`` lists."""
_LINES = 40
"""Maximum number of lines in one difference."""
_DIFFERENCES = 6
"""Maximum number of differences in what the model sees."""


def render(
    result: Result,
    *,
    width: int = 80,
    color: bool = False,
    encoding: str = "utf-8",
    verbose: bool = False,
    label: str = "",
) -> str:
    """Return the report, ``width`` columns wide, in the terminal's ``encoding``: ASCII replaces missing characters.

    ``verbose`` adds the numbers, every case with its reasons, and the agents' logs. ``label``: the label that accepts a
    loss, if any.
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
        _suite(console, view, verbose=verbose, label=label)
    if verbose:
        lines = [escape.console(line, 500) for line in command_lines(result.command)]
        _facts(console, zip_longest(["Reproduce"], lines, fillvalue=""))
    _line(console, 2, (end_line(result, result.verdict, escape.console), "bold " + SIGNS[TONES[result.verdict]][1]))
    return encodable("\n".join(line.rstrip() for line in out.getvalue().splitlines()), encoding)


def render_line(result: Result, *, encoding: str = "utf-8") -> str:
    """Return a line for each suite with verdict and headline, and one for the exit code."""
    parts = []
    for view in views_of(result):
        parts.append(f"{escape.console(view.suite.suite_id, 100)}: {escape.console(view.verdict_line, 400)}")
    return encodable("\n".join([*parts, end_line(result, result.verdict, escape.console)]), encoding)


def _suite(console: Console, view: View, *, verbose: bool, label: str) -> None:
    suite = view.suite
    mark, style = SIGNS[TONES[suite.verdict]]
    console.print()
    _line(console, 0, (f"{mark} {escape.console(suite.suite_id, 100)}", f"bold {style}"), (f"  {view.verdict}", style))
    _line(console, 2, (escape.console(view.title), "bold"))
    if view.lead:
        _line(console, 2, (escape.console(" ".join(view.lead)), ""))
    console.print()
    _cases(console, view)
    todo = view.next_step(label)
    if todo:
        _line(console, 2, ("Next: ", "bold"), (escape.console(todo), ""), hang=6)
        console.print()
    if verbose:
        _numbers(console, view)
    _listed(console, "What changed in the rules or suite", view.changes)
    _listed(console, "What the model sees now", view.differences(_DIFFERENCES))
    _listed(console, "Warnings", view.warnings, "yellow")
    _listed(console, "Against other baselines", [one.line for one in view.further])
    _below(console, view, verbose=verbose)


# --- the cases that show it -----------------------------------------------------------------------


def _cases(console: Console, view: View) -> None:
    """Print the table of cases, with name, before and now, and the changed behaviour of the first."""
    cases = view.table
    if cases.lines:
        _printed(console, table(cases.rows("before"), console.width - 2))
        if cases.more:
            named = listing(case.id for case in cases.rest)
            _line(console, 2, (escape.console(f"… {cases.more}: {named}"), "dim"), hang=2)
        console.print()
    first, turns = view.evidence
    if first is not None and (turns or first.reasons):
        _named(console, first)
        if not turns:
            _line(console, 4, (escape.console(first.reasons[0]), ""))
        _turns(console, turns)
        console.print()


def _named(console: Console, case: CaseResult) -> None:
    parts = [(escape.console(case.id, 200) or "(no id)", "bold")]
    if case.location:
        parts.append((f"  {escape.console(str(case.location), 300)}", "dim"))
    _line(console, 2, *parts)


def _turns(console: Console, turns: Iterable[TurnDiff]) -> None:
    styles = {"-": "red", "+": "green"}
    for turn in turns:
        _line(console, 4, (turn.title, "dim"))
        for (mark, _), pieces in zip(turn.lines[:_LINES], turn.sides, strict=False):
            style = styles.get(mark, "")
            shown = [(f"{mark} ", style)]
            for piece, differs in pieces:
                emphasis = f"{style} bold underline" if differs else style
                shown.append((escape.spaced(piece, escape.console), emphasis))
            _line(console, 6, *shown, hang=2)
        if len(turn.lines) > _LINES:
            _line(console, 6, (f"… and {count(len(turn.lines) - _LINES, 'more line')}", "dim"))


def _by_tag(console: Console, suite: SuiteResult) -> None:
    shown, left = by_tag.rows(suite)
    if not shown:
        return
    rows = [["tag", "cases", "pass rate", ""]]
    for is_named, name, cases, rate, moved in shown:
        rows.append([f"✗ {name}" if is_named else name, cases.partition(" ")[0], rate, moved])
    _printed(console, table(rows, console.width - 2))
    _more(console, left)
    console.print()


# --- the numbers ----------------------------------------------------------------------------------


def _numbers(console: Console, view: View) -> None:
    for row in view.rows:
        _criterion(console, row)
    _by_tag(console, view.suite)
    _every_case(console, view)
    _listed(console, "How it was decided", view.whole_story)


def _criterion(console: Console, row: RowView) -> None:
    mark, style = SIGNS[row.tone]
    criterion = row.found.criterion
    wanted = f"  {row.wanted}"
    if not criterion.blocking and not criterion.blocks_regression:
        wanted += ", warns only"
    _line(
        console,
        2,
        (f"{mark} ", style),
        (escape.console(row.name, 200), "bold"),
        (wanted, "dim"),
        (f"  {row.standing}", style),
    )
    for label, one in (("before", row.baseline), ("now", row.candidate), ("change", row.change)):
        if one.text != "–":
            _line(console, 4, (f"{label:<8}", "dim"), (f"{one.text}  ", ""), (one.rests_on, "dim"), hang=8)
    held = [row.deviation, *row.quantiles, row.judge, row.same_cause]
    for text in filter(None, held):
        _line(console, 4, (escape.console(text), "dim"))
    for name, said in row.dimensions[:_LISTED]:
        _line(console, 6, (f"{escape.console(name, 80)}  ", ""), (said, "dim"))
    if row.words:
        _line(console, 4, (escape.console(row.words), ""))
    console.print()


def _every_case(console: Console, view: View) -> None:
    """Print every case with its passes and scores, and the behaviour in failed ones."""
    listed = {case.id for case in (*view.worse, *view.failing)}
    others = [case for case in view.suite.cases if case.id not in listed]
    cases = [*view.worse, *view.failing, *others]
    for case in cases[:_MANY]:
        mark, style = SIGNS[CASE_TONES.get(case.status, "mute")]
        fared = f"  {status(case)}, {tally(case)}"
        _line(console, 2, (f"{mark} ", style), (escape.console(case.id, 200), "bold"), (fared, style))
        scores = ", ".join(view.scores(case))
        if scores:
            _line(console, 4, (escape.console(scores), "dim"))
        if case.id in listed:
            for reason in distinct(case.reasons)[:3]:
                _line(console, 4, (escape.console(reason, 600), ""))
            _turns(console, differences(case))
            _log(console, case)
    _more(console, len(cases) - _MANY)
    console.print()
    improved = [f"{case.id}  {improvement(case, view.suite)}" for case in view.improved]
    _listed(console, "Passed more often than in the baseline", improved)


def _log(console: Console, case: CaseResult) -> None:
    """Print the end of the agent's log in the shown trial."""
    lines = log_lines(case.log, _LISTED)
    if lines:
        _line(console, 4, ("the agent wrote:", "dim"))
    for text in lines:
        _line(console, 6, (text, "dim"))


def _below(console: Console, view: View, *, verbose: bool) -> None:
    """Print the costs, and the commands for more details."""
    if not verbose:
        facts = " · ".join(filter(None, (status_counts(view.suite), view.cost)))
        _line(console, 2, (escape.console(facts), "dim"))
        _line(console, 2, ("numbers: -v", "dim"))
        if view.explain:
            _whole(console, 2, (f"trials: {escape.console(view.explain, 500)}", "dim"))
        console.print()
        return
    rows = []
    for name, said in view.facts.items():
        if name != "Trend":  # spaces matter in its picture
            said = escape.console(said, 500)  # noqa: PLW2901
        rows.append((name, said))
    rows.append(("Tools", "; ".join(f"{escape.console(name, 80)} {said}" for name, said in view.tool_times)))
    _facts(console, rows, command=escape.console(view.explain, 500))


# --- pieces ---------------------------------------------------------------------------------------


def _more(console: Console, left: int) -> None:
    if left > 0:
        _line(console, 4, (f"… and {left:,} more", "dim"))


def _listed(console: Console, title: str, texts: Sequence[str], style: str = "") -> None:
    if not texts:
        return
    _line(console, 2, (title, f"bold {style}".strip()))
    for text in texts[:_LISTED]:
        _line(console, 2, ("· " + escape.console(text), ""), hang=2)
    _more(console, len(texts) - _LISTED)
    console.print()


def _facts(console: Console, facts: Iterable[tuple[str, str]], *, command: str = "") -> None:
    """Print the facts that are known, and the command for details."""
    rows = [(label, value) for label, value in facts if value]
    for label, value in rows:
        _line(console, 2, (f"{label:<10}", "dim"), (value, ""), hang=10)
    if command:
        _whole(console, 2, (f"{'Details':<10}", "dim"), (command, ""))
    if rows or command:
        console.print()


def _printed(console: Console, text: str) -> None:
    for line in text.splitlines():
        console.print(_text((f"  {line}", "")), soft_wrap=True)


def _line(console: Console, indent: int, *parts: tuple[str, str], hang: int = 0) -> None:
    """Print parts of text with their styles, wrapped; lines after the first are indented by ``hang`` more."""
    whole = [(_CODE.sub(lambda code: code[0].replace(" ", _JOINED), text), style) for text, style in parts]
    lines = _text(*whole).wrap(console, max(console.width - indent - hang, 10), overflow="fold")
    for number, line in enumerate(lines):
        if number == 1:
            indent += hang
        line.plain = line.plain.replace(_JOINED, " ")
        line.rstrip()
        console.print(_text((" " * indent, "")) + line, soft_wrap=True)


def _whole(console: Console, indent: int, *parts: tuple[str, str]) -> None:
    """Print a line with a command, never wrapped, so that it can be copied."""
    console.print(_text((" " * indent, ""), *parts), soft_wrap=True)


def _text(*parts: tuple[str, str]) -> Text:
    from rich.text import Text

    return Text.assemble(*parts)
