"""E-values: by exact sums, their expectation is at most one where nothing got worse; they combine as written."""

from __future__ import annotations

import math
from itertools import product

import pytest

from gate.statistics.evalues import case_log_e, e_bh, suite_e
from tests.unit.statistics.scipys import stats

LARGE = [pytest.param(*sizes, marks=pytest.mark.slow) for sizes in ((5, 1), (5, 10), (10, 6), (2, 25))]


@pytest.mark.slow
@pytest.mark.parametrize(("kb", "kc"), [(1, 1), (3, 2), *LARGE])
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


def test_that_the_others_pass_says_nothing_against_one_broken_case_of_a_recorded_suite() -> None:
    quiet, broken = math.log(0.1), math.log(1000)
    few, many = (suite_e([broken, *[quiet] * n], recorded=True) * (n + 1) for n in (9, 99))
    assert many == pytest.approx(0.6 * 1000, rel=0.3) and few == pytest.approx(many, rel=0.3)
    assert suite_e([broken, *[quiet] * 99]) < suite_e([broken, *[quiet] * 99], recorded=True) / 2
    logs = [math.log(50), math.log(0.7), math.log(0.9), 0.0]
    more = ((0.1, 0.5), (0.15, 0.05), (0.15, 0.15))
    expected = 0.6 * 52.6 / 4 + sum(w * math.prod(1 + pi * (math.exp(v) - 1) for v in logs) for w, pi in more)
    assert suite_e(logs, recorded=True) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("recorded", [False, True])
def test_suite_evidence_of_unbroken_cases_is_one_at_most_on_average(*, recorded: bool) -> None:
    """Two cases, each with every outcome of two stored trials and two new ones, at every pair of equal rates."""
    outcomes = [(before, now) for before in range(3) for now in range(3)]
    for p in (0.3, 0.8, 0.97):
        for q in (0.5, 0.9):
            total = 0.0
            for (a, b), (c, d) in product(outcomes, outcomes):
                chance = math.prod(stats.binom.pmf(k, 2, rate) for k, rate in ((a, p), (b, p), (c, q), (d, q)))
                total += chance * suite_e([case_log_e(a, 2, b, 2), case_log_e(c, 2, d, 2)], recorded=recorded)
            assert total <= 1 + 1e-9


def test_suite_evidence_survives_what_overflows() -> None:
    assert suite_e([5000.0] * 300) > 1e200


def test_benjamini_hochberg_on_e_values() -> None:
    logs = [math.log(e) for e in (1, 60, 51, 2, 1, 1, 1, 1, 1, 1)]
    assert e_bh(logs) == [1, 2], "10 / (2 · 0.1) = 50"
    assert e_bh([math.log(e) for e in (99, 1, 1, 1, 1, 1, 1, 1, 1, 1)]) == []
    assert e_bh([]) == []
