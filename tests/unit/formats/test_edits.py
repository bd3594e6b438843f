"""Numbers set in place: what is written around them stays to the letter."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gate.formats.edits import Edit, edited

TEXT = """\
# ours
criteria:
  a: 0.5   # words
  b: {threshold: 0.6, x: [1, 2]}
  "c":
      x: 1    # deep
      threshold: 0.7
  d: {x: 1}
  e:
    x: 1
  f: {}
"""


def at(name: str, value: float, key: str = "threshold") -> Edit:
    return Edit(("criteria", name), key, value)


def test_numbers_are_replaced_and_all_else_stays() -> None:
    new = edited(TEXT, [at("c", 0.75), at("a", 0.9), at("b", 1.0)])
    assert new == TEXT.replace("0.5 ", "0.9 ").replace("0.6", "1").replace("0.7\n", "0.75\n")


def test_a_key_that_is_not_there_is_added_in_the_style_of_its_mapping() -> None:
    new = edited(TEXT, [at("d", 0.8), at("e", 0.8), at("f", 0.8), at("b", 3, "p95")])
    assert new is not None
    assert "  d: {threshold: 0.8, x: 1}\n  e:\n    threshold: 0.8\n    x: 1\n  f: {threshold: 0.8}\n" in new
    assert "b: {p95: 3, threshold: 0.6" in new
    assert yaml.safe_load(new)["criteria"]["e"] == {"threshold": 0.8, "x": 1}


def test_json_stays_json() -> None:
    text = json.dumps({"criteria": {"a": 0.5, "b": {"x": 1}}}, indent=2)
    new = edited(text, [at("a", 0.6), at("b", 0.7)])
    assert new is not None
    assert json.loads(new) == {"criteria": {"a": 0.6, "b": {"threshold": 0.7, "x": 1}}}


@pytest.mark.parametrize(
    "text",
    [
        "criteria: &c {a: 0.5}\nother: *c\n",
        "base: &b {threshold: 0.5}\ncriteria: {a: {<<: *b}}\n",
        "criteria: {b: 0.5}\n",
        "criteria: [a]\n",
        "criteria: {a: [0.5]}\n",
        "criteria: {a: 0.5\n",
        "",
    ],
)
def test_what_is_not_simple_is_left_alone(text: str) -> None:
    assert edited(text, [at("a", 0.9)]) is None


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.floats(0, 1), min_size=1), st.data())
def test_only_what_is_named_changes(values: dict[str, float], data: st.DataObject) -> None:
    text = yaml.safe_dump({"criteria": values}, allow_unicode=data.draw(st.booleans()))
    name = data.draw(st.sampled_from(sorted(values)))
    new = edited(text, [Edit(("criteria", name), "threshold", 0.25)])
    assert new is None or yaml.safe_load(new) == {"criteria": {**yaml.safe_load(text)["criteria"], name: 0.25}}
