"""Calls a custom metric and reads its answer: in the gate's child process, or from worker.py in the agent's.

Standard library only, Python 3.8 and later, and no import of the gate: this file is loaded into the user's interpreter.
Two signatures are known: ``(actual, expected)``, and google-adk's ``(eval_metric, actual_invocations,
expected_invocations, conversation_scenario)``, which gets google-adk's own classes if they can be imported, otherwise
objects with the same attributes.
"""

from __future__ import annotations

import importlib
import inspect
import math
from types import SimpleNamespace
from typing import Any, Callable  # noqa: UP035 - Python 3.8

RAW = ("args", "result")
ADK_RAW = ("args", "response")
"""Keys whose values are the agent's own data, in the gate's turns and in google-adk's; they are not converted."""


def takes_adk(function: Callable[..., Any]) -> bool:
    """True if a custom metric has google-adk's signature, False if it has the gate's. Raises TypeError if it has
    neither."""
    signature = inspect.signature(function)
    first = next(iter(signature.parameters), "")
    two, four = _accepts(signature, 2), _accepts(signature, 4)
    if not two and not four:
        raise TypeError(
            "a custom metric takes two arguments (actual, expected), or google-adk's four "
            "(eval_metric, actual_invocations, expected_invocations, conversation_scenario)"
        )
    return four and (not two or first == "eval_metric")


def _accepts(signature: inspect.Signature, count: int) -> bool:
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def adapted(function: Callable[..., Any]) -> Callable[[dict[str, Any]], Any]:
    """Return the custom metric as a function from one JSON object, the request, to another, the answer; async if the
    metric is."""
    adk = takes_adk(function)

    def arguments(request: dict[str, Any]) -> list[Any]:
        if adk:
            return adk_arguments(request)
        return [_objects(request["actual"], RAW), _objects(request["expected"], RAW)]

    if inspect.iscoroutinefunction(function):

        async def later(request: dict[str, Any]) -> dict[str, Any]:
            return meaning(await function(*arguments(request)))

        return later

    def at_once(request: dict[str, Any]) -> dict[str, Any]:
        return meaning(function(*arguments(request)))

    return at_once


def meaning(answer: Any) -> dict[str, Any]:
    """Return ``{"value", "reason", "error", "per_turn"}`` for a custom metric's answer; a value outside 0 to 1 is an
    error."""
    per_turn: list[Any] = []
    if hasattr(answer, "overall_score"):
        value, reason, error = answer.overall_score, "", None
        per_turn = [_number(result.score) for result in getattr(answer, "per_invocation_results", None) or ()]
        if value is None:
            error = "the custom metric did not evaluate this trial"
    elif hasattr(answer, "value") and hasattr(answer, "error"):
        value, reason, error = answer.value, answer.reason, answer.error
    elif isinstance(answer, dict) and "value" in answer:
        value, reason, error = answer["value"], answer.get("reason", ""), answer.get("error")
        unread = sorted(str(key) for key in answer if key not in ("value", "reason", "error"))
        if unread and error is None:
            error = f"the custom metric returned a key that is not read: {unread[0][:80]!r} (value, reason, error)"
    else:
        value, reason, error = answer, "", None
    number = _number(value)
    if value is None and reason and error is None:
        return {"value": None, "reason": str(reason), "error": None, "per_turn": per_turn}  # does not apply
    if error is None and (number is None or not 0 <= number <= 1):
        error = f"the custom metric returned {repr(value)[:80]}, not a number from 0 to 1"
    if error is not None:
        number = None
    return {"value": number, "reason": str(reason), "error": error, "per_turn": per_turn}


def _number(value: Any) -> float | None:
    """Return a finite number as a float; numpy's and Decimal's are accepted, text is not."""
    if value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    return number


def _objects(value: Any, raw: tuple[str, ...]) -> Any:
    """Return JSON objects as objects with attributes."""
    if isinstance(value, list):
        return [_objects(item, raw) for item in value]
    if not isinstance(value, dict):
        return value
    found = dict(value)
    for key in value:
        if key not in raw:
            found[key] = _objects(value[key], raw)
    return SimpleNamespace(**found)


# --- google-adk -----------------------------------------------------------------------------------


def adk_arguments(request: dict[str, Any]) -> list[Any]:
    """Return the arguments with which google-adk calls a custom metric; the scenario is None because no user is
    simulated."""
    actual = [_adk_turn(turn, turn["tool_calls"], number) for number, turn in enumerate(request["actual"])]
    expected = [_adk_turn(turn, turn["tools"], number) for number, turn in enumerate(request["expected"])]
    metric = {
        "metric_name": request["metric"]["name"],
        "threshold": None,
        "criterion": {"threshold": request["metric"]["threshold"]},
        "custom_function_path": request["metric"]["path"],
    }
    if metric["criterion"]["threshold"] is None:
        metric["criterion"] = None
    try:
        case = importlib.import_module("google.adk.evaluation.eval_case")  # weight, and not always installed
        metrics = importlib.import_module("google.adk.evaluation.eval_metrics")
    except ImportError:
        return [_objects(metric, ADK_RAW), _objects(actual, ADK_RAW), _objects(expected, ADK_RAW), None]
    return [
        metrics.EvalMetric.model_validate(metric),
        list(map(case.Invocation.model_validate, actual)),
        list(map(case.Invocation.model_validate, expected)),
        None,
    ]


def _adk_turn(turn: dict[str, Any], calls: list[dict[str, Any]] | None, number: int) -> dict[str, Any]:
    """Return one of the gate's turns in google-adk's JSON."""
    response = intermediate = None
    if turn["response"] is not None:
        response = _content("model", turn["response"])
    if calls is not None:
        intermediate = _intermediate(calls, turn.get("intermediate") or [])
    return {
        "invocation_id": f"turn-{number + 1}",
        "user_content": _content("user", [{"text": turn["user"]}]),
        "final_response": response,
        "intermediate_data": intermediate,
        "creation_timestamp": 0.0,
        "duration": turn.get("duration"),
        "model_duration": None,
        "tool_duration": None,
        "rubrics": None,
        "app_details": None,
    }


def _content(role: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    said = []
    for part in parts:
        thought = part.get("thought") or None
        said.append({"text": part["text"], "thought": thought, "function_call": None, "function_response": None})
    return {"role": role, "parts": said}


def _intermediate(calls: list[dict[str, Any]], said: list[dict[str, Any]]) -> dict[str, Any]:
    uses, responses = [], []
    for call in calls:
        uses.append({"id": call["id"], "name": call["name"], "args": _mapping(call["args"])})
        if call["result"] is not None or call["error"] is not None:
            responses.append({"id": call["id"], "name": call["name"], "response": _result(call)})
    texts = [["agent", _content("model", [part])["parts"]] for part in said]
    return {"tool_uses": uses, "tool_responses": responses, "intermediate_responses": texts}


def _result(call: dict[str, Any]) -> dict[str, Any]:
    """Return a function's response as google-adk has it: an object; other values go under the keys of Google's SDK."""
    if call["error"] is not None:
        return {"error": call["error"]}
    if isinstance(call["result"], dict):
        return call["result"]
    return {"result": call["result"]}


def _mapping(args: Any) -> Any:
    if args is None or isinstance(args, dict):
        return args
    return {"value": args}
