"""A suite as files of the gate's own: what is written is read again as the same cases, and the rest is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from gate.importers.convert import Converted, convert
from gate.model import Case, Complexity, Part, Rubric, Suite, ToolCall, Turn
from gate.suites import load
from tests.unit.suites.files import EVAL_CASE, write

RUBRIC = Rubric("kind", "Is kind.", "FINAL_RESPONSE_QUALITY")
FULL = Case(
    "full",
    (
        Turn("Hi", (ToolCall("find", {"id": 1}), ToolCall("", category="mail", any_args=True)), (Part("Hello"),)),
        Turn("on", (), (Part("1e3"), Part("no")), (RUBRIC,)),
    ),
    frozenset({"smoke"}),
    Complexity.COMPLEX,
    {"team": "care", "list": [1, None]},
    {"vip": True},
    {"contains": {"values": ["a"]}},
    {"latency": 2.5},
    (RUBRIC,),
    cluster="desk",
)


def again(made: Converted, folder: Path) -> Suite:
    write(folder / "suite.json", made.suite)
    (suite,) = load([folder / "suite.json"], root=folder)
    return suite


def test_every_part_comes_back(tmp_path: Path) -> None:
    made = convert(Suite("s", (FULL, Case("plain", (Turn("Hi"),)))))
    assert made.losses == ()
    first, second = again(made, tmp_path).cases
    assert json.loads(made.suite)["cases"][1] == {"id": "plain", "input": "Hi", "complexity": "medium"}
    assert replace(first, location=None) == replace(FULL, options={"contains": {"values": ["a"]}})
    assert second.turns == (Turn("Hi"),)


def test_what_differs_is_lost_and_named() -> None:
    thought = replace(FULL, id="thought", turns=(Turn("Hi", None, (Part("hm", thought=True),)),))
    empty = Case("empty", (Turn(""),))
    session = replace(FULL, id="session", app={"app_name": "shop"})
    made = convert(Suite("s", (thought, empty, session)))
    assert [(loss.case, loss.what, loss.check) for loss in made.losses] == [
        ("thought", "turns", True),
        ("empty", "the whole case", True),
        ("session", "app", False),
    ]
    assert made.cases == 2


@pytest.mark.parametrize("camel", [False, True])
def test_an_eval_set_is_carried_over_with_its_criteria(tmp_path: Path, camel: bool) -> None:
    write(tmp_path / "in" / "a.evalset.json", {"evalSetId" if camel else "eval_set_id": "s", "eval_cases": [EVAL_CASE]})
    write(tmp_path / "in" / "test_config.json", {"criteria": {"response_match_score": 0.8}})
    (suite,) = load([tmp_path / "in"], root=tmp_path)
    made = convert(suite)
    assert [(loss.what, loss.check) for loss in made.losses if loss.check and loss.what != "rubrics"] == []
    assert json.loads(made.criteria) == {"criteria": {"response_match_score": 0.8}}
    (case,) = again(made, tmp_path / "out").cases
    assert case.turns == suite.cases[0].turns


def test_criteria_of_both_places_are_kept() -> None:
    """What the files of cases bring, under what the file beside them states, as a run would have it."""
    suite = Suite("s", (FULL,), criteria={"latency": {"max": 3}}, brought={"contains": {}, "latency": {}})
    assert json.loads(convert(suite).criteria) == {"contains": {}, "latency": {"max": 3}}
