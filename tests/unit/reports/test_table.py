"""Tables and lines for terminals of any width: nothing wider than that, nothing lost, no word broken in vain."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.reports.table import columns, fit, table
from gate.security.escape import console

WORDS = st.text("abc_-./:é漢 ,;", max_size=40)
ROWS = st.integers(1, 7).flatmap(lambda n: st.lists(st.lists(WORDS, min_size=n, max_size=n), min_size=1, max_size=6))
WIDTHS = st.integers(20, 130)


def words_of(text: str) -> list[str]:
    return text.split()


@given(ROWS, WIDTHS)
def test_no_line_of_a_table_is_wider_than_the_terminal(rows: list[list[str]], width: int) -> None:
    assert all(columns(line) <= width for line in table(rows, width).splitlines())


@given(ROWS, WIDTHS)
def test_a_table_says_everything_in_any_width(rows: list[list[str]], width: int) -> None:
    flat = re.sub(r"\s", "", table(rows, width))
    assert all(re.sub(r"\s", "", console(cell, 200)) in flat for row in rows[1:] for cell in row[1:])


@given(st.lists(WORDS, max_size=12), WIDTHS)
def test_lines_are_broken_between_words(texts: list[str], width: int) -> None:
    text = "\n".join(texts)
    lines = fit(text, width).split("\n")
    assert all(columns(line) <= width for line in lines)
    short = [word for line in texts for word in words_of(line) if columns(word) <= width // 2]
    assert set(short) <= set(words_of("\n".join(lines)))
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", text)


@given(st.lists(WORDS, max_size=12))
def test_without_a_width_nothing_changes(texts: list[str]) -> None:
    text = "\n".join(texts)
    assert fit(text, None) == text
    assert fit(text, 10_000) == text


def test_what_fits_stands_in_columns() -> None:
    rows = [("criterion", "n"), ("quality", "12"), ("cost", "3")]
    assert table(rows, 60) == table(rows) == "criterion  n\nquality    12\ncost       3"


def test_a_long_name_is_broken_after_its_separators() -> None:
    rows = [("criterion", "newest", "n"), ("rubric_based_final_response_quality_v1", "0.51 [0.4, 0.6]", "12")]
    assert table(rows, 44).splitlines() == [
        "criterion                newest           n",
        "rubric_based_final_      0.51 [0.4, 0.6]  12",
        "  response_quality_v1",
    ]


def test_where_columns_do_not_fit_each_row_is_a_paragraph() -> None:
    rows = [("criterion", "newest, 95 % interval", "n", "average"), ("quality", "0.51 [0.4, 0.6]", "12", "0.5")]
    assert table(rows, 40).splitlines() == [
        "quality",
        "  newest, 95 % interval: 0.51 [0.4,",
        "    0.6];",
        "  n: 12; average: 0.5",
    ]


@pytest.mark.parametrize("line", ["- a bullet " + "word " * 30, "  indented " + "word " * 30, "plain " + "word " * 30])
def test_continuations_are_indented(line: str) -> None:
    first, *rest = fit(line.rstrip(), 40).split("\n")
    indent = len(first) - len(first.lstrip())
    assert rest and all(len(one) - len(one.lstrip()) == indent + 2 for one in rest)
