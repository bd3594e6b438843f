"""Looks at the whole suite: the joint permutation test of what is new, and the tests of all looks as one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from gate.decision.engine.clusters import units_of
from gate.decision.engine.state import Metric, Row
from gate.model import Side
from gate.model.evidence import LookTest, MetricTest
from gate.statistics.permutation import FINE, ComparedTrials, JointTest, joint_permutation
from gate.statistics.sequential import combined_p

NOTHING_SEEN = MetricTest(1.0, 1.0, 1.0)


class LookPart(Struct, frozen=True):
    """The test of what was new at a look against all that was there before."""

    weight: float
    metrics: Mapping[str, MetricTest]
    test: JointTest


class NewTrials(Struct, frozen=True):
    """The trials of one side since the last look."""

    side: Side
    weight: float
    pairs: Sequence[ComparedTrials]
    """The new trials of each case and those to compare them with."""
    blocking: Sequence[int]
    """The blocking metrics that they can be compared in."""


def weight_of(sizes: Sequence[tuple[int, int, int]]) -> float:
    """Return how clearly a drop that all cases share would show, from the numbers of trials alone.

    Args:
        sizes: of each case, new trials of one side, earlier ones of the other, earlier ones of the same.
    """
    known = [size for size in sizes if size[0] and size[1]]
    if not known:
        return 0.0
    new, other, same = (fmean(column) for column in zip(*known, strict=True))
    share = other / (other + same)
    return round(share / math.sqrt(1 / new + 1 / (other + same)) * math.sqrt(len(known) / len(sizes)), 3)


def part_of(weight: float, blocking: Sequence[int], test: JointTest, metrics: Sequence[Metric]) -> LookPart:
    """Return the test of what was new, with its metrics by name."""
    names = [metrics[m].name for m in blocking]
    return LookPart(weight, dict(zip(names, test.metrics, strict=True)), test)


def look_of(
    parts: Sequence[LookPart], names: Sequence[str], *, epochs: int, threshold: float, spent: float
) -> LookTest:
    """Return the parts so far as one test of the whole suite, in these metrics."""
    if not parts:
        return LookTest(epochs, 1.0, threshold, 0, dict.fromkeys(names, NOTHING_SEEN), spent)
    metrics = {}
    for name in names:
        metrics[name] = _combined([(part.metrics[name], part.weight) for part in parts if name in part.metrics])
    p = combined_p([(part.test.p, part.weight) for part in parts])
    return LookTest(epochs, p, threshold, parts[-1].test.relabelings, metrics, spent)


def _combined(tests: Sequence[tuple[MetricTest, float]]) -> MetricTest:
    """Return the tests of one metric, each with its weight, as one."""
    if not tests:
        return NOTHING_SEEN
    shifts = [(test.p_shift, weight) for test, weight in tests if test.p_shift is not None]
    return MetricTest(
        combined_p([(test.p_mean, weight) for test, weight in tests]),
        combined_p([(test.p_concentrated, weight) for test, weight in tests]),
        combined_p([(test.p_adjusted, weight) for test, weight in tests]),
        combined_p(shifts) if shifts else None,
    )


def comparable_metrics(metrics: Sequence[Metric], pairs: Sequence[ComparedTrials]) -> list[int]:
    """Return the comparable blocking metrics: one that a side lacks entirely would only prevent exchanges of labels."""
    found = []
    for m, metric in enumerate(metrics):
        if metric.blocks_regression and any(_has(pair.now, m) and _has(pair.before, m) for pair in pairs):
            found.append(m)
    return found


def _has(rows: Sequence[Row], m: int) -> bool:
    return any(row[m] is not None for row in rows)


def test_rows(
    pairs: Iterable[ComparedTrials],
    blocking: Sequence[int],
    seed: str,
    level: float,
    units: Sequence[Sequence[int]] = (),
    fineness: int = FINE,
) -> JointTest:
    """Return the joint test on the blocking metrics alone, fine enough for ``level``.

    ``units``: the positions of cases that are relabelled together.
    """

    def chosen(rows: Sequence[Row]) -> list[Row]:
        return [[row[m] for m in blocking] for row in rows]

    cases = []
    for pair in pairs:
        now: Sequence[Row] = chosen(pair.now)
        before: Sequence[Row] = chosen(pair.before)
        if blocking[:1] == [0]:
            now, before = _with_means_for_failures(now, before)
        cases.append(ComparedTrials(now, before, pair.links, chosen(pair.held)))
    if units and len(units) < len(cases):
        cases = units_of(cases, units)
    return joint_permutation(cases, len(blocking), seed=seed, level=level, fineness=fineness)


def _with_means_for_failures(now: Sequence[Row], before: Sequence[Row]) -> tuple[Sequence[Row], Sequence[Row]]:
    """Return the trials of a case, with the mean of both sides' values for what a failed trial lacks.

    Labels change hands only among trials that lack the same values, so a crash beside answers would never enter the
    test. The mean is the same under every relabelling, which keeps the test exact, and it says nothing of the metric.
    A trial whose success is known lacks a blocking score only where the agent failed or a hard rule ended it.
    """
    rows = [*now, *before]
    if not any(map(_lacks_scores, rows)):
        return now, before
    means: list[float | None] = []
    for column in zip(*rows, strict=True):
        known = [value for value in column if value is not None]
        means.append(fmean(known) if known else None)

    def filled(row: Row) -> Row:
        if not _lacks_scores(row):
            return row
        return [mean if value is None else value for value, mean in zip(row, means, strict=True)]

    return [filled(row) for row in now], [filled(row) for row in before]


def _lacks_scores(row: Row) -> bool:
    return row[0] == 0 and None in row
