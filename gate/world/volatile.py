"""What differs from one asking to the next though the same is asked: the clock, ids, and what the user names.

A date counts as the clock's only if it is today's, give or take a day: another date in a request is content. Ids are
numbered in the order in which they appear, so that which one stands where still tells requests apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

CLOCK = "<now>"
NEAR_SECONDS = 26 * 3600
"""How far from the clock a time may be that was taken from it: a day, and what time zones differ by."""
MAX_DEPTH = 200
MOST_KNOWN, MOST_CHARS_KNOWN = 5_000, 50_000
"""How many texts are remembered, and of which length."""
_PLACEHOLDERS = {"{number}": r"\d{1,40}", "{word}": r"[A-Za-z0-9_.-]{1,200}", "{hex}": r"[0-9A-Fa-f]{1,200}"}
LEAST_LITERAL = 2
_ID = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|[0-9a-f]{32}"
    r"|(?:call|toolu|tooluse|chatcmpl|resp|msg|fc|rs|run|thread|req|session|conv|gen)[_-][A-Za-z0-9]{16,64}"
    r")(?![A-Za-z0-9])"
)
_TIME = (
    r"(?:[T ,]{1,2}(?:at )?\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?: ?[AaPp][Mm])?"
    r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?)?"
)
"""The time of day that may stand behind a date."""
_EPOCH = re.compile(r"(?<![\d.])1\d{9}(?:\d{3})?(?:\.\d{1,9})?(?!\d|\.\d)")


def check_pattern(pattern: str) -> None:
    """Raises ValueError for a pattern without a placeholder, or with hardly anything else."""
    if not any(name in pattern for name in _PLACEHOLDERS):
        raise ValueError(f"{pattern!r} names no part that varies: write {', '.join(_PLACEHOLDERS)} in its place")
    literal = pattern
    for name in _PLACEHOLDERS:
        literal = literal.replace(name, "")
    if len(literal.strip()) < LEAST_LITERAL:
        raise ValueError(f"{pattern!r} would match almost anything: write what stands around the part that varies")


class Volatile:
    """Replaces what varies by marks; ``patterns`` are the user's own."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._own = _compiled(tuple(patterns))
        self._known: dict[tuple[str, int], tuple[str, bool]] = {}

    def plain(self, value: Any, now: float) -> Any:
        """A JSON value with marks in place of what varies; ``now`` is the Unix time of the asking."""
        ids: dict[str, str] = {}
        hour = int(now // 3600)

        def numbered(match: re.Match[str]) -> str:
            return ids.setdefault(match[0], f"<id {len(ids) + 1}>")

        def text(value: str) -> str:
            found = self._known.get((value, hour))
            without, has_id = self._timeless(value, now, hour) if found is None else found
            return _ID.sub(numbered, without) if has_id else without

        return _mapped(value, text, now, 0)

    def _timeless(self, text: str, now: float, hour: int) -> tuple[str, bool]:
        """A text without what is of the hour, and whether it has an id. Most texts of a request were in one before."""
        found = text if self._own is None else self._own.sub("<own>", text)
        found = _epochs(_days(datetime.fromtimestamp(now, UTC).date()).sub(CLOCK, found), now)
        answer = found, _ID.search(found) is not None
        if len(text) <= MOST_CHARS_KNOWN:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[text, hour] = answer
        return answer


def _mapped(value: Any, text: Callable[[str], str], now: float, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return text(value)
    if depth < MAX_DEPTH:
        if kind is dict:
            return {name: _mapped(held, text, now, depth + 1) for name, held in value.items()}
        if kind is list:
            return [_mapped(held, text, now, depth + 1) for held in value]
    if kind in (int, float) and _is_now(float(value), now):
        return CLOCK
    return value


def _epochs(text: str, now: float) -> str:
    return _EPOCH.sub(lambda match: CLOCK if _is_now(float(match[0]), now) else match[0], text)


def _is_now(number: float, now: float) -> bool:
    """Whether a number is the time, in seconds or milliseconds since 1970."""
    return abs(number - now) < NEAR_SECONDS or abs(number / 1000 - now) < NEAR_SECONDS


@lru_cache(maxsize=8)
def _days(today: date) -> re.Pattern[str]:
    """Yesterday, today and tomorrow as they are commonly written, with the time of day behind them."""
    spelled = {form for off in (-1, 0, 1) for form in _spelled(today + timedelta(days=off))}
    either = "|".join(re.escape(form) for form in sorted(spelled, key=lambda form: (-len(form), form)))
    return re.compile(rf"(?<![A-Za-z0-9])(?:{either})(?![0-9]){_TIME}")


def _spelled(day: date) -> Iterator[str]:
    month, short, number, year = day.strftime("%B"), day.strftime("%b"), day.day, day.year
    yield from (f"{day:%Y-%m-%d}", f"{day:%Y/%m/%d}", f"{day:%d/%m/%Y}", f"{day:%m/%d/%Y}", f"{day:%d.%m.%Y}")
    for name in {month, short}:
        for written in {str(number), f"{number:02}"}:
            for form in (f"{name} {written}, {year}", f"{written} {name} {year}", f"{written}-{name}-{year}"):
                yield form
                yield f"{day:%A}, {form}"
                yield f"{day:%a}, {form}"
                yield f"{day:%A} {form}"


@lru_cache(maxsize=8)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    parts = []
    for pattern in patterns:
        check_pattern(pattern)
        pieces = re.split(r"(\{number\}|\{word\}|\{hex\})", pattern)
        parts.append("".join(_PLACEHOLDERS.get(piece) or re.escape(piece) for piece in pieces))
    return re.compile("|".join(parts)) if parts else None
