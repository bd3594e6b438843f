"""The sentence that broken cases have in common: the calls that are missing, new, or in another order."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.model import CaseResult, CaseStatus, ToolCall
from gate.reports.behaviour import MAX_NAME_CHARS, changed_behaviour

from .hostile import CORPUS


def calls(names: str) -> tuple[tuple[ToolCall, ...], ...]:
    """Calls by their names, turns apart by a bar."""
    return tuple(tuple(ToolCall(name) for name in turn.split()) for turn in names.split("|"))


def case(before: str, now: str, case_id: str = "a") -> CaseResult:
    return CaseResult(case_id, CaseStatus.BROKEN, trials=3, reference=calls(before), actual=calls(now))


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ("look_up refund", "refund", "no longer calls `look_up` before `refund`"),
        ("look_up | refund", "| refund", "no longer calls `look_up` before `refund`"),
        ("look_up refund", "look_up", "no longer calls `refund`"),
        ("look_up refund", "", "no longer calls `look_up`"),
        ("look_up refund", "look_up escalate", "calls `escalate` instead of `refund`"),
        ("look_up", "look_up escalate", "now also calls `escalate`"),
        ("look_up refund", "refund look_up", "calls its tools in another order"),
        ("look_up look_up refund", "look_up refund", "calls `look_up` once instead of twice"),
        ("look_up refund", "look_up | look_up look_up refund", "calls `look_up` 3 times instead of once"),
        ("look_up look_up", "look_up escalate", "now also calls `escalate`"),
        ("look_up refund", "look_up refund", ""),
        ("", "look_up", ""),
    ],
)
def test_one_case(before: str, now: str, told: str) -> None:
    assert changed_behaviour([case(before, now)], ["a"]) == (told, 1 if told else 0)


def test_only_what_at_least_half_of_the_broken_cases_share_is_told() -> None:
    one, other = case("look_up refund", "refund", "a"), case("greet", "greet close", "b")
    third, fourth = case("ask", "answer", "c"), case("sum", "sum", "d")
    half = [one, replace(one, id="e"), other, fourth]
    assert changed_behaviour(half, "abde") == ("no longer calls `look_up` before `refund`", 2)
    assert changed_behaviour([one, other, third], "abc") == ("", 0)


def test_the_call_that_follows_is_told_only_if_it_is_the_same_in_all() -> None:
    alone, before_refund = case("look_up", "", "a"), case("look_up refund", "refund", "b")
    assert changed_behaviour([alone, before_refund], "ab") == ("no longer calls `look_up`", 2)


def test_cases_that_did_not_break_and_that_never_answered_say_nothing() -> None:
    broken = case("look_up refund", "refund")
    assert changed_behaviour([broken], []) == ("", 0)
    assert changed_behaviour([replace(case("look_up", ""), crashes=3)], ["a"]) == ("", 0)


def test_calls_of_a_case_without_a_failing_trial_are_not_known() -> None:
    """Its score fell, though every trial passes: no trial is shown, which is not one without calls."""
    fell = replace(case("look_up", ""), status=CaseStatus.OK, actual=())
    assert changed_behaviour([fell], ["a"]) == ("", 0)


def test_expected_calls_stand_in_for_a_baseline_without_calls() -> None:
    expected = replace(case("", "refund"), reference=(), expected=(*calls("look_up refund"), None))
    assert changed_behaviour([expected], ["a"]) == ("no longer calls `look_up` before `refund`", 1)


@pytest.mark.parametrize("name", [*CORPUS, "x" * 10_000, "a\nb\tc " * 1_000, "a`b`c"])
def test_hostile_names_stay_on_one_line_short_and_between_their_backticks(name: str) -> None:
    broken = replace(case("", "refund"), reference=((ToolCall(name), ToolCall("refund")),))
    told, _ = changed_behaviour([broken], ["a"])
    assert "\n" not in told
    assert told.count("`") in ((4,) if name else (0,))
    assert len(told) <= len("no longer calls `` before `refund`") + MAX_NAME_CHARS + len("… (10,000 more characters)")
