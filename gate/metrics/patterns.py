"""Regular expressions that authors write and strangers' text is matched against: none can hold up the gate.

The standard library's engine backtracks, and nothing stops it: it looks at no signal within a match.
Patterns without a repetition cannot take long and are matched here. All others are matched by a process of their own
(`gate.metrics.matcher`), which the kernel ends when a match has used `LIMIT_SECONDS` of processor time.
"""

from __future__ import annotations

import atexit
import json
import re
import subprocess
import sys
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from re import _constants as code  # type: ignore[attr-defined]  # the parser has no public name
from re import _parser as parser  # type: ignore[attr-defined]
from threading import Lock
from typing import Any

MAX_TEXT = 100_000
"""Characters of a text that a pattern is run over; a pattern that looks at every pair of them still ends."""
LIMIT_SECONDS = 1.0
"""Processor time that one match may take."""
_OPTIONAL = 3
"""Optional parts of a pattern that is matched here: each may double the ways to match."""
_REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT)


class PatternError(ValueError):
    """A pattern that cannot be used, with the reason."""


class PatternTimeoutError(Exception):
    """A match that took too long: whether there is one is not known."""


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


def is_found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Whether the pattern matches somewhere in the text, of which the first `MAX_TEXT` characters count.

    Raises:
        PatternError: as `compile_pattern`.
        PatternTimeoutError: it took longer than `LIMIT_SECONDS`.
    """
    return _match("search", pattern, text, ignore_case=ignore_case)


def is_whole(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text. Raises as `is_found`."""
    return _match("whole", pattern, text, ignore_case=False)


def _match(mode: str, pattern: str, text: str, *, ignore_case: bool) -> bool:
    compiled, text = compile_pattern(pattern, ignore_case=ignore_case), bounded(text)
    if _is_quick(pattern):
        return (compiled.fullmatch if mode == "whole" else compiled.search)(text) is not None
    found = _MATCHER.ask(mode, pattern, re.IGNORECASE.value if ignore_case else 0, text)
    if found is None:
        raise PatternTimeoutError(f"{pattern!r} took longer than {LIMIT_SECONDS:g} s of processor time to match")
    return found


class _Matcher:
    """The process that matches, started when it is first needed, and again after one that was ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = Lock()

    def ask(self, mode: str, pattern: str, flags: int, text: str) -> bool | None:
        """Whether there is a match; None where the process was ended over it."""
        request = json.dumps([mode, pattern, flags, text]).encode("ascii") + b"\n"
        with self._lock:
            process = self._process or self._started()
            assert process.stdin is not None and process.stdout is not None, "both are pipes"
            with suppress(BrokenPipeError):
                process.stdin.write(request)
                process.stdin.flush()
            answer = b""
            try:
                answer = process.stdout.read(1)
            finally:
                if not answer:  # it was ended, or whoever waits for it is
                    self._end()
            return answer == b"1" if answer else None

    def _started(self) -> subprocess.Popen[bytes]:
        script = Path(__file__).with_name("matcher.py")
        self._process = subprocess.Popen(  # noqa: S603 - this interpreter, and a file of ours
            [sys.executable, "-I", "-S", str(script), str(LIMIT_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        )
        return self._process

    def end(self) -> None:
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(OSError):  # what could not be written any more
                process.communicate()


_MATCHER = _Matcher()
atexit.register(_MATCHER.end)


@lru_cache(maxsize=1_000)
def _is_quick(pattern: str) -> bool:
    """Whether each place of a text is looked at a few times at most: nothing is repeated, little is optional."""
    repeats = list(_repeats(parser.parse(pattern)))
    return len(repeats) <= _OPTIONAL and all(most <= 1 for most in repeats)


def _repeats(parsed: Any) -> Any:
    """How often each repetition in a pattern may be made; what refers to an earlier group counts as one of many."""
    for operation, argument in parsed:
        if operation in (*_REPEATS, code.POSSESSIVE_REPEAT):
            yield argument[1]
        elif operation in (code.GROUPREF, code.GROUPREF_EXISTS):
            yield code.MAXREPEAT
        for inner in _bodies(operation, argument):
            yield from _repeats(inner)


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
