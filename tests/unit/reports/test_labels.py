"""What all reports say in the same words, and none says twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.errors import ExitCode
from gate.model import CaseResult, CaseStatus, CriterionResult, Estimate, Verdict
from gate.model.facts import TradedOff
from gate.model.findings import (
    AnyFinding,
    CasesNotScored,
    CaseTally,
    Change,
    ChangeAllowed,
    ChangeUnbounded,
    GotWorse,
    HeldMean,
    MeanExcused,
    MeanHolds,
    MeanMisses,
    MeanOpen,
    MeanProvenShort,
    NothingHeld,
)
from gate.reports import REPORTS, load_report
from gate.reports import labels as words

from .samples import COST, FAILED, PASSED, REGRESSED, RESPONSE, TRAJECTORY, estimate, result

WORDED = [form for form in REPORTS if form not in ("json", "openmetrics")]
"""The forms that are sentences; the others are figures under names."""


def found(*findings: AnyFinding, verdict: Verdict = Verdict.INCONCLUSIVE) -> CriterionResult:
    return CriterionResult(RESPONSE, verdict, findings, estimate(0.2, 0.1, 0.3))


DROP = Change(-0.12, -0.2, -0.04, 12)
MISSED = HeldMean(0.2, 0.9, 4)


@pytest.mark.parametrize(
    ("finding", "told"),
    [
        (ChangeAllowed(DROP), []),
        (ChangeUnbounded(DROP), ["too few trials to bound it"]),
        (GotWorse(DROP, ("a",)), ["broken: a"]),
        (MeanProvenShort(MISSED, 0.4), []),
        (MeanMisses(MISSED), []),
        (MeanOpen(MISSED, 4, too_few=False), ["too close to call after 4 trials"]),
        (CasesNotScored("a", 1, 4, "over 4 cases"), ["could not be measured for a: over 4 cases"]),
    ],
)
def test_what_the_figures_say_is_left_out(finding: AnyFinding, told: list[str]) -> None:
    assert words.telling(found(finding)) == told


EXCUSED = MeanExcused(HeldMean(0.0, 0.9, 3, before=0.0))


def test_a_pass_needs_words_where_the_baseline_excuses_it() -> None:
    assert words.telling(found(EXCUSED, verdict=Verdict.PASS)) == ["the baseline missed it too (0.00)"]
    assert words.telling(found(MeanHolds(HeldMean(1.0, 0.9, 3)), verdict=Verdict.PASS)) == []


@pytest.mark.parametrize("form", WORDED)
def test_every_form_says_why_a_missed_threshold_does_not_block(form: str) -> None:
    excused = found(EXCUSED, verdict=Verdict.PASS)
    page = " ".join(load_report(form)(result(replace(PASSED, criteria=(excused,)))).split())
    assert "the baseline missed it too (0.00)" in page


FELL = MeanHolds(HeldMean(0.917, 0.8, 12, failed=1))


@pytest.mark.parametrize(
    ("findings", "verdict"), [((FELL,), Verdict.PASS), ((FELL, GotWorse(DROP)), Verdict.REGRESSED)]
)
@pytest.mark.parametrize("form", ["console", "markdown", "html"])
def test_every_page_says_which_failures_a_threshold_counts(
    form: str, findings: tuple[AnyFinding, ...], verdict: Verdict
) -> None:
    row = CriterionResult(TRAJECTORY, verdict, findings, Estimate(1.0, 0.8, 1.0, 11, 11))
    page = " ".join(load_report(form)(result(replace(PASSED, verdict=verdict, criteria=(row,)))).split())
    assert "1 trial in which the agent failed counted as 0" in page


@pytest.mark.parametrize("form", WORDED)
def test_what_was_never_measured_is_no_pass_in_any_form(form: str) -> None:
    never = CriterionResult(TRAJECTORY, Verdict.PASS, (NothingHeld(),))
    page = load_report(form)(result(replace(PASSED, criteria=(never,))))
    assert "not measured" in page
    assert "1 criterion passed" not in page


def test_reasons_that_differ_in_figures_or_a_word_are_said_once() -> None:
    reasons = ("match: 0% of the expected words were said", "match: 13% of the expected words were said", "42", "43")
    assert words.distinct(reasons) == (reasons[0], "42", "43")
    calls = ("expected lookup(order='A1'), got refund()", "expected lookup(order='A1'), got cancel(now=True)")
    assert words.distinct(calls) == calls


@pytest.mark.parametrize("form", WORDED)
def test_every_form_says_where_the_details_are(form: str) -> None:
    assert load_report(form)(result(REGRESSED)).count("gate explain gate.jsonl --case refund-late-order") == 1


def test_details_are_named_only_where_one_record_holds_them() -> None:
    both = replace(result(PASSED, FAILED), record_paths=("a b.jsonl", "c.jsonl"))
    assert words.explain_line(both, PASSED) == "gate explain 'a b.jsonl' --case small-talk"
    assert words.explain_line(both, both.suites[1]) == "gate explain c.jsonl --case order-status-01"
    assert words.explain_line(replace(both, record_paths=("a.jsonl",)), PASSED) == ""
    assert words.explain_line(result(replace(PASSED, cases=())), PASSED) == ""
    odd = replace(FAILED, cases=(replace(FAILED.cases[0], id="$(rm -rf x)"),))
    assert words.explain_line(result(odd), odd) == "gate explain gate.jsonl --case ID"


def test_a_record_below_the_folder_of_the_run_is_named_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    here = replace(result(FAILED), record_paths=(str(tmp_path / ".gate" / "a.jsonl"),))
    assert words.explain_line(here, FAILED) == "gate explain .gate/a.jsonl --case order-status-01"
    elsewhere = replace(result(FAILED), record_paths=("/elsewhere/a.jsonl",))
    assert words.explain_line(elsewhere, FAILED) == "gate explain /elsewhere/a.jsonl --case order-status-01"


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (CaseResult("a", CaseStatus.NEVER_PASSED, trials=2, baseline_trials=5), "never passed"),
        (CaseResult("a", CaseStatus.OK, trials=2, passed=2), "ok"),
        (CaseResult("a", CaseStatus.OK), "ok"),
        (CaseResult("a", CaseStatus.BROKEN, trials=2, baseline_trials=5, baseline_passed=5), "broken"),
    ],
)
def test_a_case_of_which_nothing_passed_is_never_called_ok(case: CaseResult, told: str) -> None:
    assert words.status(case) == told
    assert words.status_counts(replace(PASSED, cases=(case,))) == f"1 case: 1 {told}"


BROKE = CaseResult("a", CaseStatus.BROKEN, trials=4, baseline_passed=5, baseline_trials=5)
AS_BEFORE = CaseResult("b", CaseStatus.FAILED, trials=1, baseline_trials=5)
"""Below a threshold of its own, as at the baseline."""
UNMEASURED = CaseResult("c", CaseStatus.ERROR, errors=2, baseline_passed=5, baseline_trials=5)


@pytest.mark.parametrize(
    ("cases", "said"),
    [
        ([BROKE], "Cases that got worse"),
        ([AS_BEFORE], "Cases that failed"),
        ([BROKE, AS_BEFORE], "Cases that failed"),
        ([UNMEASURED], "Cases that could not be measured"),
        ([BROKE, UNMEASURED], "Cases to look at"),
        ([AS_BEFORE, UNMEASURED], "Cases to look at"),
    ],
)
@pytest.mark.parametrize("form", ["markdown", "console", "html"])
def test_a_list_of_cases_is_called_what_holds_of_each(cases: list[CaseResult], said: str, form: str) -> None:
    assert words.worse_title(cases) == said
    shown = load_report(form)(result(replace(REGRESSED, cases=tuple(cases))))
    assert said in shown
    assert ("got worse" in shown.replace(words.headline(REGRESSED), "")) is (said == "Cases that got worse")


def test_the_exit_line_says_whether_an_open_question_blocks() -> None:
    assert words.exit_line(ExitCode.PASS, Verdict.INCONCLUSIVE) == (
        "exit code 0: inconclusive, which does not block here"
    )
    assert words.exit_line(ExitCode.FAILED, Verdict.INCONCLUSIVE) == (
        "exit code 1: inconclusive, which blocks here (`gate.on_inconclusive`)"
    )
    assert words.exit_line(ExitCode.FAILED, Verdict.REGRESSED) == "exit code 1: the gate failed"


def test_a_gain_in_a_trade_is_not_called_chance() -> None:
    gained = CaseTally("a", 1, 1, 0, 5)
    trade = TradedOff((CaseTally("b", 0, 7, 7, 7),), (gained,), named=True, gained_named=False, policy="block")
    case = CaseResult("a", CaseStatus.OK, passed=1, trials=1, baseline_trials=5, improvement=6.0)
    assert words.improvement(case, PASSED) == "0/5 → 1/1, perhaps by chance"
    assert words.improvement(case, replace(PASSED, trade=trade)) == "0/5 → 1/1, not proven alone"


def test_a_criterion_that_only_warns_is_not_green_without_a_value() -> None:
    assert words.shown(CriterionResult(COST, Verdict.PASS)) is Verdict.NOT_MEASURED
    assert words.shown(CriterionResult(COST, Verdict.ERROR)) is Verdict.ERROR
