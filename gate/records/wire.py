"""The lines of a record: every key with its type, bounds and default, and the conversion from and to the model.

A struct here has the model's fields under the keys of the format. Fields that are the same as in the model are
inherited; only bounds and different keys are stated. Fields at their default are left out of a line. `lines` handles
bytes, and `reader` how lines fit together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, astuple, replace

from gate.model import (
    FULL,
    Criterion,
    ErrorKind,
    ForeignScore,
    Invocation,
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
from gate.model.bounds import MAX_COUNT, Amount, Count, Ordinal
from gate.model.trial import MAX_ADDRESS, MAX_DIFFERENCE, MOST_LISTS
from gate.records.model import FORMAT, Footer, Header, PlannedCase, Run
from gate.security.limits import cut


class MalformedError(ValueError):
    """A line does not follow the format; the message names the field."""


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
    criteria = tuple([CriterionObject(*astuple(one)) for one in header.criteria])
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
    criteria = tuple([Criterion(*astuple(one)) for one in line.criteria])
    return Header(plan=(), criteria=criteria, **alike)


# --- plan -----------------------------------------------------------------------------------------


class PlanLine(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    plan: tuple[PlannedCase, ...]


def to_plan(line: PlanLine) -> tuple[PlannedCase, ...]:
    """Return the cases of a line. Raises `MalformedError` for a place that is not a path with a line."""
    for case in line.plan:
        if case.at is not None and [type(part) for part in case.at] != [str, int][: len(case.at)]:
            raise MalformedError(f"at is not [path, line]: {str(list(case.at))[:60]!r}")
    return line.plan


# --- trials ---------------------------------------------------------------------------------------


class ThoughtObject(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A part that the model marked as a thought; other parts are plain text."""

    thought: str


class TurnObject(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    user: str = ""
    response: tuple[str | ThoughtObject, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    intermediate: tuple[str | ThoughtObject, ...] = ()
    usage: Usage | None = None
    duration: Amount | None = None
    reports_calls: bool = False
    unseen: tuple[str, ...] = ()
    foreign: tuple[ForeignScore, ...] = ()


class TrialLine(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    case: str
    n: Ordinal
    round: Ordinal = 1
    tag: str | None = None
    """None means `FULL`."""
    side: Side = Side.CANDIDATE
    scores: dict[str, float | Score | None] = field(default_factory=dict)
    """A number is short for a score of that value, null for one that does not apply."""
    error: tuple[ErrorKind, str] | None = None
    duration: Amount | None = None
    attempts: Count = 1
    again: bool = False
    started: Amount | None = None
    turns: tuple[TurnObject, ...] = ()
    answer: Annotated[str, Meta(max_length=32)] = ""
    process: Annotated[str, Meta(max_length=32)] = ""
    log: str = ""
    replay: Replay | None = None
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
        None if trial.replay is None else _bounded(trial.replay),
        trial.users,
        tuple(map(_turn_objects, trial.earlier)),
    )


def to_trial(line: TrialLine, case_id: str) -> Trial:
    scores = {}
    for name, score in line.scores.items():
        scores[name] = score if isinstance(score, Score) else Score(score)
    return Trial(
        case_id,
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
        replay=line.replay,
        users=line.users,
        earlier=tuple(map(_invocations, line.earlier)),
    )


def _bounded(replay: Replay) -> Replay:
    """Return a replay cut to what a reader accepts."""
    changed = tuple([cut(one, MAX_DIFFERENCE) for one in replay.tools_changed[:MOST_LISTS]])
    lists = tuple([cut(one, MAX_ADDRESS) for one in replay.tools[:MOST_LISTS]])
    return replace(replay, difference=cut(replay.difference, MAX_DIFFERENCE), tools=lists, tools_changed=changed)


def _score_object(score: Score) -> float | Score | None:
    value, error = score.value, score.error
    if value is not None:
        if math.isfinite(value):
            value = float(value)
        else:
            value, error = None, error or f"not a finite number: {value}"
    if error is None and not (score.reason or score.per_turn or score.details or score.judges):
        return value
    return Score(value, score.reason, error, score.per_turn, score.details, score.judges)


def _turn_objects(turns: Sequence[Invocation]) -> tuple[TurnObject, ...]:
    found = []
    for turn in turns:
        found.append(
            TurnObject(
                turn.user,
                _texts(turn.response),
                turn.tool_calls,
                _texts(turn.intermediate),
                turn.usage,
                turn.duration,
                turn.reports_calls,
                turn.unseen,
                turn.foreign,
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
                turn.calls,
                _parts(turn.intermediate),
                turn.usage,
                turn.duration,
                reports_calls=turn.reports_calls,
                unseen=turn.unseen,
                foreign=turn.foreign,
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
