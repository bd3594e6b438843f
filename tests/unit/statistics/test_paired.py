"""Evidence from coupled pairs: its law under "no worse", by enumeration, and its denominator against a grid."""

from __future__ import annotations

import math
from itertools import product

import pytest

from gate.statistics.evalues import case_log_e, log_marginal_of
from gate.statistics.paired import Coupled, coupled_log_e


def outcomes_of(pairs: Coupled, now: tuple[int, int]) -> float:
    """The evidence of these pairs and further trials of the candidate: how many passed, of how many."""
    passed_before = pairs.both + pairs.before_only
    passed_now = pairs.both + pairs.now_only + now[0]
    return coupled_log_e(pairs, passed_before, pairs.pairs, passed_now, pairs.pairs + now[1])


def test_its_mean_is_at_most_one_whatever_the_pairs_share() -> None:
    for rate in [0.5, 0.8, 0.95, 1.0]:
        for correlation in [0.0, 0.5, 1.0]:
            for further in [0, 3]:
                apart = rate * (1 - rate) * (1 - correlation)
                law = {(1, 1): rate - apart, (1, 0): apart, (0, 1): apart, (0, 0): 1 - rate - apart}
                total = mass = 0.0
                for kinds in product(law, repeat=4):
                    probability = math.prod(law[kind] for kind in kinds)
                    pairs = Coupled(*(kinds.count(kind) for kind in law))
                    for passed in range(further + 1):
                        chance = math.comb(further, passed) * rate**passed * (1 - rate) ** (further - passed)
                        total += probability * chance * math.exp(outcomes_of(pairs, (passed, further)))
                        mass += probability * chance
                assert mass == pytest.approx(1), (rate, correlation)
                assert total <= 1 + 1e-9, (rate, correlation)


def log_likelihood(law: tuple[float, ...], pairs: Coupled, now: tuple[int, int], before: tuple[int, int]) -> float:
    both, before_only, now_only, neither = law
    shares = [both, before_only, now_only, neither, both + now_only, before_only + neither, both + before_only]
    shares.append(now_only + neither)
    counts = [pairs.both, pairs.before_only, pairs.now_only, pairs.neither, *now, *before]
    return sum(k * (math.log(share) if share > 0 else -math.inf) for k, share in zip(counts, shares, strict=True) if k)


@pytest.mark.parametrize(
    ("pairs", "now", "before"),
    [
        (Coupled(0, 5, 0, 0), (0, 3), (0, 0)),
        (Coupled(2, 2, 1, 0), (1, 3), (2, 0)),
        (Coupled(3, 0, 0, 0), (0, 4), (2, 1)),
        (Coupled(1, 0, 3, 1), (0, 2), (1, 1)),
        (Coupled(0, 1, 0, 2), (2, 0), (3, 0)),
    ],
)
def test_no_law_of_no_worse_is_likelier_than_its_denominator(
    pairs: Coupled, now: tuple[int, int], before: tuple[int, int]
) -> None:
    n = 30
    laws = (
        (a / n, b / n, c / n, (n - a - b - c) / n)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(b, n + 1 - a - b)
    )
    best = max(log_likelihood(law, pairs, now, before) for law in laws)
    passed_before, passed_now = pairs.both + pairs.before_only + before[0], pairs.both + pairs.now_only + now[0]
    sides = passed_before, pairs.pairs + sum(before), passed_now, pairs.pairs + sum(now)
    assert log_marginal_of(*sides) - coupled_log_e(pairs, *sides) >= best - 1e-9


def test_without_pairs_it_is_the_evidence_of_independent_trials() -> None:
    assert coupled_log_e(Coupled(), 5, 5, 0, 7) == case_log_e(5, 5, 0, 7)


def test_pairs_that_agree_are_no_evidence_and_further_failures_are() -> None:
    assert coupled_log_e(Coupled(4, 0, 0, 1), 4, 5, 4, 5) <= 0
    broke = [coupled_log_e(Coupled(0, 5, 0, 0), 5, 5, 0, 5 + n) for n in (0, 5, 15)]
    assert broke == sorted(broke)
    assert broke[-1] > math.log(20_000)
    assert broke[-1] < case_log_e(5, 5, 0, 20)
