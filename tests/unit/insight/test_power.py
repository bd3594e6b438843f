"""Tests of the drops that designs could find, by simulation."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from msgspec.structs import replace

from gate.decision import Settings
from gate.decision.engine.state import Config
from gate.decision.power import Rates
from gate.insight.power import (
    LEAST_RUNS,
    Curve,
    Design,
    Drop,
    KnownSuite,
    Share,
    drops_of,
    power_of,
    runs_of,
    suite_of,
    telling_drop,
    wanted_designs,
)
from gate.model import Case
from tests.unit.decision.records import TRAJECTORY, cases, judge, stored, trial


def seen(passes: list[tuple[int, int]], repeat: int = 1) -> KnownSuite:
    return KnownSuite(Rates(tuple(passes * repeat)))


STEADY_AND_FLAKY = [(5, 5)] * 7 + [(3, 5), (4, 5), (0, 5)]


@pytest.mark.parametrize("size", [10, 59, 60, 199, 200])
def test_the_simulated_drops_are_smaller_the_more_cases_there_are(size: int) -> None:
    drops = drops_of(Design(size))
    assert list(drops) == sorted(set(drops)) and 4 <= len(drops) <= 5
    assert drops[2] == {10: 0.2, 59: 0.2, 60: 0.1, 199: 0.1, 200: 0.05}[size]


@pytest.mark.parametrize("size", [10, 30, 100])
def test_a_default_simulation_is_of_few_changes(size: int) -> None:
    runs = runs_of(Design(size), 7)
    assert LEAST_RUNS < runs <= 50
    assert runs_of(Design(size, config=Config(rerun="match")), 7) < runs


def test_the_drop_that_is_spoken_of_is_the_largest_that_is_not_nearly_always_found() -> None:
    def drop(points: int, found: float) -> Drop:
        return Drop(points / 100, Share(found, 0.0, 1.0, 10), Share(found, 0.0, 1.0, 10))

    power = power_of(seen(STEADY_AND_FLAKY), Design(10), runs=1)
    spoken = [
        telling_drop(replace(power, drops=drops)).drop
        for drops in (
            (drop(5, 0.1), drop(20, 0.8), drop(50, 0.9)),
            (drop(5, 0.4), drop(20, 0.97), drop(50, 1.0)),
            (drop(5, 0.97), drop(20, 1.0), drop(50, 1.0)),
        )
    ]
    assert spoken == [0.2, 0.05, 0.05]


def test_a_steady_case_has_failures_too_and_one_that_never_passes_has_hardly_any_passes() -> None:
    rng = Random(1)
    drawn = [seen(STEADY_AND_FLAKY, 3).draw(rng, 30) for _ in range(60)]
    steady, flaky, never = (fmean(suite[i].rate for suite in drawn) for i in (0, 7, 9))
    assert 0.9 < steady < 0.9999
    assert 0.4 < flaky < 0.8
    assert never < 0.2


@pytest.mark.parametrize("runs", [4, pytest.param(16, marks=pytest.mark.slow)])
def test_larger_drops_and_thicker_baselines_are_found_more_often(runs: int) -> None:
    known = seen(STEADY_AND_FLAKY)
    thick, thin = (power_of(known, Design(10, stored), runs=n, seed=3) for stored, n in ((5, runs), (1, runs // 2)))
    shares = [one.found.share for one in thick.drops]
    assert shares == sorted(shares) and shares[0] < 0.5 < shares[-1]
    assert thick.broken is not None and thin.broken is not None
    assert thick.broken.share > thin.broken.share
    assert fmean(one.found.share for one in thin.drops) < fmean(shares)
    assert thick.blocked.share <= 0.2
    assert thick.finds is None or 0.1 < thick.finds <= 0.5
    assert thick.runs == runs * (len(thick.drops) + 2)
    assert thin == power_of(known, Design(10, 1), runs=runs // 2, seed=3), "a seed gives the same answer again"


@pytest.mark.parametrize("runs", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_cases_that_share_a_fixture_are_the_units_that_a_run_takes_them_for(runs: int) -> None:
    alone = seen([(5, 5), (5, 5), (5, 5), (4, 5)], 5)
    shared = replace(alone, clusters=tuple(f"unit {n // 5}" for n in range(20)))
    free, held = (power_of(known, Design(20), runs=runs, seed=2) for known in (alone, shared))
    assert (free.units, held.units) == (20, 4)
    assert held.inconclusive.share > 0.5 > free.inconclusive.share
    larger = shared.draw(Random(1), 23)
    sizes = [sum(case.cluster == name for case in larger) for name in dict.fromkeys(case.cluster for case in larger)]
    assert sizes == [5, 5, 5, 5, 3]


def test_a_records_clusters_are_its_cases() -> None:
    scored = [trial(case, n, trajectory=1.0) for case in ("c1", "c2", "c3") for n in range(1, 3)]
    stated = {"c1": Case("c1", (), cluster="shop"), "c2": Case("c2", (), metadata={"cluster": "shop"})}
    known = suite_of(scored, [TRAJECTORY], {**stated, "c3": Case("c3", ())})
    assert known.clusters == ("shop", "shop", "")
    assert known.units == 2


@pytest.mark.slow
def test_a_wanted_drop_names_the_cases_that_find_it() -> None:
    found = wanted_designs(seen(STEADY_AND_FLAKY), Design(10), 0.4, runs=10)
    assert [one.stored for one in found] == [5, 15]
    assert all(one.cases is not None and one.found.share >= 0.8 for one in found)


def test_nothing_is_known_of_a_suite_without_trials() -> None:
    assert not power_of(KnownSuite(Rates(())), Design(10), runs=1).known


def test_criteria_beside_success_are_drawn_from_trials_that_came_out_alike() -> None:
    scored = [trial(case, n, trajectory=float(n > 2 or case != "c1")) for case in ("c1", "c2") for n in range(1, 6)]
    known = suite_of(scored, [TRAJECTORY], {c: Case(c, ()) for c in ("c1", "c2")})
    assert known.rates.counts == ((3, 5), (5, 5))
    scores = known.scores
    assert scores is not None and [metric.name for metric in scores.metrics] == [TRAJECTORY.name]
    rng = Random(1)
    assert scores.draw(rng, 0, True) == [1.0]
    assert scores.draw(rng, 0, False) == [0.0]
    assert scores.draw(rng, 1, False) == [0.0], "of another case, where its own never failed"


@pytest.mark.slow
def test_criteria_beside_success_and_a_base_that_is_run_take_part() -> None:
    scored = [trial(f"c{i}", n, trajectory=float(i > 2 or n > 2)) for i in range(12) for n in range(1, 6)]
    known = suite_of(scored, [TRAJECTORY], {f"c{i}": Case(f"c{i}", ()) for i in range(12)})
    alone = power_of(replace(known, scores=None), Design(12), runs=1)
    beside = power_of(known, Design(12, config=Config(rerun="match")), runs=1)
    assert (alone.criteria, beside.criteria) == (0, 1)
    assert beside.runs_per_case != alone.runs_per_case
    assert runs_of(Design(100), 7, criteria=2) < runs_of(Design(100), 7)


def test_a_suite_that_never_passes_has_nothing_to_break() -> None:
    power = power_of(seen([(0, 5)] * 10), Design(10), runs=3)
    assert power.broken is None or power.broken.runs < 3


def test_a_curve_runs_through_the_shares_that_it_is_fitted_to() -> None:
    curve = Curve.fitted([(0.05, 10, 100), (0.1, 50, 100), (0.2, 95, 100)])
    assert curve.at(0.1, 300).share == pytest.approx(0.5, abs=0.06)
    assert curve.at(0.1, 300).low < 0.5 < curve.at(0.1, 300).high
    assert 0.1 < (curve.reaches(0.8, (0.05, 0.2)) or 0) < 0.2
    none = Curve.fitted([(0.05, 0, 20), (0.1, 0, 20)])
    assert none.reaches(0.8, (0.05, 0.1)) is None


@pytest.mark.parametrize("exact", [None, 5])
def test_a_pass_finds_what_simulations_of_its_suite_find(exact: int | None) -> None:
    """Its own few trials would show less: a real loss of this size would be sampled on."""
    suite, settings = cases(10), Settings(exact_epochs=exact)
    now = stored(suite, exact or 1, trajectory=1.0)
    passed = judge(suite, [TRAJECTORY], now, stored(suite, trajectory=1.0), settings=settings)
    known = seen([(5, 5)] * 10)
    simulated = power_of(known, Design(10, config=Config(settings.alpha, exact_epochs=exact)), runs=30)
    assert passed.finds == pytest.approx(simulated.finds, abs=0.06)
    thin = judge(suite, [TRAJECTORY], now, stored(suite, 2, trajectory=1.0), settings=settings)
    assert thin.warnings[0]["drop"] == thin.finds >= passed.finds
