"""The sentence that broken cases have in common: the calls that are missing, new, or in another order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, SuiteResult, ToolCall
from gate.model.finding import Finding
from gate.reports import explanation
from gate.reports.behaviour import MAX_NAME_CHARS
from gate.reports.behaviour import changed_behaviour as common

from .hostile import CORPUS
from .samples import LOST


def calls(names: str) -> tuple[tuple[ToolCall, ...], ...]:
    """Calls by their names, turns apart by a bar."""
    return tuple(tuple(ToolCall(name) for name in turn.split()) for turn in names.split("|"))


def case(before: str, now: str, case_id: str = "a", *, status: CaseStatus = CaseStatus.BROKEN) -> CaseResult:
    return CaseResult(case_id, status, trials=3, reference=calls(before), actual=calls(now))


def suite(*cases: CaseResult) -> SuiteResult:
    broken = tuple(one.id for one in cases if one.status is CaseStatus.BROKEN)
    return replace(LOST, cause=Finding.of("cases_broke", cases=broken, of=40), cases=cases)


def changed_behaviour(found: SuiteResult) -> str:
    assert found.cause.kind == "cases_broke"
    return common(found.cases, found.cause["cases"])[0]


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("look_up refund", "refund", "no longer calls look_up before refund"),
        ("look_up | refund", "| refund", "no longer calls look_up before refund"),
        ("look_up refund", "look_up", "no longer calls refund"),
        ("look_up refund", "", "no longer calls look_up"),
        ("look_up refund", "look_up escalate", "calls escalate instead of refund"),
        ("look_up", "look_up escalate", "now also calls escalate"),
        ("look_up refund", "refund look_up", "calls its tools in another order"),
        ("look_up look_up refund", "look_up refund", "calls look_up once instead of twice"),
        ("look_up refund", "look_up | look_up look_up refund", "calls look_up 3 times instead of once"),
        ("look_up look_up", "look_up escalate", "now also calls escalate"),
        ("look_up refund", "look_up refund", ""),
        ("", "look_up", ""),
    ],
)
def test_one_case(before: str, now: str, told: str) -> None:
    found = suite(case(before, now))
    assert changed_behaviour(found) == told
    assert explanation.headline(found).startswith(f"the agent {told} (1 of 40 cases: a)" if told else "1 of 40 cases")


def test_only_what_at_least_half_of_the_broken_cases_share_is_told() -> None:
    one, other = case("look_up refund", "refund", "a"), case("greet", "greet close", "b")
    third, fourth = case("ask", "answer", "c"), case("sum", "sum", "d")
    told = "no longer calls look_up before refund"
    half = suite(one, replace(one, id="e"), other, fourth)
    assert changed_behaviour(half) == told
    assert explanation.headline(half) == f"the agent {told} in 2 of the 4 cases that broke (4 of 40 cases: a, e, b, d)"
    assert changed_behaviour(suite(one, other, third)) == ""
    assert explanation.headline(suite(one, other, third)) == "3 of 40 cases broke: a, b, c"


def test_cases_that_did_not_break_and_that_never_answered_say_nothing() -> None:
    fine = case("look_up refund", "refund", status=CaseStatus.FLAKY)
    assert changed_behaviour(suite(fine)) == ""
    failed = [case("look_up refund", "refund", f"f{n}", status=CaseStatus.FAILED) for n in range(3)]
    assert changed_behaviour(suite(case("greet", "greet close"), *failed)) == "now also calls close"
    assert changed_behaviour(suite(replace(case("look_up", ""), crashes=3))) == ""


def test_expected_calls_stand_in_for_a_baseline_without_calls() -> None:
    expected = replace(case("", "refund"), reference=(), expected=(*calls("look_up refund"), None))
    assert changed_behaviour(suite(expected)) == "no longer calls look_up before refund"


@pytest.mark.parametrize("name", [*CORPUS, "x" * 10_000, "a\nb\tc " * 1_000])
def test_hostile_names_stay_on_one_line_and_short(name: str) -> None:
    broken = replace(case("", "refund"), reference=((ToolCall(name), ToolCall("refund")),))
    told = changed_behaviour(suite(broken))
    assert "\n" not in told
    assert len(told) <= len("no longer calls  before refund") + MAX_NAME_CHARS + len("… (10,000 more characters)")
