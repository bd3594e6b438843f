"""Independent p-values, looked at one after the other: what each look may reject so that the whole stays in budget."""

from __future__ import annotations

import math
from random import Random
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gate.statistics.sequential import combined_p, nominal_level
from tests.properties import examples
from tests.unit.statistics.scipys import stats

SPENT, WEIGHTS = (0.007, 0.004, 0.005), (0.913, 0.771, 0.668)


def never_rejected(spent: tuple[float, ...], weights: tuple[float, ...]) -> float:
    """P(no look rejects), by scipy's multivariate normal."""
    n = len(spent)
    bounds = [-stats.norm.ppf(nominal_level(spent[:j], weights[:j])) for j in range(1, n + 1)]
    squares = [sum(w**2 for w in weights[:j]) for j in range(1, n + 1)]
    law = [[math.sqrt(min(squares[i], squares[j]) / max(squares[i], squares[j])) for i in range(n)] for j in range(n)]
    return float(stats.multivariate_normal(cov=law, abseps=1e-9, releps=1e-9, maxpts=10**6).cdf(bounds))


@pytest.mark.parametrize(
    ("spent", "weights"),
    [
        ((0.02, 0.02), (1.0, 1.0)),
        pytest.param(SPENT, WEIGHTS, marks=pytest.mark.slow),
        ((0.001, 0.03, 0.002), (0.4, 0.9, 0.3)),
        pytest.param((0.0001, 0.0002, 0.0001), (0.7, 0.7, 0.7), marks=pytest.mark.slow),
    ],
)
def test_what_the_looks_reject_adds_up_to_what_they_spend(spent: tuple[float, ...], weights: tuple[float, ...]) -> None:
    assert 1 - never_rejected(spent, weights) == pytest.approx(sum(spent), rel=3e-3)


def test_a_later_look_has_more_than_it_spends_and_less_than_all() -> None:
    assert nominal_level(SPENT[:1], WEIGHTS[:1]) == SPENT[0]
    for j in (2, 3):
        assert SPENT[j - 1] < nominal_level(SPENT[:j], WEIGHTS[:j]) < sum(SPENT[:j])


def test_pocock_of_two_equal_looks() -> None:
    """One-sided .025 at two equal looks: z = 2.178 at both (Jennison & Turnbull 2000, table 2.1)."""
    first = 1 - NormalDist().cdf(2.178)
    level = nominal_level((first, 0.025 - first), (1.0, 1.0))
    assert NormalDist().inv_cdf(1 - level) == pytest.approx(2.178, abs=0.005)


@settings(max_examples=examples(50))
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0.1, 2)), min_size=1, max_size=4))
def test_the_combination_is_a_p_value_between_its_parts(stages: list[tuple[float, float]]) -> None:
    found = combined_p(stages)
    assert 0 <= found <= 1
    alike = [(0.03, weight) for _, weight in stages]
    assert combined_p(alike) <= 0.03 + 1e-9, "the same again is more evidence, not less"


def test_a_p_of_one_is_bad_luck_and_no_veto() -> None:
    assert combined_p([(1.0, 1.0), (1e-12, 1.0), (1e-12, 1.0)]) < 1e-6


def test_uniform_p_values_combine_to_a_uniform_one() -> None:
    rng = Random(8)
    found = [combined_p([(rng.random(), 0.9), (rng.random(), 0.5)]) for _ in range(4000)]
    assert stats.kstest(found, "uniform").pvalue > 0.01
