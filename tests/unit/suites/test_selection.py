"""Which cases are run, and how they are counted."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from gate.errors import ConfigError, MeasureError
from gate.model import Case, Complexity, Part, RecordedTrial, Suite, ToolCall, Turn
from gate.suites import Selection, select, select_all
from gate.suites.selection import where

CALL = ToolCall("f", {})
CASES = (
    Case("refund/a", (Turn("x", (CALL,)),), frozenset({"smoke", "refund"}), Complexity.SIMPLE),
    Case("refund/b", (Turn("x", ()), Turn("y", ())), frozenset({"refund"})),
    Case("/abs/[1].json", (Turn("x", None, (Part("y"),)),), frozenset(), Complexity.COMPLEX),
)
SUITE = Suite("s", CASES, recorded=tuple(RecordedTrial(case.id, 1, ()) for case in CASES), source="evals")
OTHER = Suite("t", (Case("z", (Turn("x"),), frozenset({"other"})),))


def test_selection_by_metadata() -> None:
    about: list[dict[str, Any]] = [
        {"team": "billing", "priority": 3, "owner": {"team": "eu"}, "beta": True},
        {"team": "search", "priority": "3", "areas": ["web", "app"], "owner.team": "us"},
        {"priority": 30, "team": {"not": "plain"}},
    ]
    cases = tuple(Case(str(n), (Turn("x"),), metadata=one) for n, one in enumerate(about))
    suite = Suite("s", (*cases, Case("3", (Turn("x"),), app={"app_name": "shop"})))

    def ids(**metadata: Any) -> str:
        return "".join(case.id for case in select(suite, Selection(metadata=metadata)).cases)

    assert ids(team="billing") == "0"
    assert ids(team=["billing", "search"]) == "01"
    assert ids(priority=3) == ids(priority="3") == "01"
    assert ids(areas="app") == "1"
    assert ids(beta=True) == ids(beta="true") == "0"
    assert ids(**{"owner.team": ["eu", "us"]}) == "01"  # a key with a dot is first of all that key
    assert ids(app_name="shop") == "3"
    with pytest.raises(MeasureError):
        ids(team="search", beta=True)
    with pytest.raises(ConfigError, match=r"no case has the key 'taem' in its metadata \(did you mean 'team'\?\)"):
        ids(taem="billing")
    with pytest.raises(ConfigError, match=r"no case has the team 'biling' \(did you mean 'billing'\?\)"):
        ids(team=["search", "biling"])
    with pytest.raises(ConfigError, match="no case has any metadata"):
        select(OTHER, Selection(metadata={"team": ["billing"]}))
    for nothing in ({"team": []}, {"team": {"a": 1}}, {"team": None}):
        with pytest.raises(ValidationError):
            Selection.model_validate({"metadata": nothing})


def test_conditions_of_a_command_line() -> None:
    given = ["team=billing", "tag=smoke", "team=search", "note=a=b", "complexity=simple"]
    assert where(given) == {
        "metadata": {"team": ["billing", "search"], "note": ["a=b"]},
        "tags": ["smoke"],
        "complexity": ["simple"],
    }
    for wrong in ("team", "=billing", "team=", " = "):
        with pytest.raises(ConfigError, match="expected KEY=VALUE"):
            where([wrong])


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
