"""The comparison as Markdown: one table of means, one of differences to the first, then who is dominated."""

from __future__ import annotations

from collections.abc import Iterator

from gate.model.lineup import Lineup
from gate.reports.lineup import words
from gate.security.escape import markdown

LIMIT = 60_000
"""Characters; a host's comment takes no more."""


def render(lineup: Lineup, *, limit: int = LIMIT) -> str:
    """The whole comparison. Names of agents and criteria are escaped; what does not fit is left out and said."""
    lines, used = [], 0
    for line in _lines(lineup):
        used += len(line) + 1
        if used > limit - 100:
            lines += ["", "*The rest is left out: it is too long for a comment.*"]
            break
        lines.append(line)
    return "\n".join(lines) + "\n"


def _lines(lineup: Lineup) -> Iterator[str]:
    yield f"## {words.title(lineup)}"
    yield ""
    yield from (f"- {markdown(words.entry_line(lineup, place))}" for place in range(len(lineup.entries)))
    yield ""
    yield from _means(lineup)
    yield ""
    yield from _differences(lineup)
    yield ""
    yield from (f"- {markdown(line, 400)}" for line in words.dominated_lines(lineup))
    if lineup.preferences:
        yield ""
        yield "### Preferred by the judge"
        yield ""
        for found in lineup.preferences:
            yield f"- {markdown(words.preference_line(lineup, found), 400)}; {words.position_line(found)}"
    yield ""
    yield words.reading(lineup)
    if lineup.notes:
        yield ""
        yield from (f"- {markdown(note, 400)}" for note in lineup.notes[: words.MOST_NOTES])


def _means(lineup: Lineup) -> Iterator[str]:
    places = range(len(lineup.entries))
    yield "| | " + " | ".join(markdown(words.name(lineup, place), 60) for place in places) + " |"
    yield "|---" * (len(lineup.entries) + 1) + "|"
    for measure in lineup.measures:
        cells = (f"{words.mean_of(measure, place)} {words.sample_of(measure, place)}".strip() for place in places)
        yield f"| {markdown(measure.name, 100)}, {words.wanted(measure)} | {' | '.join(cells)} |"


def _differences(lineup: Lineup) -> Iterator[str]:
    places = range(1, len(lineup.entries))
    yield "| difference to A | " + " | ".join(markdown(words.name(lineup, place), 60) for place in places) + " |"
    yield "|---" * len(lineup.entries) + "|"
    for measure in lineup.measures:
        cells = []
        for place in places:
            how = words.standing(measure, place, 0)
            cells.append(words.difference_text(measure, place, 0) + (f" **{how}**" if how else ""))
        yield f"| {markdown(measure.name, 100)} | {' | '.join(cells)} |"
