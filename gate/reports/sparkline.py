"""Small pictures in text: a series as a sparkline, a share as a bar, an estimate with its interval on a line.

They are made of characters of one column each; `plain` has a look-alike in ASCII for each of them, `encodable` for
the symbols of whole reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_PLAIN = str.maketrans(
    dict(zip(_LEVELS, "_.,:;=+#", strict=True))
    | dict(zip(_EIGHTHS[1:-1], " ..::##", strict=True))
    | {_GAP: " ", "━": "=", "─": "-", "●": "o", "│": "|", "┊": "!", "┿": "+", "◂": "<", "▸": ">", "└": "+"}
)
_SYMBOLS = str.maketrans(
    {"✓": "+", "✗": "x", "−": "-", "–": "-", "·": "-", "…": "~", "±": " ", "→": ">", "≤": "<", "⏎": "/"}
    | {"µ": "u", "×": "x", "κ": "k", "⟨": "<", "⟩": ">"}
)
MOST_POINTS = 60
"""Points of a series that are drawn: the last ones."""


def plain(picture: str) -> str:
    """A picture in ASCII, as wide as before."""
    return picture.translate(_PLAIN)


def encodable(text: str, encoding: str) -> str:
    """The text itself where the encoding has its symbols; otherwise look-alikes of the same width, then ``?``."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return plain(text.translate(_SYMBOLS)).encode("ascii", "replace").decode("ascii")
    return text


def sparkline(values: Sequence[float | None], *, low: float | None = None, high: float | None = None) -> str:
    """A series as one character a value, oldest first: ``▁▃█``; a dot where a value is missing.

    Args:
        values: any numbers; None or what is not finite is a gap. The last `MOST_POINTS` are drawn.
        low: the value of the lowest level; by default the least of those drawn.
        high: the value of the highest level; by default the largest. What lies beyond is drawn at the end of the scale.

    Returns:
        The picture; a series that never moves is drawn in the middle, unless the ends of the scale are given.
    """
    drawn = [v if v is not None and math.isfinite(v) else None for v in values[-MOST_POINTS:]]
    known = [v for v in drawn if v is not None]
    if not known:
        return _GAP * len(drawn)
    least, most = (min(known) if low is None else low), (max(known) if high is None else high)
    return "".join(_GAP if v is None else _LEVELS[_level(v, least, most)] for v in drawn)


def _level(value: float, least: float, most: float) -> int:
    if most <= least:
        return len(_LEVELS) // 2
    share = (value - least) / (most - least)
    return round(min(1.0, max(0.0, share)) * (len(_LEVELS) - 1))


def bar(share: float, width: int = 10) -> str:
    """A share, 0–1, as a bar of ``width`` columns: ``██████▌   ``; more than nothing is never drawn as nothing."""
    eighths = round(8 * width * min(1.0, max(0.0, share))) if math.isfinite(share) else 0
    eighths = max(eighths, 1) if share > 0 else eighths
    whole, rest = divmod(eighths, 8)
    return ("█" * whole + (_EIGHTHS[rest] if rest else "")).ljust(width)


def interval_picture(
    value: float, low: float, high: float, *, reach: float, margin: float | None = None, width: int = 21
) -> str:
    """A change with its interval around no change, losses to the left: ``──━━●━━─┊───│───────``.

    ``│`` is no change, ``┊`` the margin, both ``┿`` within the interval; ``◂`` or ``▸`` an interval that goes on beyond
    the picture.

    Args:
        value: the estimate; better is larger, in the unit of the other arguments.
        low: the bad end of its interval.
        high: its other end.
        reach: the change at either end of the picture, above 0.
        margin: the loss still called unchanged, drawn at minus this; None: not drawn.
        width: columns, odd so that no change has one of its own.
    """
    middle = width // 2

    def column(at: float) -> int:
        share = min(1.0, max(-1.0, at / reach)) if reach > 0 else 0.0
        return middle + round(share * middle)

    cells = ["─"] * width
    if math.isfinite(low) and math.isfinite(high) and low < high:
        for at in range(column(low), column(high) + 1):
            cells[at] = "━"
    marks = {middle: "│"} | ({column(-margin): "┊"} if margin is not None and 0 < margin < reach else {})
    for at, mark in marks.items():
        cells[at] = "┿" if cells[at] == "━" else mark
    cells[column(value)] = "●"
    cells[0] = "◂" if low < -reach else cells[0]
    cells[-1] = "▸" if high > reach else cells[-1]
    return "".join(cells)
