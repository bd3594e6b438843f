"""Tables and lines that fit the width of the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import category, east_asian_width

from gate.security.escape import console

GAP = "  "
LEAST_NAME = 14
"""Minimum number of columns of a table's first column; if there are fewer, each row becomes a paragraph."""
NARROWEST = 20
"""Minimum number of columns of any layout."""
_AFTER = re.compile(r"(?<=[_./:@\-])(?=[^_./:@\-\s])")
_BULLET = re.compile(r" *[-·] ")


def columns(text: str) -> int:
    """Return the number of terminal columns of a text."""
    if text.isascii():
        return len(text)
    total = 0
    for one in text:
        if category(one) in ("Mn", "Me"):
            continue
        total += 1
        if east_asian_width(one) in "WF":
            total += 1
    return total


def table(rows: Sequence[Sequence[str]], width: int | None = None, *, head: bool = True) -> str:
    """Return columns aligned by spaces, with a head as the first row; every cell is made safe for a terminal.

    If ``width`` columns are too few, long names are broken after separators; if that does not help, each row becomes a
    paragraph, in which every figure follows the head of its column.
    """
    clean = [[console(cell, 200) for cell in row] for row in rows]
    if not clean:
        return ""
    widths = [max(map(columns, column)) for column in zip(*clean, strict=True)]
    if width is not None:
        width = max(width, NARROWEST)
        spare = width - sum(widths[1:]) - len(GAP) * (len(widths) - 1)
        if spare < min(widths[0], LEAST_NAME):
            if not head:
                clean.insert(0, [""] * len(widths))
            return "\n".join(_paragraphs(clean, width))
        widths[0] = min(widths[0], spare)
    lines: list[str] = []
    for row in clean:
        lines += _row(row, widths)
    return "\n".join(lines)


def _row(cells: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    hang = ""
    if widths[0] > LEAST_NAME:
        hang = GAP
    first, *names = wrapped(cells[0], widths[0], hang) or [""]
    line = [_padded(cell, width) for cell, width in zip((first, *cells[1:]), widths, strict=True)]
    yield GAP.join(line).rstrip()
    yield from names


def _padded(text: str, width: int) -> str:
    return text + " " * (width - columns(text))


def _paragraphs(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    head, *others = rows
    for first, *cells in others:
        yield from wrapped(first, width, "  ")
        line = ""
        for name, cell in zip(head[1:], cells, strict=True):
            if not cell:
                continue
            said = cell
            if name:
                said = f"{name}: {cell}"
            if line and columns(f"{line}; {said}") <= width:
                line += f"; {said}"
                continue
            if line:
                yield from wrapped(line + ";", width, "    ")
            line = f"  {said}"
        if line:
            yield from wrapped(line, width, "    ")


def fit(text: str, width: int | None) -> str:
    """Return the text with lines of at most ``width`` columns; unchanged without a width."""
    if width is None:
        return text
    lines = []
    for line in text.split("\n"):
        bullet, hang = _BULLET.match(line), _indent(line) + 2
        if bullet:
            hang = len(bullet[0])
        lines += wrapped(line, max(width, NARROWEST), " " * hang)
    return "\n".join(lines)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def wrapped(text: str, width: int, hang: str) -> list[str]:
    """Return a line as several of at most ``width`` columns, broken between words, and in longer words after
    separators. All but the first begin with ``hang``."""
    if columns(text) <= width:
        return [text]
    if len(hang) > width // 2:
        hang = ""
    lines, line = [], " " * min(_indent(text), width // 2)
    empty = True
    for word in text.split():
        for at, piece in enumerate(_pieces(word, width - len(hang))):
            gap = " "
            if empty or at:
                gap = ""
            if not empty and columns(line) + len(gap) + columns(piece) > width:
                lines.append(line)
                line, gap = hang, ""
            line += gap + piece
            empty = False
    return [*lines, line]


def _pieces(word: str, width: int) -> Iterator[str]:
    """Yield the word if it fits on a line, else its parts, each no longer than a line."""
    if columns(word) <= width:
        yield word
        return
    for part in _AFTER.split(word):
        while columns(part) > width:
            cut = len(part) - 1
            while columns(part[:cut]) > width:
                cut -= 1
            yield part[:cut]
            part = part[cut:]  # noqa: PLW2901
        yield part
