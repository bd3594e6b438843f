"""A comparison of several agents: each one's measurements on the same cases, and the differences between any two."""

from __future__ import annotations

from msgspec import Struct

from gate.model.results import Estimate
from gate.model.scale import Direction, Scale


class LineupEntry(Struct, frozen=True):
    """One agent, represented by a record."""

    name: str
    source: str = ""
    """The record's file."""
    suite_id: str = ""
    commit: str | None = None
    trials: int = 0
    """Measured trials in whole epochs, of the cases that all entries have."""
    failed: int = 0
    """The trials in which the agent failed instead of answering."""
    lost: int = 0
    """Further trials lost to infrastructure errors."""
    started: float = 0.0
    """Unix time of the first trial; 0 if the record does not tell."""
    ended: float = 0.0
    """Unix time at which the last trial began."""


class Difference(Struct, frozen=True):
    """One entry minus another, over the cases that both have."""

    one: int
    """Index of the entry, from 0."""
    other: int
    estimate: Estimate
    """With an interval that holds jointly with all others; level 0 if there is none."""


class Measure(Struct, frozen=True):
    """One row of the table."""

    name: str
    scale: Scale
    direction: Direction
    estimates: tuple[Estimate | None, ...]
    """Each entry's own mean with its 95 % interval; None if it has no figures."""
    differences: tuple[Difference, ...] = ()
    """The difference for each pair, the later entry minus the earlier one."""
    apart: tuple[str, ...] = ()
    """The reason why each entry is left out; empty for one that is not."""

    def gain(self, one: int, other: int) -> Estimate | None:
        """Return the estimated lead of ``one`` over ``other``: positive is better in either direction. None if
        unknown."""
        for found in self.differences:
            if {found.one, found.other} == {one, other}:
                same = (found.one == one) == (self.direction is Direction.HIGHER)
                return found.estimate if same else _negated(found.estimate)
        return None

    def better(self, one: int, other: int) -> bool:
        """True if ``one`` is shown to be better than ``other``: the interval excludes no difference."""
        gain = self.gain(one, other)
        return gain is not None and gain.level > 0 and gain.low > 0


class Dominated(Struct, frozen=True):
    """An entry that another one beats: no worse in quality, cost and latency, and better in one of them."""

    entry: int
    by: int
    proven: bool
    """True if the intervals show it, and not just the means."""


class OrderedVote(Struct, frozen=True):
    """The judge's vote on one case in one order."""

    case_id: str
    first: int
    """Index of the entry whose answer was shown first."""
    second: int
    preferred: int | None
    """Index of the preferred entry; None: neither."""
    reason: str = ""
    error: str = ""
    """The reason why there is no vote; then ``preferred`` means nothing."""


class Preference(Struct, frozen=True):
    """The share of cases in which the judge prefers one entry's answer to another's, with each case shown in both
    orders."""

    one: int
    other: int
    wins: int
    """Cases in which ``one`` is preferred in both orders."""
    losses: int
    ties: int
    """Cases in which the orders disagree, or neither answer is preferred."""
    first_twice: int
    """Ties in which the answer shown first was preferred both times."""
    second_twice: int
    unread: int
    """Cases without votes in both orders."""
    rate: Estimate | None = None
    """Share of wins, with a tie counted as half; None without cases."""


class Lineup(Struct, frozen=True):
    """The whole comparison. The first entry is the one that the others are compared with; there is no verdict."""

    entries: tuple[LineupEntry, ...]
    measures: tuple[Measure, ...]
    cases: int
    """Cases that all entries have with the same content."""
    comparisons: int
    """Number of differences whose intervals hold jointly."""
    level: float = 0.95
    """The probability with which all of them hold."""
    quality: str = ""
    """The measure used as quality."""
    cost: str = ""
    latency: str = ""
    dominated: tuple[Dominated, ...] = ()
    preferences: tuple[Preference, ...] = ()
    votes: tuple[OrderedVote, ...] = ()
    judge_cost_usd: float | None = None
    notes: tuple[str, ...] = ()
    """Notes on the figures, for instance why entries or criteria could not be compared."""

    def measure(self, name: str) -> Measure | None:
        return next((one for one in self.measures if one.name == name), None)


def _negated(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.high, -estimate.low, estimate.n, estimate.trials, estimate.level)
