"""What all reports say, and none says twice: which cases, which criteria, where the details are."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, CriterionResult, Estimate, SuiteResult, Verdict
from gate.model.course import LiveCase, ReplayedShare
from gate.model.finding import Change, Finding, HeldMean
from gate.model.results import CalibratedJudge
from gate.reports import REPORTS, load_report, replayed
from gate.reports import labels as words
from gate.reports.formatting import judge_line, of_means
from gate.reports.reasons import parts

from .samples import ACCEPTED, COST, FAILED, NOT_COMPARED, PASSED, REGRESSED, RESPONSE, TRAJECTORY, estimate, result

WORDED = [form for form in REPORTS if form not in ("json", "openmetrics")]
"""The forms that are sentences; the others are figures under names."""
PAGES = ["console", "markdown", "html"]


def flat(text: str) -> str:
    """Without markup and escapes, in one line."""
    plain = html.unescape(re.sub(r"</?(?:wbr|span)[^>]*>|\\", "", text))
    return " ".join(plain.replace("\u200b", "").replace("\u2060", "").split())


RATE = Estimate(0.9, 0.8, 0.95, 60, 60)
EXCUSED = CriterionResult(
    RESPONSE,
    Verdict.PASS,
    (Finding.of("mean_excused", mean=HeldMean(0.0, 0.9, 3, before=0.0)),),
    estimate(0.2, 0.1, 0.3),
)
COUNTED = CriterionResult(
    TRAJECTORY,
    Verdict.PASS,
    (Finding.of("mean_holds", mean=HeldMean(0.917, 0.8, 12, failed=1)),),
    Estimate(1.0, 0.8, 1.0, 11, 11),
)
JUDGED = replace(
    PASSED.criteria[1],
    judge=CalibratedJudge(100, 92, 0.81, RATE, RATE, Estimate(0.88, 0.8, 0.94, 40, 40), None, slope=0.8),
)
CHEAPER = CriterionResult(
    *(COST, Verdict.PASS, (Finding.of("change_allowed", change=Change(0.782, 0.448, 1.193, 40)),)),
    estimate(0.0435, 0.03, 0.06),
    estimate(0.0843, 0.02, 0.2),
    estimate(0.782, 0.448, 1.193),
    compared=(0.0843, 0.0435),
)


@pytest.mark.parametrize(
    ("row", "told", "forms"),
    [
        (EXCUSED, parts(EXCUSED)[-1].text.split("; ")[-1], WORDED),
        (COUNTED, "counted as 0", PAGES),
        (CHEAPER, of_means(CHEAPER), [*PAGES, "junit"]),
        (JUDGED, judge_line(JUDGED).partition(";")[0], PAGES),
    ],
)
def test_every_form_tells_what_its_figures_do_not(row: CriterionResult, told: str, forms: list[str]) -> None:
    assert told
    for form in forms:
        assert told in flat(load_report(form)(result(replace(PASSED, criteria=(row,))))), form


def test_every_form_tells_what_was_replayed() -> None:
    live = (LiveCase("a", 1, 40, "request 3 differs"),)
    suite = replace(PASSED, replayed=ReplayedShare(100, 99, 1, 640, 412, 1.25, live))
    for form in (*PAGES, "junit"):
        shown = flat(load_report(form)(result(suite)))
        assert replayed.line(suite).partition(". ")[0] in shown
        assert replayed.calls(suite).partition(";")[0] in shown
        assert "request 3 differs" in shown
        assert replayed.line(suite)[:20] not in flat(load_report(form)(result(PASSED)))


def test_uncommitted_changes_are_no_commit() -> None:
    assert PASSED.baseline is not None
    said = words.at_commit("", dirty=True).strip()
    clean = replace(PASSED, commit="6e132310c331aaaa", baseline=replace(PASSED.baseline, commit="6e132310c331aaaa"))
    older = replace(clean, baseline=replace(PASSED.baseline, commit="6e132310c331aaaa", dirty=True))
    assert said
    for form in PAGES:
        assert said not in flat(load_report(form)(result(clean)))
        assert said in flat(load_report(form)(result(replace(clean, dirty=True))))
        assert said in flat(load_report(form)(result(older)))
    assert 'name="uncommitted_changes" value="true"' in load_report("junit")(result(replace(clean, dirty=True)))
    assert "uncommitted_changes" not in load_report("junit")(result(clean))


@pytest.mark.parametrize("form", WORDED)
def test_what_was_never_measured_is_no_pass_in_any_form(form: str) -> None:
    never = CriterionResult(TRAJECTORY, Verdict.PASS, (Finding.of("nothing_held"),))
    page = load_report(form)(result(replace(PASSED, criteria=(never,))))
    assert "not measured" in page
    assert "1 criterion passed" not in page


def test_reasons_that_differ_in_figures_or_a_word_are_said_once() -> None:
    reasons = ("match: 0% of the expected words were said", "match: 13% of the expected words were said", "42", "43")
    assert words.distinct(reasons) == (reasons[0], "42", "43")
    calls = ("expected lookup(order='A1'), got refund()", "expected lookup(order='A1'), got cancel(now=True)")
    assert words.distinct(calls) == calls


def test_every_form_says_once_where_the_details_are() -> None:
    for form in WORDED:
        assert load_report(form)(result(REGRESSED)).count("gate explain gate.jsonl --case refund-late-order") == 1


def test_details_are_named_only_where_one_record_holds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    both = replace(result(PASSED, FAILED), record_paths=("a b.jsonl", "c.jsonl"))
    assert words.explain_line(both, PASSED) == "gate explain 'a b.jsonl' --case small-talk"
    assert words.explain_line(both, both.suites[1]) == "gate explain c.jsonl --case order-status-01"
    assert words.explain_line(replace(both, record_paths=("a.jsonl",)), PASSED) == ""
    assert words.explain_line(result(replace(PASSED, cases=())), PASSED) == ""
    odd = replace(FAILED, cases=(replace(FAILED.cases[0], id="$(rm -rf x)"),))
    assert words.explain_line(result(odd), odd) == "gate explain gate.jsonl --case ID"
    monkeypatch.chdir(tmp_path)
    for path, named in ((str(tmp_path / ".gate" / "a.jsonl"), ".gate/a.jsonl"), ("/else/a.jsonl", "/else/a.jsonl")):
        told = words.explain_line(replace(result(FAILED), record_paths=(path,)), FAILED)
        assert told == f"gate explain {named} --case order-status-01"


BROKE = CaseResult("a", CaseStatus.BROKEN, trials=4, baseline_passed=5, baseline_trials=5)
AS_BEFORE = CaseResult("b", CaseStatus.FAILED, trials=1, baseline_trials=5)
"""Below a threshold of its own, as at the baseline."""
UNMEASURED = CaseResult("c", CaseStatus.ERROR, errors=2, baseline_passed=5, baseline_trials=5)
NAMED_ALIKE = [
    ([BROKE],),
    ([AS_BEFORE], [BROKE, AS_BEFORE]),
    ([UNMEASURED],),
    ([BROKE, UNMEASURED], [AS_BEFORE, UNMEASURED]),
]


def test_a_list_of_cases_is_called_what_holds_of_each() -> None:
    titles = [{words.worse_title(cases) for cases in alike} for alike in NAMED_ALIKE]
    assert [len(one) for one in titles] == [1] * 4 and len(set.union(*titles)) == 4
    for alike in NAMED_ALIKE:
        for form in PAGES:
            shown = load_report(form)(result(replace(REGRESSED, cases=tuple(alike[0]))))
            assert words.worse_title(alike[0]) in shown


@pytest.mark.parametrize("row", [PASSED.criteria[0], CriterionResult(COST, Verdict.PASS)])
def test_a_criterion_is_not_green_without_a_value(row: CriterionResult) -> None:
    assert words.shown(row) is (Verdict.PASS if row.candidate else Verdict.NOT_MEASURED)
    assert words.shown(CriterionResult(COST, Verdict.ERROR)) is Verdict.ERROR


def test_a_case_that_met_the_same_world_is_not_said_to_have_passed_again() -> None:
    same = CaseResult("a", CaseStatus.OK, passed=1, trials=1, same_world=True)
    assert words.status(same) not in words.STATUSES.values()
    failed = replace(same, status=CaseStatus.FLAKY)
    assert words.status(failed) == words.STATUSES[CaseStatus.FLAKY]
    suite: SuiteResult = replace(PASSED, cases=(same,), replayed=ReplayedShare(100, 84, 21, 640, 412, 1.25, ()))
    metrics = load_report("openmetrics")
    assert re.search(r"^gate_cases_same_requests\{.*\} 84$", metrics(result(suite)), re.MULTILINE)
    assert "same_requests" not in metrics(result(PASSED))
    assert f'"rawStatus": "{replayed.SAME}"' in load_report("ctrf")(result(suite))
    assert '"same_world": true' in load_report("json")(result(suite))


@pytest.mark.parametrize("form", ["console", "markdown", "html"])
def test_the_line_of_the_exit_code_says_who_accepted_what_does_not_block(form: str) -> None:
    said = flat(load_report(form)(replace(result(ACCEPTED), verdict=Verdict.REGRESSED)))
    assert "exit code 0: regressed, and accepted by ann" in said
    assert "does not block here" not in said


@pytest.mark.parametrize("reference", ["", "anchor"])
def test_a_line_says_once_that_something_was_not_compared(reference: str) -> None:
    assert words.verdict_line(replace(NOT_COMPARED, reference=reference)).count("compared") == 1
