"""Paths into JSON, and what an error says is there instead."""

from __future__ import annotations

from typing import Any

import pytest

from gate.formats.paths import PathError, WhereEqual, checked, find, keys_of, steps_of


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b[0].c-d", ("a", "b", 0, "c-d")),
        ("rows.0.id", ("rows", "0", "id")),
        ("[1][-1]", (1, -1)),
        ("a b.ü", ("a b", "ü")),
        ('a["b.c"].d', ("a", "b.c", "d")),
        ('["a[0]"]["x=y"]', ("a[0]", "x=y")),
    ],
)
def test_paths(path: str, steps: tuple[Any, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize(
    "path", [".a", "a..b", "a[", "a[x]", "a]", "a.", "[1.5]", 'a[""]', 'a["b]', 'a["b"=1]', "a[0:]"]
)
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="is not a path"):
        steps_of(path)


def test_a_text_that_is_no_path_teaches_how_to_write_one() -> None:
    with pytest.raises(ValueError, match=r'a key with dots or brackets is written \["a\.b"\]'):
        checked("a[b]")
    with pytest.raises(ValueError, match="must not be empty"):
        checked("")
    assert checked("a") == "a"


def test_the_place_that_a_path_leads_to() -> None:
    body = {"a": [{"b.c": 1}, {"b.c": 2}], 7: [3]}
    assert keys_of(body, 'a[-1]["b.c"]') == ("a", 1, "b.c")
    assert keys_of(body, "a.0") == ("a", 0)
    assert keys_of(body, "a[x=1]") is None
    with pytest.raises(PathError):
        keys_of(body, "a.2")


def test_finding() -> None:
    body = {"a": [{"b": None}, "x"], "0": "zero", 7: "seven", "d.e[0]": "dots"}
    assert find(body, "7") == "seven"
    assert find(body, '["d.e[0]"]') == "dots"
    assert find(body, "a.1") == find(body, "a.-1") == "x"
    assert find(body, "a[0].b") is None
    assert find(body, "a[-1]") == "x"
    assert find(body, "0") == "zero"
    for path in ("a[2]", "a.b", "a[0].c", "a[1].x", "b"):
        with pytest.raises(LookupError, match="nothing at"):
            find(body, path)


def test_a_filter_keeps_the_objects_that_fit() -> None:
    assert steps_of("steps[type=tool].x") == ("steps", WhereEqual("type", "tool"), "x")
    body = {"steps": [{"type": "tool", "n": 1}, {"type": "text"}, "x", {"type": "tool", "n": 2}, {"type": 3}]}
    assert find(body, "steps[type=tool]") == [{"type": "tool", "n": 1}, {"type": "tool", "n": 2}]
    assert find(body, "steps[type=tool][-1].n") == 2
    assert find(body, "steps[type=3]") == [{"type": 3}]
    assert find(body, "steps[type=none]") == []
    with pytest.raises(PathError):
        find({"steps": {"type": "tool"}}, "steps[type=tool]")


@pytest.mark.parametrize(
    ("body", "path", "hint"),
    [
        ({"outputs": "x"}, "output", "did you mean 'outputs'?"),
        ({"a": {"text": 1, "kind": 2}}, "a.body", "known: kind, text"),
        ({"a": [1, 2]}, "a.text", "a list of 2 is there, so write [0] or [-1]"),
        ({"a": []}, "a[0]", "an empty list is there"),
        ({"a": "text"}, "a.b", ""),
    ],
)
def test_an_error_names_what_is_there(body: Any, path: str, hint: str) -> None:
    with pytest.raises(PathError) as caught:
        find(body, path)
    assert caught.value.hint == hint
    assert path.endswith(caught.value.step) or caught.value.step == "0"


def test_a_hint_is_bounded() -> None:
    with pytest.raises(PathError) as caught:
        find({"k" * 5000: 1, "j" * 5000: 2}, "other")
    assert len(caught.value.hint) < 400
