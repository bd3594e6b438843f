"""What designs could find, and cases over time."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from msgspec.structs import replace

from gate.decision.engine.state import Config
from gate.decision.power import (
    LEAST_RUNS,
    Curve,
    Design,
    Drop,
    Rates,
    Share,
    chance_of_finding,
    chance_of_passing,
    cost_per_run,
    drops_of,
    outcomes_by_case,
    power_of,
    provable,
    rates_of,
    reruns_to_prove,
    runs_of,
    stored_enough,
    stored_wanted,
    telling_drop,
    wanted_designs,
)
from gate.decision.settings import Goal, Settings
from gate.histories.cases import CaseHistory
from gate.model import Case, Invocation, Usage, Verdict

from .records import TRAJECTORY, cases, judge, stored, trial


def seen(passes: list[tuple[int, int]], repeat: int = 1) -> Rates:
    return Rates(tuple(passes * repeat))


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
    rates = seen(STEADY_AND_FLAKY)
    thick, thin = (power_of(rates, Design(10, stored), runs=n, seed=3) for stored, n in ((5, runs), (1, runs // 2)))
    shares = [one.found.share for one in thick.drops]
    assert shares == sorted(shares) and shares[0] < 0.5 < shares[-1]
    assert thick.broken is not None and thin.broken is not None
    assert thick.broken.share > thin.broken.share
    assert fmean(one.found.share for one in thin.drops) < fmean(shares)
    assert thick.blocked.share <= 0.2
    assert thick.finds is None or 0.1 < thick.finds <= 0.5
    assert thick.runs == runs * (len(thick.drops) + 2)
    assert thin == power_of(rates, Design(10, 1), runs=runs // 2, seed=3), "a seed gives the same answer again"


@pytest.mark.parametrize("runs", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_cases_that_share_a_fixture_are_the_units_that_a_run_takes_them_for(runs: int) -> None:
    alone = seen([(5, 5), (5, 5), (5, 5), (4, 5)], 5)
    shared = replace(alone, clusters=tuple(f"unit {n // 5}" for n in range(20)))
    free, held = (power_of(rates, Design(20), runs=runs, seed=2) for rates in (alone, shared))
    assert (free.units, held.units) == (20, 4)
    assert held.inconclusive.share > 0.5 > free.inconclusive.share
    larger = shared.draw(Random(1), 23)
    sizes = [sum(case.cluster == name for case in larger) for name in dict.fromkeys(case.cluster for case in larger)]
    assert sizes == [5, 5, 5, 5, 3]


def test_a_records_clusters_are_its_cases() -> None:
    scored = [trial(case, n, trajectory=1.0) for case in ("c1", "c2", "c3") for n in range(1, 3)]
    stated = {"c1": Case("c1", (), cluster="shop"), "c2": Case("c2", (), metadata={"cluster": "shop"})}
    rates = rates_of(scored, [TRAJECTORY], {**stated, "c3": Case("c3", ())})
    assert rates.clusters == ("shop", "shop", "")
    assert rates.units == 2


@pytest.mark.slow
def test_a_wanted_drop_names_the_cases_that_find_it() -> None:
    found = wanted_designs(seen(STEADY_AND_FLAKY), Design(10), 0.4, runs=10)
    assert [one.stored for one in found] == [5, 15]
    assert all(one.cases is not None and one.found.share >= 0.8 for one in found)


def test_nothing_is_known_of_a_suite_without_trials() -> None:
    assert not power_of(Rates(()), Design(10), runs=1).known


def test_criteria_beside_success_are_drawn_from_trials_that_came_out_alike() -> None:
    scored = [trial(case, n, trajectory=float(n > 2 or case != "c1")) for case in ("c1", "c2") for n in range(1, 6)]
    rates = rates_of(scored, [TRAJECTORY], {c: Case(c, ()) for c in ("c1", "c2")})
    assert rates.counts == ((3, 5), (5, 5))
    scores = rates.scores
    assert scores is not None and [metric.name for metric in scores.metrics] == [TRAJECTORY.name]
    rng = Random(1)
    assert scores.draw(rng, 0, True) == [1.0]
    assert scores.draw(rng, 0, False) == [0.0]
    assert scores.draw(rng, 1, False) == [0.0], "of another case, where its own never failed"


@pytest.mark.slow
def test_criteria_beside_success_and_a_base_that_is_run_take_part() -> None:
    scored = [trial(f"c{i}", n, trajectory=float(i > 2 or n > 2)) for i in range(12) for n in range(1, 6)]
    rates = rates_of(scored, [TRAJECTORY], {f"c{i}": Case(f"c{i}", ()) for i in range(12)})
    alone = power_of(replace(rates, scores=None), Design(12), runs=1)
    beside = power_of(rates, Design(12, config=Config(rerun="match")), runs=1)
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


def test_few_or_flaky_cases_want_more_stored_trials() -> None:
    def wanted(passes: list[tuple[int, int]], drop: float = 0.2, find: float = 0.8) -> int:
        return stored_wanted(seen(passes), Goal(drop, find), Settings())

    assert wanted([(5, 5)] * 100) == 5
    assert 5 < wanted([(5, 5)] * 8) < wanted([(5, 5)] * 5 + [(3, 5)] * 3) <= 25
    assert wanted([(5, 5)] * 8, find=0.5) == wanted([(5, 5)] * 8, drop=0.5) == 5
    assert wanted([(0, 5)] * 10) == 25, "nothing to lose, so no number of trials finds it"


def test_flaky_cases_want_more_where_an_unchanged_agent_would_be_left_inconclusive() -> None:
    def wanted(passes: list[tuple[int, int]], margin: float | None = None) -> tuple[int, int]:
        """The trials that find the drop, and those that let an unchanged agent pass, too."""
        rates = seen(passes)
        enough = stored_enough(rates, Goal(), Settings(pass_rate_margin=margin))
        return stored_wanted(rates, Goal(), Settings()), enough

    flaky = [(5, 5)] * 12 + [(3, 5)] * 18
    assert wanted(flaky) == (5, 25)
    assert wanted(flaky, margin=0.2) == (5, 5), "a wider margin is cleared with few"
    assert wanted(flaky * 4) == (5, 5), "many cases average it out"
    assert wanted([(5, 5)] * 30) == (5, 5)
    assert chance_of_passing(seen(flaky), 5, Settings()) < chance_of_passing(seen(flaky), 25, Settings()) < 0.94


@pytest.mark.parametrize(
    ("cases", "stored", "drop", "simulated"),
    [(10, 5, 0.2, 0.485), (10, 15, 0.2, 0.82), (20, 5, 0.1, 0.45), (20, 15, 0.1, 0.685), (5, 15, 0.3, 0.69)],
)
def test_the_chance_of_finding_a_drop_is_about_what_simulations_show(
    cases: int, stored: int, drop: float, simulated: float
) -> None:
    """Of typical suites, which nobody has seen a trial of more than five times a case."""
    rng = Random(1)
    typical = [[one.rate for one in Rates(()).draw(rng, cases)] for _ in range(20)]
    seen_of = [Rates(tuple((sum(rng.random() < p for _ in range(30)), 30) for p in suite)) for suite in typical]
    chances = [chance_of_finding(rates, drop, stored, Settings()) for rates in seen_of]
    assert fmean(chances) == pytest.approx(simulated, abs=0.12)


def test_what_a_run_costs_is_the_mean_of_what_is_reported() -> None:
    trials = [trial("case-00", n, trajectory=1.0) for n in (1, 2)]
    paid = [replace(t, invocations=(Invocation(usage=Usage(cost_usd=0.01)),)) for t in trials]
    assert cost_per_run(paid) == pytest.approx(0.01)
    assert cost_per_run(trials) is None
    assert rates_of(trials, [TRAJECTORY]).counts == ((2, 2),)


def test_a_single_break_is_provable_from_three_stored_trials_on() -> None:
    assert [provable(100, kb) for kb in (1, 2, 3, 5)] == [False, False, True, True]


@pytest.mark.parametrize("exact", [None, 5])
def test_a_pass_finds_what_simulations_of_its_suite_find(exact: int | None) -> None:
    """Its own few trials would show less: a real loss of this size would be sampled on."""
    suite, settings = cases(10), Settings(exact_epochs=exact)
    now = stored(suite, exact or 1, trajectory=1.0)
    passed = judge(suite, [TRAJECTORY], now, stored(suite, trajectory=1.0), settings=settings)
    rates = seen([(5, 5)] * 10)
    simulated = power_of(rates, Design(10, config=Config(settings.alpha, exact_epochs=exact)), runs=30)
    assert passed.finds == pytest.approx(simulated.finds, abs=0.06)
    thin = judge(suite, [TRAJECTORY], now, stored(suite, 2, trajectory=1.0), settings=settings)
    assert thin.warnings[0]["drop"] == thin.finds >= passed.finds


def test_a_fixed_number_of_epochs_wants_as_many_stored_trials_as_a_maximum_of_that_many() -> None:
    """What a goal wants depends on the epochs that a change runs, not on the number of looks at them."""
    suite, wanted = cases(8), []
    for settings in (Settings(max_epochs=3, goal=Goal()), Settings(exact_epochs=3, goal=Goal())):
        now, before = stored(suite, 3, trajectory=1.0), stored(suite, trajectory=1.0)
        wanted.append(judge(suite, [TRAJECTORY], now, before, settings=settings).warnings[0]["wanted"])
    assert wanted[0] == wanted[1] > 5


def test_the_drop_that_a_thin_baseline_shows_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    monkeypatch.setattr("gate.decision.power.smallest_found", lambda *given: computed.append(given))
    suite = cases(10)
    thin = judge(suite, [TRAJECTORY], stored(suite, 1, trajectory=1.0), stored(suite, 2, trajectory=1.0))
    assert (thin.verdict, thin.warnings[0].kind, len(computed)) == (Verdict.PASS, "thin_baseline", 1)


def test_a_thin_baseline_needs_more_failures_to_prove_a_break() -> None:
    needed = [reruns_to_prove(100, kb) for kb in (1, 3, 5, 10)]
    assert needed[0] is None
    assert needed[1] > needed[2] > needed[3] > 3
    assert (needed[2], reruns_to_prove(100, 5, recorded=True)) == (21, 17)


def test_history_counts_each_record_and_flags_what_flips() -> None:
    suite = cases(3)
    first = stored(suite, 2, trajectory=1.0)
    second = [trial("case-00", n, trajectory=float(n == 1)) for n in (1, 2)] + [trial("case-01", 1, trajectory=0.0)]
    third = [trial("case-01", 1, trajectory=1.0), trial("case-02", 1, trajectory=0.0)]
    groups = [outcomes_by_case(trials, [TRAJECTORY]) for trials in (first, second, third)]
    found = {}
    for case_id in ("case-00", "case-01", "case-02"):
        outcomes = [group.get(case_id, []) for group in groups]
        history = CaseHistory.of(case_id, tuple([(sum(one), len(one)) for one in outcomes]), ("a", "b", "b"))
        assert history is not None
        found[case_id] = history
    assert CaseHistory.of("never measured", ((0, 0),), [""]) is None
    assert found["case-00"].by_record == ((2, 2), (1, 2), (0, 0))
    assert found["case-00"].flaky, "two answers of one agent"
    assert found["case-01"].flaky, "failed, and passed again"
    for versions in (("a", "b", "c"), ("a", "b", "a"), ("", "", "")):
        fixed = CaseHistory.of("case-01", found["case-01"].by_record, versions)
        assert fixed is not None
        assert not fixed.flaky, "another agent broke it, or nobody knows which"
    assert not found["case-02"].flaky, "one change is a change"
    assert found["case-02"].rate == pytest.approx(2 / 3)
    assert found["case-02"].low < 2 / 3 < found["case-02"].high
