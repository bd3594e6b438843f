"""pass^k: whether k trials of a case all pass."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest

from gate.decision import Settings
from gate.model import Criterion, CriterionResult, Estimate, Scale, SuiteResult, Verdict
from gate.statistics.intervals import all_pass

from .records import TRAJECTORY, ask, cases, failed_trial, follow, judge, trial

SUITE = cases(6)


def together(threshold: float, k: int = 3) -> Criterion:
    return Criterion("pass_k", "pass_k", Scale.SHARE, threshold=threshold, blocks_regression=False, k=k)


def estimated(result: SuiteResult) -> Estimate:
    found = row(result).candidate
    assert found is not None
    return found


def row(result: SuiteResult, name: str = "pass_k") -> CriterionResult:
    return next(one for one in result.criteria if one.criterion.name == name)


@pytest.mark.parametrize(("passed", "trials", "k"), [(3, 3, 3), (4, 5, 3), (2, 5, 2), (2, 5, 3), (0, 4, 2), (7, 9, 1)])
def test_the_estimate_is_the_share_of_k_trials_that_all_passed(passed: int, trials: int, k: int) -> None:
    outcomes = [True] * passed + [False] * (trials - passed)
    assert all_pass(passed, trials, k) == pytest.approx(fmean(all(few) for few in combinations(outcomes, k)))


def test_a_flaky_case_counts_for_what_k_of_its_trials_come_to() -> None:
    trials = [
        trial(case.id, n, round=n, trajectory=float(index > 1 or n != 2))
        for n in range(1, 6)
        for index, case in enumerate(SUITE)
    ]
    result = judge(SUITE, [TRAJECTORY, together(0.5)], trials, settings=Settings(exact_epochs=5))
    found = estimated(result)
    assert found.value == pytest.approx((4 + 2 * 4 / 10) / 6)
    assert found.n == found.trials == 6, "a case has one score, however often it was run"
    assert found.low < found.value < found.high
    assert row(result).verdict is Verdict.PASS
    missed = judge(SUITE, [TRAJECTORY, together(0.85)], trials, settings=Settings(exact_epochs=5))
    assert (missed.verdict, row(missed).verdict) == (Verdict.BELOW_THRESHOLD,) * 2
    rates = {one.criterion.name: one.candidate.value for one in missed.criteria if one.candidate}
    assert rates["pass rate"] == pytest.approx(28 / 30), "which is above the threshold that pass^3 misses"


def test_sampling_goes_on_until_each_case_has_k_trials() -> None:
    result, trials = follow(SUITE, [TRAJECTORY, together(0.9)], lambda _case, _side: {"trajectory": 1.0})
    assert len(trials) == 3 * len(SUITE)
    assert (result.verdict, estimated(result).value) == (Verdict.PASS, 1.0)
    more = ask(SUITE, [TRAJECTORY, together(0.9)], [trial(case.id, trajectory=1.0) for case in SUITE])
    assert more.why == "asking each case again, to compare its answers"


def test_fewer_trials_than_k_are_no_pass() -> None:
    trials = [trial(case.id, n, round=n, trajectory=1.0) for n in (1, 2) for case in SUITE]
    result = judge(SUITE, [TRAJECTORY, together(0.5)], trials, settings=Settings(exact_epochs=2))
    assert result.verdict is Verdict.ERROR
    assert row(result).verdict is Verdict.NOT_MEASURED


def test_a_failure_of_the_agent_is_a_trial_that_did_not_pass_and_counts_once() -> None:
    trials = [trial(case.id, n, round=n, trajectory=1.0) for n in (1, 2, 3, 4) for case in SUITE]
    trials[0] = failed_trial(SUITE[0].id, 1, round=1)
    settings = Settings(exact_epochs=4, confirm_after=None)
    found = estimated(judge(SUITE, [TRAJECTORY, together(0.5)], trials, settings=settings))
    assert found.value == pytest.approx((5 + 1 / 4) / 6)


def test_pass_k_stands_beside_the_pass_rate_once_cases_were_run_more_than_once() -> None:
    once = [trial(case.id, trajectory=1.0) for case in SUITE]
    twice = [*once, *(trial(case.id, 2, round=2, trajectory=float(index > 0)) for index, case in enumerate(SUITE))]
    stored = [trial(case.id, n, trajectory=1.0) for n in range(1, 6) for case in SUITE]
    alone, both = (
        row(judge(SUITE, [TRAJECTORY], trials, stored, settings=Settings(exact_epochs=n)), "pass rate").dimensions
        for n, trials in ((1, once), (2, twice))
    )
    assert alone == {}
    now, before = both["pass^2"]
    assert now is not None and before is not None
    assert now.value == pytest.approx(5 / 6)
    assert before.value == 1.0
