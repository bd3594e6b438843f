"""Turns one line of a record back into nouns, strictly: a wrong type, unknown key or wild value is a `MalformedError`.

Knows single lines; what lines mean together (order, counts, checksum) is left to `reader`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec.json import Decoder

from gate.model import (
    FULL,
    Complexity,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Location,
    Part,
    Scale,
    Score,
    Side,
    ToolCall,
    Trial,
    TrialError,
    Usage,
)
from gate.records.encode import depth_within
from gate.records.model import FORMAT, Footer, Header, PlannedCase, Run
from gate.security.limits import MAX_NESTING

T = TypeVar("T")


def _keys(words: str) -> frozenset[str]:
    return frozenset(words.split())


MAX_COUNT = 2**53
"""No honest count, seed or line number is larger."""


class MalformedError(ValueError):
    """A line is not what the format says; the message names the field."""


def parse_line(line: bytes) -> dict[str, Any]:
    """The JSON object on one line: finite numbers, bounded nesting, no unpaired surrogates."""
    try:
        value = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise MalformedError(f"not a line of JSON: {error}") from None
    if not isinstance(value, dict):
        raise MalformedError("not a JSON object")
    if line.count(b"[") + line.count(b"{") > MAX_NESTING and not depth_within(value, MAX_NESTING):
        raise MalformedError(f"nested more than {MAX_NESTING} deep")
    return value


_DECODER = Decoder()
"""Takes neither unpaired surrogates, nor NaN, nor a number beyond all bounds."""


# --- fields ---------------------------------------------------------------------------------------


def _wrong(name: str, expected: str, value: Any) -> MalformedError:
    return MalformedError(f"{name} is not {expected}: {str(value)[:60]!r}")


def _known(data: Mapping[str, Any], keys: frozenset[str], name: str) -> None:
    if not data.keys() <= keys:
        raise MalformedError(f"{name} has an unknown key: {min(data.keys() - keys)[:60]!r}")


def _text(data: Mapping[str, Any], key: str, default: str = "") -> str:
    value = data.get(key, default)
    if type(value) is not str:
        raise _wrong(key, "text", value)
    return value


def _optional_text(data: Mapping[str, Any], key: str) -> str | None:
    value = data.get(key)
    if value is None or type(value) is str:
        return value
    raise _wrong(key, "text or null", value)


def _number(data: Mapping[str, Any], key: str) -> float | None:
    """A finite number as a float, or None."""
    value = data.get(key)
    if value is None or type(value) is float:
        return value
    if type(value) is int and abs(value) <= MAX_COUNT:
        return float(value)
    raise _wrong(key, "a number", value)


def _amount(data: Mapping[str, Any], key: str) -> float | None:
    """A duration, a cost: not negative."""
    value = _number(data, key)
    if value is not None and value < 0:
        raise _wrong(key, "zero or more", value)
    return value


def _count(data: Mapping[str, Any], key: str, default: int | None = None, least: int = 0) -> int:
    value = data.get(key, default)
    if type(value) is int and least <= value <= MAX_COUNT:
        return value
    raise _wrong(key, f"a whole number from {least}", value)


def _optional_count(data: Mapping[str, Any], key: str) -> int | None:
    return None if data.get(key) is None else _count(data, key)


def _flag(data: Mapping[str, Any], key: str, default: bool = False) -> bool:
    value = data.get(key, default)
    if type(value) is not bool:
        raise _wrong(key, "true or false", value)
    return value


def _list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key, [])
    if type(value) is not list:
        raise _wrong(key, "a list", value)
    return value


def _object(value: Any, name: str) -> dict[str, Any]:
    if type(value) is not dict:
        raise _wrong(name, "an object", value)
    return value


def _word(words: Mapping[str, T], data: Mapping[str, Any], key: str, default: str) -> T:
    value = data.get(key, default)
    if type(value) is str and value in words:
        return words[value]
    raise _wrong(key, "one of " + ", ".join(words), value)


# --- header ---------------------------------------------------------------------------------------

_HEADER = _keys(
    "gate_record suite cases commit base dirty agent seed shard run gate created selected stripped runs criteria "
    "definition scope whole passes"
)
_PLANNED = _keys("id fp tags complexity at hint shard thresholds expect equivalent")
_COMPLEXITIES = {c.value: c for c in Complexity}
_SCALES = {s.value: s for s in Scale}
_DIRECTIONS = {d.value: d for d in Direction}


def header(data: dict[str, Any]) -> tuple[Header, int, int]:
    """The header, its plan still empty, how many cases the plan lines after it hold, and the format's version."""
    if "gate_record" not in data:
        raise MalformedError("not a record of the gate")
    version = _count(data, "gate_record", least=1)
    if version > FORMAT:
        raise MalformedError(f"written in format {version}; this version reads up to {FORMAT}")
    _known(data, _HEADER, "header")
    criteria = tuple(_criterion(_object(item, "criterion")) for item in _list(data, "criteria"))
    if len({criterion.name for criterion in criteria}) < len(criteria):
        raise MalformedError("a criterion is named twice")
    head = Header(
        suite_id=_text(data, "suite"),
        plan=(),
        criteria=criteria,
        run_id=_text(data, "run"),
        gate_version=_text(data, "gate"),
        commit=_optional_text(data, "commit"),
        base_commit=_optional_text(data, "base"),
        dirty=_flag(data, "dirty"),
        agent=_text(data, "agent"),
        seed=_count(data, "seed", 0, least=-MAX_COUNT),
        shard=_shard(data),
        passes=_count(data, "passes", 0),
        created=_amount(data, "created") or 0.0,
        selected=_flag(data, "selected"),
        scope=_text(data, "scope"),
        whole=_count(data, "whole", 0),
        stripped=_flag(data, "stripped"),
        definition=_text(data, "definition"),
        runs=_runs(data),
    )
    return head, _count(data, "cases"), version


def _shard(data: Mapping[str, Any]) -> tuple[int, int]:
    value = _list(data, "shard") or [1, 1]
    if len(value) == 2 and all(type(part) is int for part in value) and 1 <= value[0] <= value[1] <= MAX_COUNT:
        return value[0], value[1]
    raise _wrong("shard", "[i, n] with i from 1 to n", value)


def _runs(data: Mapping[str, Any]) -> tuple[Run, ...]:
    found = []
    for item in _list(data, "runs"):
        if type(item) is not list or len(item) != 3:
            raise _wrong("runs", "a list of [id, time, trials]", item)
        named = {"id": item[0], "created": item[1], "trials": item[2]}
        found.append(Run(_text(named, "id"), _amount(named, "created") or 0.0, _count(named, "trials")))
    if len({run.id for run in found}) < len(found):
        raise MalformedError("a run is named twice")
    return tuple(found)


def plan(data: dict[str, Any]) -> list[PlannedCase]:
    """The cases of one plan line."""
    _known(data, frozenset({"plan"}), "plan line")
    if "plan" not in data:
        raise MalformedError("a plan line is missing")
    return [_planned(_object(item, "planned case")) for item in _list(data, "plan")]


def _planned(data: dict[str, Any]) -> PlannedCase:
    _known(data, _PLANNED, "planned case")
    tags = _list(data, "tags")
    if not all(type(tag) is str for tag in tags):
        raise _wrong("tags", "a list of text", tags)
    return PlannedCase(
        id=_text(data, "id"),
        fingerprint=_text(data, "fp"),
        tags=frozenset(tags),
        complexity=_word(_COMPLEXITIES, data, "complexity", "medium"),
        location=_location(data),
        hint=_amount(data, "hint"),
        shard=_count(data, "shard", 1, least=1),
        thresholds=_thresholds(_object(data.get("thresholds", {}), "thresholds")),
        expected=tuple([_expected(turn) for turn in _list(data, "expect")]),
        equivalent=_text(data, "equivalent"),
    )


def _thresholds(data: dict[str, Any]) -> dict[str, float]:
    found = {name: _number(data, name) for name in data}
    return {name: value for name, value in found.items() if value is not None}


def _expected(turn: Any) -> tuple[ToolCall, ...] | None:
    if turn is None:
        return None
    if type(turn) is not list:
        raise _wrong("expect", "a list of calls for each turn", turn)
    return tuple([_call(item) for item in turn])


def _location(data: Mapping[str, Any]) -> Location | None:
    at = _list(data, "at")
    if not at:
        return None
    if len(at) > 2 or type(at[0]) is not str:
        raise _wrong("at", "[path, line]", at)
    return Location(at[0], _count({"line": at[1]}, "line", least=1) if len(at) == 2 else None)


_CRITERION = frozenset(Criterion.__struct_fields__) - {"pass_threshold", "blocks_regression"} | {
    "pass_mark",
    "gate_regression",
}


def _criterion(data: dict[str, Any]) -> Criterion:
    _known(data, _CRITERION, "criterion")
    if "name" not in data or "metric" not in data or "scale" not in data:
        raise MalformedError("a criterion lacks its name, metric or scale")
    return Criterion(
        name=_text(data, "name"),
        metric=_text(data, "metric"),
        scale=_word(_SCALES, data, "scale", ""),
        direction=_word(_DIRECTIONS, data, "direction", "higher"),
        quantiles=tuple(_quantile(item) for item in _list(data, "quantiles")),
        fingerprint=_text(data, "fingerprint"),
        threshold=_number(data, "threshold"),
        limit=_number(data, "limit"),
        margin=_number(data, "margin"),
        pass_threshold=_number(data, "pass_mark"),
        blocking=_flag(data, "blocking", True),
        blocks_regression=_flag(data, "gate_regression", True),
        strict=_flag(data, "strict", False),
        ratchet=_flag(data, "ratchet", True),
        hard=_flag(data, "hard", False),
        reads_tools=_flag(data, "reads_tools", False),
        absence=_flag(data, "absence", False),
        parts=_words(data, "parts"),
        stands_for=_text(data, "stands_for"),
    )


def _words(data: Mapping[str, Any], key: str) -> tuple[str, ...]:
    words = _list(data, key)
    if not all(type(word) is str for word in words):
        raise _wrong(key, "a list of text", words)
    return tuple(words)


def _quantile(item: Any) -> tuple[float, float]:
    if type(item) is list and len(item) == 2:
        share, limit = _number({"quantile": item[0]}, "quantile"), _number({"quantile": item[1]}, "quantile")
        if share is not None and limit is not None and 0 < share < 1:
            return share, limit
    raise _wrong("quantiles", "a list of [share, limit]", item)


# --- trials ---------------------------------------------------------------------------------------

_TRIAL = _keys("case n round tag side scores error duration attempts started again turns")
_SCORE = _keys("value reason error per_turn details")
_INVOCATION = _keys("user response calls intermediate usage duration reports_calls")
_CALL = _keys("name args id result error duration category any_args")
_USAGE = _keys("input_tokens output_tokens cost_usd model_calls model")
_SIDES = {s.value: s for s in Side}
_KINDS = {k.value: k for k in ErrorKind}


def trial(data: dict[str, Any]) -> Trial:
    """The trial on a line that has a ``case``."""
    _known(data, _TRIAL, "trial")
    scores = _object(data.get("scores", {}), "scores")
    return Trial(
        case_id=_text(data, "case"),
        number=_count(data, "n", least=1),
        round=_count(data, "round", 1, least=1),
        tag=_text(data, "tag", FULL),
        side=_word(_SIDES, data, "side", "candidate"),
        invocations=tuple([_invocation(item) for item in _list(data, "turns")]),
        scores={name: _score(name, item) for name, item in scores.items()},
        error=_error(data),
        duration=_amount(data, "duration"),
        attempts=_count(data, "attempts", 1),
        started=_amount(data, "started"),
        again=_flag(data, "again"),
    )


def _error(data: Mapping[str, Any]) -> TrialError | None:
    value = data.get("error")
    if value is None:
        return None
    if type(value) is list and len(value) == 2 and all(type(part) is str for part in value) and value[0] in _KINDS:
        return TrialError(_KINDS[value[0]], value[1])
    raise _wrong("error", "[kind, message]", value)


def _score(name: str, item: Any) -> Score:
    if type(item) is not dict:
        return Score(_number({name: item}, name))
    _known(item, _SCORE, name)
    per_turn = item.get("per_turn")
    return Score(
        value=_number(item, "value"),
        reason=_text(item, "reason"),
        error=_optional_text(item, "error"),
        per_turn=tuple([_number({name: part}, name) for part in _list(item, "per_turn")]) if per_turn else (),
        details=_object(item.get("details", {}), "details"),
    )


def _invocation(item: Any) -> Invocation:
    data = _object(item, "turn")
    _known(data, _INVOCATION, "turn")
    usage = data.get("usage")
    return Invocation(
        user=_text(data, "user"),
        response=_parts(data, "response"),
        tool_calls=tuple([_call(call) for call in _list(data, "calls")]),
        intermediate=_parts(data, "intermediate"),
        usage=None if usage is None else _usage(_object(usage, "usage")),
        duration=_amount(data, "duration"),
        reports_calls=_flag(data, "reports_calls"),
    )


def _parts(data: Mapping[str, Any], key: str) -> tuple[Part, ...]:
    return tuple([Part(item) if type(item) is str else _thought(item, key) for item in _list(data, key)])


def _thought(item: Any, name: str) -> Part:
    if type(item) is dict and item.keys() == {"thought"}:
        return Part(_text(item, "thought"), thought=True)
    raise _wrong(name, "a list of parts", item)


def _call(item: Any) -> ToolCall:
    data = _object(item, "call")
    _known(data, _CALL, "call")
    if "name" not in data:
        raise MalformedError("a call lacks its name")
    return ToolCall(
        name=_text(data, "name"),
        args=data.get("args"),
        id=_optional_text(data, "id"),
        result=data.get("result"),
        error=_optional_text(data, "error"),
        duration=_amount(data, "duration"),
        category=_optional_text(data, "category"),
        any_args=_flag(data, "any_args"),
    )


def _usage(data: dict[str, Any]) -> Usage:
    _known(data, _USAGE, "usage")
    return Usage(
        input_tokens=_optional_count(data, "input_tokens"),
        output_tokens=_optional_count(data, "output_tokens"),
        cost_usd=_amount(data, "cost_usd"),
        model_calls=_optional_count(data, "model_calls"),
        model=_optional_text(data, "model"),
    )


# --- closing line ---------------------------------------------------------------------------------

_CLOSING = _keys("trials errors rounds duration judge_cost_usd stopped terms sha256")


def footer(data: dict[str, Any]) -> tuple[Footer, str]:
    """The footer of a line that has ``closing``, and the checksum it claims."""
    _known(data, frozenset({"closing"}), "closing line")
    closing = _object(data["closing"], "closing")
    _known(closing, _CLOSING, "closing line")
    return Footer(
        trials=_count(closing, "trials"),
        errors=_count(closing, "errors"),
        rounds=_count(closing, "rounds"),
        duration=_amount(closing, "duration") or 0.0,
        judge_cost_usd=_amount(closing, "judge_cost_usd"),
        stopped=_text(closing, "stopped"),
        terms=_object(closing.get("terms", {}), "terms"),
    ), _text(closing, "sha256")
