"""Turns the nouns of a record into lines of JSON that any reader accepts, whatever text an agent produced.

Lines are UTF-8 without unpaired surrogates, numbers are finite, nesting and length are bounded.
Fields at their default are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.json import Encoder
from msgspec.structs import replace

from gate.errors import MeasureError
from gate.model import FULL, Complexity, Criterion, Invocation, Part, Score, Side, ToolCall, Trial, Usage
from gate.records.model import FORMAT, Footer, Header, PlannedCase
from gate.security.limits import MAX_LINE_BYTES, MAX_NESTING, shorten

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

PLAN_CHUNK = 1000
"""Cases on one plan line, so that a plan of a million cases has no line of hundreds of megabytes."""
COMFORTABLE_BYTES = 2_000_000
"""A trial's line above this is written again with its texts shortened."""
SUM_DIGITS = 12
SUM_BYTES = len(b',"sum":""}\n') + SUM_DIGITS
"""What a summed line ends with."""
_MAX_INTEGER_BITS = 1000
_INNER_NESTING = MAX_NESTING - 10
"""How deep a tool's arguments may nest, so that the line around them stays within the limit."""


def header_lines(header: Header) -> bytes:
    """The header's line and the plan's lines after it."""
    lines = [to_line(_header(header))]
    for start in range(0, len(header.plan), PLAN_CHUNK):
        lines.append(to_line({"plan": [_planned(case) for case in header.plan[start : start + PLAN_CHUNK]]}))
    return b"".join(lines)


def trial_line(trial: Trial) -> bytes:
    """One trial as one line; texts are shortened where the line would be unreasonably long."""
    line = to_line(_trial(trial))
    if len(line) <= COMFORTABLE_BYTES:
        return line
    bare = {name: Score(s.value, error=s.error) for name, s in trial.scores.items()}
    attempts = (
        (trial, 20_000, COMFORTABLE_BYTES),
        (trial, 500, MAX_LINE_BYTES - SUM_BYTES),
        (replace(trial, invocations=(), scores=bare), 500, MAX_LINE_BYTES - SUM_BYTES),
    )
    for form, text_limit, enough in attempts:
        line = to_line({**clean(_trial(form), text_limit=text_limit), "case": trial.case_id})
        if len(line) <= enough:
            return line
    raise MeasureError(f"a trial of case {shorten(trial.case_id, 100)!r} is too large to record")


def footer_line(footer: Footer, checksum: str) -> bytes:
    """The closing line; ``checksum`` is the SHA-256 of all bytes before it."""
    closing: dict[str, Any] = {"trials": footer.trials, "errors": footer.errors, "rounds": footer.rounds}
    closing["duration"] = footer.duration
    if footer.judge_cost_usd is not None:
        closing["judge_cost_usd"] = footer.judge_cost_usd
    if footer.stopped:
        closing["stopped"] = footer.stopped
    if footer.terms:
        closing["terms"] = footer.terms
    closing["sha256"] = checksum
    return to_line({"closing": closing})


def summed(lines: bytes, checksum: Hash) -> bytes:
    """The lines, the last with a ``sum`` over every byte of the record before it; ``checksum`` is brought up to date.

    ``checksum`` is the SHA-256 of everything before ``lines``.
    """
    body = lines[:-2]  # without the brace and the line's end
    checksum.update(body)
    end = b',"sum":"%b"}\n' % checksum.hexdigest()[:SUM_DIGITS].encode()
    checksum.update(end)
    return body + end


def to_line(value: Any) -> bytes:
    """One line of JSON. Values that JSON cannot hold are replaced by the nearest that it can."""
    try:
        line = _dump(value)
        if line.count(b"[") + line.count(b"{") <= _INNER_NESTING:
            return line
    except (ValueError, TypeError, RecursionError):  # the slow path
        return _dump(clean(value))
    return line if depth_within(value, MAX_NESTING) else _dump(clean(value))


def _dump(value: Any) -> bytes:
    return _ENCODER.encode(value) + b"\n"


_ENCODER = Encoder()
"""Writes numbers that are not finite as null."""


def depth_within(value: Any, limit: int) -> bool:
    """Whether the containers nest at most ``limit`` deep; level by level, so that depth costs no stack."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list, tuple))
        ]
        if not level:
            return True
    return False


def clean(value: Any, depth: int = 0, text_limit: int | None = None) -> Any:
    """The nearest value that is valid JSON: text without unpaired surrogates, finite numbers, bounded nesting."""
    if isinstance(value, str):
        text = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text if text_limit is None else shorten(text, text_limit)
    if value is None or isinstance(value, (int, float)):
        return _clean_number(value)
    if depth >= _INNER_NESTING:
        return "… (nested too deeply)"
    if isinstance(value, Mapping):
        return {clean(str(k)): clean(v, depth + 1, text_limit) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(item, depth + 1, text_limit) for item in value]
    return clean(shorten(str(value), 20_000))


def _clean_number(value: Any) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_INTEGER_BITS else f"(an integer of {bits} bits)"
    return float(value) if value is not None and math.isfinite(value) else None


def _header(header: Header) -> dict[str, Any]:
    out: dict[str, Any] = {"gate_record": FORMAT, "suite": header.suite_id, "cases": len(header.plan)}
    out |= {"commit": header.commit, "base": header.base_commit, "dirty": header.dirty, "agent": header.agent}
    out |= {"seed": header.seed, "shard": list(header.shard), "run": header.run_id, "gate": header.gate_version}
    out |= {"created": header.created, "stripped": header.stripped}
    if header.selected:
        out["selected"] = True
    if header.whole:
        out |= {"scope": header.scope, "whole": header.whole}
    if header.passes:
        out["passes"] = header.passes
    if header.definition:
        out["definition"] = header.definition
    if header.runs:
        out["runs"] = [[run.id, run.created, run.trials] for run in header.runs]
    out["criteria"] = [_criterion(criterion) for criterion in header.criteria]
    return out


def _criterion(criterion: Criterion) -> dict[str, Any]:
    """Every field that is not at its default."""
    plain: dict[str, Any] = to_builtins(criterion)
    usual = [name for name, value in _USUAL.items() if getattr(criterion, name) == value]
    return {_NAMES.get(name, name): value for name, value in plain.items() if name not in usual}


_NAMES = {"pass_threshold": "pass_mark", "blocks_regression": "gate_regression"}
"""What a record calls a field of a criterion, where the name has changed since."""
_USUAL = dict(zip(reversed(Criterion.__struct_fields__), reversed(Criterion.__struct_defaults__), strict=False))


def _planned(case: PlannedCase) -> dict[str, Any]:
    out: dict[str, Any] = {"id": case.id, "fp": case.fingerprint}
    if case.tags:
        out["tags"] = sorted(case.tags)
    if case.complexity is not Complexity.MEDIUM:
        out["complexity"] = case.complexity.value
    if case.location is not None:
        out["at"] = [case.location.path] if case.location.line is None else [case.location.path, case.location.line]
    if case.hint is not None:
        out["hint"] = case.hint
    if case.shard != 1:
        out["shard"] = case.shard
    if case.thresholds:
        out["thresholds"] = dict(case.thresholds)
    if case.equivalent:
        out["equivalent"] = case.equivalent
    if any(calls is not None for calls in case.expected):
        out["expect"] = [None if calls is None else [_call(call) for call in calls] for calls in case.expected]
    return out


def _trial(trial: Trial) -> dict[str, Any]:
    out: dict[str, Any] = {"case": trial.case_id, "n": trial.number}
    if trial.round != 1:
        out["round"] = trial.round
    if trial.tag != FULL:
        out["tag"] = trial.tag
    if trial.side is not Side.CANDIDATE:
        out["side"] = trial.side.value
    if trial.scores:
        out["scores"] = {name: _score(score) for name, score in trial.scores.items()}
    if trial.error is not None:
        out["error"] = [trial.error.kind.value, trial.error.message]
    if trial.duration is not None:
        out["duration"] = trial.duration
    if trial.attempts != 1:
        out["attempts"] = trial.attempts
    if trial.again:
        out["again"] = True
    if trial.started is not None:
        out["started"] = trial.started
    if trial.invocations:
        out["turns"] = [_invocation(invocation) for invocation in trial.invocations]
    return out


def _score(score: Score) -> float | dict[str, Any] | None:
    """A plain number, or null, where there is nothing else to say."""
    value, error = score.value, score.error
    if value is not None and not math.isfinite(value):
        value, error = None, error or f"not a finite number: {value}"
    if value is not None:
        value = float(value)
    if error is None and not (score.reason or score.per_turn or score.details):
        return value
    out: dict[str, Any] = {"value": value}
    if score.reason:
        out["reason"] = score.reason
    if error is not None:
        out["error"] = error
    if score.per_turn:
        out["per_turn"] = score.per_turn
    if score.details:
        out["details"] = score.details
    return out


def _invocation(invocation: Invocation) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if invocation.user:
        out["user"] = invocation.user
    if invocation.response:
        out["response"] = _parts(invocation.response)
    if invocation.tool_calls:
        out["calls"] = [_call(call) for call in invocation.tool_calls]
    if invocation.intermediate:
        out["intermediate"] = _parts(invocation.intermediate)
    if invocation.usage is not None:
        out["usage"] = _usage(invocation.usage)
    if invocation.duration is not None:
        out["duration"] = invocation.duration
    if invocation.reports_calls:
        out["reports_calls"] = True
    return out


def _parts(parts: tuple[Part, ...]) -> list[Any]:
    """A part is its text; a thought is ``{"thought": text}``."""
    return [{"thought": part.text} if part.thought else part.text for part in parts]


def _call(call: ToolCall) -> dict[str, Any]:
    out: dict[str, Any] = {"name": call.name}
    if call.args is not None:
        out["args"] = call.args
    if call.id is not None:
        out["id"] = call.id
    if call.result is not None:
        out["result"] = call.result
    if call.error is not None:
        out["error"] = call.error
    if call.duration is not None:
        out["duration"] = call.duration
    if call.category is not None:
        out["category"] = call.category
    if call.any_args:
        out["any_args"] = True
    return out


def _usage(usage: Usage) -> dict[str, Any]:
    pairs = (
        ("input_tokens", usage.input_tokens),
        ("output_tokens", usage.output_tokens),
        ("cost_usd", usage.cost_usd),
        ("model_calls", usage.model_calls),
        ("model", usage.model),
    )
    return {name: value for name, value in pairs if value is not None}
