"""What all reports say, and none says twice: which cases, which criteria, where the details are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, CriterionResult, SuiteResult, Verdict
from gate.model.course import ReplayedShare
from gate.model.finding import Finding
from gate.reports import REPORTS, console, load_report, replayed
from gate.reports.cases import distinct, status
from gate.reports.labels import STATUSES
from gate.reports.rows import RowView
from gate.reports.view import View, view_of

from .samples import COST, FAILED, NOT_COMPARED, PASSED, TRAJECTORY, result

WORDED = [form for form in REPORTS if form not in ("json", "openmetrics")]
"""The forms that are sentences; the others are figures under names."""
PAGES = ["console", "markdown", "html"]


@pytest.mark.parametrize("form", WORDED)
def test_what_was_never_measured_is_no_pass_in_any_form(form: str) -> None:
    never = CriterionResult(TRAJECTORY, Verdict.PASS, (Finding.of("not_judged", why="no_yardstick"),))
    found = result(replace(PASSED, criteria=(never,)))
    page = console.render(found, verbose=True) if form == "console" else load_report(form)(found)
    assert "not measured" in page
    assert "1 criterion passed" not in page


def test_reasons_that_differ_in_figures_or_a_word_are_said_once() -> None:
    reasons = ("match: 0% of the expected words were said", "match: 13% of the expected words were said", "42", "43")
    assert distinct(reasons) == (reasons[0], "42", "43")
    calls = ("expected lookup(order='A1'), got refund()", "expected lookup(order='A1'), got cancel(now=True)")
    assert distinct(calls) == calls


def test_details_are_named_only_where_one_record_holds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = replace(result(PASSED, FAILED), record_paths=("a b.jsonl", "c.jsonl"))
    assert view_of(PASSED, both).explain == "gate explain 'a b.jsonl' --case small-talk"
    assert view_of(both.suites[1], both).explain == "gate explain c.jsonl --case order-status-01"
    assert view_of(PASSED, replace(both, record_paths=("a.jsonl",))).explain == ""
    assert view_of(PASSED, result(replace(PASSED, cases=()))).explain == ""
    for odd, shown in (
        ("$(rm -rf x)", "'$(rm -rf x)'"),
        ("late refund", "'late refund'"),
        ("a\x1b[2Jb", "ID"),
        ("-v", "ID"),
    ):
        suite = replace(FAILED, cases=(replace(FAILED.cases[0], id=odd),))
        assert view_of(suite, result(suite)).explain == f"gate explain gate.jsonl --case {shown}"
    monkeypatch.chdir(tmp_path)
    for path, named in ((str(tmp_path / ".gate" / "a.jsonl"), ".gate/a.jsonl"), ("/else/a.jsonl", "/else/a.jsonl")):
        told = view_of(FAILED, replace(result(FAILED), record_paths=(path,))).explain
        assert told == f"gate explain {named} --case order-status-01"


@pytest.mark.parametrize("row", [PASSED.criteria[0], CriterionResult(COST, Verdict.PASS)])
def test_a_criterion_is_not_green_without_a_value(row: CriterionResult) -> None:
    assert RowView(row, PASSED).verdict is (Verdict.PASS if row.candidate else Verdict.NOT_MEASURED)
    assert RowView(CriterionResult(COST, Verdict.ERROR), PASSED).verdict is Verdict.ERROR


def test_a_case_that_met_the_same_world_is_not_said_to_have_passed_again() -> None:
    same = CaseResult("a", CaseStatus.OK, passed=1, trials=1, same_world=True)
    assert status(same) not in STATUSES.values()
    failed = replace(same, status=CaseStatus.FLAKY)
    assert status(failed) == STATUSES[CaseStatus.FLAKY]
    suite: SuiteResult = replace(PASSED, cases=(same,), replayed=ReplayedShare(100, 84, 21, 640, 412, 1.25, ()))
    metrics = load_report("openmetrics")
    assert re.search(r"^gate_cases_same_requests\{.*\} 84$", metrics(result(suite)), re.MULTILINE)
    assert "same_requests" not in metrics(result(PASSED))
    assert f'"rawStatus": "{replayed.SAME}"' in load_report("ctrf")(result(suite))
    assert '"same_world": true' in load_report("json")(result(suite))


@pytest.mark.parametrize("reference", ["", "anchor"])
def test_a_line_says_once_that_something_was_not_compared(reference: str) -> None:
    assert View(replace(NOT_COMPARED, reference=reference)).verdict_line.count("compared") == 1


def test_a_score_is_shown_with_what_its_case_wants() -> None:
    (case, *_), name = FAILED.cases, TRAJECTORY.name
    held = replace(case, scores={name: (0.5, None)}, thresholds={name: 0.25})
    view = View(replace(FAILED, cases=(held,)))
    assert [one for one in view.scores(held) if one.startswith(name)] == [f"{name} 0.50 (at least 0.25)"]
    plain = view.scores(replace(held, thresholds={}))
    assert plain != view.scores(held)
