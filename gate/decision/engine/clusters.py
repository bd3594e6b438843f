"""Cases that share a fixture: they form one unit in suite looks, the suite's e-value and the certificate.

Their trials within an epoch depend on each other, so they are relabelled together: a unit's row for an epoch holds the
means over its cases. E-values of dependent cases are averaged, not multiplied: a mean of e-values is an e-value under
any dependence. Single cases can still be named, since e-BH holds under any dependence.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from gate.decision.engine.state import Row
from gate.statistics.permutation import ComparedTrials


def grouped(ids: Iterable[str], clusters: Mapping[str, str]) -> list[list[int]]:
    """Return the positions of the cases in each unit: a cluster, or a case without one."""
    units: dict[tuple[bool, str], list[int]] = {}
    for position, case_id in enumerate(ids):
        unit = (False, case_id)
        if clusters.get(case_id):
            unit = (True, clusters[case_id])
        units.setdefault(unit, []).append(position)
    return list(units.values())


def units_of(cases: Sequence[ComparedTrials], units: Sequence[Sequence[int]]) -> list[ComparedTrials]:
    """Return the rows of each unit on both sides, epoch by epoch, and which of them are coupled.

    A unit with some coupled cases is treated as if all were, since free trials may change labels in pairs, too. If its
    cases are coupled differently, none of it can be relabelled together, and the unit has no rows.
    """
    found = []
    for members in units:
        of_unit = [cases[position] for position in members]
        present = [case for case in of_unit if case.now and case.before] or of_unit[:1]
        couplings = {tuple(case.links) for case in present if case.links}
        if len(couplings) > 1:
            found.append(ComparedTrials((), ()))
            continue
        now, before = present[0].now, present[0].before
        if len(present) > 1:
            # The means over cases for each epoch that all cases have.
            now = list(map(means_of, zip(*[case.now for case in present], strict=False)))
            before = list(map(means_of, zip(*[case.before for case in present], strict=False)))
        found.append(ComparedTrials(now, before, *couplings))
    return found


def means_of(rows: Iterable[Row]) -> list[float | None]:
    """Return the mean of each metric over these trials; None for a metric without values."""
    found: list[float | None] = []
    for column in zip(*rows, strict=True):
        known = [value for value in column if value is not None]
        found.append(fmean(known) if known else None)
    return found


def log_es_of(log_es: Sequence[float], units: Sequence[Sequence[int]]) -> list[float]:
    """Return the log of each unit's e-value: the mean of its cases' e-values."""
    found = []
    for members in units:
        values = [log_es[position] for position in members]
        top = max(values)
        found.append(top + math.log(fmean([math.exp(value - top) for value in values])))
    return found
