"""Pictures in text: what they show, how wide they are, and what becomes of them in ASCII."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.reports.sparkline import MOST_POINTS, bar, encodable, interval_picture, plain, sparkline


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


@pytest.mark.parametrize(
    ("share", "shown"), [(0.0, "    "), (1.0, "████"), (0.5, "██  "), (1e-9, "▏   "), (7.0, "████")]
)
def test_a_share_as_a_bar(share: float, shown: str) -> None:
    assert bar(share, 4) == shown
    assert plain(bar(share, 4)).isascii()


def test_an_interval_lies_where_its_change_is() -> None:
    assert interval_picture(-0.5, -0.7, -0.3, reach=1.0, width=21) == "───━━●━━──│──────────"
    assert interval_picture(0.0, -0.2, 0.2, reach=1.0, margin=0.5, width=21) == "─────┊──━━●━━────────"


def test_an_interval_beyond_the_picture_has_an_arrow() -> None:
    drawn = interval_picture(-0.9, -2.0, 0.1, reach=1.0, width=11)
    assert drawn[0] == "◂"
    assert plain(drawn)[0] == "<"


def test_an_estimate_without_an_interval_is_a_point() -> None:
    assert interval_picture(0.0, 0.0, 0.0, reach=1.0, width=5) == "──●──"


finite = st.floats(-10, 10)


@given(finite, finite, finite, st.floats(0, 5), st.none() | st.floats(0, 5))
def test_any_interval_has_its_width_and_an_ascii_form(
    value: float, low: float, high: float, reach: float, margin: float | None
) -> None:
    drawn = interval_picture(value, low, high, reach=reach, margin=margin)
    assert len(drawn) == 21
    assert plain(drawn).isascii()


def test_symbols_of_reports_have_look_alikes_of_one_column_unless_the_encoding_has_them() -> None:
    text = "✓ ✗ 4/5 → 0/5 · p ≤ 0.002, −12 …"
    assert encodable(text, "utf-8") == text
    assert encodable(text, "ascii") == "+ x 4/5 > 0/5 - p < 0.002, -12 ~"
    assert encodable("雪", "ascii") == "?"


def test_a_gap_looks_like_no_level() -> None:
    drawn = encodable(sparkline([0.0, None, 1.0]), "ascii")
    assert drawn[1] not in encodable(sparkline([n / 7 for n in range(8)]), "ascii")
