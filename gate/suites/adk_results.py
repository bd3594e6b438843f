"""Reads google-adk's results (`.adk/eval_history`): the expectations become a case, each run of it a recorded trial.

Metrics that also exist here are computed again. Google-adk's results for other metrics become recorded scores.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from gate.formats import adk
from gate.formats.json_text import parse_json
from gate.formats.messages import FormatError
from gate.formats.names import camel
from gate.formats.positions import Key
from gate.formats.reading import Ignored
from gate.model import Case, ForeignScore, Invocation, RecordedTrial, Scenario, Turn
from gate.security.limits import shorten
from gate.suites import adk as adk_suite
from gate.suites.base import (
    Contents,
    Document,
    Format,
    Loss,
    is_answered,
    note_losses,
    nothing_unread,
    recorded_criterion,
)

FAILED = (2, "2", "FAILED")
"""google-adk's ``EvalStatus.FAILED``, as value or name."""
STATUSES = (None, *FAILED, *range(1, 5), *"134", "PASSED", "NOT_EVALUATED")
PASSED_OR_NOT = "nobody knows whether it passed"
METRICS = {
    "tool_trajectory_avg_score", "response_match_score", "response_evaluation_score", "safety_v1", "hallucinations_v1",
    "final_response_match_v2", "rubric_based_final_response_quality_v1", "rubric_based_tool_use_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1", "multi_turn_task_success_v1", "multi_turn_tool_use_quality_v1",
    "multi_turn_trajectory_quality_v1", "tool_call_count_v1", "inference_call_count_v1", "token_usage_v1",
    "invocation_duration_v1",
}  # fmt: skip
"""google-adk's metrics that are also computed here."""
SCORER = "google-adk"
"""Prefix for the name of a metric that is not computed here; alone, google-adk's verdict on a run without metrics."""
PASSED = (1, "1", "PASSED")
_UNKNOWN = "(not recorded)"
"""The user's text in a case in which no run has an answer: the results hold nothing else."""
_INTERMEDIATE = "include_intermediate_responses_in_final"
_INTERMEDIATES = (_INTERMEDIATE, camel(_INTERMEDIATE))
_KEYS = ("eval_case_results", "evalCaseResults")
Body = Mapping[str, Any]


def recognises(data: Any) -> bool:
    if isinstance(data, str):  # older versions wrote the JSON as a text within JSON
        return data.lstrip().startswith("{") and any(key in data for key in _KEYS)
    return isinstance(data, Mapping) and any(key in data for key in _KEYS)


IGNORED = Ignored(
    {
        "which evaluation it comes from": "eval_set_result_id eval_set_result_name",
        "the suite's name is that of its files": "eval_set_file",
        "which session it comes from": "session_id user_id",
        "the session that the trial was taken from": "session_details",
        "scores by turn, which are measured anew": "eval_metric_results",
        "measured anew": "score",
        "of a score, which is measured anew": "details",
        "of an expected turn; a metric's criterion holds those that it read": "rubrics",
    },
    either_spelling=True,
    further=adk_suite.IGNORED,
)


def read(document: Document) -> Contents:
    """Return the cases and trials of a file, and the metrics without a counterpart. Raises `ConfigError`."""
    if not isinstance(document.data, str):
        return _read(document)
    try:
        data = parse_json(document.data, document.where)
    except ValueError as error:
        raise document.error(f"invalid JSON inside JSON: {error}") from None
    return _read(replace(document, data=data))


@nothing_unread(IGNORED, checks=False)
def _read(document: Document) -> Contents:
    """Return the cases, trials and losses of a parsed document. Raises `ConfigError`."""
    cases, recorded, losses = dict[str, Case](), list[RecordedTrial](), list[Loss]()
    criteria, counts = dict[str, Any](), defaultdict[str, int](int)
    for keys, body in _results(document):
        with document.errors_at(*keys):
            case = _case(document, body, keys)
            metrics = [adk.mapping(one, "a result of a metric") for one in _items(body, "overall_eval_metric_results")]
            counts[case.id] += 1
            trial = _trial(body, case, metrics, counts[case.id])
            for metric in metrics:
                losses += [loss for loss in _criterion(criteria, metric) if loss not in losses]
        known = cases.get(case.id)
        if known is None or not known.turns:
            cases[case.id] = case
        elif case.turns and known.turns != case.turns:
            raise document.error(f"case {case.id!r} has other expectations than in an earlier run", *keys)
        recorded.append(trial)
    for name, case in cases.items():
        if not case.turns:
            cases[name] = replace(case, turns=(Turn(_UNKNOWN),))
    for trial in recorded:
        for turn in trial.invocations:
            for score in turn.foreign:
                criteria[score.scorer] = recorded_criterion(score.scorer, threshold=1.0)
    return Contents(tuple(cases.values()), tuple(recorded), criteria or None, losses=tuple(losses))


def _results(document: Document) -> Iterator[tuple[tuple[Key, ...], Body]]:
    data = document.data
    key = next((key for key in _KEYS if key in data), _KEYS[0])
    listed = data.get(key)
    if not isinstance(listed, list):
        raise document.error(f"{key}: expected a list", key)
    for index, body in enumerate(listed):
        if not isinstance(body, Mapping):
            raise document.error("a result must be an object", key, index)
        yield (key, index), body


def _items(body: Body, name: str) -> list[Any]:
    return adk.items(adk.get(body, name), name)


def _case(document: Document, body: Body, keys: tuple[Key, ...]) -> Case:
    """Return the case that a run was compared with; without turns if the run has no answer."""
    name = adk.get(body, "eval_id")
    if not isinstance(name, str) or not name:
        raise FormatError("a result has no eval_id")
    turns = []
    for pair in _pairs(body):
        raw = adk.get(pair, "expected_invocation")
        if raw is None:  # a simulated user, whose texts differ between runs except for the first
            start = _invocation(pair).user
            scenario = Scenario(start, "The plan is not in these results.")
            return Case(name, (Turn(start),), location=document.location(*keys), scenario=scenario)
        turns.append(adk_suite.expected_turn(raw))
    return Case(name, tuple(turns), location=document.location(*keys))


def _pairs(body: Body) -> list[Body]:
    what = "eval_metric_result_per_invocation"
    return [adk.mapping(pair, f"an item of {what}") for pair in _items(body, what)]


def _trial(body: Body, case: Case, metrics: list[Body], number: int) -> RecordedTrial:
    status = adk.get(body, "final_eval_status")
    if status not in STATUSES:
        raise FormatError(f"unknown final_eval_status {shorten(repr(status), 40)}: {PASSED_OR_NOT}")
    invocations = tuple(map(_invocation, _pairs(body)))
    if not is_answered(invocations):
        return RecordedTrial(case.id, number, (), "google-adk records no answer")
    found = list(filter(None, map(_foreign, metrics)))
    if status in FAILED and not any(adk.get(one, "eval_status") in FAILED for one in metrics):
        found.append(ForeignScore(SCORER, 0.0, "google-adk counts it as failed, by no metric"))
    *before, last = invocations
    return RecordedTrial(case.id, number, (*before, replace(last, foreign=tuple(found))))


def _foreign(metric: Body) -> ForeignScore | None:
    """Return google-adk's result of a metric that is not computed here or has no recorded threshold; else None."""
    status = adk.get(metric, "eval_status")
    if status not in (*PASSED, *FAILED) or (_is_known_metric(metric) and _stated(metric)):
        return None
    name, score = _name(metric), adk.get(metric, "score")
    reason = f"google-adk's metric {name} failed"
    if status in PASSED:
        reason = f"google-adk's metric {name} passed"
    if isinstance(score, int | float) and not isinstance(score, bool):
        reason += f" ({score:g})"
    return ForeignScore(f"{SCORER}:{name}", float(status in PASSED), reason)


def _name(metric: Body) -> str:
    name = adk.get(metric, "metric_name")
    if not isinstance(name, str) or not name:
        raise FormatError("a result of a metric has no metric_name")
    return shorten(name, 100)


def _invocation(pair: Body) -> Invocation:
    return adk.to_invocation(adk.get(pair, "actual_invocation"))


def _is_known_metric(metric: Body) -> bool:
    return _name(metric) in METRICS and not adk.get(metric, "custom_function_path")


def _stated(metric: Body) -> dict[str, Any]:
    """Return the recorded criterion of a metric, such as its threshold; empty if there is none."""
    stated = adk.get(metric, "criterion")
    if not isinstance(stated, Mapping):
        stated = {"threshold": adk.get(metric, "threshold")}
    return {key: value for key, value in stated.items() if value is not None and key not in _INTERMEDIATES}


def _criterion(criteria: dict[str, Any], metric: Body) -> Iterator[Loss]:
    """Add a metric to the criteria, with its threshold and options; yield the losses."""
    name = _name(metric)
    if not _is_known_metric(metric):
        yield Loss("", f"metric {name}")
        return
    used = _stated(metric)
    stated = adk.get(metric, "criterion")
    if isinstance(stated, Mapping) and adk.get(stated, _INTERMEDIATE):
        yield Loss("", f"option {_INTERMEDIATE} of {name}")
    if used:  # a metric without a threshold only reports
        criteria.setdefault(name, used)


FORMAT = Format(
    shape="google-adk's results: `eval_case_results`",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
    settle=note_losses,
)
