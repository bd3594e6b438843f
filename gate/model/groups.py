"""Results of cases that share a tag or a complexity, and the group in which a loss is concentrated."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


class GroupKind(str, Enum):
    """The property that the cases of a group share."""

    TAG = "tag"
    COMPLEXITY = "complexity"


class Concentration(Struct, frozen=True):
    """A group whose cases lost more than the others, and more than any group of this suite would by chance.

    If there are several, each is named for cases that no earlier one contains: of two nested groups the one that
    explains the loss, not both. A group is named in at most 5 % of the runs in which losses have nothing to do with
    groups.
    """

    kind: GroupKind
    name: str
    criterion: str
    """The criterion with these losses; the pass rate, unless the verdict rests on another."""
    cases: int
    """Paired cases of the group."""
    of: int
    """Number of cases in the suite."""
    before: float
    """The baseline's mean over the cases of the group."""
    now: float
    rest_before: float
    """The baseline's mean over all other cases."""
    rest_now: float
    lost: int
    """Cases of the group that are worse than at the baseline, however slightly."""
    rest_lost: int
    p: float
    """The p-value, adjusted for all groups."""
