"""Cases that were asked again because they failed: the test is exact whatever they were picked by."""

from __future__ import annotations

from itertools import product
from math import comb

import pytest

from gate.statistics.repeats import Repeated, repeats_p

BEFORE, AGAIN, LEAST = 5, 3, 4


def binomial(k: int, n: int, rate: float) -> float:
    return comb(n, k) * rate**k * (1 - rate) ** (n - k)


def picked(rate: float) -> dict[tuple[int, int], float]:
    """The law of passes before and after of an unchanged case, given that at least LEAST passed before."""
    law = {
        (b, x): binomial(b, BEFORE, rate) * binomial(x, AGAIN, rate)
        for b, x in product(range(LEAST, BEFORE + 1), range(AGAIN + 1))
    }
    return {outcome: mass / sum(law.values()) for outcome, mass in law.items()}


@pytest.mark.parametrize("rates", [(0.5, 0.9, 0.99), (0.75, 0.75, 0.75), (0.3, 0.95, 0.6)])
def test_over_all_outcomes_p_is_below_x_at_most_with_probability_x(rates: tuple[float, ...]) -> None:
    found: dict[float, float] = {}
    for outcomes in product(*(picked(rate).items() for rate in rates)):
        mass, cases = 1.0, []
        for (before, now), share in outcomes:
            mass *= share
            cases.append(Repeated(before, BEFORE, now, AGAIN, LEAST))
        p = repeats_p(tuple(cases))
        found[p] = found.get(p, 0.0) + mass
    below = 0.0
    for p in sorted(found):
        below += found[p]
        assert below <= p + 1e-9
    assert min(found) < 0.01, "and it is small where all fail again"


def test_the_condition_that_they_were_picked_by_weakens_the_proof() -> None:
    cases = [Repeated(5, 5, 1, 3, least) for least in (4, 0)]
    assert repeats_p((cases[0],)) == pytest.approx(3 / 18), "two failures of eight: both new, or one of them stored"
    assert repeats_p(tuple(cases[1:])) == pytest.approx(3 / 28)


def test_cases_that_could_not_have_passed_less_often_say_nothing() -> None:
    assert repeats_p((Repeated(5, 5, 0, 3, 5),) * 4) == 1.0


def test_halves_of_many_cases_add_up() -> None:
    assert repeats_p((Repeated(5, 5, 1, 3, 4),) * 6) < 0.0016 < repeats_p((Repeated(5, 5, 1, 3, 4),) * 2)


def test_nothing_asked_again_is_no_evidence() -> None:
    assert repeats_p(()) == 1.0
    assert repeats_p((Repeated(5, 5, 0, 0, 4),)) == 1.0
