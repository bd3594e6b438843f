"""Expected and actual calls and answers, as marked lines of text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import Any

from msgspec import Struct

from gate.model import CaseResult, ToolCall
from gate.reports.formatting import count
from gate.security.escape import one_line
from gate.security.limits import MAX_NESTING, cut, shorten

MAX_CALLS = 200
"""Maximum number of calls to compare per turn; the comparison is quadratic at worst."""
MAX_CALL_CHARS = 300
MAX_ITEMS = 50
"""Maximum number of items in one argument."""
MAX_ANSWER_CHARS = 200
MAX_ANSWERS = 5
"""Maximum number of turns whose answers are shown."""
MAX_TEXT_CHARS = 2_000
MAX_WORDS = 500
"""Maximum number of words in an answer to compare; the comparison is quadratic at worst."""
LEAST_ALIKE = 0.3
"""The minimum share of common words for marking the differing ones in two texts."""
KEPT = 60
"""Characters kept on each side of a differing word."""
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_CONTEXT = 2
"""Equal calls shown on each side of a difference."""


Pieces = tuple[tuple[str, bool], ...]
"""A text in pieces, each with True if it differs from the other text."""


class TurnDiff(Struct, frozen=True):
    """One turn's calls or answer, line by line."""

    turn: int
    """The number of the turn, from 1."""
    against: str
    """``expected`` or ``baseline``; empty if there is nothing to compare an answer with."""
    lines: tuple[tuple[str, str], ...]
    """Mark and text of each line. ``-``: expected and missing; ``+``: made and not expected; a space: as expected."""
    noun: str = ""
    """``answer`` if the lines are from an answer."""
    words: tuple[Pieces, ...] = ()
    """The two lines of an answer and the expected one, with the differing words marked."""

    @property
    def title(self) -> str:
        actual = f"actual {self.noun}".rstrip()
        if not self.against:
            return f"turn {self.turn}: + {actual}"
        wanted = f"{self.against} {self.noun}".rstrip()
        return f"turn {self.turn}: - {wanted}, + {actual}"

    @property
    def differs(self) -> bool:
        return any(mark in "+-" for mark, _ in self.lines)

    @property
    def sides(self) -> tuple[Pieces, ...]:
        """Each line in pieces; a line without marked words is a single piece."""
        if self.words:
            return self.words
        return tuple([((text, False),) for _, text in self.lines])


def call_text(call: ToolCall) -> str:
    """Return a call on one line: ``refund(order="A-1", amount=20)``."""
    if not call.name and call.category:
        return one_line(f"any {call.category} tool", MAX_CALL_CHARS)
    body = ""
    if call.any_args:
        body = "…"
    elif isinstance(call.args, dict) and len(call.args) <= 100:
        body = ", ".join(f"{key}={_value_text(value)}" for key, value in call.args.items())
    elif call.args is not None:
        body = _value_text(call.args)
    said = f"{shorten(call.name or '(no name)', 100)}({shorten(body, MAX_CALL_CHARS)})"
    if call.error:
        said += f" → error: {shorten(call.error, 100)}"
    return one_line(said, 2 * MAX_CALL_CHARS)


def _value_text(value: Any, depth: int = 0) -> str:
    """Return an argument as JSON; never raises."""
    if isinstance(value, dict | list | tuple):
        if depth >= MAX_NESTING:
            return "…"
        return _items_text(value, depth + 1)
    if isinstance(value, str):
        return json.dumps(shorten(value, MAX_CALL_CHARS), ensure_ascii=False)
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    return shorten(str(value), 100)


def _items_text(value: dict[Any, Any] | list[Any] | tuple[Any, ...], depth: int) -> str:
    """Return an object or array with its first items."""
    parts = []
    for item in islice(value, MAX_ITEMS):
        if isinstance(value, dict):
            parts.append(f"{_value_text(str(item))}: {_value_text(value[item], depth)}")
        else:
            parts.append(_value_text(item, depth))
    if len(value) > MAX_ITEMS:
        parts.append("…")
    inside = ", ".join(parts)
    if isinstance(value, dict):
        return f"{{{inside}}}"
    return f"[{inside}]"


def differences(case: CaseResult) -> tuple[TurnDiff, ...]:
    """Return the differences of a failing case: its calls, then its answers."""
    return trajectory_diff(case) + answer_diff(case)


def answer_diff(case: CaseResult) -> tuple[TurnDiff, ...]:
    """Return the turns with an unexpected answer, and the last answer if no wording is expected."""
    turns = []
    pairs = list(zip_longest(case.expected_text, case.actual_text))
    for number, (wanted, said) in enumerate(pairs, 1):
        if wanted is None and (said is None or number < len(pairs)):
            continue
        if wanted is not None and not case.actual_text:  # the answers were not kept
            continue
        if wanted == said:
            continue
        turns.append(answers_apart(wanted or "", said or "(no answer)", "expected", number))
    return tuple(turns[:MAX_ANSWERS])


def answers_apart(wanted: str, said: str, against: str, turn: int = 1) -> TurnDiff:
    """Return an answer next to another one, with the differing words marked; alone if there is no other."""
    if not wanted:
        return TurnDiff(turn, "", (("+", _answer(_flat(said))),), "answer")
    sides = words_apart(_flat(wanted), _flat(said))
    old, new = map(_joined, sides)
    return TurnDiff(turn, against, (("-", old), ("+", new)), "answer", sides)


def _joined(pieces: Pieces) -> str:
    return "".join([text for text, _ in pieces])


def _flat(text: str) -> str:
    return one_line(text, MAX_TEXT_CHARS)


def _answer(text: str) -> str:
    return cut(text, MAX_ANSWER_CHARS)


def words_apart(wanted: str, said: str) -> tuple[Pieces, Pieces]:
    """Return both texts in pieces, with differing ones marked; long common stretches are shortened.

    Texts with little in common have no marks, because everything would be marked.
    """
    from difflib import SequenceMatcher  # weight: only needed for a difference

    left, right = _WORDS.findall(wanted)[:MAX_WORDS], _WORDS.findall(said)[:MAX_WORDS]
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return ((_answer(wanted), False),), ((_answer(said), False),)
    old: list[tuple[str, bool]] = []
    new: list[tuple[str, bool]] = []
    codes = matcher.get_opcodes()
    for at, (kind, a, b, c, d) in enumerate(codes):
        if kind == "equal":
            text = _shortened("".join(left[a:b]), is_first=at == 0, is_last=at == len(codes) - 1)
            old.append((text, False))
            new.append((text, False))
            continue
        for pieces, text in ((old, "".join(left[a:b])), (new, "".join(right[c:d]))):
            if text:
                pieces.append((cut(text, MAX_ANSWER_CHARS), bool(text.strip())))
    return tuple(old), tuple(new)


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    """Return a common stretch of both texts, without its middle if it is long."""
    if len(text) <= 2 * KEPT:
        return text
    if is_first and is_last:
        return cut(text, MAX_ANSWER_CHARS)
    if is_first:
        return f"…{text[-KEPT:]}"
    if is_last:
        return f"{text[:KEPT]}…"
    return f"{text[:KEPT]} … {text[-KEPT:]}"


def trajectory_diff(case: CaseResult) -> tuple[TurnDiff, ...]:
    """Return the turns of the worst trial with calls other than expected, or else other than the baseline's."""
    turns: list[TurnDiff] = []
    if not case.actual:  # there is no trial to show
        return ()
    sides = zip_longest(case.expected, case.actual, case.reference)
    for number, (expected, actual, reference) in enumerate(sides, 1):
        wanted, against = expected, "expected"
        if wanted is None:
            wanted, against = reference, "baseline"
        if wanted is None:
            continue
        turn = TurnDiff(number, against, tuple(_difference(wanted, tuple(actual or ()))))
        if turn.differs:
            turns.append(turn)
    return tuple(turns)


def _difference(wanted: Sequence[ToolCall], made: Sequence[ToolCall]) -> list[tuple[str, str]]:
    from difflib import SequenceMatcher  # weight: only needed for a difference

    left, right = list(map(call_text, wanted[:MAX_CALLS])), list(map(call_text, made[:MAX_CALLS]))
    # Expected calls that allow any arguments are compared only by name.
    keys, made_keys, of_any_args = list(left), list(right), set()
    for at, call in enumerate(wanted[:MAX_CALLS]):
        if call.any_args:
            keys[at] = call.name
            of_any_args.add(call.name)
    for at, call in enumerate(made[:MAX_CALLS]):
        if call.name in of_any_args and right[at] not in left:
            made_keys[at] = call.name
    matcher = SequenceMatcher(None, keys, made_keys, autojunk=False)
    lines: list[tuple[str, str]] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        if lines or group[0][1] > 0:
            lines.append((" ", "…"))
        for kind, a, b, c, d in group:
            if kind == "equal":
                lines += [(" ", text) for text in right[c:d]]
                continue
            lines += [("-", text) for text in left[a:b]]
            lines += [("+", text) for text in right[c:d]]
    more = max(len(wanted), len(made)) - MAX_CALLS
    if more > 0:
        lines.append((" ", f"… ({count(more, 'more call')} not compared)"))
    return lines
