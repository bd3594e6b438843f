"""The words that all forms of the comparison share: letters, differences, who is dominated, preferences."""

from __future__ import annotations

from gate.model import Direction, Estimate, Scale
from gate.model.lineup import Difference, Dominated, Lineup, Measure, Preference
from gate.reports.formatting import count, difference_interval, dollars, interval, percentage, sample

MOST_NOTES = 50
NO_FIGURES = "–"


def letter(place: int) -> str:
    """``A`` for the first entry."""
    return chr(ord("A") + place)


def name(lineup: Lineup, place: int) -> str:
    """``B small``; the name is the user's."""
    return f"{letter(place)} {lineup.entries[place].name}"


def title(lineup: Lineup) -> str:
    return f"{count(len(lineup.entries), 'agent')} on the same {count(lineup.cases, 'case')}"


def reading(lineup: Lineup) -> str:
    """Return how to read the intervals."""
    return (
        f"Means have 95 % intervals of their own. The {count(lineup.comparisons, 'interval')} of differences, every"
        f" pair in every row, hold together: all of them cover the truth with a probability of at least"
        f" {percentage(lineup.level)}. A description, not a verdict."
    )


def wanted(measure: Measure) -> str:
    return "higher is better" if measure.direction is Direction.HIGHER else "lower is better"


def mean_of(measure: Measure, place: int) -> str:
    """The mean with its interval, or why there is none."""
    found = measure.estimates[place]
    if found is not None:
        return interval(found, measure.scale)
    return (measure.apart[place] if measure.apart else "") or "not measured"


def sample_of(measure: Measure, place: int) -> str:
    return sample(measure.estimates[place])


def difference(measure: Measure, one: int, other: int) -> Difference | None:
    """Return the difference of a pair, whichever way it is kept."""
    return next((d for d in measure.differences if (d.one, d.other) == (one, other)), None)


def difference_text(measure: Measure, one: int, other: int) -> str:
    """``one`` minus ``other``, the earlier entry; a dash where they have no two cases in common."""
    found = difference(measure, one, other)
    return difference_interval(found.estimate, measure.scale) if found is not None else NO_FIGURES


def standing(measure: Measure, one: int, other: int) -> str:
    """``better`` or ``worse`` where the interval shows it, else empty."""
    if measure.better(one, other):
        return "better"
    return "worse" if measure.better(other, one) else ""


def entry_line(lineup: Lineup, place: int) -> str:
    """``B small: 120 trials, 3 failed, commit 0123abc, small.jsonl``."""
    entry = lineup.entries[place]
    parts = [count(entry.trials, "trial")]
    parts += [f"{entry.failed:,} failed"] if entry.failed else []
    parts += [f"{entry.lost:,} lost to infrastructure"] if entry.lost else []
    parts += [f"commit {entry.commit[:12]}"] if entry.commit else []
    return f"{name(lineup, place)}: {', '.join([*parts, *([entry.source] if entry.source else [])])}"


def dominated_line(lineup: Lineup, found: Dominated) -> str:
    """``B small is dominated by A large: …``, and whether the intervals show it."""
    axes = [one for one in (lineup.quality, lineup.cost, lineup.latency) if one]
    known = [axis for axis in axes if (row := lineup.measure(axis)) and row.estimates[found.entry] is not None]
    how = "as the intervals show" if found.proven else "by the means alone"
    verb = "is dominated by" if found.proven else "looks dominated by"
    named = f"{name(lineup, found.entry)} {verb} {name(lineup, found.by)}"
    if len(known) == 1:
        return f"{named}: better in {known[0]}, {how}"
    return f"{named}: no worse in {', '.join(known)}, and better in at least one, {how}"


def dominated_lines(lineup: Lineup) -> list[str]:
    found = [dominated_line(lineup, one) for one in lineup.dominated]
    return found or ["none is dominated: each is ahead of every other in quality, cost or latency"]


def preference_line(lineup: Lineup, found: Preference) -> str:
    """``B small against A large: preferred in 12 cases, not in 3, 5 ties; win rate 72.5 % [51, 88]``."""
    pair = f"{name(lineup, found.one)} against {name(lineup, found.other)}"
    if found.rate is None:
        return f"{pair}: not measured ({count(found.unread, 'case')} without a vote in both orders)"
    tally = f"preferred in {count(found.wins, 'case')}, not in {found.losses:,}, {count(found.ties, 'tie')}"
    rate = interval(found.rate, Scale.BINARY)
    unread = f"; {count(found.unread, 'case')} without a vote in both orders" if found.unread else ""
    return f"{pair}: {tally}; win rate {rate}, n = {found.rate.n:,}{unread}"


def position_line(found: Preference) -> str:
    """Return the influence of an answer's place on the judge."""
    if not found.first_twice and not found.second_twice:
        return "position: no case in which the judge preferred a place in both orders"
    cases = count(found.wins + found.losses + found.ties, "case")
    first, second = found.first_twice, found.second_twice
    return f"position: of {cases} the judge preferred the first place twice in {first:,}, the second in {second:,}"


def judge_cost(lineup: Lineup) -> str:
    return "" if lineup.judge_cost_usd is None else f"judge: {dollars(lineup.judge_cost_usd)}"


def place_of(estimate: Estimate | None, low: float, high: float) -> float:
    """Return the place of a mean between two ends, 0–1; 0.5 if they are one."""
    if estimate is None or high <= low:
        return 0.5
    return min(1.0, max(0.0, (estimate.value - low) / (high - low)))
