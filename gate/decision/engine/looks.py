"""Looks at the whole suite: the joint permutation test of new trials, and the combined test of all looks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from msgspec import Struct

from gate.decision.engine.clusters import means_of, units_of
from gate.decision.engine.state import Metric, Row
from gate.model import Side
from gate.model.evidence import LookTest, MetricTest
from gate.statistics.permutation import FINE, ComparedTrials, JointTest, joint_permutation
from gate.statistics.sequential import combined_p

NOTHING_SEEN = MetricTest(1.0, 1.0, 1.0)


class NewTrials(Struct, frozen=True):
    """The trials of one side since the last look."""

    side: Side
    weight: float
    pairs: Sequence[ComparedTrials]
    """The new trials of each case, and the trials to compare them with."""
    blocking: Sequence[int]
    """The blocking metrics in which they can be compared."""


LookPart = tuple[NewTrials, JointTest]
"""The new trials of a look, and their test against all earlier ones."""


def weight_of(sizes: Sequence[tuple[int, int, int]]) -> float:
    """Return how clearly a drop shared by all cases would show, computed from the numbers of trials alone.

    Args:
        sizes: per case, the new trials of one side, the earlier ones of the other side, the earlier ones of the same
            side.
    """
    known = [size for size in sizes if size[0] and size[1]]
    if not known:
        return 0.0
    new, other, same = map(fmean, zip(*known, strict=True))
    share = other / (other + same)
    return round(share / math.sqrt(1 / new + 1 / (other + same)) * math.sqrt(len(known) / len(sizes)), 3)


def look_of(
    parts: Sequence[LookPart], metrics: Mapping[int, str], *, epochs: int, threshold: float, spent: float
) -> LookTest:
    """Return one test of the whole suite that combines the parts so far, in these metrics (position → name)."""
    if not parts:
        return LookTest(epochs, 1.0, threshold, 0, dict.fromkeys(metrics.values(), NOTHING_SEEN), spent)
    found = {}
    for m, name in metrics.items():
        tests = []
        for new, test in parts:
            if m in new.blocking:
                tests.append((test.metrics[new.blocking.index(m)], new.weight))
        found[name] = _combined(tests)
    p = combined_p([(test.p, new.weight) for new, test in parts])
    _, newest = parts[-1]
    return LookTest(epochs, p, threshold, newest.relabelings, found, spent)


def _combined(tests: Sequence[tuple[MetricTest, float]]) -> MetricTest:
    """Return one test that combines the weighted tests of one metric."""
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
    """Return the comparable blocking metrics: a metric that one side lacks entirely would only prevent label
    exchanges."""
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
    """Return the joint test of the blocking metrics, fine enough for ``level``.

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
    """Return the trials of a case; missing scores of failed trials are replaced by the mean over both sides.

    Labels change only among trials that lack the same values, so a crash among answers would never enter the test. The
    mean is the same under every relabelling, which keeps the test exact, and carries no information about the metric. A
    trial with a known outcome lacks a blocking score only if the agent failed or a hard rule ended it.
    """
    rows = [*now, *before]
    if not any(map(_lacks_scores, rows)):
        return now, before
    means = means_of(rows)

    def filled(row: Row) -> Row:
        if not _lacks_scores(row):
            return row
        return [mean if value is None else value for value, mean in zip(row, means, strict=True)]

    return [filled(row) for row in now], [filled(row) for row in before]


def _lacks_scores(row: Row) -> bool:
    return row[0] == 0 and None in row
