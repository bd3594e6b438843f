"""Small pictures in text: a series as a sparkline.

They consist of characters one column wide; `encodable` has an ASCII look-alike for each of them and for the other
symbols of reports.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_LEVELS = "▁▂▃▄▅▆▇█"
_GAP = "·"
_PLAIN = str.maketrans(dict(zip(_LEVELS, "_.,:;=+#", strict=True)) | {_GAP: " "})
_SYMBOLS = str.maketrans(
    {"✓": "+", "✗": "x", "−": "-", "–": "-", "·": "-", "…": "~", "±": " ", "→": ">", "≤": "<", "⏎": "/"}
    | {"µ": "u", "×": "x", "κ": "k", "⟨": "<", "⟩": ">"}
)
MOST_POINTS = 60
"""Maximum number of points in a drawing: the last ones of a series."""


def plain(picture: str) -> str:
    """Return a picture in ASCII, with the same width."""
    return picture.translate(_PLAIN)


def encodable(text: str, encoding: str) -> str:
    """Return the text if the encoding has its symbols; otherwise with look-alikes of the same width, or ``?``."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return plain(text.translate(_SYMBOLS)).encode("ascii", "replace").decode("ascii")
    return text


def sparkline(values: Sequence[float | None], *, low: float | None = None, high: float | None = None) -> str:
    """Return a series with one character per value, oldest first: ``▁▃█``; a dot for a missing value.

    Args:
        values: any numbers; None, NaN or an infinity is a gap. The last `MOST_POINTS` are drawn.
        low: the value of the lowest level; by default the least of those drawn.
        high: the value of the highest level; by default the largest. Values beyond are drawn at the end of the scale.

    Returns:
        The picture; a constant series is drawn in the middle, unless the ends of the scale are given.
    """
    drawn = values[-MOST_POINTS:]
    known = [value for value in drawn if value is not None and math.isfinite(value)]
    if not known:
        return _GAP * len(drawn)
    least = min(known) if low is None else low
    most = max(known) if high is None else high
    picture = ""
    for value in drawn:
        if value is None or not math.isfinite(value):
            picture += _GAP
        else:
            picture += _LEVELS[_level(value, least, most)]
    return picture


def _level(value: float, least: float, most: float) -> int:
    if most <= least:
        return len(_LEVELS) // 2
    share = (value - least) / (most - least)
    return round(min(1.0, max(0.0, share)) * (len(_LEVELS) - 1))
