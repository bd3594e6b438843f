"""E-values: by exact sums, their expectation is at most one where nothing got worse; they combine as written."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from gate.statistics.evalues import case_log_e, e_bh, suite_e

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
