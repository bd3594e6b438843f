"""Small pictures in text: a series as a sparkline.

They are made of characters of one column each; `encodable` has a look-alike in ASCII for each of them, and for the
symbols of whole reports.
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
"""Points of a series that are drawn: the last ones."""


def plain(picture: str) -> str:
    """Return a picture in ASCII, as wide as before."""
    return picture.translate(_PLAIN)


def encodable(text: str, encoding: str) -> str:
    """Return the text if the encoding has its symbols; otherwise look-alikes of the same width, then ``?``."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return plain(text.translate(_SYMBOLS)).encode("ascii", "replace").decode("ascii")
    return text


def sparkline(values: Sequence[float | None], *, low: float | None = None, high: float | None = None) -> str:
    """Return a series as one character a value, oldest first: ``▁▃█``; a dot for a missing value.

    Args:
        values: any numbers; None or what is not finite is a gap. The last `MOST_POINTS` are drawn.
        low: the value of the lowest level; by default the least of those drawn.
        high: the value of the highest level; by default the largest. What lies beyond is drawn at the end of the scale.

    Returns:
        The picture; a series that never moves is drawn in the middle, unless the ends of the scale are given.
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
