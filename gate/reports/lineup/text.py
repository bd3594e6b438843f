"""The comparison on a terminal: a block per row of the table, and quality against cost and latency as a picture."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap

from gate.model import Direction
from gate.model.lineup import Lineup, Measure
from gate.reports.formatting import figure
from gate.reports.lineup import words
from gate.reports.sparkline import encodable
from gate.reports.table import table
from gate.security.escape import console

_WIDTH, _HEIGHT = 48, 11
_NARROWEST = 40
_SEVERAL = "*"


def render(lineup: Lineup, *, encoding: str = "utf-8", width: int = 100) -> str:
    """The whole comparison as lines, sentences within ``width`` columns; in ASCII where the terminal has no UTF-8."""
    return encodable("\n".join(_lines(lineup, max(width, _NARROWEST))), encoding)


def render_line(lineup: Lineup, *, encoding: str = "utf-8") -> str:
    """One line: how many on what, and who is dominated."""
    return encodable(console("; ".join([words.title(lineup), *words.dominated_lines(lineup)])), encoding)


def _lines(lineup: Lineup, width: int) -> Iterator[str]:
    yield words.title(lineup)
    for place in range(len(lineup.entries)):
        yield from _wrapped(words.entry_line(lineup, place), width, "  ")
    for measure in lineup.measures:
        yield from ("", *_block(lineup, measure, width))
    for axis in (lineup.cost, lineup.latency):
        yield from _picture(lineup, axis, width)
    yield ""
    for line in words.dominated_lines(lineup):
        yield from _wrapped(line, width)
    for found in lineup.preferences:
        yield from ("", *_wrapped(words.preference_line(lineup, found), width))
        yield from _wrapped(words.position_line(found), width, "  ")
    if cost := words.judge_cost(lineup):
        yield cost
    yield ""
    yield from _wrapped(words.reading(lineup), width)
    for note in lineup.notes[: words.MOST_NOTES]:
        yield from _wrapped(f"note: {note}", width)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A sentence over several lines, those after the first indented."""
    after = indent + "  "
    return wrap(console(text, 600), width, initial_indent=indent, subsequent_indent=after, break_on_hyphens=False)


def _block(lineup: Lineup, measure: Measure, width: int) -> Iterator[str]:
    yield f"{console(measure.name, 100)} ({words.wanted(measure)})"
    rows = []
    for place in range(len(lineup.entries)):
        row = [words.name(lineup, place), words.mean_of(measure, place), words.sample_of(measure, place)]
        if place:
            against = words.difference_text(measure, place, 0)
            row += ["" if against == words.NO_FIGURES else f"to A: {against}", words.standing(measure, place, 0)]
        rows.append([*row, *[""] * (5 - len(row))])
    yield from (f"  {line}" for line in table(rows, width - 2, head=False).splitlines())


# --- quality against cost and latency -------------------------------------------------------------


def _picture(lineup: Lineup, axis: str, width: int) -> Iterator[str]:
    """Letters on a grid, better to the top and to the left; nothing if fewer than two have both, or all look alike."""
    quality, other = lineup.measure(lineup.quality), lineup.measure(axis)
    if quality is None or other is None:
        return
    places = [n for n in range(len(lineup.entries)) if quality.estimates[n] and other.estimates[n]]
    if len(places) < 2:
        return
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    (low, high), (left, right) = _ends(quality, places), _ends(other, places)
    start, end = figure(left, other.scale), figure(right, other.scale)
    if start == end:  # a picture would spread out what the figures call the same
        return
    for place in places:
        up = words.place_of(quality.estimates[place], low, high)
        up = up if quality.direction is Direction.HIGHER else 1 - up
        row = round((1 - up) * (_HEIGHT - 1))
        column = round(words.place_of(other.estimates[place], left, right) * (_WIDTH - 1))
        grid[row][column] = words.letter(place) if grid[row][column] == " " else _SEVERAL
    best, worst = (high, low) if quality.direction is Direction.HIGHER else (low, high)
    ends = [figure(best, quality.scale), figure(worst, quality.scale)]
    margin = max(map(len, ends))
    yield ""
    yield from _wrapped(f"{console(lineup.quality, 60)} against {axis}: the best corner is at the top left", width)
    for number, cells in enumerate(grid):
        label = ends[0] if number == 0 else ends[1] if number == _HEIGHT - 1 else ""
        yield f"{label.rjust(margin)} │{''.join(cells)}".rstrip()
    yield f"{' ' * margin} └{'─' * _WIDTH}"
    yield f"{' ' * margin}  {start}{end.rjust(_WIDTH - len(start))}"


def _ends(measure: Measure, places: list[int]) -> tuple[float, float]:
    known = [found.value for n in places if (found := measure.estimates[n]) is not None]
    return min(known), max(known)
