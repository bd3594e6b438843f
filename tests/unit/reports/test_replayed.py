"""What every report says of recordings that were replayed."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, Replay, Result, SuiteResult, Trial
from gate.model.facts import LiveCase, ReplayedShare
from gate.reports import checks, console, ctrf, junit, labels, markdown, openmetrics, replayed
from gate.reports import json as json_report
from gate.reports.html import report

from .samples import PASSED, result

LINE = "84 of 100 cases: nothing the model sees changed (0 calls). 16 went live: 21 runs."
TEXT = "request 3 differs in tools[2].description"
LIVE = tuple(LiveCase(f"c{i}", 2 if i < 5 else 1, 40, TEXT if i < 15 else "") for i in range(16))
SHARE = ReplayedShare(100, 84, 21, 640, 412, 1.25, LIVE)


def suite() -> SuiteResult:
    cases = (
        CaseResult("refund", CaseStatus.OK, passed=1, trials=1, baseline_passed=5, baseline_trials=5, same_world=True),
        CaseResult("cancel", CaseStatus.OK, passed=1, trials=1, difference=TEXT),
    )
    return replace(PASSED, replayed=SHARE, cases=cases)


def whole() -> Result:
    return result(suite())


def test_the_line_says_what_changed_nothing_and_what_went_live() -> None:
    assert replayed.line(suite()) == LINE
    same = replace(suite(), replayed=ReplayedShare(100, 100, 0, 0, 500))
    assert replayed.line(same) == "100 of 100 cases: nothing the model sees changed (0 calls)."
    assert replayed.calls(suite()) == "412 calls answered from recordings, 640 live; $1.25 saved"


def test_cases_that_differ_alike_share_a_line() -> None:
    assert replayed.differences(suite()) == (f"15 cases (c0, c1, c2, …): {TEXT}", "c15: no recording to compare with")


@pytest.mark.parametrize("form", [console.render, markdown.render, junit.render, report.render])
def test_every_form_says_it(form) -> None:  # type: ignore[no-untyped-def]
    text = " ".join(form(whole()).split())
    assert "84 of 100 cases: nothing the model sees changed" in text
    assert "16 went live: 21 runs" in text
    assert "412 calls answered from recordings, 640 live" in text
    assert "1.25 saved" in text
    assert "tools[2].description" in text.replace("\\", "").replace("&#91;", "[").replace("&#93;", "]")


def test_programs_tell_a_case_that_met_the_same_world_from_one_that_passed_again() -> None:
    tests = {one["name"]: one for one in json.loads(ctrf.render(whole()))["results"]["tests"]}
    assert (tests["refund"]["rawStatus"], tests["cancel"]["rawStatus"]) == (replayed.SAME, "ok")
    assert tests["refund"]["stdout"] == [replayed.ASKED_THE_SAME]
    text = openmetrics.render(whole())
    assert 'gate_cases_same_requests{suite="' in text and "} 84\n" in text
    assert "same_requests" not in openmetrics.render(result(PASSED))


def test_the_json_report_holds_the_facts() -> None:
    (found,) = json.loads(json_report.render(whole()))["suites"]
    assert found["replayed"]["same"] == 84
    assert found["replayed"]["live"][0]["difference"] == TEXT
    assert found["cases"][0]["same_world"] is True


def test_a_case_that_met_the_same_world_is_not_said_to_have_passed_again() -> None:
    same, live = suite().cases
    assert labels.status(same) == "same requests"
    assert labels.status(live) == "ok"
    items = {item.name: item for item in checks.checks_of(suite(), whole()) if item.case is not None}
    assert items["refund"].output == ("the model was asked the same things",)
    assert items["cancel"].output == (f"went live: {TEXT}",)


def test_a_case_that_failed_in_the_same_world_keeps_its_status() -> None:
    failed = CaseResult("refund", CaseStatus.FLAKY, same_world=True)
    assert labels.status(failed) == labels.STATUSES[CaseStatus.FLAKY]


def test_a_trial_says_how_it_was_answered() -> None:
    said = replayed.of_trial(Trial("c", 1, replay=Replay("base:1", 3, 0)))
    assert said == "3 calls answered from recordings, 0 live: the model was asked the same things"
    said = replayed.of_trial(Trial("c", 1, replay=Replay("base:1", 1, 2, TEXT)))
    assert said == f"1 call answered from recordings, 2 live: {TEXT}"
    assert replayed.of_trial(Trial("c", 1, replay=Replay("", 0, 2))) == replayed.of_trial(Trial("c", 1)) == ""


def test_without_recordings_no_form_says_a_word_of_them() -> None:
    for form in (console.render, markdown.render, junit.render):
        assert "went live" not in form(result(PASSED))
        assert "the model sees" not in form(result(PASSED))
