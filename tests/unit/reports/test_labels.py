"""What all reports say in the same words, and none says twice."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model import CriterionResult, Verdict
from gate.reports import REPORTS, load_report
from gate.reports import labels as words

from .samples import COST, FAILED, PASSED, REGRESSED, RESPONSE, TRAJECTORY, estimate, result


def found(reason: str, verdict: Verdict = Verdict.INCONCLUSIVE) -> CriterionResult:
    return CriterionResult(RESPONSE, verdict, reason, estimate(0.2, 0.1, 0.3))


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("−50.0 points (−80.0 to −20.0) over 4 cases", ""),
        ("-50.0 points over 1 case", ""),
        ("+12% (−1% to +30%) over 4 cases: a change to +30% is not ruled out", "a change to +30% is not ruled out"),
        ("−0.120 (−0.200 to −0.040) over 12 cases; broken: a", "broken: a"),
        ("mean 0.2 over 4 cases, threshold 0.9; at best 0.4", ""),
        ("mean 3.2 s over 4 cases, threshold 3 s (strict)", ""),
        ("mean 12.5% over 4 cases, threshold 90.0%: too near to tell with 4 trials", "too near to tell with 4 trials"),
        ("could not be measured for a: over 4 cases", "could not be measured for a: over 4 cases"),
        ("2 cases broke", "2 cases broke"),
    ],
)
def test_what_the_figures_say_is_left_out(reason: str, told: str) -> None:
    assert words.telling(found(reason)) == told


def test_a_pass_needs_words_where_the_baseline_excuses_it() -> None:
    excused = found("mean 0 over 3 cases, threshold 0.9; the baseline missed it too (0)", Verdict.PASS)
    assert words.telling(excused) == "the baseline missed it too (0)"
    assert words.telling(found("mean 1 over 3 cases, threshold 0.9", Verdict.PASS)) == ""


@pytest.mark.parametrize("form", [form for form in REPORTS if form != "json"])
def test_every_form_says_why_a_missed_threshold_does_not_block(form: str) -> None:
    excused = found("mean 0 over 3 cases, threshold 0.9; the baseline missed it too (0)", Verdict.PASS)
    page = " ".join(load_report(form)(result(replace(PASSED, criteria=(excused,)))).split())
    assert "the baseline missed it too (0)" in page


@pytest.mark.parametrize("form", [form for form in REPORTS if form != "json"])
def test_what_was_never_measured_is_no_pass_in_any_form(form: str) -> None:
    never = CriterionResult(TRAJECTORY, Verdict.PASS, "nothing to hold it to")
    page = load_report(form)(result(replace(PASSED, criteria=(never,))))
    assert "not measured" in page
    assert "1 criterion passed" not in page


def test_reasons_that_differ_in_figures_or_a_word_are_said_once() -> None:
    reasons = ("match: 0% of the expected words were said", "match: 13% of the expected words were said", "42", "43")
    assert words.distinct(reasons) == (reasons[0], "42", "43")
    calls = ("expected lookup(order='A1'), got refund()", "expected lookup(order='A1'), got cancel(now=True)")
    assert words.distinct(calls) == calls


@pytest.mark.parametrize("form", [form for form in REPORTS if form != "json"])
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


def test_a_criterion_that_only_warns_is_not_green_without_a_value() -> None:
    assert words.shown(CriterionResult(COST, Verdict.PASS, "")) is Verdict.NOT_MEASURED
    assert words.shown(CriterionResult(COST, Verdict.ERROR, "")) is Verdict.ERROR
