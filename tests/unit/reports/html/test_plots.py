"""Drawings stay inside their width, whatever was measured."""

from __future__ import annotations

import math
import re

from hypothesis import given
from hypothesis import strategies as st

from gate.model import Estimate
from gate.reports.html.plots import Axis, axis_of, intervals

numbers = st.floats(-1e300, 1e300)


@given(st.lists(numbers, min_size=3, max_size=3).map(sorted), numbers, st.tuples(numbers, numbers))
def test_intervals_stay_inside(ends: list[float], limit: float, band: tuple[float, float]) -> None:
    side = Estimate(ends[1], ends[0], ends[2], 4)
    axis = axis_of([*ends, limit], (-math.inf, math.inf))
    inside(intervals(axis, side, side, "both", band=band, limit=limit))


def inside(drawing: str) -> None:
    places = [float(value) for value in re.findall(r'\b(?:x|x1|x2|cx|width)="([^"%]+)%"', drawing)]
    assert all(0 <= place <= 100 for place in places)
    heights = [float(value) for value in re.findall(r'\b(?:y|y1|y2|cy)="([^"]+)"', drawing)]
    assert all(0 <= height <= 96 for height in heights)


def test_a_mean_stands_where_it_is() -> None:
    axis = Axis(0.0, 1.0)
    drawing = intervals(axis, Estimate(0.5, 0.25, 1.0, 4), None, "one side", limit=0.0)
    assert '<circle class="now" cx="50%"' in drawing
    assert '<line class="limit" x1="1.5%" x2="1.5%"' in drawing
    assert "before" not in drawing


def test_names_are_escaped() -> None:
    assert 'aria-label="&lt;b&gt; &#34;x&#34;"' in intervals(Axis(0, 1), None, None, '<b> "x"')
