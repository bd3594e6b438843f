"""Writes any suite as a suite file in the gate's own format. The file is read again and compared field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct, to_builtins

from gate.errors import ConfigError
from gate.model import Case, Rubric, Scenario, Suite, ToolCall, Turn
from gate.security.limits import shorten
from gate.suites import native
from gate.suites.base import Document, Loss, is_recorded, kinds_of

_CHECKS = ("turns", "scenario", "options", "thresholds", "rubrics")
_PARTS = (*_CHECKS, "tags", "complexity", "metadata", "state", "app", "cluster")
"""The fields of a case, except its id and location."""


class Converted(Struct, frozen=True):
    """A suite as files in the gate's own format."""

    suite: str
    """The suite file, JSON."""
    criteria: str
    """The file of criteria, JSON; empty if the suite has none."""
    cases: int
    losses: tuple[Loss, ...]
    """The parts of the suite that these files cannot hold."""


def convert(suite: Suite) -> Converted:
    """Return the suite's files, and the losses: everything that differs after reading the files again."""
    rows, losses = [], list[Loss]()
    for case in suite.under({}).cases:
        row = _row(case)
        try:
            (again,) = native.read(Document(json.loads(json.dumps([row])), "", "", row_lines=(1,))).cases
        except (ConfigError, TypeError, ValueError):
            losses.append(Loss(case.id, "the whole case"))
            continue
        rows.append(row)
        losses += _differences(case, again)
    if suite.recorded:
        losses.append(Loss("", f"recorded trials ({len(suite.recorded)})", check=False))
    stated = {**(suite.brought or {}), **(suite.criteria or {})}
    criteria = {name: one for name, one in stated.items() if not is_recorded(one)}
    text = ""
    if criteria:
        text = json.dumps(criteria, indent=2, ensure_ascii=False) + "\n"
    return Converted(json.dumps({"cases": rows}, indent=2, ensure_ascii=False) + "\n", text, len(rows), tuple(losses))


def _differences(case: Case, again: Case) -> list[Loss]:
    found = []
    for part in _PARTS:
        if _plain(getattr(case, part)) != _plain(getattr(again, part)):
            told = [part]
            if part == "turns":
                told = list(_by_call(case, again)) or told
            for what in told:
                found.append(Loss(case.id, what, check=part in _CHECKS))
    return found


def _by_call(case: Case, again: Case) -> Iterator[str]:
    """Yield notes on parts of turns that cannot be written unchanged."""
    for number, (turn, other) in enumerate(zip(case.turns, again.turns, strict=False), start=1):
        if turn.attached:
            yield f"turn {number}: {kinds_of(turn.attached)}, which is part of the question"
        for call, written in zip(turn.tools or (), other.tools or (), strict=False):
            if call != written and call.args is None:
                change = "names no args, so that only a call without any matches; written, it takes any args"
                yield f"turn {number}: the expected call of {shorten(call.name, 80)} {change}"


def _plain(value: Any) -> Any:
    """Return a value for comparison: tuples become lists."""
    if isinstance(value, Mapping):
        return {key: _plain(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_plain, value))
    return value


def _row(case: Case) -> dict[str, Any]:
    """Return the case with the keys of the gate's own format, without empty values."""
    turns = list(map(_turn, case.turns))
    conversation: dict[str, Any] = {"turns": turns}
    if len(turns) == 1 and "rubrics" not in turns[0]:
        conversation = turns[0]
    if case.scenario is not None:
        conversation = {"scenario": _stated(case.scenario)}
    row = {
        "id": case.id,
        **conversation,
        "rubrics": list(map(_stated, case.rubrics)),
        "tags": sorted(case.tags),
        "complexity": case.complexity.value,
        "cluster": case.cluster,
        "metadata": dict(case.metadata),
        "state": dict(case.state),
        "thresholds": dict(case.thresholds),
        "options": {name: dict(options) for name, options in case.options.items()},
    }
    return {key: value for key, value in row.items() if value not in ("", [], {}) or key in ("tools", "input")}


def _turn(turn: Turn) -> dict[str, Any]:
    found: dict[str, Any] = {"input": turn.user}
    if turn.tools is not None:
        found["tools"] = list(map(_tool, turn.tools))
    if turn.response is not None:
        found["response"] = [part.text for part in turn.response]
    if turn.rubrics:
        found["rubrics"] = list(map(_stated, turn.rubrics))
    return found


def _stated(held: Rubric | Scenario) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {key: value for key, value in to_builtins(held).items() if value is not None}


def _tool(call: ToolCall) -> dict[str, Any]:
    if call.category:
        return {"category": call.category}
    if call.any_args:
        return {"name": call.name}
    return {"name": call.name, "args": call.args}
