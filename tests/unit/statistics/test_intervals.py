"""Intervals, quantiles and bounds are those of scipy and of the textbooks."""

from __future__ import annotations

import math
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    stratified_fisher_less,
    t_quantile,
    wilson,
)
from tests.unit.statistics.scipys import stats


@pytest.mark.parametrize("df", [1, 2, 3, 9, 29, 99, 2999])
def test_students_quantile_is_scipys(df: int) -> None:
    for p in (0.0005, 0.05, 0.3, 0.5, 0.6, 0.95, 0.975, 0.9983, 0.99995):
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
    assert stratified_fisher_less([(c, now, b, before)]) == pytest.approx(theirs, rel=1e-9)


def test_fisher_over_strata_is_that_of_all_relabelings() -> None:
    strata = [(0, 2, 2, 3), (1, 2, 3, 3), (0, 3, 1, 1)]
    marks = [[1] * (now + before) + [0] * (of + of_before - now - before) for now, of, before, of_before in strata]
    splits = [list(combinations(range(len(mark)), one[1])) for mark, one in zip(marks, strata, strict=True)]
    drawn = [
        sum(mark[i] for mark, chosen in zip(marks, split, strict=True) for i in chosen) for split in product(*splits)
    ]
    seen = sum(one[0] for one in strata)
    assert stratified_fisher_less(strata) == pytest.approx(sum(n <= seen for n in drawn) / len(drawn))


def test_mean_interval_is_students() -> None:
    values = [0.2, 0.4, 0.9, 1.0, 0.3]
    theirs = stats.t.interval(0.95, 4, loc=sum(values) / 5, scale=stats.sem(values))
    assert mean_interval(values) == pytest.approx(theirs)
    assert mean_interval([1.0]) == (-math.inf, math.inf)


def test_quantile_interval_covers_as_promised() -> None:
    rng = Random(1)
    covered = 0
    for _ in range(100):
        low, high = quantile_interval([rng.random() for _ in range(40)], 0.5)
        covered += low <= 0.5 <= high
    assert covered >= 93


def test_quantile_interval_is_open_where_too_few_values_bound_it() -> None:
    assert quantile_interval([1.0, 2.0, 3.0], 0.95) == (2.0, math.inf)
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.0
    assert quantile([5.0], 0.95) == 5.0


def test_paired_change_is_students_interval() -> None:
    differences = [0.1, -0.2, 0.0, 0.3, -0.1]
    theirs = stats.t.interval(0.9, 4, loc=0.02, scale=stats.sem(differences))
    assert paired_change(differences) == pytest.approx((0.02, *theirs))
    mean, low, _ = paired_change([0.0] * 10, extra_variance=0.0001)
    assert (mean, low) == (0.0, pytest.approx(-0.01 * stats.t.ppf(0.95, 9)))
    assert paired_change([0.5]) == (0.5, -math.inf, math.inf)


def test_detectable_drop() -> None:
    assert detectable_drop(0.3, 100, 5, 1) == pytest.approx(3.35 * 0.3 * math.sqrt(1.2 / 100))
