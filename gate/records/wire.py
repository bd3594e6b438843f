"""The lines of a record: every key with its type, bounds and default, and the conversion from and to the model.

A struct here has the model's fields under the keys of the format. Fields that are the same as in the model are
inherited; only bounds and different keys are stated. Fields at their default are left out of a line. `lines` handles
bytes, and `reader` how lines fit together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, astuple, replace

from gate.model import (
    FULL,
    Complexity,
    Criterion,
    ErrorKind,
    ForeignScore,
    Invocation,
    Location,
    Models,
    Part,
    Replay,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.records.model import FORMAT, MAX_COUNT, Amount, Count, Footer, Header, Ordinal, PlannedCase, Run
from gate.security.limits import cut

S = TypeVar("S", bound=Struct)
MAX_ADDRESS = 200
"""The most characters in the name of a recording."""
MAX_DIFFERENCE = 500
"""The most characters of the first difference."""
MOST_LISTS = 100
"""The most lists of tools told to a trial, and the most tools that changed in them."""


class MalformedError(ValueError):
    """A line does not follow the format; the message names the field."""


def _as(kind: type[S], struct: Struct | None) -> S | None:
    """Return a struct as another kind with the same fields."""
    return None if struct is None else kind(*astuple(struct))


def _all_as(kind: type[S], structs: Iterable[Struct]) -> tuple[S, ...]:
    """Return structs as another kind with the same fields."""
    return tuple([kind(*astuple(struct)) for struct in structs])


def _turns_as(kind: type[S], turns: Sequence[Iterable[Struct] | None]) -> tuple[tuple[S, ...] | None, ...]:
    """Return the calls expected in each turn as another kind; None for turns without an expectation."""
    found: list[tuple[S, ...] | None] = []
    for calls in turns:
        found.append(None if calls is None else _all_as(kind, calls))
    return tuple(found)


# --- header ---------------------------------------------------------------------------------------


class VersionLine(Struct, frozen=True):
    """The part of the first line that every version of the format has; later versions may add to it."""

    gate_record: Ordinal


class CriterionObject(Criterion, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A criterion of the header."""

    quantiles: tuple[tuple[Annotated[float, Meta(gt=0, lt=1)], float], ...] = ()


class HeaderLine(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    gate_record: Ordinal
    suite_id: str = field(name="suite")
    cases: Count
    commit: str | None
    base_commit: str | None = field(name="base")
    dirty: bool
    agent: str
    seed: Annotated[int, Meta(ge=-MAX_COUNT, le=MAX_COUNT)]
    shard: tuple[Ordinal, Ordinal]
    run_id: str = field(name="run")
    gate_version: str = field(name="gate")
    created: Amount
    stripped: bool
    selected: bool = False
    scope: str = ""
    whole: Count = 0
    epochs: Count = field(default=0, name="passes")
    definition: str = ""
    subject: str = ""
    branch: str = ""
    version: str = ""
    runs: tuple[Run, ...] = ()
    criteria: tuple[CriterionObject, ...]


_ALIKE = (set(HeaderLine.__struct_fields__) & set(Header.__struct_fields__)) - {"criteria"}
"""Fields of a header that its line has unchanged."""


def header_line(header: Header) -> HeaderLine:
    """Return the header's line, without its plan."""
    alike: dict[str, Any] = {name: getattr(header, name) for name in _ALIKE}
    criteria = _all_as(CriterionObject, header.criteria)
    return HeaderLine(gate_record=FORMAT, cases=len(header.plan), criteria=criteria, **alike)


def to_header(line: HeaderLine) -> Header:
    """Return the header, its plan still empty. Raises `MalformedError` for a name used twice, or a shard out of
    range."""
    if line.shard[0] > line.shard[1]:
        raise MalformedError(f"shard is not [i, n] with i from 1 to n: {list(line.shard)}")
    if len({criterion.name for criterion in line.criteria}) < len(line.criteria):
        raise MalformedError("a criterion is named twice")
    if len({run.id for run in line.runs}) < len(line.runs):
        raise MalformedError("a run is named twice")
    alike: dict[str, Any] = {name: getattr(line, name) for name in _ALIKE}
    return Header(plan=(), criteria=_all_as(Criterion, line.criteria), **alike)


# --- plan -----------------------------------------------------------------------------------------


class CallObject(ToolCall, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A tool call, made or expected. ``args`` left out differs from ``{}``."""

    duration: Amount | None = None


class PlannedObject(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    id: str
    fp: str
    tags: tuple[str, ...] = ()
    complexity: Complexity = Complexity.MEDIUM
    at: Annotated[list[str | Ordinal], Meta(min_length=1, max_length=2)] | None = None
    """``[path]`` or ``[path, line]``"""
    hint: Amount | None = None
    shard: Ordinal = 1
    thresholds: dict[str, float] = field(default_factory=dict)
    equivalent: str = ""
    cluster: str = ""
    expect: tuple[tuple[CallObject, ...] | None, ...] = ()
    responses: tuple[str | None, ...] = ()


class PlanLine(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    plan: tuple[PlannedObject, ...]


def plan_line(cases: Sequence[PlannedCase]) -> PlanLine:
    return PlanLine(tuple([_planned_object(case) for case in cases]))


def to_plan(line: PlanLine) -> list[PlannedCase]:
    return [_planned_case(case) for case in line.plan]


def _planned_object(case: PlannedCase) -> PlannedObject:
    at: list[str | int] | None = None
    if case.location is not None:
        at = [case.location.path]
        if case.location.line is not None:
            at.append(case.location.line)
    expect = _turns_as(CallObject, case.expected)
    if expect == (None,) * len(expect):
        expect = ()
    return PlannedObject(
        case.id,
        case.fingerprint,
        tuple(sorted(case.tags)),
        case.complexity,
        at,
        case.hint,
        case.shard,
        dict(case.thresholds),
        case.equivalent,
        case.cluster,
        expect,
        case.responses,
    )


def _planned_case(case: PlannedObject) -> PlannedCase:
    return PlannedCase(
        case.id,
        case.fp,
        frozenset(case.tags),
        case.complexity,
        _location(case.at),
        case.hint,
        case.shard,
        case.thresholds,
        _turns_as(ToolCall, case.expect),
        case.equivalent,
        case.cluster,
        case.responses,
    )


def _location(at: list[str | int] | None) -> Location | None:
    if at is None:
        return None
    path, line = at if len(at) == 2 else (at[0], None)
    if isinstance(path, str) and not isinstance(line, str):
        return Location(path, line)
    raise MalformedError(f"at is not [path, line]: {str(at)[:60]!r}")


# --- trials ---------------------------------------------------------------------------------------


class UsageObject(Usage, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cost_usd: Amount | None = None
    model_calls: Count | None = None


class ThoughtObject(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A part that the model marked as a thought; other parts are plain text."""

    thought: str


class ForeignObject(ForeignScore, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A score from another tool's scorer."""


class TurnObject(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    user: str = ""
    response: tuple[str | ThoughtObject, ...] = ()
    calls: tuple[CallObject, ...] = ()
    intermediate: tuple[str | ThoughtObject, ...] = ()
    usage: UsageObject | None = None
    duration: Amount | None = None
    reports_calls: bool = False
    unseen: tuple[str, ...] = ()
    foreign: tuple[ForeignObject, ...] = ()


class ScoreObject(Score, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A score with more than a value; others are a number, or null if the metric does not apply."""


class ReplayObject(Replay, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    source: Annotated[str, Meta(max_length=MAX_ADDRESS)] = ""
    replayed: Count = 0
    live: Count = 0
    difference: Annotated[str, Meta(max_length=MAX_DIFFERENCE)] = ""
    recording: Annotated[str, Meta(max_length=MAX_ADDRESS)] = ""
    saved_usd: Amount | None = None
    tools: Annotated[tuple[Annotated[str, Meta(max_length=MAX_ADDRESS)], ...], Meta(max_length=MOST_LISTS)] = ()
    tools_changed: Annotated[
        tuple[Annotated[str, Meta(max_length=MAX_DIFFERENCE)], ...], Meta(max_length=MOST_LISTS)
    ] = ()


class TrialLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    case: str
    n: Ordinal
    round: Ordinal = 1
    tag: str | None = None
    """None means `FULL`."""
    side: Side = Side.CANDIDATE
    scores: dict[str, float | ScoreObject | None] = field(default_factory=dict)
    error: tuple[ErrorKind, str] | None = None
    duration: Amount | None = None
    attempts: Count = 1
    again: bool = False
    started: Amount | None = None
    turns: tuple[TurnObject, ...] = ()
    answer: Annotated[str, Meta(max_length=32)] = ""
    process: Annotated[str, Meta(max_length=32)] = ""
    log: str = ""
    replay: ReplayObject | None = None
    users: Models = ()
    earlier: tuple[tuple[TurnObject, ...], ...] = ()
    sum: str | None = None
    """Ties the line to every byte of the record before it."""


def trial_line(trial: Trial) -> TrialLine:
    scores = {}
    for name, score in trial.scores.items():
        scores[name] = _score_object(score)
    return TrialLine(
        trial.case_id,
        trial.number,
        trial.round,
        None if trial.tag == FULL else trial.tag,
        trial.side,
        scores,
        None if trial.error is None else (trial.error.kind, trial.error.message),
        trial.duration,
        trial.attempts,
        trial.again,
        trial.started,
        _turn_objects(trial.invocations),
        trial.answer,
        trial.process,
        trial.log,
        None if trial.replay is None else _replay_object(trial.replay),
        trial.users,
        tuple(map(_turn_objects, trial.earlier)),
    )


def to_trial(line: TrialLine) -> Trial:
    scores = {}
    for name, score in line.scores.items():
        scores[name] = Score(*astuple(score)) if isinstance(score, ScoreObject) else Score(score)
    return Trial(
        line.case,
        line.n,
        line.round,
        FULL if line.tag is None else line.tag,
        line.side,
        _invocations(line.turns),
        scores,
        None if line.error is None else TrialError(*line.error),
        line.duration,
        line.attempts,
        line.started,
        line.again,
        line.answer,
        line.process,
        log=line.log,
        replay=_as(Replay, line.replay),
        users=line.users,
        earlier=tuple(map(_invocations, line.earlier)),
    )


def _replay_object(replay: Replay) -> ReplayObject:
    """Return the line's form, cut to what a reader accepts."""
    found = ReplayObject(*astuple(replay))
    changed = tuple([cut(one, MAX_DIFFERENCE) for one in found.tools_changed[:MOST_LISTS]])
    lists = tuple([cut(one, MAX_ADDRESS) for one in found.tools[:MOST_LISTS]])
    return replace(found, difference=cut(found.difference, MAX_DIFFERENCE), tools=lists, tools_changed=changed)


def _score_object(score: Score) -> float | ScoreObject | None:
    value, error = score.value, score.error
    if value is not None:
        if math.isfinite(value):
            value = float(value)
        else:
            value, error = None, error or f"not a finite number: {value}"
    if error is None and not (score.reason or score.per_turn or score.details or score.judges):
        return value
    return ScoreObject(value, score.reason, error, score.per_turn, score.details, score.judges)


def _turn_objects(turns: Sequence[Invocation]) -> tuple[TurnObject, ...]:
    found = []
    for turn in turns:
        found.append(
            TurnObject(
                turn.user,
                _texts(turn.response),
                _all_as(CallObject, turn.tool_calls),
                _texts(turn.intermediate),
                _as(UsageObject, turn.usage),
                turn.duration,
                turn.reports_calls,
                turn.unseen,
                _all_as(ForeignObject, turn.foreign),
            )
        )
    return tuple(found)


def _invocations(turns: Sequence[TurnObject]) -> tuple[Invocation, ...]:
    found = []
    for turn in turns:
        found.append(
            Invocation(
                turn.user,
                _parts(turn.response),
                _all_as(ToolCall, turn.calls),
                _parts(turn.intermediate),
                _as(Usage, turn.usage),
                turn.duration,
                reports_calls=turn.reports_calls,
                unseen=turn.unseen,
                foreign=_all_as(ForeignScore, turn.foreign),
            )
        )
    return tuple(found)


def _texts(parts: Sequence[Part]) -> tuple[str | ThoughtObject, ...]:
    found: list[str | ThoughtObject] = []
    for part in parts:
        found.append(ThoughtObject(part.text) if part.thought else part.text)
    return tuple(found)


def _parts(texts: Sequence[str | ThoughtObject]) -> tuple[Part, ...]:
    found = []
    for text in texts:
        found.append(Part(text) if isinstance(text, str) else Part(text.thought, thought=True))
    return tuple(found)


# --- closing line ---------------------------------------------------------------------------------


class ClosingObject(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    trials: Count
    errors: Count
    rounds: Count
    duration: Amount
    judge_cost_usd: Amount | None = None
    stopped: str = ""
    terms: Mapping[str, Any] = field(default_factory=dict)
    sha256: str


class ClosingLine(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    closing: ClosingObject


def closing_line(footer: Footer, checksum: str) -> ClosingLine:
    """Return the closing line; ``checksum`` is the SHA-256 of all bytes before it, in hexadecimal digits."""
    return ClosingLine(ClosingObject(**asdict(footer), sha256=checksum))


def to_footer(line: ClosingLine) -> tuple[Footer, str]:
    """Return the footer, and the checksum stated in the line."""
    said = asdict(line.closing)
    checksum = said.pop("sha256")
    return Footer(**said), checksum
