"""Differences of trajectories and answers, on small cases worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.model import CaseResult, CaseStatus, ToolCall
from gate.reports.trajectory_diff import MAX_CALLS, call_text, differences, trajectory_diff
from tests.properties import examples

A, B, C = ToolCall("a", {"x": 1}), ToolCall("b", {}), ToolCall("c")


def case(expected=(), actual=(), reference=()) -> CaseResult:
    return CaseResult("id", CaseStatus.BROKEN, expected=expected, actual=actual, reference=reference)


def test_calls_as_text() -> None:
    assert call_text(A) == "a(x=1)"
    assert call_text(C) == "c()"
    assert (
        call_text(ToolCall("t", {"s": 'é"', "n": None, "l": [True, {"k": 0.5}]}))
        == 't(s="é\\"", n=null, l=[true, {"k": 0.5}])'
    )
    assert call_text(ToolCall("t", "raw")) == 't("raw")'
    assert call_text(ToolCall("", category="search")) == "any search tool"
    assert call_text(ToolCall("t", error="boom")) == "t() → error: boom"


def test_missing_changed_and_further_calls() -> None:
    (turn,) = trajectory_diff(case([(A, B)], [(ToolCall("a", {"x": 2}), B, C)]))
    assert turn.lines == (("-", "a(x=1)"), ("+", "a(x=2)"), (" ", "b()"), ("+", "c()"))
    assert turn.title == "turn 1: - expected, + actual"


def test_only_turns_that_differ_are_shown() -> None:
    turns = trajectory_diff(case([(A,), (B,), ()], [(A,), (B, C), ()]))
    assert [(t.turn, t.lines) for t in turns] == [(2, ((" ", "b()"), ("+", "c()")))]


def test_the_same_calls_are_not_shown() -> None:
    assert trajectory_diff(case([(A,), (B,)], [(A,), (B,)])) == ()


def test_where_nothing_is_expected_the_baseline_stands_in() -> None:
    (turn,) = trajectory_diff(case([None], [(A,)], [(A, B)]))
    assert turn.against == "baseline"
    assert turn.lines == ((" ", "a(x=1)"), ("-", "b()"))


def test_without_a_trial_nothing_is_called_missing() -> None:
    assert trajectory_diff(case([(A,)])) == ()
    assert trajectory_diff(case([(A,)], [()])) != ()


def test_with_nothing_to_compare_nothing_is_shown() -> None:
    assert trajectory_diff(case([None], [(A,)])) == trajectory_diff(case([None], [()])) == ()


def answers(expected: tuple[str | None, ...], actual: tuple[str | None, ...]) -> list[tuple[str, list[str]]]:
    found = CaseResult("id", CaseStatus.BROKEN, expected_text=expected, actual_text=actual)
    return [(turn.title, [f"{mark} {text}" for mark, text in turn.lines]) for turn in differences(found)]


def test_an_answer_is_shown_beside_what_was_expected() -> None:
    sunny = "It is sunny in Paris."
    both = "turn {}: - expected answer, + actual answer"
    assert answers((sunny,), ("No idea.",)) == [(both.format(1), [f"- {sunny}", "+ No idea."])]
    assert answers(("hi", sunny), ("hi", None)) == [(both.format(2), [f"- {sunny}", "+ (no answer)"])]
    assert answers(("hi",), ("hi",)) == answers(("hi",), ()) == answers((), ()) == []


def test_where_no_answer_is_stated_the_last_one_is_shown() -> None:
    assert answers((), ("Hello.", "No idea.")) == [("turn 2: + actual answer", ["+ No idea."])]


def test_long_answers_are_cut() -> None:
    ((_, lines),) = answers(("a" * 2_000,), ("b\n" * 1_000,))
    assert lines[0] == "- " + "a" * 199 + "…"
    assert len(lines[1]) < 500
    assert len(answers(("a",) * 50, ("b",) * 50)) == 5


def test_expecting_no_call_is_something() -> None:
    (turn,) = trajectory_diff(case([()], [(A,)]))
    assert turn.lines == (("+", "a(x=1)"),)


def test_a_turn_that_never_happened_is_missing() -> None:
    (turn,) = trajectory_diff(case([(A,), (B,)], [(A,)]))
    assert (turn.turn, turn.lines) == (2, (("-", "b()"),))


def test_a_tool_named_without_arguments_takes_any() -> None:
    anything = ToolCall("a", any_args=True)
    assert call_text(anything) == "a(…)"
    (turn,) = trajectory_diff(case([(anything, B)], [(A, C)]))
    assert turn.lines == ((" ", "a(x=1)"), ("-", "b()"), ("+", "c()"))
    (turn,) = trajectory_diff(case([(anything,)], [(B,)]))
    assert turn.lines == (("-", "a(…)"), ("+", "b()"))


def test_long_trajectories_are_bounded_and_say_so() -> None:
    many = tuple(ToolCall(f"t{i}") for i in range(5_000))
    (turn,) = trajectory_diff(case([many], [many[1:]]))
    assert len(turn.lines) <= 2 * MAX_CALLS + 1
    assert turn.lines[0] == ("-", "t0()")
    assert turn.lines[-1] == (" ", "… (4,800 more calls not compared)")


def test_bottomless_arguments_are_bounded() -> None:
    deep: object = "x"
    for _ in range(5_000):
        deep = [deep]
    wide = {f"k{i}": "v" * 1_000 for i in range(1_000)}
    assert len(call_text(ToolCall("t", {"d": deep}))) < 800
    assert len(call_text(ToolCall("t", wide))) < 800


@pytest.mark.slow
@settings(max_examples=examples(50))
@given(
    st.text(st.characters()),
    st.recursive(st.none() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)),
)
def test_any_call_has_a_text(name: str, args: object) -> None:
    assert len(call_text(ToolCall(name, args)).splitlines()) == 1
