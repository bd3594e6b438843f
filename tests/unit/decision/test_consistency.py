"""Strategy consistency: which trials are paired, what that says, and what it can never do."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Comparison, More, Settings
from gate.decision.consistency import METRIC, NO_TOOLS, TOO_FEW, compared
from gate.decision.outcomes import mark, passed
from gate.model import (
    CONFIRM,
    Case,
    Criterion,
    ErrorKind,
    Invocation,
    Scale,
    Score,
    Side,
    SuiteResult,
    ToolCall,
    Trial,
    TrialError,
    Verdict,
)
from tests.unit.decision.records import step_of

CRITERION = Criterion("steady", METRIC, Scale.BINARY, threshold=0.8, blocks_regression=False)


def case(name: str, group: str = "") -> Case:
    return Case(name, (), metadata={"equivalent": group} if group else {})


def trial(case_id: str, number: int, tools: str, **fields: object) -> Trial:
    """``ab c`` calls a and b in the first turn, c in the second."""
    turns = tuple(Invocation(tool_calls=tuple(ToolCall(name) for name in turn)) for turn in tools.split(" "))
    return replace(Trial(case_id, number, number, invocations=turns), **fields)  # type: ignore[arg-type]


def values(cases: Sequence[Case], trials: Sequence[Trial], apart: Sequence[str] = ()) -> list[float | None]:
    return [t.scores["steady"].value if t.scores else None for t in compared(cases, [CRITERION], trials, apart)]


def test_two_trials_go_the_same_way_or_do_not() -> None:
    for first, second, same in [
        ("ab", "ab", 1.0),
        ("aab", "abb", 1.0),
        ("", "", 1.0),
        ("ab", "ba", 0.0),
        ("ab", "a b", 0.0),
        ("ab", "abc", 0.0),
        ("a", "", 0.0),
    ]:
        pairs = [trial("x", 1, first), trial("x", 2, second), trial("y", 1, "z")]
        assert values([case("x"), case("y")], pairs) == [None, same, None], (first, second)


def test_pairs_are_disjoint_and_an_odd_trial_is_left_over() -> None:
    ways = ["a", "a", "b", "a", "b"]
    assert values([case("x")], [trial("x", n, way) for n, way in enumerate(ways, 1)]) == [None, 1.0, None, 0.0, None]


def test_equivalent_cases_are_compared_with_one_another_pass_by_pass() -> None:
    cases = [case("x", "refund"), case("y"), case("z", "refund")]
    trials = [
        trial(one, n, way) for n, ways in enumerate(("aba", "cbd"), 1) for one, way in zip("xyz", ways, strict=True)
    ]
    assert values(cases, trials) == [None, None, 1.0, None, 1.0, 0.0]


def test_a_quarantined_case_is_compared_with_itself_alone() -> None:
    cases = [case("x", "g"), case("y", "g")]
    trials = [trial("x", 1, "a"), trial("y", 1, "b"), trial("x", 2, "a"), trial("y", 2, "b")]
    assert values(cases, trials, ["y"]) == [None, None, 1.0, 1.0]


def test_only_measured_trials_of_full_passes_count_and_sides_are_kept_apart() -> None:
    lost = trial("x", 2, "", error=TrialError(ErrorKind.TIMEOUT, "60 s"))
    again, other = trial("x", 3, "b", tag=CONFIRM), trial("x", 1, "b", side=Side.BASELINE)
    trials = [trial("x", 1, "a"), lost, again, other, trial("x", 4, "a"), trial("x", 2, "b", side=Side.BASELINE)]
    assert values([case("x")], trials) == [None, None, None, None, 1.0, 1.0]


def test_what_cannot_be_compared_is_an_error() -> None:
    (alone,) = compared([case("x")], [CRITERION], [trial("x", 1, "a")])
    assert alone.scores["steady"] == Score(None, error=TOO_FEW)
    silent = compared([case("x")], [CRITERION], [trial("x", 1, ""), trial("x", 2, "")])
    assert {t.scores["steady"].error for t in silent} == {NO_TOOLS}


def test_it_says_nothing_of_a_single_trial() -> None:
    assert mark(CRITERION, case("x")) is None
    second = compared([case("x")], [CRITERION], [trial("x", 1, "a"), trial("x", 2, "b")])[1]
    assert second.scores["steady"].value == 0.0
    assert passed(second, case("x"), [CRITERION])


@pytest.mark.slow
@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=4), st.integers(2, 5))
def test_its_mean_is_the_probability_of_going_the_same_way_twice(weights: list[float], n: int) -> None:
    """Over all sequences of n trials with these probabilities of the ways, exactly."""
    ways = [weight / sum(weights) for weight in weights]
    expected = 0.0
    for sequence in product(range(len(ways)), repeat=n):
        likelihood = 1.0
        for way in sequence:
            likelihood *= ways[way]
        found = values([case("x")], [trial("x", k, "abcd"[way]) for k, way in enumerate(sequence, 1)])
        scores = [value for value in found if value is not None]
        expected += likelihood * sum(scores) / len(scores)
    assert expected == pytest.approx(sum(way**2 for way in ways))


def suite(patterns: str, n: int = 20) -> tuple[list[Case], list[Trial]]:
    """``n`` cases, each run once for every letter."""
    cases = [case(f"case-{k}") for k in range(n)]
    return cases, [trial(c.id, number, way) for number, way in enumerate(patterns, 1) for c in cases]


def decide(patterns: str, baseline: str = "", **settings: int) -> More | SuiteResult:
    cases, trials = suite(patterns)
    stored = suite(baseline)[1] if baseline else []
    return step_of(Comparison(cases, [CRITERION], trials, stored, Settings(**settings)))  # type: ignore[arg-type]


def test_a_threshold_decides() -> None:
    for patterns, verdict in [("aa", Verdict.PASS), ("ab", Verdict.BELOW_THRESHOLD)]:
        result = decide(patterns)
        assert isinstance(result, SuiteResult), (patterns, verdict)
        assert result.verdict is verdict, (patterns, verdict)


def test_a_second_pass_is_asked_for_where_one_says_nothing() -> None:
    step = decide("a")
    assert isinstance(step, More)
    assert [(request.tag, request.n) for request in step.requests] == [("full", 1)]
    alone = decide("a", exact_epochs=1)
    assert isinstance(alone, SuiteResult)
    assert alone.verdict is Verdict.ERROR


def test_a_change_against_the_baseline_is_shown_and_never_blocks() -> None:
    cases, trials = suite("aaab" * 2)
    free = replace(CRITERION, threshold=None)
    result = step_of(Comparison(cases, [free], trials, suite("aa" * 4)[1], Settings(exact_epochs=8)))
    assert isinstance(result, SuiteResult)
    assert result.verdict is Verdict.PASS
    found = result.criteria[1]
    assert found.candidate and found.baseline and 0 < found.candidate.value < found.baseline.value == 1.0
    assert found.change is not None and found.change.value == found.candidate.value - 1.0
