"""Scores recorded pairs of conversations line by line, without a run, so that anyone can check parity."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from gate.errors import ConfigError, first_problem
from gate.formats.adk import to_invocation
from gate.metrics import load_metric
from gate.metrics.base import Context, Metric, TrialOutput
from gate.model import Case, Invocation, Score, Turn
from gate.security.limits import MAX_LINE_BYTES, shorten


def score_lines(
    metric_name: str,
    options: Mapping[str, Any],
    lines: Iterable[str],
    *,
    context: Context | None = None,
    folder: str = "",
    environment: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """Yield one answer line per input line, in order.

    In: ``{"id", "actual": [Invocation, …], "expected": [Invocation, …]}`` in google-adk's JSON, snake or camel case.
    Out: ``{"id", "score", "per_turn": […], "error"}``, with ``reason`` if there is one. An unreadable line gets a null
    score and an error; blank lines are skipped.

    Raises:
        ConfigError: unknown metric or option, before any line is read.
    """
    if not isinstance(options, Mapping):
        raise ConfigError("expected an object", where="--options", hint='as in \'{"match_type": "IN_ORDER"}\'')
    metric_type = load_metric(metric_name, folder, environment)
    given = {key: value for key, value in options.items() if key != "threshold"}
    try:
        metric = metric_type(metric_type.options_type.model_validate(given), context)
    except ValidationError as error:
        raise first_problem(error, metric_type.options_type).as_error(metric_name, noun="option") from None
    return (_answer(metric, line) for line in lines if line.strip())


def _answer(metric: Metric[Any], line: str) -> str:
    identity: Any = None
    try:
        data = _parse(line)
        identity = data.get("id")
        actual, expected = _invocations(data, "actual"), _invocations(data, "expected")
    except (ValueError, RecursionError) as error:
        score = Score(None, error=shorten(str(error), 500) or type(error).__name__)
    else:
        case = Case(str(identity), tuple(Turn(one.user, one.tool_calls, one.response) for one in expected))
        score = metric.score(case, TrialOutput(actual))
    answer = {"id": identity, "score": score.value, "per_turn": list(score.per_turn), "error": score.error}
    if score.reason:
        answer["reason"] = score.reason
    return json.dumps(answer)


def _parse(line: str) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"the line is longer than {MAX_LINE_BYTES:,} characters")
    data = json.loads(line.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    if not isinstance(data, dict):
        raise ValueError("the line is not a JSON object")
    return data


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _invocations(data: Mapping[str, Any], key: str) -> tuple[Invocation, ...]:
    values = data.get(key)
    if not isinstance(values, list):
        raise ValueError(f"{key!r} is missing or not a list of invocations")
    found = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise ValueError(f"{key}[{index}] is not an object")
        try:
            found.append(to_invocation(value))
        except ValueError as error:
            raise ValueError(f"{key}[{index}]: {error}") from None
    return tuple(found)
