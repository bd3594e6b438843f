"""The CTRF report keeps to the format's schema, and is never greener than the verdict."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from jsonschema import Draft7Validator
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, Verdict
from gate.reports.ctrf import render

from .hostile import CORPUS
from .samples import PASSED, RESULTS, hostile, result

TEXT: dict[str, Any] = {"type": "string"}
NAME: dict[str, Any] = {"type": "string", "minLength": 1}
WHOLE: dict[str, Any] = {"type": "integer"}
OPEN: dict[str, Any] = {"type": "object"}
STATUSES = ["passed", "failed", "skipped", "pending", "other"]


def closed(required: str, **properties: Any) -> dict[str, Any]:
    """A JSON object of these keys and no other."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def numbers(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, WHOLE)


TEST = closed(
    "name status duration",
    name=NAME,
    status={"enum": STATUSES},
    suite={"type": "array", "minItems": 1, "items": TEXT},
    stdout={"type": "array", "items": TEXT},
    flaky={"type": "boolean"},
    extra=OPEN,
    **dict.fromkeys(("message", "trace", "rawStatus", "type", "filePath"), TEXT),
    **numbers("duration", "line", "retries"),
)
SUMMARY = closed(
    "tests passed failed skipped pending other start stop",
    **numbers("tests", *STATUSES, "flaky", "suites", "start", "stop", "duration"),
    extra=OPEN,
)
SCHEMA = closed(
    "results reportFormat specVersion",
    reportFormat={"const": "CTRF"},
    specVersion={"type": "string", "pattern": r"^\d+\.\d+\.\d+$"},
    reportId={"type": "string", "format": "uuid"},
    generatedBy=TEXT,
    extra=OPEN,
    baseline=closed("reportId", reportId=TEXT, commit=TEXT, source=TEXT),
    results=closed(
        "tool summary tests",
        tool=closed("name", name=NAME, version=TEXT),
        summary=SUMMARY,
        tests={"type": "array", "items": TEST},
        environment=closed("", commit=TEXT, healthy={"type": "boolean"}, extra=OPEN),
    ),
)
"""What of the format's published schema (1.0) the report uses; all that it does not use is refused here."""


def document(found: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(render(found))
    Draft7Validator(SCHEMA).validate(read)
    return read


def named(read: dict[str, Any], name: str) -> dict[str, Any]:
    (test,) = (one for one in read["results"]["tests"] if one["name"] == name)
    return dict(test)


@pytest.mark.parametrize("name", RESULTS)
def test_every_kind_of_result_is_valid_and_its_counts_agree(name: str) -> None:
    results = document(RESULTS[name])["results"]
    tests, summary = results["tests"], results["summary"]
    assert summary["tests"] == len(tests) == sum(summary[status] for status in STATUSES)
    for status in STATUSES:
        assert summary[status] == sum(test["status"] == status for test in tests)
    assert summary["flaky"] == sum(test.get("flaky", False) for test in tests)
    assert summary["stop"] - summary["start"] == summary["duration"]


@pytest.mark.parametrize("verdict", Verdict)
def test_a_bad_verdict_is_never_green_even_without_criteria_or_cases(verdict: Verdict) -> None:
    read = document(result(replace(PASSED, verdict=verdict, criteria=(), cases=())))
    failed = read["results"]["summary"]["failed"]
    assert (failed > 0) == (verdict not in (Verdict.PASS, Verdict.INCONCLUSIVE))
    assert not (read["results"]["environment"]["healthy"] and failed)


def test_a_case_that_passes_some_of_its_trials_is_flaky_with_its_retries() -> None:
    flaky = CaseResult("now and then", CaseStatus.FLAKY, passed=2, trials=3, errors=1)
    read = document(result(replace(PASSED, cases=(flaky, CaseResult("steady", CaseStatus.OK, passed=3, trials=3)))))
    found = named(read, "now and then")
    assert (found["status"], found["flaky"], found["retries"]) == ("passed", True, 3)
    assert named(read, "steady")["flaky"] is False
    assert read["results"]["summary"]["flaky"] == 1


def test_the_report_of_a_commit_is_what_a_later_one_names_as_its_baseline() -> None:
    assert PASSED.baseline is not None
    later = document(result(PASSED))
    earlier = document(result(replace(PASSED, commit=PASSED.baseline.commit)))
    assert later["baseline"]["reportId"] == earlier["extra"]["measured"]
    again = document(result(replace(PASSED, started=1_800_000_000.0)))
    assert UUID(later["reportId"]) != UUID(again["reportId"])
    assert later["extra"] == again["extra"]


def test_without_a_baseline_none_is_named() -> None:
    assert "baseline" not in document(result(replace(PASSED, baseline=None)))


def test_hostile_names_stay_one_bounded_line() -> None:
    for text in (*CORPUS, "x" * 100_000):
        for test in document(result(hostile((text,)), command=text))["results"]["tests"]:
            for value in (test["name"], test.get("message", ""), *test["suite"]):
                assert not [c for c in value if c < " " or "\x7f" <= c <= "\x9f" or "\u202a" <= c <= "\u202e"]
                assert len(value) < 1_200


def test_uncommitted_changes_are_said_and_are_another_measurement() -> None:
    clean = replace(PASSED, commit="6e132310c331aaaa")
    of = {dirty: document(replace(RESULTS["pass"], suites=(replace(clean, dirty=dirty),))) for dirty in (False, True)}
    assert "extra" not in of[False]["results"]["environment"]
    assert of[True]["results"]["environment"]["extra"] == {"uncommittedChanges": True}
    assert of[True]["extra"]["measured"] != of[False]["extra"]["measured"]


def test_a_baseline_is_named_as_its_own_report_named_it() -> None:
    """By the same suites at the same commit, with the same changes in the work tree."""
    assert PASSED.baseline is not None
    for dirty in (False, True):
        then = replace(PASSED, commit="6e132310c331aaaa", dirty=dirty)
        base = replace(PASSED.baseline, commit=then.commit, dirty=dirty)
        now = replace(PASSED, commit="aaaa6e132310c331", baseline=base)
        made = [document(replace(RESULTS["pass"], suites=(suite,))) for suite in (then, now)]
        assert made[1]["baseline"]["reportId"] == made[0]["extra"]["measured"]
