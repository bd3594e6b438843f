"""Regular expressions that authors write and strangers' text is matched against; knows what makes one hang."""

from __future__ import annotations

import re
from functools import lru_cache
from re import _constants as code  # type: ignore[attr-defined]  # the parser has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_TEXT = 100_000
"""Characters of a text that a pattern is run over; a pattern that looks at every pair of them still ends."""
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)


class PatternError(ValueError):
    """A pattern that cannot be used, with the reason."""


@lru_cache(maxsize=1_000)
def compile_pattern(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """A pattern that is valid and does not repeat a repetition, the common way to a match that never ends.

    Raises:
        PatternError: not a regular expression, or one like ``(a+)+``.
    """
    try:
        parsed = parser.parse(pattern)
        compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{pattern!r} is not a regular expression: {error}") from None
    if _explodes(parsed):
        raise PatternError(f"{pattern!r} repeats a repetition, which may never end: make the inner one possessive (++)")
    return compiled


def bounded(text: str) -> str:
    """The part of a text that patterns are run over."""
    return text[:MAX_TEXT]


def _explodes(parsed: Any) -> bool:
    """Whether an unbounded repeat holds nothing but optional parts and other unbounded repeats."""
    for operation, argument in parsed:
        if operation in _REPEATS:
            _, most, body = argument
            if most == code.MAXREPEAT and _only_repeats(body):
                return True
        if any(_explodes(inner) for inner in _bodies(operation, argument)):
            return True
    return False


def _only_repeats(body: Any) -> bool:
    """Whether the body has an unbounded repeat, and nothing beside it that every round must consume."""
    items = list(_flat(body))
    return any(_unbounded(*item) for item in items) and all(_unbounded(*item) or _optional(*item) for item in items)


def _flat(body: Any) -> Any:
    """The parts of a sequence, groups opened."""
    for operation, argument in body:
        if operation is code.SUBPATTERN:
            yield from _flat(argument[3])
        else:
            yield operation, argument


def _unbounded(operation: Any, argument: Any) -> bool:
    return operation in _REPEATS and argument[1] == code.MAXREPEAT


def _optional(operation: Any, argument: Any) -> bool:
    return operation is code.AT or (operation in _REPEATS and argument[0] == 0)


def _bodies(operation: Any, argument: Any) -> list[Any]:
    """The sequences inside one part of a parsed pattern."""
    if operation in _REPEATS or operation is code.POSSESSIVE_REPEAT:
        return [argument[2]]
    if operation is code.SUBPATTERN:
        return [argument[3]]
    if operation is code.BRANCH:
        return list(argument[1])
    if operation in (code.ASSERT, code.ASSERT_NOT):
        return [argument[1]]
    if operation is code.ATOMIC_GROUP:
        return [argument]
    return []
