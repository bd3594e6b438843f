"""Trials that share their randomness with a stored one: exchangeable labels and the paired difference.

If nothing changed, a coupled pair is as likely as its exchange, and all orders of the other trials are equally likely;
but a coupled trial is not assumed exchangeable with any other. docs/dev/decisions/0023-coupled-trials.md has the
reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from gate.decision.engine.state import Partner, Row
from gate.statistics.paired import Coupled
from gate.statistics.permutation import ComparedTrials


def linked(links: Sequence[Partner | None]) -> list[tuple[int, int]]:
    """Return the positions of the coupled trials and of their partners."""
    return [(position, link.stored) for position, link in enumerate(links) if link is not None]


def uncoupled(rows: Sequence[Row], links: Sequence[Partner | None]) -> list[Row]:
    """Return the uncoupled trials."""
    return [row for row, link in zip(rows, links, strict=True) if link is None]


def apart_from(links: Sequence[Partner | None], before: Sequence[Row]) -> list[Row]:
    """Return the baseline's trials with which none of these is coupled."""
    partners = {there for _, there in linked(links)}
    return [row for position, row in enumerate(before) if position not in partners]


def compared(
    full: Sequence[Row], links: Sequence[Partner | None], looked: int, before: Sequence[Row]
) -> ComparedTrials:
    """Return the candidate's trials from ``looked`` on, to compare with all earlier trials.

    A new coupled trial changes labels with its partner; the others among themselves and with trials without a partner.
    Pairs that an earlier look has seen stay as they are. If an earlier look relabelled all trials of the case freely,
    new coupled trials are left out, since that look used their partners already.
    """
    old_links = linked(links[:looked])
    was_relabelled_freely = len(old_links) < looked
    if not old_links and (was_relabelled_freely or not any(links[looked:])):
        return ComparedTrials(uncoupled(full[looked:], links[looked:]), [*before, *full[:looked]])
    partners = {there for _, there in old_links}
    free = [place for place in range(len(before)) if place not in partners]
    place_of = {place: position for position, place in enumerate(free)}
    rows: list[Row] = []
    pairs: list[tuple[int, int]] = []
    for row, link in zip(full[looked:], links[looked:], strict=True):
        if link is not None:
            if was_relabelled_freely or link.stored not in place_of:
                continue
            pairs.append((len(rows), place_of[link.stored]))
        rows.append(row)
    earlier = [before[place] for place in free] + uncoupled(full[:looked], links[:looked])
    held = [full[here] for here, _ in old_links] + [before[there] for _, there in old_links]
    return ComparedTrials(rows, earlier, pairs, held)


def with_pairs(known: Coupled, rows: Sequence[Row], links: Sequence[Partner | None], before: Sequence[Row]) -> Coupled:
    """Return the known outcomes of coupled trials with these added; trials without a partner or an outcome are
    skipped."""
    both, before_only, now_only, neither = known.both, known.before_only, known.now_only, known.neither
    for row, link in zip(rows, links, strict=True):
        if link is None:
            continue
        outcome_before, outcome = before[link.stored][0], row[0]
        if outcome_before is None or outcome is None:
            continue
        passed_before, passed_now = outcome_before >= 0.5, outcome >= 0.5
        both += passed_before and passed_now
        before_only += passed_before and not passed_now
        now_only += passed_now and not passed_before
        neither += not passed_before and not passed_now
    return Coupled(both, before_only, now_only, neither)


def values_in(rows: Sequence[Row], m: int) -> list[float]:
    """Return the measured values of a metric in these trials."""
    found = []
    for row in rows:
        value = row[m]
        if value is not None:
            found.append(value)
    return found


def paired_difference(
    full: Sequence[Row], links: Sequence[Partner | None], before: Sequence[Row], m: int
) -> tuple[float, float]:
    """Return the change of a metric in a case, and the factor from the variance of one trial to that of the change.

    A coupled trial is compared with its partner, any other with the mean of the baseline. A trial answered entirely
    from a recording counts as one draw that shows if the change alters anything; even if it never does in the recorded
    worlds, it may in others, so such trials always count.
    """
    stored = values_in(before, m)
    mean = fmean(stored)
    values, differences = [], []
    alone = whole = 0
    for row, link in zip(full, links, strict=True):
        value = row[m]
        if value is None:
            continue
        partner = None
        if link is not None:
            partner = before[link.stored][m]
            whole += link.whole
        if partner is None:
            alone += 1
            partner = mean
        values.append(value)
        differences.append(value - partner)
    n = len(values)
    if alone == n:
        return fmean(values) - mean, 1 / n + 1 / len(stored)
    return fmean(differences), (alone + 2 * (n - alone) - whole) / n**2 + (alone / n) ** 2 / len(stored)
