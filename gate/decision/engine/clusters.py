"""Cases that share a fixture: what is one unit in suite looks, in the suite's e-value and in the certificate.

Their trials of one epoch depend on one another, so they are relabelled together: a unit's row of an epoch holds the
means over its cases. E-values of dependent cases are averaged, not multiplied: a mean of e-values is one regardless of
their dependence. Names stay with cases, since the e-BH procedure holds under any dependence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from gate.decision.engine.state import Row
from gate.statistics.permutation import ComparedTrials


def grouped(ids: Iterable[str], clusters: Mapping[str, str]) -> list[list[int]]:
    """Return the positions of the cases of each unit: a cluster, or a case that is in none."""
    units: dict[tuple[bool, str], list[int]] = {}
    for position, case_id in enumerate(ids):
        cluster = clusters.get(case_id, "")
        units.setdefault((True, cluster) if cluster else (False, case_id), []).append(position)
    return list(units.values())


def units_of(cases: Sequence[ComparedTrials], units: Sequence[Sequence[int]]) -> list[ComparedTrials]:
    """Return the rows of each unit on both sides, epoch by epoch, and which of them are coupled.

    A unit some of whose cases are coupled is as if all were, since free trials may change labels in pairs, too. Where
    its cases are coupled otherwise than one another, nothing of it can be relabelled together, and it has no rows.
    """
    found = []
    for members in units:
        present = [cases[position] for position in members if cases[position].now and cases[position].before]
        present = present or [cases[members[0]]]
        couplings = {tuple(case.links) for case in present if case.links}
        if len(couplings) > 1:
            found.append(ComparedTrials((), ()))
            continue
        now, before = present[0].now, present[0].before
        if len(present) > 1:
            now, before = _means([case.now for case in present]), _means([case.before for case in present])
        found.append(ComparedTrials(now, before, couplings.pop() if couplings else ()))
    return found


def _means(sides: Sequence[Sequence[Row]]) -> list[Row]:
    """Return the means over cases of each epoch that all of them have."""
    found: list[Row] = []
    for rows in zip(*sides, strict=False):
        means = []
        for values in zip(*rows, strict=True):
            known = [value for value in values if value is not None]
            means.append(fmean(known) if known else None)
        found.append(means)
    return found


def log_es_of(log_es: Sequence[float], units: Sequence[Sequence[int]]) -> list[float]:
    """Return the log of each unit's e-value: the mean of its cases' e-values."""
    return [_log_mean([log_es[position] for position in members]) for members in units]


def _log_mean(values: Sequence[float]) -> float:
    top = max(values)
    return top + math.log(fmean(math.exp(value - top) for value in values))
