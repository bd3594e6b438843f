"""The fitted law of the cases' pass rates, and the likelihood ratio of a drop that all of them share."""

from __future__ import annotations

import math
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.statistics.shift import GRID, SHIFT, fall_p, fit_prior, log_shift_ratio, rates, shared_out, spreads
from tests.properties import examples


def test_the_fit_finds_how_many_cases_are_steady() -> None:
    rng, totals = Random(4), dict[tuple[int, int], int]()
    for i in range(600):
        passed = sum(rng.random() < (1.0 if i % 3 else 0.5) for _ in range(12))
        totals[passed, 12] = totals.get((passed, 12), 0) + 1
    prior = dict(zip(GRID, fit_prior(totals), strict=True))
    assert sum(prior.values()) == pytest.approx(1)
    assert sum(weight for rate, weight in prior.items() if rate >= 0.98) == pytest.approx(2 / 3, abs=0.05)
    assert sum(weight for rate, weight in prior.items() if 0.3 <= rate <= 0.7) == pytest.approx(1 / 3, abs=0.05)


def test_without_a_case_no_rate_is_ruled_out() -> None:
    assert min(fit_prior({})) > 0
    assert min(fit_prior({(6, 6): 30})) > 0
    assert fit_prior({(0, 0): 9}) == fit_prior({})


def test_the_ratio_is_that_of_the_two_mixtures() -> None:
    prior = tuple(1.0 if rate == 0.9 else 0.0 for rate in GRID)
    lower = 0.9 - SHIFT
    assert log_shift_ratio(4, 5, 1, 3, prior) == pytest.approx(math.log(lower / 0.9) + 2 * math.log((1 - lower) / 0.1))


@settings(max_examples=examples(50))
@given(st.integers(0, 15), st.integers(0, 3), st.dictionaries(st.integers(0, 6), st.integers(1, 50)))
def test_a_trial_that_fails_never_speaks_against_the_drop(before: int, extra: int, passed: dict[int, int]) -> None:
    """Of one trial. That all of several fail looks less like a small drop than that one of them does."""
    prior = fit_prior({(p, 6): count for p, count in passed.items()})
    ratios = [log_shift_ratio(before, before + extra, 1 - failed, 1, prior) for failed in range(2)]
    assert ratios[0] <= ratios[1] + 1e-12
    assert all(math.isfinite(ratio) for ratio in ratios)


def test_the_spread_of_a_case_is_that_of_cases_like_it() -> None:
    steady, even, one_miss = spreads([(12, 12)] * 20 + [(6, 12), (11, 12)])[-3:]
    assert steady < 0.02 < one_miss < even < 0.25


def test_trials_are_shared_out_so_that_the_mean_varies_least() -> None:
    variances, done = (0.25, 0.09, 0.01), (2, 1, 1)

    def variance(shares: tuple[int, ...]) -> float:
        return sum(v / (n + more) for v, n, more in zip(variances, done, shares, strict=True))

    for trials in range(8):
        every = [shares for shares in product(range(trials + 1), repeat=3) if sum(shares) == trials]
        assert variance(tuple(shared_out(trials, variances, done))) == min(map(variance, every))


def test_a_fall_is_the_chance_of_as_many_failures_among_all_of_them() -> None:
    counts = [(1, 1, 5, 5), (0, 1, 4, 5), (0, 1, 3, 5), (0, 0, 0, 5)]
    likely = rates([count[2:] for count in counts])[:3]
    chance = 0.0
    for outcome in product((0, 1), repeat=3):
        if outcome.count(0) >= 2:
            chance += math.prod(rate if passed else 1 - rate for rate, passed in zip(likely, outcome, strict=True))
    assert fall_p(counts) == pytest.approx(chance)
    assert fall_p([(1, 1, 5, 5)]) == fall_p([]) == 1.0


@pytest.mark.parametrize("stored", [2, 5])
def test_steady_cases_that_were_picked_for_it_seldom_seem_to_have_fallen(stored: int) -> None:
    """They were lucky, too: a comparison with their own stored trials would find a fall in most of these suites."""
    rng, falls = Random(8), 0
    for _ in range(200):
        truth = [rng.choice((1.0, 1.0, 0.975, 0.725)) for _ in range(100)]
        passed = [sum(rng.random() < rate for _ in range(stored)) for rate in truth]
        counts = []
        for place in sorted(range(100), key=lambda place: -passed[place]):
            now = int(len(counts) < 50)
            counts.append((now * (rng.random() < truth[place]), now, passed[place], stored))
        falls += fall_p(counts) <= 0.05
    assert falls <= 20, "one in twenty of 200 are 10"
