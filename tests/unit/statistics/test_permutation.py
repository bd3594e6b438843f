"""The joint permutation test: p-values of the whole enumeration, and uniform or larger where nothing changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.statistics.intervals import (
    wilson,
)
from gate.statistics.permutation import ComparedTrials, JointTest, Row, joint_permutation
from tests.properties import examples
from tests.unit.statistics.scipys import stats

Sides = tuple[Sequence[Row], Sequence[Row]]


def joint(cases: Sequence[Sides], metrics: int, *, seed: str, level: float = 0.02) -> JointTest:
    return joint_permutation([ComparedTrials(*sides) for sides in cases], metrics, seed=seed, level=level)


def exact_p(cases: list[tuple[list[float], list[float]]]) -> tuple[float, float]:
    """Unadjusted p of the mean drop and of the concentrated drop, by walking all labellings."""

    def drops(now: list[float], before: list[float]) -> list[float]:
        rows = now + before
        found = []
        for chosen in combinations(range(len(rows)), len(now)):
            here = [rows[i] for i in chosen]
            there = [rows[i] for i in range(len(rows)) if i not in chosen]
            found.append(sum(there) / len(there) - sum(here) / len(here))
        return found

    tables = [drops(*case) for case in cases]
    every = list(product(*tables))
    observed = [t[0] for t in tables]
    mean = sum(sum(x) >= sum(observed) - 1e-9 for x in every) / len(every)

    def dense(x: tuple[float, ...] | list[float]) -> float:
        return sum(max(0.0, d) ** 3 for d in x)

    return mean, sum(dense(x) >= dense(observed) - 1e-9 for x in every) / len(every)


def test_permutation_p_values_are_those_of_the_whole_enumeration() -> None:
    cases = [
        ([0.0], [1.0, 1.0]),
        ([0.3], [0.5, 0.9]),
        ([1.0], [1.0, 0.0]),
        ([0.0, 0.2], [0.9, 1.0, 0.7]),
        ([0.5], [0.1]),
    ]
    mean, dense = exact_p(cases)
    result = joint([([[v] for v in c], [[v] for v in b]) for c, b in cases], 1, seed="x")
    size = result.relabelings
    assert result.metrics[0].p_mean == pytest.approx(mean, abs=4 * math.sqrt(mean / size))
    assert result.metrics[0].p_concentrated == pytest.approx(dense, abs=4 * math.sqrt(dense / size))
    smaller = min(result.metrics[0].p_mean, result.metrics[0].p_concentrated)
    assert smaller <= result.p <= 2 * smaller, "adjusted for two statistics that lean the same way"


@pytest.mark.parametrize("of", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_over_all_labellings_of_a_suite_at_most_the_level_is_rejected(of: int) -> None:
    """The promise itself, without a simulation: every way to label fixed trials, the prior fitted anew in each."""
    cases = [[1, 1, 0, 0], [1, 1, 1, 0], [0, 0, 1, 0], [1, 1, 1, 1]][:of]
    labelled = [[([[v]], [[w] for w in case[:i] + case[i + 1 :]]) for i, v in enumerate(case)] for case in cases]
    found = sorted(joint(way, 1, seed=str(i)).p for i, way in enumerate(product(*labelled)))
    assert len(found) == 4**of
    for level in (0.02, 0.05, 0.1, 0.2, 0.3):
        assert sum(p <= level for p in found) <= level * len(found) + 2, "two ways may fall on the wrong side by chance"
    assert found[0] < 0.1, "the worst labelling is told from the rest"


def test_a_small_drop_of_all_cases_shows_in_the_shift_before_it_shows_in_the_mean() -> None:
    """Failures of steady cases count for more than failures of flaky ones."""
    steady = [([[1.0]], [[1.0]] * 5)] * 40 + [([[0.0]], [[1.0]] * 5)] * 4
    flaky = [([[v]], [[1.0], [1.0], [0.0], [0.0], [v]]) for v in (0.0, 1.0)] * 20
    test = joint(steady + flaky, 1, seed="x").metrics[0]
    assert test.p_shift is not None
    assert test.p_shift < test.p_mean


def test_a_divided_level_is_resolved_by_more_relabelings_up_to_a_bound() -> None:
    broken = [([[0.0]], [[1.0]] * 5)] * 12
    needed = [joint(broken, 1, seed="x", level=level).relabelings for level in (0.02, 0.002, 0.0002)]
    assert needed[0] == 4000
    assert needed[1] * 0.002 >= 20, "some twenty lie beyond the level"
    assert needed[2] == 40_000
    clear = [([[1.0]], [[1.0], [0.0]])] * 12
    assert joint(clear, 1, seed="x", level=1e-9).relabelings == 500


def test_only_zeros_and_ones_are_tested_for_a_shift() -> None:
    rows = [([[0.0, 0.3]], [[1.0, 0.5], [1.0, 0.2]])] * 9
    success, score = joint(rows, 2, seed="x").metrics
    assert success.p_shift is not None
    assert score.p_shift is None


def test_permutation_of_one_case_agrees_with_scipy() -> None:
    now, before = [0.1, 0.2, 0.15], [0.9, 0.8, 0.7, 0.85]
    theirs = stats.permutation_test(
        (now, before), lambda a, b: a.mean() - b.mean(), alternative="less", vectorized=False
    )
    ours = joint([([[v] for v in now], [[v] for v in before])], 1, seed="x").metrics[0].p_mean
    assert ours == pytest.approx(theirs.pvalue, abs=0.01)


def test_cases_without_difference_and_sides_without_trials_say_nothing() -> None:
    same = ([[1.0]], [[1.0], [1.0]])
    assert joint([same] * 5, 1, seed="x").p == 1.0
    assert joint([([], [[1.0], [0.0]])], 1, seed="x").p == 1.0
    assert joint([], 1, seed="x").p == 1.0


def test_permutation_is_deterministic_from_its_seed() -> None:
    cases = [([[0.0, 0.3]], [[1.0, 0.5], [0.0, 0.2]])] * 9
    assert joint(cases, 2, seed="a") == joint(cases, 2, seed="a")


def test_missing_values_leave_the_other_metrics_alone() -> None:
    full = [([[0.0, 0.1]], [[1.0, 0.4], [1.0, 0.9], [0.0, 0.3]])] * 8
    holes = [([[c[0], None] for c in now], before) for now, before in full]
    assert joint(holes, 2, seed="s").p == 1.0, "no label can change hands"
    some = full[:4] + holes[4:]
    found = joint(some, 2, seed="s")
    assert found.metrics[0].p_mean == joint(full[:4], 2, seed="s").metrics[0].p_mean


@pytest.mark.parametrize("runs", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_a_judge_that_is_down_on_one_side_is_no_difference_of_the_agent(runs: int) -> None:
    rng = Random(9)
    rejected = 0
    for run in range(runs):
        cases = []
        for _ in range(20):
            before = [[float(rng.random() < 0.7), rng.random() if rng.random() < 0.95 else None] for _ in range(5)]
            now = [[float(rng.random() < 0.7), rng.random() if rng.random() < 0.3 else None] for _ in range(2)]
            cases.append((now, before))
        rejected += joint(cases, 2, seed=str(run)).p <= 0.1
    assert wilson(rejected, runs, 0.99)[0] <= 0.1


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6))
def test_more_loss_never_looks_better(seed: int) -> None:
    rng = Random(seed)
    before = [[[float(rng.random() < 0.8)] for _ in range(5)] for _ in range(20)]
    now = [[[float(rng.random() < 0.8)]] for _ in range(20)]
    worse = [[[0.0]] if i < 10 else rows for i, rows in enumerate(now)]
    p = joint(list(zip(now, before, strict=True)), 1, seed="s").metrics[0].p_mean
    assert joint(list(zip(worse, before, strict=True)), 1, seed="s").metrics[0].p_mean <= p + 0.06


@pytest.mark.slow
def test_joint_p_value_is_uniform_or_larger_under_unchanged() -> None:
    """Three dependent metrics, unequal trials, holes: P(p ≤ 0.1) stays at 0.1."""
    rng, rejected, runs = Random(11), 0, 300
    for run in range(runs):
        cases = []
        for _ in range(12):
            rate, level, k = rng.random(), rng.random(), rng.choice((1, 2))

            def row(rate: float = rate, level: float = level) -> list[float | None]:
                hit = float(rng.random() < rate)
                return [hit, level + hit * rng.random(), None if rng.random() < 0.2 else rng.gauss(level, 1)]

            cases.append(([row() for _ in range(k)], [row() for _ in range(4)]))
        rejected += joint(cases, 3, seed=str(run)).p <= 0.1
    low, _ = wilson(rejected, runs, 0.99)
    assert low <= 0.1
