"""Finds out if losses are concentrated in a group of cases: two tests over all groups at once. Knows no agents."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import add
from random import Random

from msgspec import Struct

from gate.statistics.intervals import squares

STATED = 0.05
"""Maximum share of runs in which any group is named although losses are unrelated to groups."""
LEVEL = 0.03
"""Level of the tests, below the stated one: they are exact only if the spread of losses is the same in all groups."""
PERMUTATIONS = 999
MOST_NAMED = 3
LEAST = 3
"""Minimum number of cases inside a group, and of cases outside it."""
LEAST_LOST = 2
"""Minimum number of cases with a loss in a named group: a single case does not make it a matter of the group."""


class Named(Struct, frozen=True):
    """A group that lost more than the rest."""

    group: int
    """Position of the group."""
    p: float
    """The p-value, adjusted for all groups that could still be named."""


def concentrated(
    losses: Sequence[float], groups: Sequence[frozenset[int]], chance: Sequence[Sequence[float]], *, seed: str
) -> list[Named]:
    """Return the groups whose members lost more than the rest: the clearest, then the next without its members, and so
    on.

    The statistic is Welch's t of a group's mean loss against the mean of all others, with variances shrunk by one
    observation towards the common one; the largest over all groups is compared with its distribution under permutations
    of the losses (Westfall & Young 1993). That is exact if losses are exchangeable, and the studentised statistic keeps
    it close if the spread differs between groups (Chung & Romano 2013). A few flaky cases that share a tag can still
    differ from steady ones by chance alone, so the group must also have lost by itself: more than its trials do under
    relabellings within its cases, at a level divided by the number of groups. Groups may overlap and nest: cases shared
    with a group that is already named do not count.

    Args:
        losses: per case; above 0 means worse than before.
        groups: the positions of each group's members; of equal groups the first is named.
        chance: per case, equally likely losses if nothing had changed: those of its trials under relabelling.
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
    """The groups that may be named, over the remaining cases."""

    names: Sequence[int]
    sizes: Sequence[int]
    of: Sequence[Sequence[int]]
    """Position of a remaining case → positions in ``names`` of its groups."""


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
    """True if the members lost more than unchanged cases would, and more than one of them did."""
    if sum(losses[position] > 0 for position in members) < LEAST_LOST:
        return False
    draws = max(PERMUTATIONS, math.ceil(2 / level))
    totals = [0.0] * draws
    for position in members:
        totals = list(map(add, totals, rng.choices(chance[position], k=draws)))
    observed = math.fsum(losses[position] for position in members)
    return 1 + sum(total >= observed - 1e-9 for total in totals) <= level * (1 + draws)


def _groups(groups: Sequence[frozenset[int]], left: Sequence[int]) -> _Groups:
    """Return the groups that are large enough, whatever they lost; each set of members once."""
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
    """Return Welch's t of each group against the rest; ``moved``: the cases with a non-zero loss."""
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
    """Return mean and variance; the variance includes one added observation at the average distance from the mean."""
    mean = total / n
    return mean, (max(0.0, square - n * mean * mean) + spread) / n
