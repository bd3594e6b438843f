"""Pictures in text: what they show, how wide they are, and what becomes of them in ASCII."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from gate.reports.sparkline import MOST_POINTS, encodable, plain, sparkline


def test_a_series_rises_from_the_lowest_level_to_the_highest() -> None:
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"


def test_a_gap_is_a_dot_and_takes_a_column() -> None:
    assert sparkline([0.0, None, math.nan, 1.0]) == "▁··█"
    assert sparkline([None, None]) == "··"
    assert sparkline([]) == ""


def test_a_series_that_never_moves_is_neither_at_the_top_nor_at_the_bottom() -> None:
    assert sparkline([0.3, 0.3]) == "▅▅"
    assert sparkline([0.0, 0.0], low=0.0, high=1.0) == "▁▁"


def test_what_lies_beyond_the_scale_is_drawn_at_its_end() -> None:
    assert sparkline([-5.0, 5.0], low=0.0, high=1.0) == "▁█"


def test_the_last_points_of_a_long_series_are_drawn() -> None:
    assert sparkline([*[0.0] * 500, 1.0]) == "▁" * (MOST_POINTS - 1) + "█"


@given(st.lists(st.none() | st.floats(allow_nan=True, allow_infinity=True), max_size=80))
def test_any_series_is_one_character_a_value_in_both_forms(values: list[float | None]) -> None:
    drawn = sparkline(values)
    assert len(drawn) == min(len(values), MOST_POINTS)
    assert len(plain(drawn)) == len(drawn)
    assert plain(drawn).isascii()


def test_symbols_of_reports_have_look_alikes_of_one_column_unless_the_encoding_has_them() -> None:
    text = "✓ ✗ 4/5 → 0/5 · p ≤ 0.002, −12 …"
    assert encodable(text, "utf-8") == text
    assert encodable(text, "ascii") == "+ x 4/5 > 0/5 - p < 0.002, -12 ~"
    assert encodable("雪", "ascii") == "?"


def test_a_gap_looks_like_no_level() -> None:
    drawn = encodable(sparkline([0.0, None, 1.0]), "ascii")
    assert drawn[1] not in encodable(sparkline([n / 7 for n in range(8)]), "ascii")
