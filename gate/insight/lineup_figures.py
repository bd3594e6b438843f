"""Figures for several agents on the same cases: means, simultaneous paired differences, and dominated entries.

Knows numbers by entry and case; the pipeline provides them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations

from msgspec import Struct

from gate.decision.estimates import estimate_of
from gate.model import Direction, Estimate, Scale
from gate.model.lineup import Difference, Dominated, Measure, OrderedVote, Preference
from gate.statistics.intervals import mean, simultaneous_change

LEVEL = 0.95
"""Probability that all intervals of differences hold simultaneously."""

Values = Mapping[str, Sequence[float]]
"""Case → values measured in its trials; without cases that have none."""


class Measured(Struct, frozen=True):
    """The values of all entries for one measure."""

    name: str
    scale: Scale
    direction: Direction
    values: tuple[Values, ...]
    """The values by entry."""
    apart: tuple[str, ...] = ()
    """By entry, the reason it is left out; empty if it is compared."""

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs of entries, the later first, that have at least two cases in common."""
        places = range(len(self.values))
        return [(one, other) for other, one in combinations(places, 2) if len(self.common(one, other)) > 1]

    def common(self, one: int, other: int) -> list[str]:
        """Return the cases for which both entries have values, in order."""
        theirs = self.values[other]
        return [case_id for case_id in self.values[one] if case_id in theirs]


def count_comparisons(measured: Iterable[Measured], preferences: int = 0) -> int:
    """Return the number of estimated differences, at least 1."""
    return max(1, preferences + sum(len(one.pairs()) for one in measured))


def measures_of(measured: Iterable[Measured], comparisons: int) -> tuple[Measure, ...]:
    """Return the rows of the table, without measures that no entry has."""
    return tuple([_measure(one, comparisons) for one in measured if any(one.values)])


def _measure(found: Measured, comparisons: int) -> Measure:
    estimates, differences = [], []
    for values in found.values:
        estimates.append(estimate_of(list(values.values()), found.scale))
    for one, other in found.pairs():
        differences.append(_difference(found, one, other, comparisons))
    return Measure(found.name, found.scale, found.direction, tuple(estimates), tuple(differences), found.apart)


def _difference(found: Measured, one: int, other: int, comparisons: int) -> Difference:
    differences, groups, trials = [], [], 0
    for case_id in found.common(one, other):
        mine, theirs = found.values[one][case_id], found.values[other][case_id]
        groups += [mine, theirs]
        differences.append(mean(mine) - mean(theirs))
        trials += len(mine)
    step = 0.0
    if found.scale.is_zero_to_one:
        step = _step(groups)
    value, low, high = simultaneous_change(differences, comparisons=comparisons, step=step, level=LEVEL)
    least, most = found.scale.range  # no difference is larger than the scale
    low, high = max(low, least - most), min(high, most - least)
    return Difference(one, other, Estimate(value, low, high, len(differences), trials, LEVEL))


def _step(groups: Sequence[Sequence[float]]) -> float:
    """Return the change of a case's mean by one trial if all scores are zeros and ones; else 0."""
    if not set(chain.from_iterable(groups)) <= {0.0, 1.0}:
        return 0.0
    return mean([1 / len(group) for group in groups])


# --- who is dominated -----------------------------------------------------------------------------


def dominated(measures: Sequence[Measure], entries: int) -> tuple[Dominated, ...]:
    """Return the entries that another one beats in ``measures``: quality, cost and latency.

    An entry is compared with those that have figures for every measure it has itself. If several beat it, the first for
    which the intervals prove it is named, else the first.
    """
    found = []
    for entry in range(entries):
        beaten = filter(None, [_beats(measures, by, entry) for by in range(entries)])
        found += sorted(beaten, key=lambda one: not one.proven)[:1]
    return tuple(found)


def _beats(measures: Sequence[Measure], by: int, entry: int) -> Dominated | None:
    if by == entry:
        return None
    is_ahead, proven = False, True
    for one in measures:
        if one.estimates[entry] is None:
            continue
        gain = one.gain(by, entry)
        if gain is None or gain.value < 0:
            return None
        if gain.value > 0:
            is_ahead = True
            proven = proven and gain.low > 0
        proven = proven and gain.low >= 0
    if not is_ahead:
        return None
    return Dominated(entry, by, proven)


# --- the judge's preferences ----------------------------------------------------------------------


def preferences_of(
    votes: Sequence[OrderedVote], pairs: Sequence[tuple[int, int]], comparisons: int
) -> tuple[Preference, ...]:
    """Return wins, losses and ties of each pair, with each case judged in both orders."""
    return tuple([_preference(votes, one, other, comparisons) for one, other in pairs])


def _preference(votes: Sequence[OrderedVote], one: int, other: int, comparisons: int) -> Preference:
    by_case: dict[str, dict[int, OrderedVote]] = {}
    for vote in votes:
        if {vote.first, vote.second} == {one, other}:
            by_case.setdefault(vote.case_id, {})[vote.first] = vote
    read = []
    for found in by_case.values():
        if len(found) == 2 and not found[one].error and not found[other].error:
            read.append((found[one].preferred, found[other].preferred))
    scores = [_score(ahead, behind, one) for ahead, behind in read]
    wins, losses = scores.count(1.0), scores.count(-1.0)
    return Preference(
        one,
        other,
        wins,
        losses,
        len(scores) - wins - losses,
        first_twice=read.count((one, other)),
        second_twice=read.count((other, one)),
        unread=len(by_case) - len(read),
        rate=_rate(scores, comparisons),
    )


def _score(ahead: int | None, behind: int | None, one: int) -> float:
    """Return 1 if both orders prefer ``one``, -1 if both prefer the other, else 0."""
    if ahead != behind or ahead is None:
        return 0.0
    if ahead == one:
        return 1.0
    return -1.0


def _rate(scores: Sequence[float], comparisons: int) -> Estimate | None:
    """Return the share of wins, with ties counted as half, and its interval, which holds simultaneously with all
    others."""
    if not scores:
        return None
    value, low, high = simultaneous_change(scores, comparisons=comparisons, step=1.0, level=LEVEL)
    if len(scores) < 2:
        return Estimate((1 + value) / 2, 0.0, 1.0, 1, 1, level=0.0)
    low, high = max(0.0, (1 + low) / 2), min(1.0, (1 + high) / 2)
    return Estimate((1 + value) / 2, low, high, len(scores), len(scores), LEVEL)
