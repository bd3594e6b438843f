"""The comparison of several agents as text, Markdown, HTML and JSON.

The JSON has version 1. Within a version, keys may be added, but none is removed or changes its meaning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec

from gate.model import Direction, Scale
from gate.model.lineup import Dominated, Lineup, Measure, Preference
from gate.reports.formatting import count, difference_interval, dollars, interval, percentage
from gate.reports.sparkline import encodable
from gate.reports.table import columns, table, wrapped
from gate.security.escape import console, markdown, unicode_only

VERSION = 1
MOST_NOTES = 50
LIMIT = 60_000
"""Maximum number of characters in the Markdown, for a host's comment."""
NARROWEST = 40
MOST_LABEL = 8
"""Maximum number of columns of a label for which a row with figures fits in 80 columns."""

# --- words ----------------------------------------------------------------------------------------


def letter(place: int) -> str:
    """Return the letter of an entry: ``A`` for the first."""
    return chr(ord("A") + place)


def name(lineup: Lineup, place: int) -> str:
    """Return text such as ``B small``; the name is the user's."""
    return f"{letter(place)} {lineup.entries[place].name}"


def title(lineup: Lineup) -> str:
    return f"{count(len(lineup.entries), 'agent')} on the same {count(lineup.cases, 'case')}"


def reading(lineup: Lineup) -> str:
    """Return the explanation of the intervals."""
    return (
        f"Means have 95 % intervals of their own. The {count(lineup.comparisons, 'interval')} of differences, every"
        f" pair in every row, hold together: all of them cover the truth with a probability of at least"
        f" {percentage(lineup.level)}. A description, not a verdict."
    )


def wanted(measure: Measure) -> str:
    return "higher is better" if measure.direction is Direction.HIGHER else "lower is better"


def mean_of(measure: Measure, place: int) -> str:
    """Return the mean with its interval, or the reason why there is none."""
    found = measure.estimates[place]
    if found is not None:
        return interval(found, measure.scale)
    if measure.apart and measure.apart[place]:
        return measure.apart[place]
    return "not measured"


def difference_text(measure: Measure, place: int) -> str:
    """Return an entry's difference from the first one; empty if they have fewer than two common cases."""
    for found in measure.differences:
        if (found.one, found.other) == (place, 0):
            return difference_interval(found.estimate, measure.scale)
    return ""


def standing(measure: Measure, place: int) -> str:
    """Return ``better`` or ``worse`` than the first entry if the interval shows it, else empty."""
    if measure.better(place, 0):
        return "better"
    if measure.better(0, place):
        return "worse"
    return ""


def entry_line(lineup: Lineup, place: int, *, source: bool = False) -> str:
    """Return ``B small: 120 trials, 3 failed, commit 0123abc``; ``source`` adds the file of the record."""
    entry = lineup.entries[place]
    parts = [count(entry.trials, "trial")]
    if entry.failed:
        parts.append(f"{entry.failed:,} failed")
    if entry.lost:
        parts.append(f"{entry.lost:,} lost to infrastructure")
    if entry.commit:
        parts.append(f"commit {entry.commit[:12]}")
    if source and entry.source:
        parts.append(entry.source)
    return f"{name(lineup, place)}: {', '.join(parts)}"


def dominated_line(lineup: Lineup, found: Dominated) -> str:
    """Return ``B small is dominated by A large: …``, with a note if the intervals show it."""
    known = []
    for axis in (lineup.quality, lineup.cost, lineup.latency):
        measure = lineup.measure(axis) if axis else None
        if measure is not None and measure.estimates[found.entry] is not None:
            known.append(axis)
    how, verb = "by the means alone", "looks dominated by"
    if found.proven:
        how, verb = "as the intervals show", "is dominated by"
    named = f"{name(lineup, found.entry)} {verb} {name(lineup, found.by)}"
    if len(known) == 1:
        return f"{named}: better in {known[0]}, {how}"
    return f"{named}: no worse in {', '.join(known)}, and better in at least one, {how}"


def dominated_lines(lineup: Lineup) -> list[str]:
    if not lineup.dominated:
        return ["none is dominated: each is ahead of every other in quality, cost or latency"]
    return [dominated_line(lineup, one) for one in lineup.dominated]


def preference_line(lineup: Lineup, found: Preference) -> str:
    """Return ``B small against A large: preferred in 12 cases, not in 3, 5 ties; win rate 72.5 % [51, 88]``."""
    pair = f"{name(lineup, found.one)} against {name(lineup, found.other)}"
    unread = f"{count(found.unread, 'case')} without a vote in both orders"
    if found.rate is None:
        return f"{pair}: not measured ({unread})"
    tally = f"preferred in {count(found.wins, 'case')}, not in {found.losses:,}, {count(found.ties, 'tie')}"
    said = f"{pair}: {tally}; win rate {interval(found.rate, Scale.BINARY)}, n = {found.rate.n:,}"
    if found.unread:
        said += f"; {unread}"
    return said


def position_line(found: Preference) -> str:
    """Return how the position of an answer influenced the judge."""
    if not found.first_twice and not found.second_twice:
        return "position: no case in which the judge preferred a place in both orders"
    cases = count(found.wins + found.losses + found.ties, "case")
    first, second = found.first_twice, found.second_twice
    return f"position: of {cases} the judge preferred the first place twice in {first:,}, the second in {second:,}"


def judge_cost(cost: float) -> str:
    return f"judge: {dollars(cost)}"


# --- text -----------------------------------------------------------------------------------------


def render_text(lineup: Lineup, *, encoding: str = "utf-8", width: int = 80) -> str:
    """Return a block for each measure, sentences within ``width`` columns; ASCII if the terminal has no UTF-8."""
    return encodable("\n".join(_lines(lineup, max(width, NARROWEST))), encoding)


def render_line(lineup: Lineup, *, encoding: str = "utf-8") -> str:
    """Return one line: the numbers of agents and cases, and the dominated entries."""
    return encodable(console("; ".join([title(lineup), *dominated_lines(lineup)])), encoding)


def _lines(lineup: Lineup, width: int) -> Iterator[str]:
    yield title(lineup)
    for place in range(len(lineup.entries)):
        yield from _wrapped(entry_line(lineup, place), width, "  ")
    labels = _labels(lineup)
    for measure in lineup.measures:
        yield ""
        yield from _wrapped(f"{console(measure.name, 100)} ({wanted(measure)}), then the difference to A", width)
        rows = [[labels[place], *_figures(measure, place)] for place in range(len(labels))]
        for line in table(rows, width - 2, head=False).splitlines():
            yield f"  {line}"
    yield ""
    for line in dominated_lines(lineup):
        yield from _wrapped(line, width)
    for found in lineup.preferences:
        yield ""
        yield from _wrapped(preference_line(lineup, found), width)
        yield from _wrapped(position_line(found), width, "  ")
    if lineup.judge_cost_usd is not None:
        yield judge_cost(lineup.judge_cost_usd)
    yield ""
    yield from _wrapped(reading(lineup), width)
    for note in lineup.notes[:MOST_NOTES]:
        yield from _wrapped(f"note: {note}", width)


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return a sentence as several lines, all but the first indented."""
    return wrapped(indent + console(text, 600), width, indent + "  ")


def _figures(measure: Measure, place: int) -> list[str]:
    """Return an entry's mean, its number of cases, its difference from the first, and which of the two is better."""
    found = measure.estimates[place]
    cases = ""
    if found is not None:
        cases = f"n = {found.n:,}"
    return [mean_of(measure, place), cases, difference_text(measure, place), standing(measure, place)]


def _labels(lineup: Lineup) -> list[str]:
    """Return the names, or letters if a name is too long for one line with its figures."""
    places = range(len(lineup.entries))
    names = [name(lineup, place) for place in places]
    return names if max(map(columns, names)) <= MOST_LABEL else [letter(place) for place in places]


# --- Markdown -------------------------------------------------------------------------------------


def render_markdown(lineup: Lineup, *, limit: int = LIMIT) -> str:
    """Return a table for each measure, narrow enough for a phone, and the dominated entries.

    Names of agents and criteria are escaped; parts that do not fit are omitted with a note.
    """
    lines, used = [], 0
    for line in _markdown_lines(lineup):
        used += len(line) + 1
        if used > limit - 100:
            lines += ["", "*The rest is left out: it is too long for a comment.*"]
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def _markdown_lines(lineup: Lineup) -> Iterator[str]:
    yield f"## {title(lineup)}"
    yield ""
    places = range(len(lineup.entries))
    for place in places:
        yield f"- {markdown(entry_line(lineup, place, source=True))}"
    for measure in lineup.measures:
        yield ""
        yield f"| {markdown(measure.name, 100)} ({wanted(measure)}) | mean | difference to A |"
        yield "|---|---|---|"
        for place in places:
            mean, cases, difference, how = _figures(measure, place)
            if how:
                difference += f" **{how}**"
            yield f"| {markdown(name(lineup, place), 60)} | {f'{mean} {cases}'.rstrip()} | {difference} |"
    yield ""
    for line in dominated_lines(lineup):
        yield f"- {markdown(line, 400)}"
    if lineup.preferences:
        yield ""
        yield "### Preferred by the judge"
        yield ""
        for found in lineup.preferences:
            yield f"- {markdown(preference_line(lineup, found), 400)}; {position_line(found)}"
        if lineup.judge_cost_usd is not None:
            yield f"- {judge_cost(lineup.judge_cost_usd)}"
    yield ""
    yield reading(lineup)
    if lineup.notes:
        yield ""
        for note in lineup.notes[:MOST_NOTES]:
            yield f"- {markdown(note, 400)}"


# --- HTML and JSON --------------------------------------------------------------------------------


def render_html(lineup: Lineup) -> str:
    """Return a complete page in one file, with the text of `render_markdown`."""
    from gate.reports.html import page  # weight: only needed for a page

    return page.of_markdown(f"{title(lineup)} · Agent Gate", render_markdown(lineup))


def render_json(lineup: Lineup) -> str:
    """Return all pairs of every measure, and the judge's votes with their reasons, as indented JSON in ASCII."""
    plain = unicode_only(msgspec.to_builtins(lineup))
    return json.dumps({"version": VERSION, **plain}, indent=1, allow_nan=False) + "\n"
