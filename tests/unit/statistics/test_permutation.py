"""The mathematics against scipy, exact enumeration and simulation."""

from __future__ import annotations

import math
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gate.statistics.evalues import case_log_e, e_bh, suite_e
from gate.statistics.intervals import (
    beta_cdf,
    beta_quantile,
    binomial_at_least,
    detectable_drop,
    fisher_less,
    mean_interval,
    paired_change,
    quantile,
    quantile_interval,
    share_upper_bound,
    t_quantile,
    wilson,
)
from gate.statistics.permutation import joint_permutation
from tests.properties import examples


@pytest.mark.parametrize("df", [1, 2, 3, 9, 29, 99, 2999])
@pytest.mark.parametrize("p", [0.0005, 0.05, 0.3, 0.5, 0.6, 0.95, 0.975, 0.9983, 0.99995])
def test_students_quantile_is_scipys(p: float, df: int) -> None:
    assert t_quantile(p, df) == pytest.approx(stats.t.ppf(p, df), rel=1e-9, abs=1e-12)


@given(a=st.floats(0.1, 300), b=st.floats(0.1, 300), x=st.floats(0.001, 0.999))
def test_incomplete_beta_is_scipys(a: float, b: float, x: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), abs=1e-10)


def test_incomplete_beta_at_the_ends() -> None:
    assert (beta_cdf(0, 2, 3), beta_cdf(1, 2, 3)) == (0, 1)


@given(p=st.floats(0.001, 0.999), a=st.integers(1, 200), b=st.integers(1, 200))
def test_beta_quantile_is_scipys(p: float, a: int, b: int) -> None:
    assert beta_quantile(p, a, b) == pytest.approx(stats.beta.ppf(p, a, b), abs=1e-9)


@given(n=st.integers(1, 300), data=st.data(), level=st.sampled_from([0.9, 0.95, 0.99]))
def test_wilson_is_scipys(n: int, data: st.DataObject, level: float) -> None:
    k = data.draw(st.integers(0, n))
    theirs = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    assert wilson(k, n, level) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_wilson_of_nothing_knows_nothing() -> None:
    assert wilson(0, 0) == (0.0, 1.0)


@given(n=st.integers(1, 300), data=st.data())
def test_share_upper_bound_is_clopper_and_pearsons(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    theirs = stats.binomtest(k, n, alternative="less").proportion_ci(0.995, method="exact").high
    assert share_upper_bound(k, n, 0.005) == pytest.approx(theirs, abs=1e-9)


@given(n=st.integers(1, 200), p=st.floats(0.01, 0.99), data=st.data())
def test_binomial_tail_is_scipys(n: int, p: float, data: st.DataObject) -> None:
    k = data.draw(st.integers(-1, n + 1))
    assert binomial_at_least(k, n, p) == pytest.approx(stats.binom.sf(k - 1, n, p), abs=1e-10)


@given(data=st.data(), now=st.integers(1, 60), before=st.integers(1, 60))
def test_fisher_is_scipys(data: st.DataObject, now: int, before: int) -> None:
    c, b = data.draw(st.integers(0, now)), data.draw(st.integers(0, before))
    theirs = stats.fisher_exact([[c, now - c], [b, before - b]], alternative="less").pvalue
    assert fisher_less(c, now, b, before) == pytest.approx(theirs, rel=1e-9)


def test_mean_interval_is_students() -> None:
    values = [0.2, 0.4, 0.9, 1.0, 0.3]
    theirs = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx(theirs)
    assert mean_interval([1.0]) == (-math.inf, math.inf)


def test_quantile_interval_covers_as_promised() -> None:
    rng = Random(1)
    covered = 0
    for _ in range(400):
        low, high = quantile_interval([rng.random() for _ in range(40)], 0.5)
        covered += low <= 0.5 <= high
    assert covered >= 0.93 * 400


def test_quantile_interval_is_open_where_too_few_values_bound_it() -> None:
    assert quantile_interval([1.0, 2.0, 3.0], 0.95) == (2.0, math.inf)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert quantile([5.0], 0.95) == 5.0


# --- e-values -------------------------------------------------------------------------------------


LARGE = [pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((5, 10), (10, 6), (2, 25))]


@pytest.mark.parametrize(("kb", "kc"), [(1, 1), (3, 2), (5, 1), *LARGE])
def test_expected_case_evidence_is_at_most_one_under_no_worse(kb: int, kc: int) -> None:
    """Exact sums over both binomials, over a grid of rates with p_now ≥ p_before."""
    for i, before in enumerate(grid := [k / 20 for k in range(21)]):
        for now in grid[i:]:
            total = sum(
                stats.binom.pmf(b, kb, before) * stats.binom.pmf(c, kc, now) * math.exp(case_log_e(b, kb, c, kc))
                for b in range(kb + 1)
                for c in range(kc + 1)
            )
            assert total <= 1 + 1e-9, (before, now)


@pytest.mark.parametrize(("before", "now"), [(0.5, 0.5), (0.8, 0.8), (0.95, 0.95), (0.7, 0.9), (1.0, 1.0)])
def test_expected_evidence_is_at_most_one_however_the_reruns_are_chosen(before: float, now: float) -> None:
    """Exact recursion over a greedy schedule: reruns while 1 ≤ e < 50, and the baseline to match."""

    def expect(b: int, nb: int, c: int, nc: int) -> float:
        e = math.exp(case_log_e(b, nb, c, nc))
        if nc >= 12 or (nc and (e < 1 or e >= 50)):
            return e
        if nb < min(nc, 8):
            return before * expect(b + 1, nb + 1, c, nc) + (1 - before) * expect(b, nb + 1, c, nc)
        return now * expect(b, nb, c + 1, nc + 1) + (1 - now) * expect(b, nb, c, nc + 1)

    total = sum(stats.binom.pmf(b, 3, before) * expect(b, 3, 0, 0) for b in range(4))
    assert total <= 1 + 1e-9


def test_evidence_grows_with_failures_and_vanishes_with_passes() -> None:
    failing = [case_log_e(5, 5, 0, n) for n in range(1, 30)]
    assert failing == sorted(failing)
    assert case_log_e(5, 5, 5, 6) < 0 < case_log_e(5, 5, 0, 1)
    assert case_log_e(0, 5, 0, 1) < 0, "a case that never passed cannot break"


def test_suite_evidence_is_the_written_mixture() -> None:
    logs = [math.log(50), math.log(0.7), math.log(0.9), 0.0]
    mixture = ((0.4, 0.25), (0.2, 0.5), (0.2, 0.05), (0.2, 0.15))
    expected = sum(w * math.prod(1 + pi * (math.exp(v) - 1) for v in logs) for w, pi in mixture)
    assert suite_e(logs) == pytest.approx(expected)
    assert suite_e([]) == 1.0


def test_suite_evidence_of_one_case_is_not_lost_where_every_case_may_be_broken() -> None:
    assert suite_e([math.log(1000)]) == pytest.approx(0.6 * 1000 + 0.2 * (1 + 0.05 * 999) + 0.2 * (1 + 0.15 * 999))


def test_suite_evidence_survives_what_overflows() -> None:
    assert suite_e([5000.0] * 300) > 1e200


def test_benjamini_hochberg_on_e_values() -> None:
    logs = [math.log(e) for e in (1, 60, 51, 2, 1, 1, 1, 1, 1, 1)]
    assert e_bh(logs, 0.1) == [1, 2], "10 / (2 · 0.1) = 50"
    assert e_bh([math.log(e) for e in (99, 1, 1, 1, 1, 1, 1, 1, 1, 1)], 0.1) == []
    assert e_bh([], 0.1) == []


# --- permutation ----------------------------------------------------------------------------------


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
    result = joint_permutation([([[v] for v in c], [[v] for v in b]) for c, b in cases], 1, seed="x")
    size = result.relabelings
    assert result.metrics[0].p_mean == pytest.approx(mean, abs=4 * math.sqrt(mean / size))
    assert result.metrics[0].p_concentrated == pytest.approx(dense, abs=4 * math.sqrt(dense / size))
    smaller = min(result.metrics[0].p_mean, result.metrics[0].p_concentrated)
    assert smaller <= result.p <= 2 * smaller, "adjusted for two statistics that lean the same way"


def test_permutation_of_one_case_agrees_with_scipy() -> None:
    now, before = [0.1, 0.2, 0.15], [0.9, 0.8, 0.7, 0.85]
    theirs = stats.permutation_test(
        (now, before), lambda a, b: a.mean() - b.mean(), alternative="less", vectorized=False
    )
    ours = joint_permutation([([[v] for v in now], [[v] for v in before])], 1, seed="x").metrics[0].p_mean
    assert ours == pytest.approx(theirs.pvalue, abs=0.01)


def test_cases_without_difference_and_sides_without_trials_say_nothing() -> None:
    same = ([[1.0]], [[1.0], [1.0]])
    assert joint_permutation([same] * 5, 1, seed="x").p == 1.0
    assert joint_permutation([([], [[1.0], [0.0]])], 1, seed="x").p == 1.0
    assert joint_permutation([], 1, seed="x").p == 1.0


def test_permutation_is_deterministic_from_its_seed() -> None:
    cases = [([[0.0, 0.3]], [[1.0, 0.5], [0.0, 0.2]])] * 9
    assert joint_permutation(cases, 2, seed="a") == joint_permutation(cases, 2, seed="a")


def test_missing_values_leave_the_other_metrics_alone() -> None:
    full = [([[0.0, 0.1]], [[1.0, 0.4], [1.0, 0.9], [0.0, 0.3]])] * 8
    holes = [([[c[0], None] for c in now], before) for now, before in full]
    assert joint_permutation(holes, 2, seed="s").p == 1.0, "no label can change hands"
    some = full[:4] + holes[4:]
    found = joint_permutation(some, 2, seed="s")
    assert found.metrics[0].p_mean == joint_permutation(full[:4], 2, seed="s").metrics[0].p_mean


def test_a_judge_that_is_down_on_one_side_is_no_difference_of_the_agent() -> None:
    rng = Random(9)
    rejected = 0
    for run in range(100):
        cases = []
        for _ in range(20):
            before = [[float(rng.random() < 0.7), rng.random() if rng.random() < 0.95 else None] for _ in range(5)]
            now = [[float(rng.random() < 0.7), rng.random() if rng.random() < 0.3 else None] for _ in range(2)]
            cases.append((now, before))
        rejected += joint_permutation(cases, 2, seed=str(run)).p <= 0.1
    assert wilson(rejected, 100, 0.99)[0] <= 0.1


@settings(max_examples=examples(25))
@given(seed=st.integers(0, 10**6))
def test_more_loss_never_looks_better(seed: int) -> None:
    rng = Random(seed)
    before = [[[float(rng.random() < 0.8)] for _ in range(5)] for _ in range(20)]
    now = [[[float(rng.random() < 0.8)]] for _ in range(20)]
    worse = [[[0.0]] if i < 10 else rows for i, rows in enumerate(now)]
    p = joint_permutation(list(zip(now, before, strict=True)), 1, seed="s").metrics[0].p_mean
    assert joint_permutation(list(zip(worse, before, strict=True)), 1, seed="s").metrics[0].p_mean <= p + 0.06


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
        rejected += joint_permutation(cases, 3, seed=str(run)).p <= 0.1
    low, _ = wilson(rejected, runs, 0.99)
    assert low <= 0.1


# --- change and power -----------------------------------------------------------------------------


def test_paired_change_is_students_interval() -> None:
    differences = [0.1, -0.2, 0.0, 0.3, -0.1]
    theirs = stats.t.interval(0.9, 4, loc=0.02, scale=stats.sem(differences))
    assert paired_change(differences) == pytest.approx((0.02, *theirs))
    mean, low, _ = paired_change([0.0] * 10, extra_variance=0.0001)
    assert (mean, low) == (0.0, pytest.approx(-0.01 * stats.t.ppf(0.95, 9)))
    assert paired_change([0.5]) == (0.5, -math.inf, math.inf)


def test_detectable_drop() -> None:
    assert detectable_drop(0.3, 100, 5, 1) == pytest.approx(3.35 * 0.3 * math.sqrt(1.2 / 100))
