"""What counts as the clock, as an id, and as content."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gate.world.volatile import Volatile, check_pattern

NOW = datetime(2026, 3, 5, 14, 30, tzinfo=UTC).timestamp()


def plain(value: Any, *patterns: str, now: float = NOW) -> Any:
    return Volatile(patterns).plain(value, now)


def test_the_clock_is_volatile_in_every_common_spelling() -> None:
    for text in [
        "2026-03-05",
        "2026-03-05T14:29:59.123456+00:00",
        "2026-03-05 14:30 UTC",
        "Thursday, March 5, 2026",
        "March 05, 2026, 2:30 PM",
        "05.03.2026",
        "5 Mar 2026",
        "2026-03-04",
        f"{NOW:.0f}",
        f"{NOW * 1000:.0f}",
    ]:
        assert plain(f"Today is {text}.") == "Today is <now>.", text


def test_another_date_is_content() -> None:
    for text in ["2026-03-08", "2025-03-05", "March 15, 2026", "12026-03-05", "1700000000", "14:30"]:
        assert plain(f"Book it for {text}.") == f"Book it for {text}.", text


def test_the_same_words_are_alike_on_two_days() -> None:
    later = NOW + timedelta(days=40).total_seconds()
    assert plain("Now: 2026-03-05T14:30:00Z") == plain("Now: 2026-04-14T09:01:59Z", now=later)
    assert plain({"at": NOW}) == plain({"at": later + 5}, now=later)


def test_how_far_two_dates_are_from_one_another_is_content() -> None:
    span = {"from": "2026-03-04", "to": "2026-03-05"}
    assert plain(span) == {"from": "<now>", "to": "<now +1 d>"} != plain({**span, "from": "2026-03-05"})
    assert plain(span) == plain({"from": "2026-03-05", "to": "2026-03-06"})
    assert plain({"since": NOW - 86_400}) == {"since": "<now -24 h>"} != plain({"since": NOW - 3_600})


def test_a_mark_in_a_text_is_no_mark() -> None:
    assert plain("Today is <now>.") != plain("Today is 2026-03-05.")
    assert plain("<id 1>") != plain("0b0a3a1e-6c1b-4a7e-9a3e-0123456789ab")
    assert plain("<day +1>") == "<<day +1>"


def test_what_another_pattern_stands_for_is_something_else() -> None:
    assert plain("answer ticket 4711", "ticket {number}") != plain("answer rudely", "rude{word}")


def test_ids_are_numbered_so_that_which_stands_where_tells_requests_apart() -> None:
    one, two = "0b0a3a1e-6c1b-4a7e-9a3e-0123456789ab", "1b0a3a1e-6c1b-4a7e-9a3e-0123456789ab"
    assert plain([one, two, one]) == ["<id 1>", "<id 2>", "<id 1>"] == plain([two, one, two])
    assert plain([one, one]) != plain([one, two])
    assert plain("call_abcdefghijklmnop1234") == "<id 1>"
    assert plain("call_center") == "call_center"


def test_patterns_of_ones_own_have_placeholders_and_no_operators() -> None:
    assert plain("see ticket 4711 now", "ticket {number}") == "see <own ticket {number}> now"
    assert plain("a.b 1", "a.b {number}") == "<own a.b {number}>" and plain("axb 1", "a.b {number}") == "axb 1"
    for pattern in ("ticket", "{word}", " {number}"):
        with pytest.raises(ValueError, match=r"varying part"):
            check_pattern(pattern)


def test_values_nested_beyond_any_sense_are_left_as_they_are() -> None:
    value: Any = "2026-03-05"
    for _ in range(500):
        value = [value]
    assert plain(value) == value
