"""Trials that share their random part with a stored one: what may change labels, and the paired difference.

Under "nothing changed" a coupled pair and its exchange are equally likely, and so are the orders of the other trials;
that a coupled trial could stand in for any other is not said.
docs/dev/decisions/0023-coupled-trials.md has the reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from msgspec import Struct

from gate.decision.engine.state import Partner, Row
from gate.statistics.paired import Coupled

Links = Sequence[tuple[int, int]]


class ComparedTrials(Struct, frozen=True):
    """Trials of a case that are compared."""

    now: Sequence[Row]
    before: Sequence[Row]
    links: Links = ()
    """Positions of coupled trials in ``now`` and ``before``."""
    held: Sequence[Row] = ()
    """Further trials that keep their label, and only say how steady the case is."""


def linked(links: Sequence[Partner | None]) -> list[tuple[int, int]]:
    """The coupled trials' positions, and those of their partners."""
    return [(position, link.stored) for position, link in enumerate(links) if link is not None]


def apart_from(links: Sequence[Partner | None], before: Sequence[Row]) -> list[Row]:
    """The trials of the baseline that none of these was coupled with."""
    partners = {link.stored for link in links if link is not None}
    return [row for position, row in enumerate(before) if position not in partners]


def compared(
    full: Sequence[Row], links: Sequence[Partner | None], looked: int, before: Sequence[Row]
) -> ComparedTrials:
    """The candidate's trials from ``looked`` on against all that was there before.

    A new trial that was coupled changes labels with its partner; the others among themselves and with the trials that
    have no partner. Pairs that were looked at before stay as they are. Where an earlier look relabelled the trials of
    the case freely, a trial coupled with one of those is left out: that look has spoken of its partner.
    """
    old = linked(links[:looked])
    was_free = any(link is None for link in links[:looked])
    kept = [at for at in range(looked, len(full)) if not (was_free and links[at] is not None)]
    if not old and all(links[at] is None for at in kept):
        return ComparedTrials([full[at] for at in kept], [*before, *full[:looked]])
    partners = {there for _, there in old}
    free = [place for place in range(len(before)) if place not in partners]
    place_of = {place: position for position, place in enumerate(free)}
    new = [link for at in kept if (link := links[at]) is None or link.stored in place_of]
    rows = [full[at] for at in kept if (link := links[at]) is None or link.stored in place_of]
    pairs = [(position, place_of[link.stored]) for position, link in enumerate(new) if link is not None]
    single = [row for row, link in zip(full[:looked], links[:looked], strict=True) if link is None]
    held = [full[here] for here, _ in old] + [before[there] for _, there in old]
    return ComparedTrials(rows, [*(before[place] for place in free), *single], pairs, held)


def with_pairs(known: Coupled, rows: Sequence[Row], partners: Sequence[Row | None]) -> Coupled:
    """The outcomes of coupled trials, with these; a trial without a partner, or without an outcome, is none."""
    counts = {(True, True): known.both, (True, False): known.before_only}
    counts |= {(False, True): known.now_only, (False, False): known.neither}
    for row, partner in zip(rows, partners, strict=True):
        if partner is not None and row[0] is not None and partner[0] is not None:
            counts[partner[0] >= 0.5, row[0] >= 0.5] += 1
    return Coupled(*counts.values())


def paired_difference(
    full: Sequence[Row], links: Sequence[Partner | None], before: Sequence[Row], m: int
) -> tuple[float, float]:
    """The change of a metric in a case, and by what the variance of one trial is divided in it, as an inverse.

    A coupled trial is compared with its partner, any other with the mean of the baseline. A trial that was answered
    wholly from a recording counts as one draw of whether the change alters anything; that it altered nothing in the
    recorded worlds does not make that certain of others, so it never counts as no draw at all.
    """
    known = [(value, link) for row, link in zip(full, links, strict=True) if (value := row[m]) is not None]
    stored = [value for row in before if (value := row[m]) is not None]
    values, mean, n = [value for value, _ in known], fmean(stored), len(known)
    partners = [None if link is None else before[link.stored][m] for _, link in known]
    alone = partners.count(None)
    if alone == n:
        return fmean(values) - mean, 1 / n + 1 / len(stored)
    differences = [
        value - (mean if partner is None else partner) for value, partner in zip(values, partners, strict=True)
    ]
    whole = sum(link is not None and link.whole for _, link in known)
    return fmean(differences), (alone + 2 * (n - alone) - whole) / n**2 + (alone / n) ** 2 / len(stored)
