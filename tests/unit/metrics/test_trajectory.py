from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gate.metrics.base import Context
from gate.metrics.trajectory import MatchType, ToolTrajectory, TrajectoryOptions
from gate.model import Invocation, ToolCall, Turn
from tests.unit.metrics.build import Calls, call, tool_score

NAME = "tool_trajectory_avg_score"


def test_google_adks_spellings_are_understood() -> None:
    for spelling in ["ANY_ORDER", "any_order", "Any-Order", " any order ", 2, MatchType.ANY_ORDER]:
        assert TrajectoryOptions.model_validate({"match_type": spelling}).match_type is MatchType.ANY_ORDER, spelling


def test_other_spellings_are_refused() -> None:
    for wrong in ["SOME_ORDER", "", 3, None, "2x"]:
        with pytest.raises(ValidationError):
            TrajectoryOptions.model_validate({"match_type": wrong})


def test_match_types() -> None:
    for expected, actual, exact, in_order, any_order in [
        ([], [], 1, 1, 1),
        ([], ["a"], 0, 1, 1),
        (["a"], [], 0, 0, 0),
        (["a", "b"], ["a", "b"], 1, 1, 1),
        (["a", "b"], ["a", "x", "b"], 0, 1, 1),
        (["a", "b"], ["b", "a"], 0, 0, 1),
        (["a", "a"], ["a"], 0, 0, 0),
        (["a", "a"], ["a", "b", "a"], 0, 1, 1),
        (["a"], ["A"], 0, 0, 0),
    ]:
        scores = [tool_score(NAME, [expected], [actual], match_type=kind).value for kind in MatchType]
        assert scores == [exact, in_order, any_order], (expected, actual)


def test_arguments_are_compared_as_python_does() -> None:
    for wanted, got, same in [
        ({"n": 1}, {"n": 1.0}, True),
        ({"n": 1}, {"n": True}, True),
        ({"n": 1}, {"n": "1"}, False),
        ({"l": [1, 2]}, {"l": [2, 1]}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": "é"}, {"a": "e\u0301"}, False),
        (None, {}, False),
        (None, None, True),
    ]:
        expected, actual = [ToolCall("t", wanted, id="1")], [ToolCall("t", got, id="2")]
        assert tool_score(NAME, [expected], [actual]).value == float(same), (wanted, got)
        assert tool_score(NAME, [expected], [actual], ignore_args=True).value == 1.0, (wanted, got)


def test_the_score_is_the_mean_over_turns_that_state_something() -> None:
    score = tool_score(NAME, [["a"], None, ["b"], []], [["a"], ["z"], ["x"], []])
    assert score.value == 2 / 3
    assert score.per_turn == (1.0, None, 0.0, 1.0)


def test_a_case_that_states_nothing_does_not_apply() -> None:
    score = tool_score(NAME, [None], [["a"]])
    assert (score.value, score.error) == (None, None)


def test_turn_counts_that_differ_are_an_error() -> None:
    score = tool_score(NAME, [["a"], ["b"]], [["a"]])
    assert score.value is None
    assert score.error == "turns: 2 in the case, 1 in the trial; they cannot be compared turn by turn"


def test_the_reason_shows_expected_against_actual() -> None:
    expected = [["hello"], [call("get_order", id="A1"), call("refund", id="A1", reason="late")]]
    score = tool_score(NAME, expected, [["hello"], [call("get_order", id="A2")]])
    assert score.reason == (
        "turn 2: get_order was called with id='A2' instead of 'A1': "
        "expected get_order(id='A1') → refund(id='A1', reason='late'), got get_order(id='A2')"
    )
    assert tool_score(NAME, [["a", "b"]], [["b"]], match_type="IN_ORDER").reason.startswith(
        "a() is missing: expected a()"
    )
    assert tool_score(NAME, [["a", "b"]], [["b"]], match_type="ANY_ORDER", ignore_args=True).reason == (
        "a is missing: expected a → b, got b"
    )
    assert tool_score(NAME, [["a"]], [[]]).reason == "expected a(), got no call"


def test_the_reason_names_the_arguments_of_the_nearest_call() -> None:
    wanted = call("book", origin="JFK", cabin="business", bags=1, user="u")
    actual = [call("book"), call("book", origin="JFK", cabin="economy", user="u", pet=True)]
    for kind in MatchType:
        reason = tool_score(NAME, [[wanted]], [actual], match_type=kind).reason
        assert reason.startswith("book was called with cabin='economy' instead of 'business', no bags, pet besides: ")
    twice = tool_score(NAME, [[call("get", id=1), call("get", id=2)]], [[call("get", id=1), call("get", id=3)]])
    assert twice.reason.startswith("get was called with id=3 instead of 2: ")
    assert "was called with" not in tool_score(NAME, [[wanted]], [["pay"]]).reason
    assert tool_score(NAME, [[wanted]], [[ToolCall("book")]]).reason.startswith("book was called with no arguments: ")


def test_a_reason_is_bounded_and_harmless_whatever_an_agent_calls() -> None:
    hostile = ToolCall("x\n\x1b[31m" * 500, {"k\n" * 500: "v" * 10_000, **{str(n): [[[]]] for n in range(50)}})
    score = tool_score(NAME, [["a"]] * 9, [[hostile] * 500] * 9)
    assert len(score.reason) < 3_000
    assert score.reason.isprintable()
    assert "and 6 more turns" in score.reason


@pytest.mark.slow
def test_arguments_nested_without_end_are_not_measured() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    twin: list[object] = []
    for _ in range(100_000):
        twin = [twin]
    score = tool_score(NAME, [[call("a", x=deep)]], [[call("a", x=twin)]])
    assert score.value is None
    assert "nested too deeply" in (score.error or "")


# --- beyond google-adk ----------------------------------------------------------------------------


def test_a_name_without_arguments_in_our_own_format_takes_any() -> None:
    expected = [ToolCall("refund", any_args=True)]
    assert tool_score(NAME, [expected], [[call("refund", id=1)]]).value == 1.0
    assert tool_score(NAME, [expected], [["other"]]).value == 0.0


def test_argument_matchers() -> None:
    for rule, wanted, got, same in [
        ("ignore", {"a": 1}, {"b": 2}, True),
        ("subset", {"a": 1}, {"a": 1, "b": 2}, True),
        ("subset", {"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, True),
        ("subset", {"a": 1, "b": 2}, {"a": 1}, False),
        ("subset", None, {"a": 1}, True),
        ("regex", {"id": r"A\d+"}, {"id": "A17"}, True),
        ("regex", {"id": r"A\d+"}, {"id": "A17x"}, False),
        ("regex", {"id": r"A\d+"}, {"id": "A17", "more": 1}, False),
        ("regex", {"n": 3}, {"n": 3}, True),
        ({"tolerance": 0.01}, {"p": 9.99}, {"p": 10.0}, True),
        ({"tolerance": 0.01}, {"p": 9.9}, {"p": 10.0}, False),
        ({"tolerance": 0.01}, {"p": [1, {"q": 2.0}]}, {"p": [1, {"q": 2.005}]}, True),
        ({"tolerance": 1}, {"p": True}, {"p": 0}, False),
        ({"match": "subset", "tolerance": 0.5}, {"p": 1}, {"p": 1.4, "q": 0}, True),
    ]:
        score = tool_score(NAME, [[ToolCall("t", wanted)]], [[ToolCall("t", got)]], args=rule)
        assert score.value == float(same), (rule, wanted)


def test_a_tool_may_have_a_matcher_of_its_own() -> None:
    expected = [[call("search", q="x"), call("refund", id="A1")]]
    actual = [[call("search", q="other words"), call("refund", id="A1")]]
    assert tool_score(NAME, expected, actual).value == 0.0
    assert tool_score(NAME, expected, actual, tools={"search": "ignore"}).value == 1.0
    assert tool_score(NAME, expected, actual, args="ignore", tools={"search": "exact"}).value == 0.0


def test_an_expected_pattern_that_is_none_is_not_measured() -> None:
    score = tool_score(NAME, [[call("t", id="A(")]], [[call("t", id="A")]], args="regex")
    assert score.value is None
    assert "not a regular expression" in (score.error or "")


def test_partial_credit() -> None:
    for credit, match_type, value in [
        ("recall", "ANY_ORDER", 2 / 3),
        ("precision", "ANY_ORDER", 2 / 4),
        ("f1", "ANY_ORDER", 4 / 7),
        ("recall", "IN_ORDER", 1 / 3),
        ("f1", "EXACT", 2 / 7),
    ]:
        score = tool_score(NAME, [["a", "b", "c"]], [["c", "x", "a", "y"]], credit=credit, match_type=match_type)
        assert score.value == value, (credit, match_type)


def test_credit_at_the_edges() -> None:
    for credit, nothing_done, too_much in [("f1", 0, 0), ("precision", 0, 0), ("recall", 0, 1)]:
        assert tool_score(NAME, [["a"]], [[]], credit=credit).value == nothing_done, (credit, nothing_done)
        assert tool_score(NAME, [[]], [["a"]], credit=credit).value == too_much, (credit, nothing_done)
        assert tool_score(NAME, [[]], [[]], credit=credit).value == 1.0, (credit, nothing_done)


SEARCH = Context({"search": frozenset({"web", "docs"})})


def test_a_category_stands_for_any_of_its_tools() -> None:
    any_search = ToolCall("", category="search")
    assert tool_score(NAME, [[any_search]], [[call("docs", q=1)]], SEARCH).value == 1.0
    assert tool_score(NAME, [[any_search]], [["mail"]], SEARCH).value == 0.0
    assert "any search tool" in tool_score(NAME, [[any_search]], [["mail"]], SEARCH).reason


def test_a_category_never_takes_the_only_call_of_another() -> None:
    expected = [ToolCall("", category="search"), ToolCall("web", {})]
    assert tool_score(NAME, [expected], [["web", "docs"]], SEARCH, match_type="ANY_ORDER").value == 1.0


def test_a_category_that_is_not_defined_is_not_measured() -> None:
    score = tool_score(NAME, [[ToolCall("", category="serach")]], [["web"]], SEARCH)
    assert score.value is None
    assert "'serach'" in (score.error or "")


names = st.lists(st.sampled_from("abc"), max_size=6)


@given(names, names)
def test_what_matches_strictly_matches_loosely_and_has_full_credit(expected: list[str], actual: list[str]) -> None:
    exact, in_order, any_order = (tool_score(NAME, [expected], [actual], match_type=kind).value for kind in MatchType)
    assert exact <= in_order <= any_order  # type: ignore[operator]
    for kind, full in zip(MatchType, (exact, in_order, any_order), strict=True):
        recall = tool_score(NAME, [expected], [actual], match_type=kind, credit="recall").value
        assert recall == 1.0 or not full
        f1 = tool_score(NAME, [expected], [actual], match_type=kind, credit="f1").value
        assert (f1 == 1.0) == (sorted(expected) == sorted(actual) if kind == 2 else expected == actual)


# --- sequence_correctness -------------------------------------------------------------------------


def test_sequence_correctness_compares_names() -> None:
    for mode, value in [("subsequence", (1, 1, 0)), ("exact", (1, 0, 0)), ("unordered", (1, 1, 1))]:
        actual: list[Calls] = [[call("a", x=1), "b"], ["a", "c", "b"], ["b", "a"]]
        score = tool_score("sequence_correctness", [["a", "b"]] * 3, actual, mode=mode)
        assert score.per_turn == value, (mode, value)


def test_sequence_correctness_is_a_subsequence_by_default() -> None:
    assert tool_score("sequence_correctness", [["a", "b"]], [["a", "x", "b"]]).value == 1.0
    score = tool_score("sequence_correctness", [["a", "b"]], [["b"]])
    assert score.value == 0.0
    assert score.reason == "a is missing: expected a → b, got b"


@pytest.mark.parametrize("match_type", ["EXACT", "IN_ORDER"])
@pytest.mark.parametrize("credit", ["none", "f1"])
def test_many_calls_are_compared_once_where_they_are_equal(match_type: str, credit: str) -> None:
    """Comparing each with each took minutes for an agent in a loop."""
    asked = [ToolCall("look_up", {"n": n}) for n in range(3_000)]
    for made in ([*asked[:-1], ToolCall("look_up", {"n": -1})], [ToolCall("greet", {}), *asked[1:]], asked[:-1]):
        metric = ToolTrajectory(TrajectoryOptions(match_type=match_type, credit=credit))
        compared, same = count(), metric._same
        metric._same = lambda *pair, same=same, compared=compared: (next(compared), same(*pair))[1]
        found = metric.judge_turn(Turn("hi", tuple(asked)), Invocation("hi", tool_calls=tuple(made)))
        assert found.value < 1.0
        assert next(compared) < 20 * len(asked)
