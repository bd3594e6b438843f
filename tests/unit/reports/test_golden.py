"""Whole reports as they were agreed on. GATE_UPDATE_GOLDEN=1 rewrites them, for review."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gate.reports import REPORTS, load_report
from gate.reports.json import schema

from .samples import RESULTS

GOLDEN = Path(__file__).parents[2] / "golden" / "reports"
SUFFIXES = {"console": "txt", "html": "html", "json": "json", "junit": "xml", "markdown": "md"}
NAMES = [name for name in RESULTS if name != "hostile"]


def agrees(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("GATE_UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["console", "markdown"])
def test_what_people_read_most(form: str, name: str) -> None:
    agrees(f"{name}.{SUFFIXES[form]}", load_report(form)(RESULTS[name]))


@pytest.mark.parametrize("form", ["html", "json", "junit"])
def test_every_other_form_of_a_regression(form: str) -> None:
    agrees(f"regressed.{SUFFIXES[form]}", load_report(form)(RESULTS["regressed"]))


def test_the_published_schema() -> None:
    agrees("result.schema.json", json.dumps(schema(), indent=2) + "\n")


def test_every_registered_form_has_a_golden_file() -> None:
    assert set(REPORTS) == set(SUFFIXES)
