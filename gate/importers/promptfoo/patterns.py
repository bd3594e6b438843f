"""Converts JavaScript's regular expressions to Python's, and texts to patterns, for assertions that need them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence

_SPACE = r"\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
r"""The meaning of ``\s`` in JavaScript."""
_ANY = r"[^\n\r\u2028\u2029]"
_GROUP = re.compile(r"\((?:\?(?::|=|!|<=|<!|<(?P<name>[A-Za-z_]\w*)>)|(?!\?))")
_REFERENCE = re.compile(r"\\k<([A-Za-z_]\w*)>")
_ESCAPE = re.compile(r"\\(?:[dDwWbBnrtvf0]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|[1-9]|[^\w\s])")
_COUNT = re.compile(r"(?:\d+(?:,\d*)?|,\d*)\}")
_REPEAT = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\??")


class _NotTranslated(Exception):  # noqa: N818 - never leaves this module
    """A pattern has another meaning in Python, or is invalid in JavaScript."""


def from_javascript(pattern: str) -> str | None:
    r"""Return the pattern for Python; None if it cannot be translated exactly, or matches an empty answer.

    Differences are rewritten for Python: ``$`` is only the end of the text, ``.`` never matches a line end, ``\s`` is
    any space, and ``\d``, ``\w`` and ``\b`` are ASCII. Anything that is not known to be equivalent is refused.
    """
    try:
        found = _Translation(pattern).whole()
    except _NotTranslated:
        return None
    return found if is_usable(found) else None


def is_usable(pattern: str) -> bool:
    """True if Python accepts the pattern and an empty answer does not match it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return re.compile(pattern).search("") is None
    except (re.error, OverflowError, RecursionError, Warning):
        return False


class _Translation:
    """A JavaScript pattern while it is translated, from left to right."""

    def __init__(self, pattern: str) -> None:
        self._rest = pattern
        self._ascii = False

    def whole(self) -> str:
        """Return the whole pattern for Python. Raises `_NotTranslated`."""
        found = list[str]()
        while self._rest:
            found.append(self._atom())
            repeat = self._take(_REPEAT)
            if repeat and _REPEAT.match(self._rest):
                raise _NotTranslated  # a second one: possessive in Python, an error in JavaScript
            found.append(repeat)
        text = "".join(found)
        if self._ascii:
            return f"(?a:{text})"
        return text

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._rest)
        if not match:
            return ""
        self._rest = self._rest[match.end() :]
        return match[0]

    def _atom(self) -> str:
        char = self._rest[0]
        if char == "\\":
            return self._escape(inside=False)
        if char == "[":
            return self._set()
        if char == "(":
            match = _GROUP.match(self._rest)
            if match is None:
                raise _NotTranslated
            self._take(_GROUP)
            if match["name"]:
                return f"(?P<{match['name']}>"
            return match[0]
        self._rest = self._rest[1:]
        if char in "*+?" or (char == "{" and _COUNT.match(self._rest)):
            raise _NotTranslated  # nothing to repeat, or no lower bound
        return {".": _ANY, "$": r"\Z"}.get(char, char)

    def _escape(self, *, inside: bool) -> str:
        space = self._rest[:2]
        if space in (r"\s", r"\S"):
            if inside and space == r"\S":
                raise _NotTranslated
            self._rest = self._rest[2:]
            if inside:
                return _SPACE
            if space == _NO_SPACE:
                return f"[^{_SPACE}]"
            return f"[{_SPACE}]"
        reference = _REFERENCE.match(self._rest)
        if reference:
            self._take(_REFERENCE)
            return f"(?P={reference[1]})"
        found = self._take(_ESCAPE)
        if not found or (inside and found in (r"\B", *_DIGITS)):
            raise _NotTranslated
        self._ascii = self._ascii or found[1] in "dDwWbB"
        return found

    def _set(self) -> str:
        """Translate a character class."""
        negated = self._rest.startswith("[^")
        self._rest = self._rest[1 + negated :]
        found = list[str]()
        while not self._rest.startswith("]"):
            if not self._rest:
                raise _NotTranslated
            if self._rest[0] == "\\":
                found.append(self._escape(inside=True))
                continue
            char, self._rest = self._rest[0], self._rest[1:]
            if char in "[&~|":
                char = f"\\{char}"
            found.append(char)
        self._rest = self._rest[1:]
        members = "".join(found)
        if negated:
            return f"[^{members}]" if members else r"[\s\S]"
        if not members:
            raise _NotTranslated
        return f"[{members}]"


_NO_SPACE = r"\S"
_DIGITS = tuple(rf"\{digit}" for digit in range(1, 10))


def whole(text: str) -> str:
    """Return a pattern for an answer that equals this text."""
    return rf"\A{re.escape(text)}\Z"


def start(text: str) -> str:
    """Return a pattern for an answer that begins with this text."""
    return rf"\A{re.escape(text)}"


def any_of(texts: Sequence[str], *, ignore_case: bool) -> str:
    """Return a pattern for an answer that contains one of the texts."""
    choices = "|".join(map(re.escape, texts))
    if ignore_case:
        return f"(?i:{choices})"
    return f"(?:{choices})"
