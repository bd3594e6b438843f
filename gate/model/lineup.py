"""Several agents side by side: what each measured of the same cases, and how any two of them differ."""

from __future__ import annotations

from msgspec import Struct

from gate.model.results import Estimate
from gate.model.scale import Direction, Scale


class LineupEntry(Struct, frozen=True):
    """One agent, by a record of it."""

    name: str
    source: str = ""
    """The record's file."""
    suite_id: str = ""
    commit: str | None = None
    trials: int = 0
    """Measured trials of the cases that all have; of whole epochs."""
    failed: int = 0
    """The trials among them in which the agent failed instead of answering."""
    lost: int = 0
    """Further trials that infrastructure errors took."""
    started: float = 0.0
    """Unix time of the first trial; 0 where the record does not say."""
    ended: float = 0.0
    """Unix time at which the last trial began."""


class Difference(Struct, frozen=True):
    """One entry minus another, over the cases that both have."""

    one: int
    """Place among the entries, from 0."""
    other: int
    estimate: Estimate
    """With the interval that holds together with all others; level 0 where there is none."""


class Measure(Struct, frozen=True):
    """One row of the table."""

    name: str
    scale: Scale
    direction: Direction
    estimates: tuple[Estimate | None, ...]
    """Each entry's own mean with its 95 % interval; None where it has no figures."""
    differences: tuple[Difference, ...] = ()
    """The difference of each pair, the later entry minus the earlier one."""
    apart: tuple[str, ...] = ()
    """The reasons why entries are left out, by entry; empty for an entry that is not."""

    def gain(self, one: int, other: int) -> Estimate | None:
        """Return the estimated lead of ``one`` over ``other``: positive is better in either direction. None
        if unknown."""
        for found in self.differences:
            if {found.one, found.other} == {one, other}:
                same = (found.one == one) == (self.direction is Direction.HIGHER)
                return found.estimate if same else _negated(found.estimate)
        return None

    def better(self, one: int, other: int) -> bool:
        """True if ``one`` is shown to be better than ``other``: the interval leaves no room for no difference."""
        gain = self.gain(one, other)
        return gain is not None and gain.level > 0 and gain.low > 0


class Dominated(Struct, frozen=True):
    """An entry that another one beats: no worse in quality, cost and latency, and better in one of them."""

    entry: int
    by: int
    proven: bool
    """True if the intervals show it; else the means alone do."""


class OrderedVote(Struct, frozen=True):
    """The judge's vote on one case in one order."""

    case_id: str
    first: int
    """Place of the entry whose answer was shown first."""
    second: int
    preferred: int | None
    """Place of the entry that it prefers; None: neither."""
    reason: str = ""
    error: str = ""
    """The reason why there is no vote; ``preferred`` means nothing then."""


class Preference(Struct, frozen=True):
    """The share of cases in which the judge prefers one entry's answer to another's, each case seen in both orders."""

    one: int
    other: int
    wins: int
    """Cases in which both orders prefer ``one``."""
    losses: int
    ties: int
    """Cases in which the orders disagree, or neither is preferred."""
    first_twice: int
    """Ties among them in which whatever stood first was preferred both times."""
    second_twice: int
    unread: int
    """Cases without a vote in each order."""
    rate: Estimate | None = None
    """Share of wins, a tie counted as half; None without a case."""


class Lineup(Struct, frozen=True):
    """The whole comparison. The first entry is the one that others are shown against; nothing of it is a verdict."""

    entries: tuple[LineupEntry, ...]
    measures: tuple[Measure, ...]
    cases: int
    """Cases that all entries have with the same content."""
    comparisons: int
    """Differences whose intervals hold together."""
    level: float = 0.95
    """With what probability all of them do."""
    quality: str = ""
    """The measure that quality is read from."""
    cost: str = ""
    latency: str = ""
    dominated: tuple[Dominated, ...] = ()
    preferences: tuple[Preference, ...] = ()
    votes: tuple[OrderedVote, ...] = ()
    judge_cost_usd: float | None = None
    notes: tuple[str, ...] = ()
    """Notes on the figures: entries and criteria that could not be compared, and the reason."""

    def measure(self, name: str) -> Measure | None:
        return next((one for one in self.measures if one.name == name), None)


def _negated(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.high, -estimate.low, estimate.n, estimate.trials, estimate.level)
