"""Tests of the drops that stored trials could show, and of cases over time."""

from __future__ import annotations

from random import Random
from statistics import fmean

import pytest
from msgspec.structs import replace

from gate.decision.outcomes import outcomes_by_case
from gate.decision.power import (
    Rates,
    chance_of_finding,
    chance_of_passing,
    provable,
    rates_of,
    reruns_to_prove,
    stored_enough,
    stored_wanted,
)
from gate.decision.settings import Goal, Settings
from gate.histories.cases import CaseHistory
from gate.insight.power import KnownSuite
from gate.model import Invocation, Usage, Verdict
from gate.pipeline.budget import cost_per_run

from .records import TRAJECTORY, cases, judge, stored, trial


def seen(passes: list[tuple[int, int]], repeat: int = 1) -> Rates:
    return Rates(tuple(passes * repeat))


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
    typical = [[one.rate for one in KnownSuite(Rates(())).draw(rng, cases)] for _ in range(20)]
    seen_of = [Rates(tuple((sum(rng.random() < p for _ in range(30)), 30) for p in suite)) for suite in typical]
    chances = [chance_of_finding(rates, drop, stored, Settings()) for rates in seen_of]
    assert fmean(chances) == pytest.approx(simulated, abs=0.12)


def test_what_a_run_costs_is_the_mean_of_what_is_reported() -> None:
    trials = [trial("case-00", n, trajectory=1.0) for n in (1, 2)]
    paid = [replace(t, invocations=(Invocation(usage=Usage(cost_usd=0.01)),)) for t in trials]
    assert cost_per_run(paid) == pytest.approx(0.01)
    assert cost_per_run(trials) is None
    assert rates_of(trials, [TRAJECTORY], {}).counts == ((2, 2),)


def test_a_single_break_is_provable_from_three_stored_trials_on() -> None:
    assert [provable(100, kb) for kb in (1, 2, 3, 5)] == [False, False, True, True]


def test_a_fixed_number_of_epochs_wants_as_many_stored_trials_as_a_maximum_of_that_many() -> None:
    """The trials that a goal wants depend on the epochs that a change runs, not on the number of looks at them."""
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
    groups = [outcomes_by_case(trials, [TRAJECTORY], {}) for trials in (first, second, third)]
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
