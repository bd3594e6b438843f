"""Decides whether an actual tool call matches an expected one, and aligns two trajectories; knows no scores."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from gate.metrics.base import Context, NotMeasurableError, Options
from gate.metrics.patterns import PatternError, PatternTimeoutError, is_whole
from gate.model import ToolCall
from gate.model.strict import short_for
from gate.security.limits import shorten

MAX_SHOWN_ARGS = 4
"""The most arguments of a call, or differences between two calls, that a reason shows."""
MAX_SHOWN_CALLS = 8
"""The most calls of a trajectory that a reason shows."""

Same = Callable[[ToolCall, ToolCall], bool]
"""(expected, actual) → True if the actual call matches."""


class ArgsRule(Options):
    """The comparison of a call's arguments."""

    match: Literal["exact", "ignore", "subset", "regex"] = "exact"
    """``exact``: equal as Python compares. ``subset``: what is expected must be there, more may be. ``regex``: expected
    strings are regular expressions that the whole actual string must match. ``ignore``: not compared."""
    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The tolerance of numbers, absolute; for every ``match`` but ``ignore``."""


ShortRule = Annotated[ArgsRule, short_for("match")]
"""A rule, or just the word for its ``match``."""

NAMES_ONLY = ArgsRule(match="ignore")


class Matcher:
    """Decides call by call: by name or category, then by arguments under the rule of the tool."""

    def __init__(self, context: Context, rule: ArgsRule, by_tool: Mapping[str, ArgsRule] | None = None) -> None:
        self._categories = context.tool_categories
        self._rule = rule
        self._by_tool = by_tool or {}

    def __call__(self, expected: ToolCall, actual: ToolCall) -> bool:
        """True if the actual call matches the expected one.

        Raises:
            NotMeasurableError: an undefined category, or an expected pattern that is not a regular expression.
        """
        if expected.category is None:
            if expected.name != actual.name:
                return False
        elif actual.name not in self._tools_of(expected.category):
            return False
        if expected.any_args or (expected.category is not None and expected.args is None):
            return True
        return args_match(expected.args, actual.args, self._by_tool.get(actual.name, self._rule))

    def _tools_of(self, category: str) -> frozenset[str]:
        tools = self._categories.get(category)
        if tools is None:
            raise NotMeasurableError(f"tool category {category!r} is expected but not defined under tool_categories")
        return tools


def args_match(expected: Any, actual: Any, rule: ArgsRule) -> bool:
    """True if arguments match under a rule. None (absent) equals only None, unless the rule is subset or ignore."""
    if rule.match == "ignore":
        return True
    if rule.match == "exact" and not rule.tolerance:
        return bool(expected == actual)
    if rule.match == "subset" and expected is None:
        return True
    return _agrees(expected, actual, rule)


def _agrees(expected: Any, actual: Any, rule: ArgsRule) -> bool:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        if not expected.keys() <= actual.keys() or (rule.match != "subset" and len(expected) != len(actual)):
            return False
        return all(_agrees(value, actual[key], rule) for key, value in expected.items())
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple):
        if len(expected) != len(actual):
            return False
        return all(_agrees(one, other, rule) for one, other in zip(expected, actual, strict=True))
    if rule.match == "regex" and isinstance(expected, str) and isinstance(actual, str):
        return _matches(expected, actual)
    if rule.tolerance and _is_number(expected) and _is_number(actual):
        return bool(expected == actual or abs(expected - actual) <= rule.tolerance)
    return bool(expected == actual)


def _matches(pattern: str, text: str) -> bool:
    try:
        return is_whole(pattern, text)
    except (PatternError, PatternTimeoutError) as error:
        raise NotMeasurableError(f"expected argument: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- two trajectories -----------------------------------------------------------------------------


def all_equal(expected: Sequence[ToolCall], actual: Sequence[ToolCall], same: Same) -> bool:
    """True if both have the same calls in the same order, and no others."""
    return len(expected) == len(actual) and all(same(e, a) for e, a in zip(expected, actual, strict=True))


def equal_at_start(expected: Sequence[ToolCall], actual: Sequence[ToolCall], same: Same) -> int:
    """Return the number of equal calls at the beginning of both."""
    for index, (wanted, call) in enumerate(zip(expected, actual, strict=False)):
        if not same(wanted, call):
            return index
    return min(len(expected), len(actual))


def first_missing(expected: Sequence[ToolCall], actual: Sequence[ToolCall], same: Same) -> ToolCall | None:
    """Return the first expected call that does not follow the ones before it; None if all occur in order, possibly with
    others between."""
    rest = iter(actual)
    for wanted in expected:
        for call in rest:
            if same(wanted, call):
                break
        else:
            return wanted
    return None


def longest_common(expected: Sequence[ToolCall], actual: Sequence[ToolCall], same: Same) -> int:
    """Return the largest number of expected calls that occur in order: the longest common subsequence."""
    begin = equal_at_start(expected, actual, same)
    expected, actual = expected[begin:], actual[begin:]
    end = equal_at_start(expected[::-1], actual[::-1], same)
    expected, actual = expected[: len(expected) - end], actual[: len(actual) - end]
    row = [0] * (len(expected) + 1)
    for call in actual:
        previous = row
        row = [0]
        for index, wanted in enumerate(expected):
            if same(wanted, call):
                row.append(previous[index] + 1)
            else:
                row.append(max(previous[index + 1], row[index]))
    return begin + row[-1] + end


def assign(expected: Sequence[ToolCall], actual: Sequence[ToolCall], same: Same) -> dict[int, int]:
    """Assign as many expected calls as possible to different actual calls: index of expected → index of actual.

    Maximum matching by augmenting paths (Kuhn 1955), so that a call named by category never takes the only call that
    another expected one could have had. Of equal calls, the earliest is taken.
    """
    if all_equal(expected, actual, same):
        return {index: index for index in range(len(expected))}
    fits = []
    for wanted in expected:
        fits.append([index for index, call in enumerate(actual) if same(wanted, call)])
    owner: dict[int, int] = {}
    for number in range(len(expected)):
        _augment(number, fits, owner)
    return {number: index for index, number in owner.items()}


def _augment(wanted: int, fits: Sequence[Sequence[int]], owner: dict[int, int]) -> None:
    """Find an actual call for one expected call, moving others that have a choice: breadth first, no recursion."""
    came_from: dict[int, int] = {}
    queue = [wanted]
    for current in queue:
        for index in fits[current]:
            if index in came_from:
                continue
            came_from[index] = current
            if index not in owner:
                _reassign(index, wanted, came_from, owner)
                return
            queue.append(owner[index])


def _reassign(index: int, wanted: int, came_from: Mapping[int, int], owner: dict[int, int]) -> None:
    """Hand over the calls along the path that ends at the free one."""
    by_owner = {current: taken for taken, current in owner.items()}
    while True:
        current = came_from[index]
        owner[index] = current
        if current == wanted:
            return
        index = by_owner[current]


# --- in words -------------------------------------------------------------------------------------

_words = reprlib.Repr()
_words.maxstring = _words.maxother = 40
_words.maxlevel = 2
_words.maxdict = _words.maxlist = _words.maxtuple = 4


def call_words(call: ToolCall, *, args: bool = True) -> str:
    """Return a call as one short line; its untrusted parts are shortened and quoted."""
    name = call.name
    if call.category is not None:
        name = f"any {call.category} tool"
    name = shown(name, 80)
    if not args or call.args is None:
        return name
    if not isinstance(call.args, Mapping):
        return f"{name}({_words.repr(call.args)})"
    words = [f"{_key(key)}={_words.repr(value)}" for key, value in list(call.args.items())[:MAX_SHOWN_ARGS]]
    if len(call.args) > MAX_SHOWN_ARGS:
        words.append(f"… {len(call.args) - MAX_SHOWN_ARGS} more")
    return f"{name}({', '.join(words)})"


def shown(name: str, limit: int) -> str:
    """Return a name from the agent, quoted if it has characters that cannot be printed, and shortened."""
    if not name.isprintable():
        name = repr(name)
    return shorten(name, limit)


def _key(key: Any) -> str:
    return shown(str(key), 40)


def nearest_words(wanted: ToolCall, actual: Sequence[ToolCall]) -> str:
    """Return how the arguments of the nearest call of the same tool differ; empty if there is none to compare."""
    if wanted.args is None and wanted.category is None and not wanted.any_args:
        if not any(call.name == wanted.name and call.args is not None for call in actual):
            return ""
        name = call_words(wanted, args=False)
        return f"{name} is expected by name alone, which no call with arguments matches (see ignore_args)"
    if not isinstance(wanted.args, Mapping):
        return ""
    expected = wanted.args
    found = [_argument_differences(expected, call.args) for call in actual if call.name == wanted.name]
    nearest = min(filter(None, found), key=len, default=None)
    if nearest is None:
        return ""
    words = ", ".join(nearest[:MAX_SHOWN_ARGS])
    if len(nearest) > MAX_SHOWN_ARGS:
        words += f", {len(nearest) - MAX_SHOWN_ARGS} more"
    return f"{call_words(wanted, args=False)} was called with {words}"


def _argument_differences(expected: Mapping[str, Any], actual: Any) -> list[str]:
    if not isinstance(actual, Mapping):
        return ["no arguments"]
    changed, missing = [], []
    for key, value in expected.items():
        if key not in actual:
            missing.append(f"no {_key(key)}")
        elif actual[key] != value:
            changed.append(f"{_key(key)}={_words.repr(actual[key])} instead of {_words.repr(value)}")
    return [*changed, *missing, *(f"{_key(key)} besides" for key in actual if key not in expected)]


def trajectory_words(calls: Sequence[ToolCall], *, args: bool = True) -> str:
    """Return a trajectory as one line."""
    if not calls:
        return "no call"
    words = [call_words(call, args=args) for call in calls[:MAX_SHOWN_CALLS]]
    if len(calls) > MAX_SHOWN_CALLS:
        words.append(f"… {len(calls) - MAX_SHOWN_CALLS} more")
    return " → ".join(words)
