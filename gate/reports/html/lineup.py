"""The comparison of several agents as a page: the table with its intervals, and quality against cost and latency."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from gate.model import Direction, Estimate
from gate.model.lineup import Lineup, Measure, OrderedVote
from gate.reports import lineup as words
from gate.reports.formatting import figure, interval, sample
from gate.reports.html import page
from gate.reports.html.plots import Axis, axis_of
from gate.security.escape import one_line

_EMPTY = Markup("")
_HEIGHT = 260
MOST_VOTES = 300
"""Maximum number of votes whose reasons are shown; the JSON has all."""


def render(lineup: Lineup) -> str:
    """Return a complete page in one file, without a script."""
    entries, names = [], []
    for place in range(len(lineup.entries)):
        entries.append(words.entry_line(lineup, place, source=True))
        names.append(words.name(lineup, place))
    preferences = []
    for found in lineup.preferences:
        preferences.append((words.preference_line(lineup, found), words.position_line(found)))
    return page.render(
        "lineup.html",
        title=f"{words.title(lineup)} · Agent Gate",
        styles=("lineup.css",),
        heading=words.title(lineup),
        entries=entries,
        names=names,
        rows=[_row(lineup, measure) for measure in lineup.measures],
        pictures=list(filter(None, (_picture(lineup, lineup.cost), _picture(lineup, lineup.latency)))),
        dominated=words.dominated_lines(lineup),
        preferences=preferences,
        votes=[_vote(vote) for vote in lineup.votes[:MOST_VOTES]],
        more=max(0, len(lineup.votes) - MOST_VOTES),
        cost=words.judge_cost(lineup),
        reading=words.reading(lineup),
        notes=lineup.notes[: words.MOST_NOTES],
    )


# --- the table ------------------------------------------------------------------------------------


def _row(lineup: Lineup, measure: Measure) -> Mapping[str, Any]:
    axis = _axis(measure)
    return {
        "name": measure.name,
        "wanted": words.wanted(measure),
        "cells": [_cell(lineup, measure, place, axis) for place in range(len(lineup.entries))],
    }


def _axis(measure: Measure) -> Axis:
    ends: list[float] = []
    for found in measure.estimates:
        if found is not None:
            ends += [found.low, found.value, found.high]
    return axis_of(ends, measure.scale.range)


def _cell(lineup: Lineup, measure: Measure, place: int, axis: Axis) -> Mapping[str, Any]:
    how = against = ""
    if place:
        how = words.standing(measure, place)
        against = words.difference_text(measure, place).removeprefix(words.NO_FIGURES)
    return {
        "name": words.name(lineup, place),
        "mean": words.mean_of(measure, place),
        "sample": sample(measure.estimates[place]),
        "plot": _bar(measure, place, axis),
        "difference": against,
        "standing": how,
        "tone": {"better": "good", "worse": "bad"}.get(how, "mute"),
    }


def _bar(measure: Measure, place: int, axis: Axis) -> Markup:
    """Return the mean as a dot on its interval, on the axis of its row."""
    found = measure.estimates[place]
    if found is None:
        return _EMPTY
    shape = Markup(
        '<svg class="plot" role="img" aria-label="{}" height="16"><line class="axis" x1="0" x2="100%" y1="8" y2="8"/>'
        '<line class="now" x1="{}" x2="{}" y1="8" y2="8"/><circle class="now" cx="{}" cy="8" r="4.5"/></svg>'
    )
    name = one_line(f"{measure.name}: {interval(found, measure.scale)}", 200)
    return shape.format(name, axis.at(found.low), axis.at(found.high), axis.at(found.value))


# --- quality against cost and latency -------------------------------------------------------------


def _picture(lineup: Lineup, axis: str) -> Mapping[str, Any] | None:
    """Return each entry as a letter with both intervals; better is up and left."""
    quality, other = lineup.measure(lineup.quality), lineup.measure(axis)
    if quality is None or other is None:
        return None
    across, up = _axis(other), _axis(quality)
    beaten = {found.entry for found in lineup.dominated if found.proven}
    drawn = []
    for place, (good, spent) in enumerate(zip(quality.estimates, other.estimates, strict=True)):
        if good is not None and spent is not None:
            drawn.append(_point(place, good, spent, across, up, quality.direction, place in beaten))
    if len(drawn) < 2:
        return None
    bottom, top = figure(up.low, quality.scale), figure(up.high, quality.scale)
    if quality.direction is Direction.LOWER:
        bottom, top = top, bottom
    name = one_line(f"{quality.name} against {other.name}: " + _told(lineup, quality, other), 400)
    start = Markup('<svg class="plot scatter" role="img" aria-label="{}" height="{}">').format(name, _HEIGHT)
    frame = Markup(
        '<line class="axis" x1="0" x2="0" y1="0" y2="{0}"/><line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>'
    )
    return {
        "title": f"{quality.name} against {other.name}",
        "up": f"{quality.name}: {bottom} at the bottom, {top} at the top",
        "across": f"{other.name}: {figure(across.low, other.scale)} at the left, "
        f"{figure(across.high, other.scale)} at the right",
        "plot": _EMPTY.join([start, frame.format(_HEIGHT - 1), *drawn, Markup("</svg>")]),
    }


def _told(lineup: Lineup, quality: Measure, other: Measure) -> str:
    said = []
    for place in range(len(lineup.entries)):
        said.append(f"{words.letter(place)} {words.mean_of(quality, place)}, {words.mean_of(other, place)}")
    return "; ".join(said)


def _point(
    place: int, good: Estimate, spent: Estimate, across: Axis, up: Axis, direction: Direction, beaten: bool
) -> Markup:
    def height(value: float) -> float:
        share = up.place(value)
        if direction is Direction.LOWER:
            share = 100 - share
        return round(_HEIGHT * (1 - share / 100), 1)

    x, y = across.at(spent.value), height(good.value)
    shape = Markup(
        '<g class="{}"><line x1="{}" x2="{}" y1="{}" y2="{}"/><line x1="{}" x2="{}" y1="{}" y2="{}"/>'
        '<circle cx="{}" cy="{}" r="11"/><text x="{}" y="{}">{}</text></g>'
    )
    ends = (across.at(spent.low), across.at(spent.high), y, y, x, x, height(good.low), height(good.high))
    return shape.format("beaten" if beaten else "kept", *ends, x, y, x, y, words.letter(place))


def _vote(vote: OrderedVote) -> Mapping[str, str]:
    preferred = "neither"
    if vote.error:
        preferred = ""
    elif vote.preferred is not None:
        preferred = words.letter(vote.preferred)
    return {
        "case": vote.case_id,
        "order": f"{words.letter(vote.first)} before {words.letter(vote.second)}",
        "preferred": preferred,
        "reason": vote.error or vote.reason,
    }
