"""Results by tag and by complexity, and the groups in which a loss is concentrated. Explains; affects no verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from statistics import fmean

from gate.decision.comparison import Comparison
from gate.decision.consistency import clusters_of
from gate.decision.engine.clusters import grouped
from gate.decision.pairs import MOST_LABELLINGS, Pairs, pairs_of
from gate.model import (
    Case,
    CaseResult,
    CaseStatus,
    Concentration,
    Criterion,
    CriterionResult,
    Estimate,
    GroupKind,
    GroupResult,
    Verdict,
)
from gate.model.finding import Finding
from gate.statistics.concentration import concentrated
from gate.statistics.intervals import mean, mean_of_means, paired_change

MOST_GROUPS = 200
"""Maximum number of groups, the largest; further tags name only single cases."""
EXPLAINED = (Verdict.REGRESSED, Verdict.INCONCLUSIVE)
"""The verdicts for which the location of the loss is reported."""

Group = tuple[GroupKind, str]


# --- results by group -----------------------------------------------------------------------------


def groups_of(cases: Iterable[Case]) -> dict[Group, list[str]]:
    """Return the cases of each group, the largest groups first; complexities only if there are several."""
    found: dict[Group, list[str]] = {}
    cases = list(cases)
    several = len({case.complexity for case in cases}) > 1
    for case in cases:
        for tag in case.tags:
            found.setdefault((GroupKind.TAG, tag), []).append(case.id)
        if several:
            found.setdefault((GroupKind.COMPLEXITY, case.complexity.value), []).append(case.id)
    order = sorted(found.items(), key=lambda one: (-len(one[1]), one[0][0] is not GroupKind.TAG, one[0][1]))
    return dict(order)


def by_group(comparison: Comparison, cases: Sequence[CaseResult]) -> tuple[tuple[GroupResult, ...], int]:
    """Return the results of each group, the largest losses first, and the number of groups left out."""
    groups = groups_of(comparison.judged)
    if not groups:
        return (), 0
    rates = pairs_of(comparison, comparison.metrics[0])
    broken = {case.id for case in cases if case.status is CaseStatus.BROKEN}
    found = [_result(comparison, group, ids, rates, broken) for group, ids in list(groups.items())[:MOST_GROUPS]]
    found.sort(key=_badness)
    return tuple(found), max(0, len(groups) - MOST_GROUPS)


def _badness(found: GroupResult) -> tuple[float | str, ...]:
    """Return the key that sorts groups: most broken cases first, then the largest loss, then the lowest rate."""
    change, rate = 0.0, 1.0
    if found.change is not None:
        change = found.change.value
    if found.candidate is not None:
        rate = found.candidate.value
    return (-found.broken, change, rate, -found.cases, found.kind is not GroupKind.TAG, found.name)


def _result(comparison: Comparison, group: Group, ids: Sequence[str], rates: Pairs, broken: set[str]) -> GroupResult:
    rate = comparison.metrics[0]
    losses = rates.losses(ids, rate)
    means = {}
    for criterion in comparison.criteria:
        means[criterion.name] = pairs_of(comparison, criterion).estimates(ids, criterion.scale)
    candidate, baseline = rates.estimates(ids, rate.scale)
    return GroupResult(
        *group,
        len(ids),
        candidate,
        baseline,
        _change(comparison, losses, rates),
        sum([loss > 0 for loss in losses.values()]),
        sum([loss < 0 for loss in losses.values()]),
        len(broken.intersection(ids)),
        means,
    )


def _change(comparison: Comparison, losses: Mapping[str, float], rates: Pairs) -> Estimate | None:
    """Return the paired change of the pass rate with its 90 % interval, computed as for the suite."""
    if not losses:
        return None
    units = _units(comparison, losses)
    differences = [-_mean_loss(losses, unit) for unit in units]
    inverse = mean([1 / len(rates.now[case_id]) + 1 / len(rates.before[case_id]) for case_id in losses])
    value, low, high = paired_change(differences, extra_variance=inverse / 2 / len(units) ** 2)
    trials = sum([len(rates.now[case_id]) for case_id in losses])
    if not math.isfinite(low):
        return Estimate(value, value, value, len(losses), trials, level=0.0)
    return Estimate(value, max(-1.0, low), min(1.0, high), len(losses), trials, level=0.9)


def _units(comparison: Comparison, losses: Iterable[str]) -> list[list[str]]:
    """Return the cases of each unit: those of a cluster, or a single case."""
    ids, found = list(losses), []
    for places in grouped(ids, clusters_of(comparison.judged)):
        found.append([ids[place] for place in places])
    return found


def _mean_loss(losses: Mapping[str, float], unit: Iterable[str]) -> float:
    return mean([losses[case_id] for case_id in unit])


# --- where a loss is concentrated -----------------------------------------------------------------


def where(comparison: Comparison, rows: Iterable[CriterionResult], cause: Finding) -> tuple[Concentration, ...]:
    """Return the groups in which a regression or an unproven loss is concentrated; usually none."""
    if cause.verdict not in EXPLAINED or not comparison.paired:
        return ()
    criterion = comparison.metrics[0]
    if cause.kind in ("suite_got_worse", "criteria_decide"):
        for row in rows:
            if row.criterion.name == cause["criteria"][0]:
                criterion = row.criterion
    if criterion.hard:
        return ()
    return _concentrations(comparison, criterion, pairs_of(comparison, criterion))


def _concentrations(comparison: Comparison, criterion: Criterion, pairs: Pairs) -> tuple[Concentration, ...]:
    """Test all groups together, and return the figures of the groups that the test names."""
    losses = pairs.losses([case.id for case in comparison.judged], criterion)
    groups = list(groups_of(case for case in comparison.judged if case.id in losses).items())[:MOST_GROUPS]
    units = _units(comparison, losses)
    losses_of_units = [_mean_loss(losses, unit) for unit in units]
    units_of_groups = [_units_in(frozenset(members), units) for _, members in groups]
    seed = f"{criterion.name}: {len(losses)}"
    rng = Random(seed)  # noqa: S311 - reproducible, not secret
    chance = [_by_chance(unit, pairs, criterion, rng) for unit in units]
    lost = {case_id for case_id, loss in losses.items() if loss > 0}
    found = []
    for one in concentrated(losses_of_units, units_of_groups, chance, seed=seed):
        (kind, name), members = groups[one.group]
        inside = set(members)
        now, before = pairs.groups(members)
        rest_now, rest_before = pairs.groups([case_id for case_id in losses if case_id not in inside])
        lost_inside = len(lost & inside)
        figures = Concentration(
            kind,
            name,
            criterion.name,
            cases=len(members),
            of=len(losses),
            before=mean_of_means(before),
            now=mean_of_means(now),
            rest_before=mean_of_means(rest_before),
            rest_now=mean_of_means(rest_now),
            lost=lost_inside,
            rest_lost=len(lost) - lost_inside,
            p=one.p,
        )
        found.append(figures)
    return tuple(found)


def _by_chance(ids: Sequence[str], pairs: Pairs, criterion: Criterion, rng: Random) -> list[float]:
    """Return the chance losses of a unit: for several cases, means of losses that each could have by chance."""
    tables = [pairs.by_chance(case_id, criterion, rng) for case_id in ids]
    if len(tables) == 1:
        return tables[0]
    columns = zip(*[rng.choices(table, k=MOST_LABELLINGS) for table in tables], strict=True)
    return [fmean(column) for column in columns]


def _units_in(group: frozenset[str], units: Sequence[Sequence[str]]) -> frozenset[int]:
    """Return the positions of the units with most of their cases in a group."""
    found = set()
    for position, unit in enumerate(units):
        if 2 * len(group.intersection(unit)) > len(unit):
            found.add(position)
    return frozenset(found)
