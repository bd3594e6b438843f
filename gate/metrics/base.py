"""The interface of metrics: options in, one score per trial out. Each family implements it in one file."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

from gate.formats.shapes import from_json
from gate.model import RESPONSE, Case, Direction, Invocation, Scale, Score, ToolCall, Turn, text_of
from gate.model.strict import StrictModel, one_or_more
from gate.security.limits import shorten


class Options(StrictModel):
    """Base of every metric's options; unknown keys are rejected."""


class NoOptions(Options):
    """The options of metrics that have none."""


OptionsT = TypeVar("OptionsT", bound=Options)


TEXT = frozenset({RESPONSE})
NO_CONTENT: frozenset[str] = frozenset()
"""The parts of a turn that metrics of names, counts and figures read: none."""


class Context(Struct, frozen=True):
    """The context that the configuration gives every metric in addition to its own options."""

    tool_categories: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Category → the names of its tools."""


def answer_text(invocation: Invocation, *, intermediate: bool = False) -> str:
    """Return the texts shown to the user in a turn, without thoughts."""
    parts = invocation.response
    if intermediate:
        parts = invocation.intermediate + parts
    return text_of(parts, thoughts=False)


class TrialOutput(NamedTuple):
    """The part of a trial that a metric sees."""

    invocations: tuple[Invocation, ...]
    duration: float | None = None
    """Seconds spent in requests, over all turns."""

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls of all turns, in order."""
        calls: list[ToolCall] = []
        for invocation in self.invocations:
            calls += invocation.tool_calls
        return calls

    @property
    def shown(self) -> list[str]:
        """The texts that the user was shown in each turn, those before the final answer included, without thoughts."""
        return [answer_text(one, intermediate=True) for one in self.invocations]


class Metric(ABC, Generic[OptionsT]):
    """Measures one trial of a case. Pure: no clock, network or environment.

    Its class attributes describe it for the configuration, the decision, the reports and the docs.
    """

    version: ClassVar[int] = 1
    """Part of the fingerprint: increase it when the same input may score differently."""
    scale: ClassVar[Scale] = Scale.UNIT
    direction: ClassVar[Direction] = Direction.HIGHER
    default_threshold: ClassVar[float | None] = None
    """Used if the user sets no threshold; None: judged only against the baseline."""
    pass_threshold: ClassVar[float | None] = None
    """The score from which a trial passes if the criterion has no threshold."""
    hard: ClassVar[bool] = False
    """One failing trial fails the gate and is never rerun; scored before all other metrics."""
    over_trials: ClassVar[bool] = False
    """Compares trials with one another: scored when the suite is judged, not per trial. A change against the baseline
    cannot block."""
    needs_others: ClassVar[bool] = False
    """Judges the findings of other criteria, so it checks nothing if it is the only one that blocks."""
    reads_tools: ClassVar[bool] = False
    """Looks at tool calls: not measured unless there is evidence that the agent's answers report them."""
    reads_response: ClassVar[bool] = False
    """Compares the answer with the response that the case states."""
    absence: ClassVar[bool] = False
    """Forbids something, so an answer that says and calls nothing passes."""
    lexical: ClassVar[bool] = False
    """Compares word by word: blocks through its threshold, but by default only warns of a change from the base."""
    rubric_type: ClassVar[str] = ""
    """The type of the case rubrics that it reads; empty if it reads none."""
    options_type: ClassVar[type[Options]] = NoOptions
    needed_option: ClassVar[str] = ""
    """The option without which the metric checks nothing; empty if there is none."""
    adds_up: ClassVar[bool] = False
    """A case's own list of the needed option is added to the criterion's: a case never checks less than the suite."""

    def __init__(self, options: OptionsT, context: Context | None = None) -> None:
        self.options = options
        self.context = context or Context()

    @classmethod
    def overlaid(cls, options: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a criterion's options overlaid with a case's; the case's win, key by key, or are added."""
        both, name = {**options, **own}, cls.needed_option
        if cls.adds_up:
            lists = [one_or_more(held[name]) for held in (options, own) if name in held]
            if all(isinstance(one, list | tuple) for one in lists):
                both[name] = list(chain.from_iterable(lists))
        return both

    @property
    def missing(self) -> str:
        """The needed option, if these options lack it; empty if the metric checks something."""
        if self.needed_option and not getattr(self.options, self.needed_option):
            return self.needed_option
        return ""

    @property
    def needs_calls(self) -> bool:
        """True if the metric reads tool calls under these options; usually a metric always does or never does."""
        return self.reads_tools

    @property
    def compares_calls(self) -> bool:
        """True if the metric compares the calls with those that the case states."""
        return False

    @property
    def refuses_other_calls(self) -> bool:
        """True if a call that the case does not state lowers the score, so that a case that expects none is checked."""
        return False

    @property
    def reads(self) -> frozenset[str]:
        """The parts of a turn, besides calls, that the metric reads; a trial whose recording lacks one is not
        measured."""
        return TEXT

    @property
    def caveat(self) -> str:
        """A note for every report on what these options cannot see; empty if there is none."""
        return ""

    @abstractmethod
    def score(self, case: Case, performance: TrialOutput) -> Score:
        """Return the score of one trial, with a reason. Never raises because of what an agent did."""


class PassOrFail(Metric[OptionsT]):
    """Base of pass-or-fail checks: 1 or 0, with 1 as the default threshold."""

    scale = Scale.BINARY
    pass_threshold = 1.0
    default_threshold = 1.0


class OverTrials(Metric[OptionsT]):
    """Base of metrics that cannot score a single trial: they are computed when the suite is judged."""

    over_trials = True
    reads = NO_CONTENT
    told: ClassVar[str] = "counted over the trials when the suite is judged"
    """The reason that a trial carries instead of a score."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, reason=self.told)


MAX_REASON_TURNS = 3
"""The most turns that a reason describes; it only counts the others."""
MAX_REASON_CHARS = 600
"""The longest description of one turn, in characters."""


class NotMeasurableError(ValueError):
    """Raised by a metric that cannot judge its input; becomes `Score.error` and never leaves the metric."""


class PerTurn(Metric[OptionsT]):
    """Base of metrics that compare each turn with the case's; the score is the mean over the turns.

    Turns that state nothing are left out; if no turn states anything, the metric does not apply.
    """

    satisfied: ClassVar[str] = "every turn as expected"
    """The reason if every turn scores 1."""

    @abstractmethod
    def judge_turn(self, turn: Turn, invocation: Invocation) -> Score:
        """Return the score of one turn; without a value if the turn states nothing. May raise `NotMeasurableError`."""

    def score(self, case: Case, performance: TrialOutput) -> Score:
        problem = unpaired(case, performance)
        if problem is not None:
            return problem
        try:
            turns = [self.judge_turn(*pair) for pair in zip(case.turns, performance.invocations, strict=True)]
        except NotMeasurableError as error:
            return Score(None, error=str(error))
        except RecursionError:
            return Score(None, error="arguments are nested too deeply to be compared")
        for turn in turns:
            if turn.error is not None:
                return Score(None, error=turn.error)
        per_turn = tuple([turn.value for turn in turns])
        values = [value for value in per_turn if value is not None]
        if not values:
            return Score(None, reason="no turn of this case states what this metric compares", per_turn=per_turn)
        return Score(mean(values), reason=self._reason(turns), per_turn=per_turn)

    def _reason(self, turns: Sequence[Score]) -> str:
        if len(turns) == 1:
            return shorten(turns[0].reason or self.satisfied, MAX_REASON_CHARS)
        told = []
        for number, turn in enumerate(turns, 1):
            if turn.value is not None and turn.value < 1.0:
                told.append(f"turn {number}: {shorten(turn.reason, MAX_REASON_CHARS)}")
        if not told:
            return self.satisfied
        more = len(told) - MAX_REASON_TURNS
        if more > 0:
            told[MAX_REASON_TURNS:] = [f"and {more} more turns"]
        return "; ".join(told)


class Judged(Metric[OptionsT]):
    """Base of metrics that may ask the run's judge."""

    reads_response = True  # or its prompt may name it

    @property
    def needs_judge(self) -> bool:
        """True if these options ask a judge. If not, the trial is scored by `score`, as by any other metric."""
        return True

    @property
    def compares_calls(self) -> bool:
        return self.needs_calls  # its prompt may show both

    @property
    def refuses_other_calls(self) -> bool:
        return self.needs_calls

    @property
    def min_kappa(self) -> float | None:
        """The agreement with people that the judge needs for the criterion to block; None if none is required."""
        return None

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, error="this metric asks a judge, and none was handed to it")

    @abstractmethod
    async def judge_score(self, case: Case, performance: TrialOutput, judge: Any) -> Score:
        """Return the score of one trial, with a reason. Never raises because of what an agent, a judge or its server
        did. Called only if `needs_judge`."""


class Composite(Metric[OptionsT]):
    """Base of metrics that are computed from other criteria's scores of the same trial."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The criteria that the score is computed from; empty if the user's own metric does not state them."""
        return ()

    def score(self, case: Case, performance: TrialOutput) -> Score:
        return Score(None, error="this metric is computed from the scores of other criteria")

    @abstractmethod
    def combine(self, case: Case, scores: Mapping[str, Score]) -> Score:
        """Return the score of one trial from its other scores, keyed by criterion. Never raises."""


def result_value(result: Any) -> Any:
    """Return what a tool returned: the value of JSON in a text, as OpenAI's messages carry every result; anything else
    unchanged."""
    value = from_json(result) if isinstance(result, str) else result
    if isinstance(value, list) and value and all(map(_is_text_block, value)):
        return from_json("\n".join(one["text"] for one in value))
    return value


def _is_text_block(value: Any) -> bool:
    """True for a text as MCP and Anthropic wrap it; a document that was found has more keys."""
    if not isinstance(value, Mapping) or not value.keys() <= {"type", "text", "annotations", "_meta"}:
        return False
    return value.get("type") == "text" and isinstance(value.get("text"), str)


def unpaired(case: Case, performance: TrialOutput) -> Score | None:
    """Return the error if turns and invocations do not pair up one to one; neither is ever cut."""
    written, played = len(case.turns), len(performance.invocations)
    if written == played and written:
        return None
    if not written:
        return Score(None, error="the case has no turns")
    return Score(
        None, error=f"turns: {written} in the case, {played} in the trial; they cannot be compared turn by turn"
    )


def mean(values: Sequence[float]) -> float:
    """Return the sum from left to right divided by the count: google-adk's arithmetic, to the last bit.

    `sum` rounds differently since Python 3.12.
    """
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
