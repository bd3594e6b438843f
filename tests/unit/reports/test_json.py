"""The JSON report is valid against its published schema and holds the whole result."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator, ValidationError
from msgspec.structs import replace

from gate.reports.json import VERSION, render, schema

from .samples import PASSED, RESULTS, result

VALIDATOR = Draft202012Validator(schema())


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "hostile")) for n in RESULTS])
def test_every_sample_is_valid(name: str) -> None:
    VALIDATOR.validate(json.loads(render(RESULTS[name])))


@pytest.mark.slow
def test_the_schema_is_a_schema_and_refuses_what_is_missing() -> None:
    Draft202012Validator.check_schema(schema())
    report = json.loads(render(RESULTS["regressed"]))
    del report["suites"][0]["criteria"][0]["change"]
    with pytest.raises(ValidationError):
        VALIDATOR.validate(report)
    with pytest.raises(ValidationError):
        VALIDATOR.validate({**json.loads(render(RESULTS["pass"])), "version": VERSION + 1})


def test_no_number_that_json_lacks_is_written() -> None:
    text = render(result(replace(PASSED, cost_usd=float("nan"), duration=float("inf"))))
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["suites"][0]["cost_usd"] is None
