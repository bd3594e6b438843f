"""Results by tag and by complexity, and the groups that a loss is concentrated in. Explains; no verdict looks at it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from random import Random
from statistics import fmean

from msgspec import Struct

from gate.decision.comparison import PASS_RATE, Comparison, passed
from gate.decision.conclusions import estimate
from gate.decision.engine.clusters import grouped
from gate.model import (
    Case,
    CaseResult,
    CaseStatus,
    Concentration,
    Criterion,
    CriterionResult,
    Direction,
    Estimate,
    GroupKind,
    GroupResult,
    Scale,
    Verdict,
)
from gate.model.finding import Finding
from gate.statistics.concentration import concentrated
from gate.statistics.intervals import mean, paired_change

MOST_GROUPS = 200
"""Groups that are looked at, the largest; more tags than that name single cases."""
MOST_LABELLINGS = 300
EXPLAINED = (Verdict.REGRESSED, Verdict.INCONCLUSIVE)
"""The verdicts of which it is asked where the loss is."""

Group = tuple[GroupKind, str]


class Pairs(Struct, frozen=True):
    """The values of a criterion for each judged case, on both sides; cases without a value are left out."""

    now: Mapping[str, Sequence[float]]
    before: Mapping[str, Sequence[float]]

    def loss(self, case_id: str, criterion: Criterion) -> float | None:
        """Return the loss of a case against the baseline; None if it is not known of both sides."""
        now, before = self.now.get(case_id), self.before.get(case_id)
        return loss_of(now, before, criterion) if now and before else None

    def by_chance(self, case_id: str, criterion: Criterion, rng: Random) -> list[float]:
        """Return the losses of a case under relabellings of its trials: all of them, or some if there are many."""
        now, values = len(self.now[case_id]), [*self.now[case_id], *self.before[case_id]]
        ways: Iterable[Sequence[int]] = combinations(range(len(values)), now)
        if math.comb(len(values), now) > MOST_LABELLINGS:
            ways = [rng.sample(range(len(values)), now) for _ in range(MOST_LABELLINGS)]
        sides = (([values[i] for i in way], [v for i, v in enumerate(values) if i not in way]) for way in ways)
        return [loss_of(here, there, criterion) or 0.0 for here, there in sides]


def loss_of(now: Sequence[float], before: Sequence[float], criterion: Criterion) -> float | None:
    """Return the loss of the mean; of money, time and counts the log of the ratio, None if that is not known."""
    ends = fmean(now), fmean(before)
    if criterion.scale.is_relative:
        if min(ends) <= 0:
            return None
        ends = math.log(ends[0]), math.log(ends[1])
    return ends[1] - ends[0] if criterion.direction is Direction.HIGHER else ends[0] - ends[1]


def groups_of(cases: Iterable[Case]) -> dict[Group, list[str]]:
    """Group → its cases, the largest groups first. Complexities only where there are several."""
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
    """The results of each group, those that lost most first; and how many more groups there are."""
    groups = groups_of(comparison.judged)
    if not groups:
        return (), 0
    rates, broken = outcomes(comparison), {case.id for case in cases if case.status is CaseStatus.BROKEN}
    found = [_result(comparison, group, ids, rates, broken) for group, ids in list(groups.items())[:MOST_GROUPS]]
    return tuple(sorted(found, key=_badness)), max(0, len(groups) - MOST_GROUPS)


def _badness(found: GroupResult) -> tuple[float | str, ...]:
    """Most broken cases first, then the largest loss, then the lowest rate."""
    change = found.change.value if found.change is not None else 0.0
    rate = found.candidate.value if found.candidate is not None else 1.0
    return (-found.broken, change, rate, -found.cases, found.kind is not GroupKind.TAG, found.name)


def outcomes(comparison: Comparison) -> Pairs:
    """Return the outcomes of trials of whole epochs, by judged case: by the criteria that are compared, if any is."""
    now, before = {}, {}
    for case in comparison.judged:
        paired = case.id in comparison.with_baseline
        criteria = comparison.comparable(case.id) if paired else comparison.criteria
        sides = (comparison.measured(case.id, full=True), comparison.baseline[case.id] if paired else ())
        values = [[float(o) for t in side if (o := passed(t, case, criteria)) is not None] for side in sides]
        now[case.id], before[case.id] = values
    return Pairs(now, before)


def _result(comparison: Comparison, group: Group, ids: Sequence[str], rates: Pairs, broken: set[str]) -> GroupResult:
    rate = comparison.metrics[0]
    losses = {i: loss for i in ids if (loss := rates.loss(i, rate)) is not None}
    return GroupResult(
        *group,
        len(ids),
        _estimate(rates.now, ids, rate.scale),
        _estimate(rates.before, ids, rate.scale),
        _change(comparison, losses, rates),
        sum(loss > 0 for loss in losses.values()),
        sum(loss < 0 for loss in losses.values()),
        len(broken.intersection(ids)),
        {
            c.name: (
                _estimate(comparison.values(c), ids, c.scale),
                _estimate(comparison.stored_values(c), ids, c.scale),
            )
            for c in comparison.criteria
        },
    )


def _estimate(values: Mapping[str, Sequence[float]], ids: Iterable[str], scale: Scale) -> Estimate | None:
    known = [values[i] for i in ids if values.get(i)]
    return estimate([mean(group) for group in known], [value for group in known for value in group], scale)


def _change(comparison: Comparison, losses: Mapping[str, float], rates: Pairs) -> Estimate | None:
    """The paired change of the pass rate with its 90 % interval, as the engine bounds that of the suite."""
    if not losses:
        return None
    ids = list(losses)
    units = grouped(ids, {case.id: case.cluster for case in comparison.judged if case.cluster})
    differences = [-mean([losses[ids[place]] for place in members]) for members in units]
    inverse = mean([1 / len(rates.now[i]) + 1 / len(rates.before[i]) for i in ids])
    value, low, high = paired_change(differences, extra_variance=inverse / 2 / len(units) ** 2)
    trials = sum(len(rates.now[i]) for i in ids)
    if not math.isfinite(low):
        return Estimate(value, value, value, len(ids), trials, level=0.0)
    return Estimate(value, max(-1.0, low), min(1.0, high), len(ids), trials, level=0.9)


# --- where a loss is concentrated -----------------------------------------------------------------


def where(
    comparison: Comparison, rows: Iterable[CriterionResult], verdict: Verdict, cause: Finding
) -> tuple[Concentration, ...]:
    """The groups that a regression, or a loss that is not proven, is concentrated in; mostly none."""
    if verdict not in EXPLAINED or not comparison.paired:
        return ()
    named = cause["criteria"] if cause.kind in ("suite_got_worse", "not_enough_evidence") else ()
    name = named[0] if named else PASS_RATE
    criterion = next((row.criterion for row in rows if row.criterion.name == name), comparison.metrics[0])
    if criterion.hard:
        return ()
    pairs = outcomes(comparison) if name == PASS_RATE else _scores(comparison, criterion)
    return concentrations(comparison, criterion, pairs)


def _scores(comparison: Comparison, criterion: Criterion) -> Pairs:
    return Pairs(comparison.values(criterion), comparison.stored_values(criterion))


def concentrations(comparison: Comparison, criterion: Criterion, pairs: Pairs) -> tuple[Concentration, ...]:
    """The test over all groups, and the figures of those that it names."""
    losses = {c.id: loss for c in comparison.judged if (loss := pairs.loss(c.id, criterion)) is not None}
    groups = list(groups_of(c for c in comparison.judged if c.id in losses).items())[:MOST_GROUPS]
    ids = list(losses)
    units = grouped(ids, {case.id: case.cluster for case in comparison.judged if case.cluster})
    of_units = [mean([losses[ids[place]] for place in members]) for members in units]
    members = [_units_of(frozenset(in_group), ids, units) for _, in_group in groups]
    rng = Random(f"{criterion.name}: {len(ids)}")  # noqa: S311 - reproducible, not secret
    chance = [_by_chance([ids[place] for place in unit], pairs, criterion, rng) for unit in units]
    found = concentrated(of_units, members, chance, seed=f"{criterion.name}: {len(ids)}")
    return tuple(_figures(*groups[one.group], one.p, losses, pairs, criterion) for one in found)


def _by_chance(ids: Sequence[str], pairs: Pairs, criterion: Criterion, rng: Random) -> list[float]:
    """Return the losses by chance of a unit of several cases: means of what each of them may have lost."""
    tables = [pairs.by_chance(case_id, criterion, rng) for case_id in ids]
    if len(tables) == 1:
        return tables[0]
    return [fmean(column) for column in zip(*(rng.choices(t, k=MOST_LABELLINGS) for t in tables), strict=True)]


def _units_of(group: frozenset[str], ids: Sequence[str], units: Sequence[Sequence[int]]) -> frozenset[int]:
    """The units of which most cases are in a group."""
    counts = ((unit, sum(ids[place] in group for place in members)) for unit, members in enumerate(units))
    return frozenset(unit for unit, inside in counts if 2 * inside > len(units[unit]))


def _figures(
    group: Group, members: Sequence[str], p: float, losses: Mapping[str, float], pairs: Pairs, criterion: Criterion
) -> Concentration:
    inside = set(members)
    rest = [case_id for case_id in losses if case_id not in inside]
    before, now, rest_before, rest_now = (
        mean([mean(values[case_id]) for case_id in ids])
        for ids in (members, rest)
        for values in (pairs.before, pairs.now)
    )
    lost = Counter(case_id in inside for case_id, loss in losses.items() if loss > 0)
    return Concentration(
        *group,
        criterion.name,
        len(members),
        len(losses),
        before,
        now,
        rest_before,
        rest_now,
        lost[True],
        lost[False],
        p,
    )
