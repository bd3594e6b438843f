"""Matches users' regular expressions against untrusted text, so that no match can hold up the gate.

The standard library's engine backtracks and cannot be stopped: it checks no signals during a match. Patterns without
repetition cannot take long and are matched here. All others run in a separate process (`gate.guest.matcher`), which the
kernel ends once a match has used `LIMIT_SECONDS` of processor time.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from pathlib import Path
from re import _constants as code  # type: ignore[attr-defined]  # the parser is not public
from re import _parser as parser  # type: ignore[attr-defined]
from threading import Lock
from typing import Any

from gate.guest import matcher
from gate.system.child import Dialogue, LostError, script_command
from gate.system.wire import LineReader

MAX_TEXT = 100_000
"""The longest text that a pattern is matched against; even a pattern that compares all pairs of characters ends."""
LIMIT_SECONDS = 1.0
"""Processor time for one match."""
_OPTIONAL = 3
"""The most optional parts of a pattern that is matched here: each may double the ways to match."""
_ANSWER_BYTES = 100
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)


class PatternError(ValueError):
    """A pattern that cannot be used, with the reason."""


class PatternTimeoutError(Exception):
    """A match that took too long or could not be tried: the result is unknown."""


@lru_cache(maxsize=1_000)
def compile_pattern(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Compile a valid pattern in which no repetition is repeated, the usual cause of endless matches.

    Raises:
        PatternError: not a regular expression, or one such as ``(a+)+``.
    """
    try:
        parsed = parser.parse(pattern)
        compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{pattern!r} is not a regular expression: {error}") from None
    if _explodes(parsed):
        raise PatternError(f"{pattern!r} repeats a repetition, which may never end: make the inner one possessive (++)")
    return compiled


def is_found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """True if the pattern matches anywhere in the text.

    Raises:
        PatternError: see `compile_pattern`.
        PatternTimeoutError: the match took longer than `LIMIT_SECONDS`, or the text is longer than `MAX_TEXT`.
    """
    return _match("search", pattern, text, compile_pattern(pattern, ignore_case=ignore_case))


def is_whole(pattern: str, text: str) -> bool:
    """True if the pattern matches the whole text. Raises the same as `is_found`."""
    return _match("whole", pattern, text, compile_pattern(pattern))


def _match(mode: str, pattern: str, text: str, compiled: re.Pattern[str]) -> bool:
    if len(text) > MAX_TEXT:
        what = f"{len(text):,} characters are more than the {MAX_TEXT:,} that a pattern is matched to"
        raise PatternTimeoutError(what)
    if _is_quick(pattern):
        match = compiled.fullmatch if mode == "whole" else compiled.search
        return match(text) is not None
    try:
        return _MATCHER.ask(mode, pattern, compiled.flags, text)
    except LostError as error:
        if "SIGPROF" in str(error):
            what = f"{pattern!r} took longer than {LIMIT_SECONDS:g} s of processor time to match"
        else:
            what = f"{pattern!r} was not matched: the process for it {error}"
        raise PatternTimeoutError(what) from None


class _Matcher:
    """The process that matches: started when first needed, and again after it was ended."""

    def __init__(self) -> None:
        self._dialogue: Dialogue[bytes] | None = None
        self._lock = Lock()

    def ask(self, mode: str, pattern: str, flags: int, text: str) -> bool:
        """True if there is a match. Raises LostError if the match ended the process."""
        request = json.dumps([mode, pattern, flags, text]).encode("ascii") + b"\n"
        with self._lock:
            try:
                self._dialogue = self._dialogue or self._started()
                return self._dialogue.ask(request) == b"1"
            except BaseException:
                self._end()
                raise

    def _started(self) -> Dialogue[bytes]:
        command = script_command(Path(matcher.__file__), str(LIMIT_SECONDS))
        return Dialogue(command, LineReader(_ANSWER_BYTES), environment={})

    def _end(self) -> None:
        dialogue, self._dialogue = self._dialogue, None
        if dialogue is not None:
            dialogue.end()


_MATCHER = _Matcher()


@lru_cache(maxsize=1_000)
def _is_quick(pattern: str) -> bool:
    """True if matching visits each position only a few times: nothing is repeated, and little is optional."""
    repeats = list(_repeats(parser.parse(pattern)))
    return len(repeats) <= _OPTIONAL and all(most <= 1 for most in repeats)


def _repeats(parsed: Any) -> Any:
    """Yield the maximum count of each repetition in a pattern; a reference to a group counts as unbounded."""
    for operation, argument in parsed:
        if operation in (*_REPEATS, code.POSSESSIVE_REPEAT):
            yield argument[1]
        elif operation in (code.GROUPREF, code.GROUPREF_EXISTS):
            yield code.MAXREPEAT
        for inner in _bodies(operation, argument):
            yield from _repeats(inner)


def forbids_in_part(pattern: str) -> bool:
    """True if a pattern begins by forbidding a text anywhere, as ``(?!.*sorry)``, but matches an answer with the text:
    elsewhere, since it is not anchored, or if the text is on another line."""
    parsed = parser.parse(pattern)
    return _forbids_in_part(parsed, parsed.state.flags)


def _forbids_in_part(parts: Any, flags: int) -> bool:
    anchored = False
    for operation, argument in parts:
        if operation is code.AT:
            anchored = anchored or argument == code.AT_BEGINNING_STRING
            anchored = anchored or (argument == code.AT_BEGINNING and not flags & re.MULTILINE)
        elif operation is code.SUBPATTERN:
            _, added, removed, body = argument
            inner = ([(code.AT, code.AT_BEGINNING_STRING)] if anchored else []) + list(body)
            return _forbids_in_part(inner, (flags | added) & ~removed)
        elif operation is code.ASSERT_NOT:
            _, forbidden = argument
            if len(forbidden) and _unbounded(*forbidden[0]):
                return not anchored or not _crosses_lines(forbidden[0][1][2], flags)
        elif operation is not code.ASSERT:
            return False
    return False


def _crosses_lines(skipped: Any, flags: int) -> bool:
    """True if a repeated part of a pattern may also match the end of a line."""
    if list(skipped) == [(code.ANY, None)]:
        return bool(flags & re.DOTALL)
    return list(skipped) != [(code.NOT_LITERAL, ord("\n"))]


def _explodes(parsed: Any) -> bool:
    """True if an unbounded repetition holds only optional parts and other unbounded repetitions."""
    for operation, argument in parsed:
        if operation in _REPEATS:
            _, most, body = argument
            if most == code.MAXREPEAT and _only_repeats(body):
                return True
        if any(_explodes(inner) for inner in _bodies(operation, argument)):
            return True
    return False


def _only_repeats(body: Any) -> bool:
    """True if the body has an unbounded repetition and nothing else that every round must consume."""
    items = list(_flat(body))
    return any(_unbounded(*item) for item in items) and all(_unbounded(*item) or _optional(*item) for item in items)


def _flat(body: Any) -> Any:
    """Yield the parts of a sequence, with the content of groups in place of the groups."""
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
    """Return the sequences inside one part of a parsed pattern."""
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
