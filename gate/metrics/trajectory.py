"""Compares the tool calls of a turn with the expected ones as sequences: google-adk's match types and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, Any, Literal

from msgspec.structs import replace
from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from gate.metrics.base import NO_CONTENT, Context, Options, PerTurn, TrialOutput, unpaired
from gate.metrics.matching import (
    NAMES_ONLY,
    ArgsRule,
    Matcher,
    ShortRule,
    all_equal,
    assign,
    call_words,
    equal_at_start,
    first_missing,
    longest_common,
    nearest_words,
    trajectory_words,
)
from gate.metrics.tools import whole_conversation
from gate.model import ARGUMENTS, Case, Invocation, Score, ToolCall, Turn

MOST_EXPLAINED = 200
"""The most calls, from the first difference on, to search for the nearest one."""


class MatchType(IntEnum):
    """google-adk's ways to compare trajectories, with its numbers."""

    EXACT = 0
    IN_ORDER = 1
    ANY_ORDER = 2


def _match_type(value: Any) -> Any:
    """Return a match type from google-adk's spellings: any case, hyphen or space for the underscore, or the number."""
    if not isinstance(value, str):
        return value
    name = value.strip().upper().replace("-", "_").replace(" ", "_")
    return MatchType.__members__.get(name, value)


MatchTypeOption = Annotated[
    MatchType,
    BeforeValidator(_match_type),
    PlainSerializer(lambda value: value.name),
    WithJsonSchema({"enum": [*MatchType.__members__, *range(3)]}),
]


class TrajectoryOptions(Options):
    """Options for comparing trajectories; the defaults are google-adk's."""

    match_type: MatchTypeOption = MatchType.EXACT
    """``EXACT``: these calls and no others, in this order. ``IN_ORDER``: others may come between. ``ANY_ORDER``:
    in any order, with others."""
    ignore_args: bool = False
    """Compare names only."""
    args: ShortRule = ArgsRule()
    """The comparison of arguments."""
    tools: Mapping[str, ShortRule] = Field(default_factory=dict)
    """Tool name → the comparison of this tool's arguments."""
    credit: Literal["none", "f1", "precision", "recall"] = "none"
    """``none``: a turn scores 0 or 1. Otherwise, its share of calls in common: of the expected ones (recall), of
    the actual ones (precision), or the harmonic mean of both (f1)."""


class ToolTrajectory(PerTurn[TrajectoryOptions]):
    """1 for a turn whose tool calls match the expected ones, else 0; the mean over turns.

    EXACT: the same calls in the same order and no others. IN_ORDER: the expected calls in order, possibly with
    others between them. ANY_ORDER: the expected calls in any order, possibly with others. Calls match by name and
    arguments (Python's ``==``:
    1 equals 1.0 and True; absent arguments differ from ``{}``). With ``credit``, over the calls in common (in order, or
    in any order under ANY_ORDER): recall = common / expected, precision = common / made,
    f1 = 2·common / (expected + made).

    Range 0–1. Typical threshold 0.8–1.0 for EXACT on deterministic tools; google-adk's default is 1.0.
    Source: google-adk 2.13 ``tool_trajectory_avg_score``.
    """

    reads_tools = True
    pass_threshold = 1.0
    options_type = TrajectoryOptions
    satisfied = "every turn called the expected tools"
    compares_calls = True

    def __init__(self, options: TrajectoryOptions, context: Context | None = None) -> None:
        super().__init__(options, context)
        self._same = Matcher(self.context, options.args, options.tools)
        if options.ignore_args:
            self._same = Matcher(self.context, NAMES_ONLY)

    @property
    def refuses_other_calls(self) -> bool:
        if self.options.credit == "none":
            return self.options.match_type is MatchType.EXACT
        return self.options.credit != "recall"

    @property
    def reads(self) -> frozenset[str]:
        if self.options.ignore_args:
            return NO_CONTENT
        return frozenset({ARGUMENTS})

    def judge_turn(self, turn: Turn, invocation: Invocation) -> Score:
        if turn.tools is None:
            return Score(None)
        value = self._value(turn.tools, invocation.tool_calls)
        if value == 1.0 and turn.tools:
            return Score(value, "the expected tools were called")
        if value == 1.0:
            return Score(value, "no tool was expected to be called")
        return Score(value, self._difference(turn.tools, invocation.tool_calls))

    def _value(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> float:
        if self.options.credit == "none":
            return float(self._matches(expected, actual))
        if not expected and (not actual or self.options.credit == "recall"):
            return 1.0
        common = self._common(expected, actual)
        if self.options.credit == "recall":
            return common / len(expected)
        if self.options.credit == "precision" and actual:
            return common / len(actual)
        return 2 * common / (len(expected) + len(actual))

    def _matches(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> bool:
        if self.options.match_type is MatchType.EXACT:
            return all_equal(expected, actual, self._same)
        if self.options.match_type is MatchType.IN_ORDER:
            return first_missing(expected, actual, self._same) is None
        return len(assign(expected, actual, self._same)) == len(expected)

    def _common(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> int:
        if self.options.match_type is MatchType.ANY_ORDER:
            return len(assign(expected, actual, self._same))
        return longest_common(expected, actual, self._same)

    def _difference(self, expected: Sequence[ToolCall], actual: Sequence[ToolCall]) -> str:
        args = not self.options.ignore_args
        words = f"expected {trajectory_words(expected, args=args)}, got {trajectory_words(actual, args=args)}"
        missing = None
        if self.options.match_type is MatchType.IN_ORDER:
            missing = first_missing(expected, actual, self._same)
            if missing is None:
                return words
        if self.options.match_type is not MatchType.ANY_ORDER:  # the calls before it are equal
            begin = equal_at_start(expected, actual, self._same)
            expected, actual = expected[begin:][:MOST_EXPLAINED], actual[begin:][:MOST_EXPLAINED]
        elif max(len(expected), len(actual)) > MOST_EXPLAINED:
            return words
        taken = assign(expected, actual, self._same)
        if missing is None:
            missing = next((call for index, call in enumerate(expected) if index not in taken), None)
        if missing is None:
            return words
        used = set(taken.values())
        free = [call for index, call in enumerate(actual) if index not in used]
        near = ""
        if args:
            near = nearest_words(missing, free)
        if near:
            return f"{near}: {words}"
        if self.options.match_type is MatchType.EXACT:
            return words
        return f"{call_words(missing, args=args)} is missing: {words}"


class SequenceOptions(Options):
    """The comparison of the order of tools."""

    mode: Literal["subsequence", "exact", "unordered"] = "subsequence"
    """``subsequence``: others may come between. ``exact``: no others. ``unordered``: all of them, in any order."""
    whole_conversation: bool = False
    """True if the expected tools of all turns form one sequence over the conversation."""


class SequenceCorrectness(PerTurn[SequenceOptions]):
    """1 for a turn whose tools were called in the expected order, else 0; the mean over turns. Names only.

    ``subsequence``: the expected tools in order, possibly with others between. ``exact``: these and no others.
    ``unordered``: all of them, in any order. Range 0–1, typical threshold 0.9. Source: the sequence score of
    EvalView.
    """

    reads_tools = True
    pass_threshold = 1.0
    options_type = SequenceOptions
    satisfied = "every turn called its tools in the expected order"
    compares_calls = True
    reads = NO_CONTENT
    _MATCH_TYPES: Mapping[str, str] = {"subsequence": "IN_ORDER", "exact": "EXACT", "unordered": "ANY_ORDER"}

    def __init__(self, options: SequenceOptions, context: Context | None = None) -> None:
        super().__init__(options, context)
        self._trajectory = ToolTrajectory(
            TrajectoryOptions(match_type=MatchType[self._MATCH_TYPES[options.mode]], ignore_args=True), self.context
        )

    @property
    def refuses_other_calls(self) -> bool:
        return self._trajectory.refuses_other_calls

    def judge_turn(self, turn: Turn, invocation: Invocation) -> Score:
        return self._trajectory.judge_turn(turn, invocation)

    def score(self, case: Case, performance: TrialOutput) -> Score:
        states_tools = any(turn.tools is not None for turn in case.turns)
        if self.options.whole_conversation and states_tools and unpaired(case, performance) is None:
            ((expected, made),) = whole_conversation(case, performance)
            case = replace(case, turns=(Turn(case.turns[0].user, tuple(expected)),))
            performance = TrialOutput((Invocation(case.turns[0].user, tool_calls=tuple(made)),))
        return super().score(case, performance)
