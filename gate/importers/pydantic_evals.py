"""Reads Pydantic Evals' datasets: cases with `inputs`, and evaluators of one case or of all.

An evaluator with a counterpart becomes an expectation, a threshold or a rubric; any other is a lost check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from gate.formats.reading import Ignored, carried
from gate.formats.shapes import as_mapping, as_text
from gate.importers.exports import question_of, response_of
from gate.model import Case, Rubric, Turn
from gate.suites.base import Contents, Document, Format, Loss, expected_parts, nothing_unread

IGNORED = Ignored({"for editors": "$schema", "of a data set; the suite's name is that of its files": "$.name"})
RUBRICS, LATENCY, CONTAINS, REGEX = (
    "rubric_based_final_response_quality_v1",
    "latency",
    "contains",
    "regex",
)


class _Checks(Struct):
    """The checks from a case's evaluators."""

    rubrics: list[Rubric]
    contains: list[str]
    seconds: list[float]
    criteria: dict[str, Any]
    """The criteria of the whole dataset."""
    expected: Any
    patterns: list[str] = []
    lost: list[str] = []


def recognises(data: Any) -> bool:
    cases = as_mapping(data).get("cases")
    if not (isinstance(cases, list) and cases and isinstance(cases[0], Mapping)):
        return False
    return "inputs" in cases[0] and not cases[0].keys() & {"id", "input", "tools", "response"}


@nothing_unread(IGNORED)
def read(document: Document) -> Contents:
    """Return the cases of a dataset, and its losses. Raises `ConfigError` for a case that cannot be read."""
    data, cases, criteria, losses = document.data, list[Case](), dict[str, Any](), list[Loss]()
    losses += [Loss("", f"report evaluator {name}") for name, _ in _evaluators(document, data, "report_evaluators")]
    shared = list(_evaluators(document, data, "evaluators"))
    for number, row in enumerate(data["cases"]):
        if not isinstance(row, Mapping):
            raise document.error("a case must be a mapping", "cases", number)
        checks = _Checks([], [], [], criteria, row.get("expected_output"))
        for name, given in (*shared, *_evaluators(document, row, "evaluators", "cases", number)):
            _apply(checks, name, given)
        case = _case(document, row, number, checks)
        cases.append(case)
        for what in checks.lost:
            losses.append(Loss(case.id, f"evaluator {what}"))
    return Contents(tuple(cases), criteria=criteria or None, losses=tuple(losses))


def _case(document: Document, row: Mapping[str, Any], number: int, checks: _Checks) -> Case:
    with document.errors_at("cases", number):
        user = question_of(row.get("inputs"), "inputs")
        stated = row.get("expected_output")
        if stated is not None:
            stated = response_of(stated, "expected_output")
    metadata = row.get("metadata")
    if metadata is not None and not isinstance(metadata, Mapping):
        metadata = {"metadata": metadata}
    thresholds = {}
    if checks.seconds:
        thresholds[LATENCY] = min(checks.seconds)
    return Case(
        as_text(row.get("name")) or f"{document.name}-{number + 1}",
        (Turn(user, response=expected_parts(stated)),),
        metadata=dict(metadata or {}),
        options=_options(checks),
        thresholds=thresholds,
        rubrics=tuple(dict.fromkeys(checks.rubrics)),
        location=document.location("cases", number),
    )


def _options(checks: _Checks) -> dict[str, dict[str, Any]]:
    stated = {(CONTAINS, "values"): checks.contains, (REGEX, "patterns"): checks.patterns}
    return {criterion: {option: values} for (criterion, option), values in stated.items() if values}


def _evaluators(
    document: Document, holder: Mapping[str, Any], key: str, *place: str | int
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the name and arguments of each evaluator: ``Name``, ``{Name: argument}`` or ``{Name: {key: value}}``."""
    listed = holder.get(key) or []
    if not isinstance(listed, list):
        raise document.error(f"{key}: expected a list", *place)
    for one in listed:
        if isinstance(one, str):
            yield one, {}
        elif isinstance(one, Mapping) and len(one) == 1:
            ((name, given),) = one.items()
            if not isinstance(given, Mapping):
                given = {_FIRST.get(str(name), "value"): given}
            yield str(name), dict(given)
        else:
            raise document.error(f"{key}: an evaluator is a name, or one name with its arguments", *place)


_FIRST = {"LLMJudge": "rubric", "MaxDuration": "seconds"}


def _apply(checks: _Checks, name: str, given: Mapping[str, Any]) -> None:
    apply = _KNOWN.get(name)
    if apply is None or not apply(checks, given):
        carried(given)  # it is listed as a whole
        checks.lost.append(name)


def _contains(checks: _Checks, given: Mapping[str, Any]) -> bool:
    """Add a text that must occur; False if case is ignored, because our criterion is case-sensitive."""
    plain = given.get("case_sensitive", True) is True and not given.keys() - {"value", "case_sensitive", "as_strings"}
    if not (plain and isinstance(given.get("value"), str)):
        return False
    checks.contains.append(given["value"])
    checks.criteria[CONTAINS] = {}
    return True


def _duration(checks: _Checks, given: Mapping[str, Any]) -> bool:
    seconds = given.get("seconds")
    if given.keys() - {"seconds"} or isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        return False
    checks.seconds.append(float(seconds))
    checks.criteria[LATENCY] = {}
    return True


def _judged(checks: _Checks, given: Mapping[str, Any]) -> bool:
    """Add a rubric; the gate chooses the question, the model and the score."""
    rubric = given.get("rubric")
    asserts = given.get("assertion") is not False  # else it only scores, and decides nothing
    if given.keys() - _HOW_JUDGED or not isinstance(rubric, str) or not asserts:
        return False
    carried(given)  # settings of the judge, ignored on purpose
    checks.rubrics.append(Rubric(rubric, rubric, "FINAL_RESPONSE_QUALITY"))
    checks.criteria[RUBRICS] = {"threshold": 1.0}  # an LLMJudge decides
    return True


_HOW_JUDGED = {"rubric", "model", "model_settings", "include_input", "include_expected_output", "assertion"}


def _equals(checks: _Checks, given: Mapping[str, Any]) -> bool:
    """Add the exact expected output as a pattern for the whole answer."""
    if given.keys() - {"evaluation_name"} or not isinstance(checks.expected, str):
        return False
    checks.patterns.append(rf"\A{re.escape(checks.expected)}\Z")
    checks.criteria[REGEX] = {}
    return True


_KNOWN: Mapping[str, Callable[[_Checks, Mapping[str, Any]], bool]] = {
    "Contains": _contains,
    "MaxDuration": _duration,
    "LLMJudge": _judged,
    "EqualsExpected": _equals,
}
FORMAT = Format(
    shape="a Pydantic Evals dataset: `cases` with `inputs`",
    recognises=recognises,
    read=read,
    ignored=IGNORED,
)
