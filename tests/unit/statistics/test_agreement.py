"""Rates of a judge and what they correct, against textbooks, identities and simulated labels."""

from __future__ import annotations

from itertools import product
from random import Random
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gate.model.calibration import GradedLabels, JudgeCalibration
from gate.statistics.agreement import (
    clopper_pearson,
    corrected_change,
    corrected_interval,
    corrected_share,
    corrects,
    difference_error,
    is_usable,
    kappa,
    middle,
    rates,
    slope,
    table_draws,
)
from tests.unit.statistics.scipys import stats

PERFECT = JudgeCalibration(500, 500, 0, 0)
TYPICAL = JudgeCalibration(54, 28, 12, 6)
"""Of 60 answers that people pass the judge passes 54, of 40 that they fail it fails 28."""
tables = st.tuples(*[st.integers(0, 60)] * 4).map(lambda cells: JudgeCalibration(*cells))
usable = tables.filter(is_usable)


def test_kappa_of_the_textbook() -> None:
    """The table 20, 15, 5, 10: observed 0.70, by chance 0.50."""
    assert kappa((20, 15, 5, 10)) == pytest.approx(0.40)
    assert kappa((10, 0, 0, 0)) is None


def test_draws_lie_around_their_table_and_the_middle_holds_the_value() -> None:
    draws = table_draws((80, 20, 0, 0), seed=3)
    assert sum(draw[0] for draw in draws) / len(draws) == pytest.approx(80.5 / 102, abs=0.005)
    assert middle(0.99, [draw[0] for draw in draws])[1] == 0.99


@pytest.mark.parametrize(("k", "n"), [(0, 5), (3, 10), (10, 10), (92, 100)])
def test_exact_intervals_are_scipys(k: int, n: int) -> None:
    found = stats.binomtest(k, n).proportion_ci(0.95, "exact")
    assert clopper_pearson(k, n) == pytest.approx((found.low, found.high), abs=1e-9)


def test_rogan_and_gladens_estimate() -> None:
    """Sensitivity .9, specificity .7: a true share of .8 is judged to be .8 · .9 + .2 · .3 = .78."""
    assert rates(TYPICAL) == pytest.approx((0.9, 0.7))
    assert slope(TYPICAL)[0] == pytest.approx(0.6)
    assert corrected_share(0.78, TYPICAL) == pytest.approx(0.8)


def test_a_judge_that_many_labels_show_to_be_right_corrects_nothing() -> None:
    assert corrected_share(0.84, PERFECT) == pytest.approx(0.84)
    low, high = corrected_interval(0.84, 200, PERFECT)
    exact = clopper_pearson(168, 200)
    assert (low, high) == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(
    "known",
    [
        JudgeCalibration(0, 0, 0, 0),
        JudgeCalibration(40, 0, 0, 2),  # nothing that people fail
        JudgeCalibration(3, 2, 0, 0),  # five labels that agree
        JudgeCalibration(25, 25, 25, 25),
        JudgeCalibration(5, 5, 45, 45),  # worse than chance
    ],
)
def test_what_does_not_show_a_judge_better_than_chance_corrects_nothing(known: JudgeCalibration) -> None:
    assert not is_usable(known)


@given(usable, st.integers(0, 200), st.integers(1, 200))
def test_intervals_hold_their_estimate_and_stay_in_range(known: JudgeCalibration, passes: int, n: int) -> None:
    passes = min(passes, n)
    low, high = corrected_interval(passes / n, n, known)
    value = min(1.0, max(0.0, corrected_share(passes / n, known)))
    assert 0 <= low <= value <= high <= 1


def test_few_labels_widen_what_they_correct() -> None:
    few = JudgeCalibration(27, 14, 6, 3)
    (low, high), (least, most) = corrected_interval(0.78, 100, few), corrected_interval(0.78, 100, TYPICAL)
    assert low < least < most < high


def test_a_change_is_divided_by_the_slope_and_its_error_enters() -> None:
    value, low, high = corrected_change(-0.06, -0.12, 0.0, (0.6, 0.0), 1.66)
    assert (value, low, high) == pytest.approx((-0.1, -0.2, 0.0))
    _, wider, _ = corrected_change(-0.06, -0.12, 0.0, (0.6, 0.09), 1.66)
    assert wider < low
    assert corrected_change(0.0, -0.05, 0.05, (0.5, 0.2), 1.66) == pytest.approx((0.0, -0.1, 0.1))


@pytest.mark.slow
def test_the_interval_covers_a_biased_judges_truth() -> None:
    """Sensitivity .9, specificity .7, true share .8 of 200 answers and of 100 labelled ones."""
    rng, hits = Random(5), 0
    for _ in range(600):
        known = _labels(rng, 100)
        if not is_usable(known):
            continue
        judged = sum(_verdict(rng, rng.random() < 0.8) for _ in range(200))
        low, high = corrected_interval(judged / 200, 200, known)
        hits += low <= 0.8 <= high
    assert hits >= 555


def test_a_kind_of_answer_that_no_label_shows_keeps_the_rule_of_three() -> None:
    alike = GradedLabels(100, 0.0, 0.0, 1.0)
    assert difference_error(alike, 0.95, 1.0) == pytest.approx(3 / 100, rel=0.02)
    assert difference_error(alike, 0.95, 4.0) == pytest.approx(12 / 100, rel=0.02)
    varied = GradedLabels(100, 0.0, 0.2, 1.0)
    assert difference_error(varied, 0.95, 1.0) > stats.t.ppf(0.95, 99) * 0.02


def test_fewer_than_twenty_labels_and_an_order_that_may_be_chance_correct_nothing() -> None:
    assert corrects(GradedLabels(20, 0.1, 0.1, 0.45))
    assert not corrects(GradedLabels(20, 0.1, 0.1, 0.43))
    assert not corrects(GradedLabels(19, 0.1, 0.1, 0.9))
    assert corrects(GradedLabels(100, 0.1, 0.1, 0.2))
    assert not any(corrects(GradedLabels(100, 0.1, 0.1, r)) for r in (-1.0, -0.2, 0.0, 0.19))


WORLDS = {
    "coarse": (0.05, (-0.25, 0.0, 0.25), (0.15, 0.55, 0.3)),
    "skewed": (0.05, (0.0, -1.0), (0.95, 0.05)),
    "rare": (0.05, (0.0, -1.0), (0.98, 0.02)),
    "shifted": (0.05, (0.25, -0.75), (0.97, 0.03)),
    "two kinds": (0.0008, (0.25, -0.25), (0.5, 0.5)),
}
"""The error that is promised on each side, and how people's score differs from the judge's, with its chances."""


EVERY = product(WORLDS, (20, 50, 200), (1000,))


@pytest.mark.parametrize(
    ("world", "n", "runs"),
    [("rare", 20, 200), ("shifted", 50, 200), *(pytest.param(*one, marks=pytest.mark.slow) for one in EVERY)],
)
def test_the_mean_difference_lies_within_its_error(world: str, n: int, runs: int) -> None:
    error, differences, chances = WORLDS[world]
    truth = sum(one * chance for one, chance in zip(differences, chances, strict=True))
    rng, missed = Random(n), [0, 0]
    for _ in range(runs):
        drawn = rng.choices(differences, chances, k=n)
        graded = GradedLabels(n, mean(drawn), stdev(drawn), 1.0)
        half = difference_error(graded, 1 - error, 1.0)
        missed[0] += truth > graded.bias + half
        missed[1] += truth < graded.bias - half
    assert max(missed) <= runs * error


def _labels(rng: Random, n: int) -> JudgeCalibration:
    people = [rng.random() < 0.8 for _ in range(n)]
    judge = [_verdict(rng, one) for one in people]
    pairs = list(zip(people, judge, strict=True))
    return JudgeCalibration(*(pairs.count(one) for one in [(True, True), (False, False), (False, True), (True, False)]))


def _verdict(rng: Random, people: bool) -> bool:
    return rng.random() < (0.9 if people else 0.3)
