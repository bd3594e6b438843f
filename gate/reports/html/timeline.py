"""Series over time as inline SVG: a line with its interval, moves, threshold and forecast.

A drawing is stretched to the width of its place; lines and dots keep their thickness (``non-scaling-stroke``). Colours
are classes of ``site.css``. The text is next to the drawing, whose name describes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from markupsafe import Markup
from msgspec import Struct

from gate.histories.trends import Point, Series
from gate.reports.html.plots import Axis, axis_of

WIDE = 1000.0
TALL = 100.0
EDGE = 6.0
MOST_POINTS = 400
"""Maximum number of runs in a drawing: the newest ones."""


class Canvas(Struct, frozen=True):
    """The mapping from run and value to a point of the drawing."""

    first: int
    last: int
    axis: Axis

    def x(self, run: float) -> float:
        span, share = self.last - self.first, 0.5
        if span:
            share = (run - self.first) / span
        return round(EDGE * 2 + (WIDE - 4 * EDGE) * share, 1)

    def y(self, value: float) -> float:
        size, share = self.axis.high - self.axis.low, 0.5
        if size > 0:
            share = (value - self.axis.low) / size
        return round(TALL - EDGE - (TALL - 2 * EDGE) * min(max(share, 0.0), 1.0), 2)


def place_of(series: Series, runs: int) -> Canvas:
    """Return the canvas for a series' newest runs, with space for an early warning."""
    values = []
    for point in series.points[-MOST_POINTS:]:
        values += [point.estimate.low, point.estimate.high, point.estimate.value]
    if series.criterion.threshold is not None:
        values.append(series.criterion.threshold)
    axis = axis_of(values, series.criterion.scale.range)
    last = runs - 1
    if series.ahead is not None:
        last += series.ahead.last
    return Canvas(max(0, runs - MOST_POINTS), last, axis)


def timeline(series: Series, runs: int, titles: Sequence[str], name: str, *, height: int) -> Markup:
    """Return the series as a drawing, oldest first; ``titles`` are the texts of the runs under the pointer."""
    place = place_of(series, runs)
    past = [point for point in series.points[: series.stretches[-1].start] if point.run >= place.first]
    now = [point for point in series.current if point.run >= place.first]
    shapes = [
        _area(now, place),
        _threshold(series, place),
        *_moves(series, place),
        _path("past", past, place),
        _path("now", now, place),
        _dots("past", past, place),
        _dots("now", now, place),
        _ahead(series, place),
        _newest(series, place),
        *_hits(series, place, titles),
    ]
    opening = Markup(
        '<svg class="time" role="img" aria-label="{}" viewBox="0 0 {:g} {:g}" preserveAspectRatio="none" height="{}">'
    )
    return Markup("").join([opening.format(name, WIDE, TALL, height), *shapes, Markup("</svg>")])


def _area(points: Sequence[Point], place: Canvas) -> Markup:
    upper, lower = [], []
    for point in points:
        if point.estimate.level > 0:
            upper.append(f"{place.x(point.run)} {place.y(point.estimate.high)}")
            lower.append(f"{place.x(point.run)} {place.y(point.estimate.low)}")
    if len(upper) < 2:
        return Markup("")
    return Markup('<path class="area" d="M{}Z"/>').format("L".join([*upper, *reversed(lower)]))


def _threshold(series: Series, place: Canvas) -> Markup:
    limit = series.criterion.threshold
    if limit is None:
        return Markup("")
    return Markup('<path class="limit" d="M0 {}H{:g}"/>').format(place.y(limit), WIDE)


def _moves(series: Series, place: Canvas) -> Iterable[Markup]:
    for move in series.moves:
        if move.run >= place.first:
            left, right = place.x(max(move.first, place.first) - 0.5), place.x(move.last - 0.5)
            kind = "worse" if series.criterion.direction.is_loss(move.change) else "better"
            yield Markup('<rect class="within {}" x="{}" width="{}" y="0" height="{:g}"/>').format(
                kind, left, round(max(right - left, 1.0), 1), TALL
            )
            yield Markup('<path class="move {}" d="M{} 0V{:g}"/>').format(kind, place.x(move.run - 0.5), TALL)


def _path(kind: str, points: Sequence[Point], place: Canvas) -> Markup:
    if len(points) < 2:
        return Markup("")
    drawn = [f"{place.x(point.run)} {place.y(point.estimate.value)}" for point in points]
    return Markup('<path class="line {}" d="M{}"/>').format(kind, "L".join(drawn))


def _dots(kind: str, points: Sequence[Point], place: Canvas) -> Markup:
    """Return dots as lines of length zero with round ends, which do not stretch."""
    if not points:
        return Markup("")
    drawn = [f"M{place.x(point.run)} {place.y(point.estimate.value)}h.01" for point in points]
    return Markup('<path class="dots {}" d="{}"/>').format(kind, "".join(drawn))


def _newest(series: Series, place: Canvas) -> Markup:
    point = series.newest
    shape = Markup('<path class="newest" d="M{} {}h.01"/>')
    return shape.format(place.x(point.run), place.y(point.estimate.value))


def _ahead(series: Series, place: Canvas) -> Markup:
    """Return the trend from the newest run on, and the runs in which it is expected to reach the threshold."""
    ahead, going = series.ahead, series.going
    if ahead is None or going is None:
        return Markup("")
    newest = series.newest
    left, right = place.x(newest.run + ahead.first), place.x(newest.run + ahead.last)
    end = newest.estimate.value + going.by_run.value * ahead.last
    zone = Markup('<rect class="ahead" x="{}" width="{}" y="0" height="{:g}"/><path class="going" d="M{} {}L{} {}"/>')
    start = place.x(newest.run), place.y(newest.estimate.value)
    return zone.format(left, round(max(right - left, 2.0), 1), TALL, *start, right, place.y(end))


def _hits(series: Series, place: Canvas, titles: Sequence[str]) -> Iterable[Markup]:
    """Yield the pointer's target areas: one stripe per run, with its title."""
    shape = Markup('<rect class="hit" x="{}" width="{}" y="0" height="{:g}"><title>{}</title></rect>')
    for point, title in zip(series.points, titles, strict=True):
        if point.run >= place.first:
            left, right = max(0.0, place.x(point.run - 0.5)), min(WIDE, place.x(point.run + 0.5))
            yield shape.format(left, round(right - left, 1), TALL, title)
