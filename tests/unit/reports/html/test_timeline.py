"""Drawings over time: one shape for each fact, in the right place."""

from __future__ import annotations

import re

from gate.histories.trends import suite_history
from gate.reports.html.timeline import TALL, WIDE, place_of, timeline
from tests.unit.histories.drawn import drawn_runs

from .histories import busy


def drawn(name: str) -> str:
    series = next(one for one in busy().whole if one.name == name)
    return str(timeline(series, len(busy().runs), [f"run {p.run}" for p in series.points], name, height=90))


def test_every_run_can_be_pointed_at() -> None:
    svg = drawn("pass rate")
    assert svg.count("<title>") == len(busy().runs)
    assert "<title>run 35</title>" in svg


def test_stretches_thresholds_moves_and_warnings_are_drawn() -> None:
    assert 'class="line past"' in drawn("helpfulness")
    assert 'class="ahead"' in drawn("helpfulness") and 'class="going"' in drawn("helpfulness")
    assert 'class="limit"' in drawn("helpfulness") and 'class="limit"' not in drawn("latency")
    assert 'class="move worse"' in drawn("pass rate")
    assert "past" not in drawn("latency") and "move" not in drawn("response_match_score")


def test_everything_lies_within_the_drawing() -> None:
    names = [series.name for series in busy().whole]
    assert len(names) > 4
    for svg in map(drawn, names):
        for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", svg):
            assert 0 <= float(x) <= WIDE and 0 <= float(y) <= TALL
        for x, width in re.findall(r'x="(-?[\d.]+)" width="(-?[\d.]+)"', svg):
            assert float(x) >= 0 and float(x) + float(width) <= WIDE + 0.2


def test_one_run_is_in_the_middle() -> None:
    series = suite_history("s", drawn_runs(1, lambda _: 0.5)).whole[0]
    assert place_of(series, 1).x(0) == WIDE / 2
    assert 'class="newest"' in timeline(series, 1, ["only"], "n", height=90)
