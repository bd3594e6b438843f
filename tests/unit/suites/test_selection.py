"""Which cases are run, and how they are counted."""

from __future__ import annotations

import pytest

from gate.errors import ConfigError, MeasureError
from gate.model import Case, Complexity, Part, RecordedTrial, Suite, ToolCall, Turn
from gate.suites import Selection, distribution, select, select_all

CALL = ToolCall("f", {})
CASES = (
    Case("refund/a", (Turn("x", (CALL,)),), frozenset({"smoke", "refund"}), Complexity.SIMPLE),
    Case("refund/b", (Turn("x", ()), Turn("y", ())), frozenset({"refund"})),
    Case("/abs/[1].json", (Turn("x", None, (Part("y"),)),), frozenset(), Complexity.COMPLEX),
)
SUITE = Suite("s", CASES, recorded=tuple(RecordedTrial(case.id, 1, ()) for case in CASES), source="evals")
OTHER = Suite("t", (Case("z", (Turn("x"),), frozenset({"other"})),))


@pytest.mark.parametrize(
    ("selection", "ids"),
    [
        ({}, [0, 1, 2]),
        ({"tags": "smoke"}, [0]),
        ({"tags": ["smoke", "refund"]}, [0, 1]),
        ({"complexity": "medium"}, [1]),
        ({"complexity": ["simple", "complex"]}, [0, 2]),
        ({"ids": "refund/*"}, [0, 1]),
        ({"ids": ["/abs/[1].json"]}, [2]),
        ({"tags": ["refund"], "complexity": ["simple"], "ids": ["*"]}, [0]),
    ],
)
def test_select(selection: dict[str, object], ids: list[int]) -> None:
    chosen = select(SUITE, Selection.model_validate(selection))
    assert chosen.cases == tuple(CASES[index] for index in ids)
    assert [trial.case_id for trial in chosen.recorded] == [case.id for case in chosen.cases]


def test_unknown_words_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"select\.tags: no case has the tag 'smok' \(did you mean 'smoke'\?\)"):
        select(SUITE, Selection(tags=["smok"]))
    with pytest.raises(
        ConfigError, match=r"select\.ids: no case has the id 'refund/c' \(did you mean 'refund/[ab]'\?\)"
    ):
        select(SUITE, Selection(ids=["refund/c"]))


def test_empty_selections_say_what_there_is() -> None:
    with pytest.raises(
        MeasureError, match=r"evals: no case is selected \(there are 1 × simple: refund, smoke; .*no tags"
    ):
        select(SUITE, Selection(tags=["smoke"], complexity=[Complexity.COMPLEX]))


def test_a_tag_of_one_suite_is_known_to_all() -> None:
    assert select_all([SUITE, OTHER], Selection(tags=["other"])) == [OTHER]
    with pytest.raises(ConfigError):
        select_all([SUITE, OTHER], Selection(tags=["nobody"]))


def test_distribution() -> None:
    found = distribution(SUITE)
    assert (found.cases, found.turns, found.recorded) == (3, 4, 3)
    assert found.by_complexity == {"simple": 1, "medium": 1, "complex": 1}
    assert found.by_tag == {"": 1, "refund": 2, "smoke": 1}
    assert found.by_turns == {1: 2, 2: 1}
    assert (found.expects_calls, found.expects_no_call, found.states_no_calls) == (1, 1, 1)
    assert found.expects_response == 1
