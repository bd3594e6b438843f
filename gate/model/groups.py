"""Results of the cases that share a tag or a complexity, and the group that a loss is concentrated in."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class GroupKind(str, Enum):
    """The property that the cases of a group share."""

    TAG = "tag"
    COMPLEXITY = "complexity"


class Concentration(Struct, frozen=True):
    """A group whose cases lost more than the others, and more than chance gives any group of this suite.

    Of several, each is named for the cases that are in none before it: of two nested groups the one that explains the
    loss, not both. Names a group in at most 5 % of the runs in which losses have nothing to do with groups.
    """

    kind: GroupKind
    name: str
    criterion: str
    """The criterion that has these losses; the pass rate, unless the verdict rests on another."""
    cases: int
    """Paired cases of the group."""
    of: int
    """The cases of the suite."""
    before: float
    """The baseline's mean over the cases of the group."""
    now: float
    rest_before: float
    """The mean over all others at the baseline."""
    rest_now: float
    lost: int
    """Cases of the group that are worse than at the baseline, by however little."""
    rest_lost: int
    p: float
    """Adjusted for all groups."""
