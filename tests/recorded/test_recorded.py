"""Every recorded situation is judged as it was agreed on, and what differs is told."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.recorded import files
from tests.recorded.agreement import agreed, changed, said, update
from tests.recorded.differences import Change, paths, told
from tests.recorded.recorder import catalogue

NAMES = files.names()
VERDICTS = {"pass", "inconclusive", "regressed", "below_threshold", "error", "not_compared"}


@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_situation_is_judged_as_agreed(name: str) -> None:
    change = changed(name)
    if change is not None:
        pytest.fail("\n".join((*told([change], 1), f"review, then: python -m tests.recorded update {name}")))


def test_every_situation_of_the_catalogue_is_recorded_and_no_other() -> None:
    assert set(NAMES) == set(catalogue())


def test_every_verdict_and_every_kind_of_reference_is_among_them() -> None:
    known = [files.load(name) for name in NAMES]
    reports = [agreed(one)[files.RESULT] for one in known]
    assert {report["verdict"] for report in reports} == VERDICTS
    assert {report["exit_code"] for report in reports} == {0, 1, 3}
    compared = {tuple(one.name for one in suite.references if one.records) for one in known for suite in one.suites}
    assert {(), ("baseline",), ("anchor",), ("baseline", "anchor")} <= compared
    assert sum(one.has_texts for one in known) >= 20


def test_nothing_else_lies_in_the_folder() -> None:
    for name in NAMES:
        situation = files.load(name)
        records = {suite.record for suite in situation.suites}
        records |= {record for suite in situation.suites for one in suite.references for record in one.records}
        texts = {files.TEXT, files.COMMENT} if situation.has_texts else set()
        assert {path.name for path in situation.folder.iterdir()} == {files.ABOUT, files.RESULT, *records, *texts}


BEFORE = {
    "verdict": "pass",
    "exit_code": 0,
    "suites": [{"suite_id": "s", "verdict": "pass", "cases": [{"ids": ["a", "b"], "passed": 1, "trials": 3}]}],
}
NOW: dict[str, Any] = {
    "verdict": "regressed",
    "exit_code": 1,
    "suites": [
        {
            "suite_id": "s",
            "verdict": "regressed",
            "cases": [{"ids": ["a"], "passed": 1, "trials": 3}, {"ids": ["b"], "passed": 0, "trials": 3}],
        }
    ],
}


def test_what_differs_is_told_with_verdicts_and_paths() -> None:
    assert list(paths(BEFORE, NOW)) == [
        "exit_code: 0 → 1",
        "suites.s.cases.b.passed: 1 → 0",
        'suites.s.verdict: "pass" → "regressed"',
        'verdict: "pass" → "regressed"',
    ]
    lines = list(told([Change("broken", BEFORE, NOW)], 7))
    assert lines[0] == "broken: pass, exit 0 → regressed, exit 1"
    assert lines[-3:] == ["   1  pass, exit 0 → regressed, exit 1", "", "7 situations, 1 differ"]
    assert list(told([], 7)) == ["7 situations, 0 differ"]


def test_paths_are_bounded() -> None:
    lines = list(told([Change("many", {**BEFORE, "n": list(range(50))}, {**BEFORE, "n": list(range(1, 51))})], 1))
    assert lines[0] == "many: pass, exit 0, as before"
    assert lines[21] == "    … and 30 more"


def test_a_result_that_was_edited_is_found_and_rewritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "first-run"
    shutil.copytree(files.FOLDER / name, tmp_path / name)
    situation = files.load(name, tmp_path)
    monkeypatch.setattr("tests.recorded.agreement.files.load", lambda _: situation)
    result, text = situation.folder / files.RESULT, situation.folder / files.TEXT
    before = {path: path.read_text() for path in (result, text)}
    assert (changed(name), update([name])) == (None, [])
    result.write_text(before[result].replace('"exit_code": 0', '"exit_code": 1'))
    text.write_text(before[text].replace("pass", "passed"))
    change = changed(name)
    assert change is not None
    found = list(paths(change.before, change.now))
    assert found[0] == "exit_code: 1 → 0" and found[1].startswith("report.txt")
    assert update([name]) == [name]
    assert {path: path.read_text() for path in before} == before


def test_values_survive_being_written() -> None:
    for name in ("first-run", "tag-selected", "nothing-to-check"):
        found = said(files.load(name))[files.RESULT]
        assert files.pretty(found) == (files.FOLDER / name / files.RESULT).read_text()
