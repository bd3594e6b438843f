"""Finds whether losses are concentrated in a group of cases: two tests over all groups at once. Knows no agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add
from random import Random

from msgspec import Struct

from gate.statistics.intervals import squares

STATED = 0.05
"""In at most this share of the runs in which losses have nothing to do with groups any group is named."""
LEVEL = 0.03
"""The level that the tests are held to, below the stated one: exact only if the spread of losses is alike in all
groups."""
PERMUTATIONS = 999
MOST_NAMED = 3
LEAST = 3
"""Cases that a group has at least, and that are outside of it."""
LEAST_LOST = 2
"""Cases of a group that is named, of which the loss is; one alone is no matter of a group."""


class Named(Struct, frozen=True):
    """A group that lost more than the rest."""

    group: int
    """Its position."""
    p: float
    """Adjusted for all groups that were left to be named."""


def concentrated(
    losses: Sequence[float], groups: Sequence[frozenset[int]], chance: Sequence[Sequence[float]], *, seed: str
) -> list[Named]:
    """The groups whose members lost more than the rest: the clearest, then the next without the members of the first.

    The statistic is Welch's t of a group's mean loss against the mean of all others, its variances shrunk by one
    observation towards the common one; the largest over all groups is compared with what it is under permutations of
    the losses (Westfall & Young 1993). That is exact where losses are exchangeable, and the studentized statistic keeps
    it close where the spread differs between groups (Chung & Romano 2013). A few flaky cases that share a tag can
    still differ from steady ones by luck alone, so the group must have lost by itself, too: more than its trials do
    under a relabelling within its cases, at a level divided by the number of groups. Groups may overlap and nest: what
    a group shares with one already named does not count for it.

    Args:
        losses: of each case; above 0: worse than before.
        groups: the positions of each group's members; of equal groups the first is named.
        chance: of each case, equally likely losses if nothing had changed: those of its trials under relabelling.
        seed: the same seed and losses give the same result.
    """
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    left = list(range(len(losses)))
    named: list[Named] = []
    while len(named) < MOST_NAMED:
        found = _clearest(losses, groups, left, chance, rng)
        if found is None:
            break
        named.append(found)
        left = [position for position in left if position not in groups[found.group]]
    return named


class _Groups(Struct, frozen=True):
    """The groups that may be named, over the cases that are left."""

    names: Sequence[int]
    sizes: Sequence[int]
    of: Sequence[Sequence[int]]
    """Place of a case among those left → the groups that it is in, by their place in ``names``."""


def _clearest(
    losses: Sequence[float],
    groups: Sequence[frozenset[int]],
    left: Sequence[int],
    chance: Sequence[Sequence[float]],
    rng: Random,
) -> Named | None:
    values = [losses[position] for position in left]
    known = _groups(groups, left)
    spread = squares(values) / len(values) if values else 0.0
    if not known.names or not spread:
        return None
    moved = [(place, value) for place, value in enumerate(values) if value]
    totals = math.fsum(values), math.fsum(value * value for value in values)
    observed = _statistics(known, moved, totals, len(values), spread)
    best = max(range(len(observed)), key=observed.__getitem__)
    members = [position for position in left if position in groups[known.names[best]]]
    if not _lost_itself(losses, members, chance, LEVEL / len(known.names), rng):
        return None
    beyond, most = 0, LEVEL * (PERMUTATIONS + 1)
    for _ in range(PERMUTATIONS):
        places = rng.sample(range(len(values)), len(moved))
        drawn = [(place, value) for place, (_, value) in zip(places, moved, strict=True)]
        beyond += max(_statistics(known, drawn, totals, len(values), spread)) >= observed[best] - 1e-9
        if 1 + beyond > most:
            return None
    return Named(known.names[best], (1 + beyond) / (1 + PERMUTATIONS))


def _lost_itself(
    losses: Sequence[float], members: Sequence[int], chance: Sequence[Sequence[float]], level: float, rng: Random
) -> bool:
    """True if the members lost more than unchanged cases do, and not one of them alone."""
    if sum(losses[position] > 0 for position in members) < LEAST_LOST:
        return False
    draws = max(PERMUTATIONS, math.ceil(2 / level))
    totals = [0.0] * draws
    for position in members:
        totals = list(map(add, totals, rng.choices(chance[position], k=draws)))
    observed = math.fsum(losses[position] for position in members)
    return 1 + sum(total >= observed - 1e-9 for total in totals) <= level * (1 + draws)


def _groups(groups: Sequence[frozenset[int]], left: Sequence[int]) -> _Groups:
    """Groups that are large enough, whatever they lost; each set of members once."""
    place_of = {position: place for place, position in enumerate(left)}
    names: list[int] = []
    sizes: list[int] = []
    seen: set[frozenset[int]] = set()
    of: list[list[int]] = [[] for _ in left]
    for name, members in enumerate(groups):
        here = frozenset(place_of[position] for position in members if position in place_of)
        if here in seen or not LEAST <= len(here) <= len(left) - LEAST:
            continue
        seen.add(here)
        for place in here:
            of[place].append(len(names))
        names.append(name)
        sizes.append(len(here))
    return _Groups(names, sizes, of)


def _statistics(
    known: _Groups, moved: Sequence[tuple[int, float]], totals: tuple[float, float], n: int, spread: float
) -> list[float]:
    """Welch's t of each group against the rest; ``moved``: the cases whose loss is not zero."""
    sums, squares = [0.0] * len(known.names), [0.0] * len(known.names)
    for place, value in moved:
        for group in known.of[place]:
            sums[group] += value
            squares[group] += value * value
    found = []
    for size, total, square in zip(known.sizes, sums, squares, strict=True):
        mean, variance = _moments(total, square, size, spread)
        rest_mean, rest_variance = _moments(totals[0] - total, totals[1] - square, n - size, spread)
        found.append((mean - rest_mean) / math.sqrt(variance / size + rest_variance / (n - size)))
    return found


def _moments(total: float, square: float, n: int, spread: float) -> tuple[float, float]:
    """Mean and variance; the variance adds one observation at the average distance from the mean."""
    mean = total / n
    return mean, (max(0.0, square - n * mean * mean) + spread) / n
