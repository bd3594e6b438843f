from gate.metrics.base import Context
from gate.model import Scale
from tests.unit.metrics.build import metric, tool_score


def test_one_occurrence_in_any_spelling_fails() -> None:
    for called in ["edit_file", "EditFile", "edit-file", "EDIT.FILE", "edit file", "ｅｄｉｔ_file"]:
        for forbidden in ["edit_file", "EditFile", "edit-file"]:
            score = tool_score("forbidden_tools", [None, None], [["read"], [called]], tools=[forbidden])
            assert score.value == 0.0, (called, forbidden)
            assert called in score.reason, (called, forbidden)
            assert "turn 2" in score.reason, (called, forbidden)


def test_other_tools_pass() -> None:
    assert tool_score("forbidden_tools", [None], [["edit_files", "edit"]], tools=["edit_file"]).value == 1.0
    assert tool_score("forbidden_tools", [None], [[]], tools=["edit_file"]).value == 1.0


def test_repeated_calls_count_once() -> None:
    score = tool_score("forbidden_tools", [None], [["drop", "Drop", "drop"]], tools=["drop"])
    assert score.reason == "forbidden tool called: drop (turn 1)"


def test_where_nothing_is_forbidden_it_does_not_apply() -> None:
    score = tool_score("forbidden_tools", [None], [["drop"]])
    assert (score.value, score.error) == (None, None)


def test_a_category_forbids_all_of_its_tools() -> None:
    context = Context({"writes": frozenset({"delete_row", "update_row"})})
    assert tool_score("forbidden_tools", [None], [["UpdateRow"]], context, tools=["writes"]).value == 0.0


def test_names_of_signs_alone_do_not_forbid_everything() -> None:
    assert tool_score("forbidden_tools", [None], [["!!!"]], tools=["%%%"]).value == 1.0
    assert tool_score("forbidden_tools", [None], [["%%%"]], tools=["%%%"]).value == 0.0


def test_an_extra_turn_does_not_hide_a_call() -> None:
    assert tool_score("forbidden_tools", [None], [[], ["drop"]], tools=["drop"]).value == 0.0


def test_it_is_a_hard_criterion() -> None:
    assert metric("forbidden_tools").hard
    assert metric("forbidden_tools").scale is Scale.BINARY
