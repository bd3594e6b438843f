"""The parts that differ between two equal requests: times, ids, and texts that the user names.

A date counts as the current time only if it is within a day of today: other dates are content. The first such date
stands for now, and the distance of the others from it is content: an agent may live in any time zone, where today is
another date for some hours of the day. Ids are numbered in order of appearance, so that requests with ids in different
places stay different. A user's pattern is replaced by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Any

CLOCK = "<now>"
NEAR_SECONDS = 26 * 3600
"""Largest distance of a time from the clock: a day, plus the difference of time zones."""
MAX_DEPTH = 200
MOST_KNOWN, MOST_CHARS_KNOWN = 5_000, 50_000
"""Most texts that are cached, and the most characters of one."""
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
"""The time of day that may follow a date."""
_DAY = "<day {:+d}>"
"""A placeholder for a date near today's until the whole request has been read."""
_PLACED = re.compile(rf"(?<!<)<day ([+-]\d)>|{_ID.pattern}")
_LOOKS_LIKE_A_MARK = re.compile(r"<(?=now|day |id |own )")
_EPOCH = re.compile(r"(?<![\d.])1\d{9}(?:\d{3})?(?:\.\d{1,9})?(?!\d|\.\d)")


def check_pattern(pattern: str) -> None:
    """Raise `ValueError` for a pattern without a placeholder, or with almost nothing else."""
    if not any(name in pattern for name in _PLACEHOLDERS):
        raise ValueError(f"{pattern!r} has no varying part: write {', '.join(_PLACEHOLDERS)} in its place")
    literal = pattern
    for name in _PLACEHOLDERS:
        literal = literal.replace(name, "")
    if len(literal.strip()) < LEAST_LITERAL:
        raise ValueError(f"{pattern!r} would match almost anything: include the text around the varying part")


def find_ids(text: str) -> list[str]:
    """Return the texts that look like ids, in their order."""
    return _ID.findall(text)


class Volatile:
    """Replaces varying parts by marks; ``patterns`` are the user's."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._own = _compiled(self._patterns)
        self._known: dict[tuple[str, int], tuple[str, bool]] = {}

    def plain(self, value: Any, now: float) -> Any:
        """Return a JSON value with marks in place of varying parts; ``now`` is the Unix time of the request."""
        return self.marked(value, now)[0]

    def marked(self, value: Any, now: float) -> tuple[Any, tuple[str, ...]]:
        """Return the value with marks, and the ids that they replace, in the order of their numbers."""
        ids: dict[str, str] = {}
        days: list[int] = []
        hour = int(now // 3600)

        def placed(match: re.Match[str]) -> str:
            if match[1] is None:
                return ids.setdefault(match[0], f"<id {len(ids) + 1}>")
            days.append(int(match[1]))
            apart = days[-1] - days[0]
            return f"<now {apart:+d} d>" if apart else CLOCK

        def text(value: str) -> str:
            found = self._known.get((value, hour))
            if found is None:
                found = self._timeless(value, now, hour)
            without, has_more = found
            return _PLACED.sub(placed, without) if has_more else without

        return _mapped(value, text, now, 0), tuple(ids)

    def _timeless(self, text: str, now: float, hour: int) -> tuple[str, bool]:
        """Return a text without parts that depend on the hour, and whether its marks depend on the rest of the request.

        Results are cached: most texts of a request occurred in an earlier one.
        """
        found = _LOOKS_LIKE_A_MARK.sub("<<", text) if "<" in text else text
        if self._own is not None:
            found = self._own.sub(self._own_mark, found)
        pattern, off = _days(datetime.fromtimestamp(now, UTC).date())
        found = pattern.sub(lambda match: _DAY.format(off[match[1]]), found)
        found = _EPOCH.sub(lambda match: _clock(float(match[0]), now) or match[0], found)
        answer = found, _PLACED.search(found) is not None
        if len(text) <= MOST_CHARS_KNOWN:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[text, hour] = answer
        return answer

    def _own_mark(self, match: re.Match[str]) -> str:
        """Return the pattern as its mark, so that different patterns stay different."""
        return f"<own {self._patterns[(match.lastindex or 1) - 1]}>"


def _mapped(value: Any, text: Callable[[str], str], now: float, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return text(value)
    if depth < MAX_DEPTH:
        if kind is dict:
            return {name: _mapped(held, text, now, depth + 1) for name, held in value.items()}
        if kind is list:
            return [_mapped(held, text, now, depth + 1) for held in value]
    if kind is int or kind is float:
        return _clock(value, now) or value
    return value


def _clock(number: float, now: float) -> str:
    """Return the mark for a number that is a current Unix time in seconds or milliseconds; else empty."""
    for at in (number, number / 1000):
        if abs(at - now) < NEAR_SECONDS:
            hours = round((at - now) / 3600)
            return f"<now {hours:+d} h>" if hours else CLOCK
    return ""


@lru_cache(maxsize=8)
def _days(today: date) -> tuple[re.Pattern[str], dict[str, int]]:
    """Return a pattern for yesterday, today and tomorrow in common notations, and the day that each notation means."""
    spelled: dict[str, int] = {}
    for off in (-1, 0, 1):
        for form in _spelled(today + timedelta(days=off)):
            spelled[form] = off
    either = "|".join(re.escape(form) for form in sorted(spelled, key=lambda form: (-len(form), form)))
    return re.compile(rf"(?<![A-Za-z0-9])({either})(?![0-9]){_TIME}"), spelled


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
        parts.append("(" + "".join(_PLACEHOLDERS.get(piece) or re.escape(piece) for piece in pieces) + ")")
    return re.compile("|".join(parts)) if parts else None
