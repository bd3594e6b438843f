"""Where two requests differ first, in words."""

from __future__ import annotations

from gate.world.differences import first_difference

LONG = "word " * 100


def test_the_first_place_is_named() -> None:
    for before, now, said in [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": 1}, {"a": 2}, "a: 1 → 2"),
        ({"a": 1}, {"a": True}, "a: 1 → true"),
        ({"a": [{"b": "x"}]}, {"a": [{"b": "y"}]}, 'a[0].b: "x" → "y"'),
        ({"a": 1}, {"a": 1, "b": None}, "b: not there → null"),
        ({"a": 1, "b": 2}, {"a": 1}, "b: 2 → not there"),
        ({"m": [1]}, {"m": [1, 2]}, "m[1]: not there → 2"),
        ({"m": [1, 2]}, {"m": [1]}, "m[1]: 2 → not there"),
        ("x", "y", 'the body: "x" → "y"'),
        ({"a": 1}, [1], 'the body: {"a": 1} → [1]'),
        ({"t": [{"name": "f", "d": "x"}]}, {"t": [{"name": "f", "d": "y"}]}, 't[f].d: "x" → "y"'),
        (
            {"t": [{"function": {"name": "f"}}, {"function": {"name": "g", "d": "x"}}]},
            {"t": [{"function": {"name": "g", "d": "y"}}, {"function": {"name": "f"}}]},
            't[g].function.d: "x" → "y"',
        ),
        ({"t": [{"name": "f"}]}, {"t": [{"name": "e"}, {"name": "f"}]}, 't[e]: not there → {"name": "e"}'),
        ({"t": [{"name": "f"}]}, {"t": [{"name": "e"}]}, 't[f]: {"name": "f"} → not there'),
        ([{"name": "f"}, {"name": "e"}], [{"name": "e"}, {"name": "f"}], 'the order of : ["f", "e"] → ["e", "f"]'),
        ({"t": [{"name": "f"}, {"name": "f"}]}, {"t": [{"name": "f"}, {"name": "e"}]}, 't[1].name: "f" → "e"'),
    ]:
        assert first_difference(before, now) == said, (before, now)


def test_long_texts_are_shown_from_where_they_begin_to_differ() -> None:
    said = first_difference({"a": LONG + "red" + LONG}, {"a": LONG + "blue" + LONG})
    assert "red" in said and "blue" in said
    assert len(said) < 300
