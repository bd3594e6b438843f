"""Thresholds: when sampling ends, what the mean decides, thresholds of single cases, and what a baseline excuses."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import Settings, exit_code
from gate.decision.comparison import Comparison, Incomparable
from gate.decision.thresholds import chance_of_miss, may_turn, standard_error, suite_threshold
from gate.errors import ExitCode
from gate.model import Case, Criterion, Direction, Scale, Trial, Verdict
from gate.model.finding import Finding, HeldMean
from gate.statistics.intervals import bounded_upper_bound, share_upper_bound

from .records import RESPONSE, TRAJECTORY, cases, findings, follow, judge, lost_trial, once, stored, trial

HALF = replace(RESPONSE, threshold=0.5)
OWN = {"response": 0.9}


def times(suite, n: int, **scores):  # type: ignore[no-untyped-def]
    """``n`` passes of one fixed design."""
    return [trial(case.id, number, **scores) for case in suite for number in range(1, n + 1)]


def comparison(
    suite: list[Case], criterion: Criterion, now: list[Trial], before: list[Trial] | None = None, **options: object
) -> Comparison:
    return Comparison(tuple(suite), (criterion,), tuple(now), tuple(before or ()), Settings(), **options)  # type: ignore[arg-type]


def meaning(found: Finding) -> str:
    """The parts of a finding on a mean."""
    assert found.kind == "mean"
    if found.is_excused:
        return "excused"
    return {Verdict.PASS: "holds", Verdict.BELOW_THRESHOLD: "misses", Verdict.NOT_MEASURED: "unsure"}[found.verdict]


# --- how often an unchanged agent misses it -------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("room", [0.055, 0.005, -0.055])
def test_the_chance_of_a_miss_is_that_of_runs_of_the_same_agent(room: float) -> None:
    """Pairs of runs of one agent: how often the second one misses a threshold so far below what the first one shows."""
    rng, rates, runs = Random(7), [0.5, 0.7, 0.8, 0.9, 0.95] * 6, 2000

    def run() -> list[list[float]]:
        return [[float(rng.random() < rate) for _ in range(3)] for rate in rates]

    told, missed = 0.0, 0
    for _ in range(runs):
        seen = run()
        mean = sum(map(sum, seen)) / 90
        told += chance_of_miss(seen, replace(HALF, threshold=mean - room)) or 0.0
        missed += sum(map(sum, run())) / 90 < mean - room
    assert told / runs == pytest.approx(missed / runs, abs=0.04)


def test_a_threshold_is_close_if_an_unchanged_agent_often_misses_it() -> None:

    def chance(now: list[Trial], criterion: Criterion = HALF) -> float | None:
        found = suite_threshold(comparison(cases(40), criterion, now), criterion)
        assert found is not None
        told: float | None = found["chance"]
        return told

    assert chance(spread(0.51)) is not None
    assert chance(spread(0.6)) is None
    assert chance(spread(0.49)) is None, "that is below it"
    assert chance(once(cases(40), response=0.5)) is None, "nothing varies"
    assert chance(spread(0.51), replace(HALF, blocking=False)) is None, "it decides nothing"


@pytest.mark.parametrize("epochs", [1, 3])
def test_more_epochs_miss_a_threshold_with_room_less_often(epochs: int) -> None:
    groups = [[1.0, 0.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 0.0]] * 5
    chances = [chance_of_miss(groups, replace(HALF, threshold=0.7), n) for n in (epochs, epochs + 2)]
    assert chances[0] is not None and chances[1] is not None and chances[0] > chances[1] > 0


# --- when sampling ends ---------------------------------------------------------------------------


def spread(center: float, step: float = 0.1, n: int = 40) -> list[Trial]:
    """One epoch whose scores lie a step above and below their mean: s² = n / (n − 1) · step²."""
    return [trial(c.id, response=center + (step if k % 2 else -step)) for k, c in enumerate(cases(n))]


@pytest.mark.parametrize(("distance", "turns"), [(0.0, True), (0.0205, True), (0.0225, False), (0.1, False)], ids=str)
@pytest.mark.parametrize("side", [1, -1])
def test_sampling_ends_once_two_more_epochs_turn_the_answer_in_less_than_a_twentieth(
    distance: float, side: int, *, turns: bool
) -> None:
    """√(s² / 40 · 2 / 3) = 0.01307, and 1.645 times that is 0.0215; a narrow hit is sampled on like a narrow miss."""
    criterion = replace(RESPONSE, threshold=0.5)
    made = comparison(cases(40), criterion, spread(0.5 + side * distance))
    assert may_turn(made, criterion, 3) is turns


def test_nothing_turns_without_further_epochs_or_a_demand_on_the_mean() -> None:
    suite, now = cases(40), spread(0.5)
    assert may_turn(comparison(suite, HALF, now), HALF, 2)
    for options, most in (({}, 1), ({"threshold": None}, 3), ({"blocking": False}, 3), ({"hard": True}, 3)):
        criterion = replace(HALF, **options)
        assert not may_turn(comparison(suite, criterion, now), criterion, most), (options, most)
    assert not may_turn(comparison(suite, HALF, []), HALF, 3), "nothing was run"


@pytest.mark.parametrize(
    ("value", "threshold", "turns"), [(0.6, 0.8, True), (0.0, 0.5, True), (0.0, 0.8, False), (1.0, 0.2, False)]
)
def test_a_single_trial_has_the_spread_that_its_scale_allows(value: float, threshold: float, *, turns: bool) -> None:
    """½ · √(2 / 3) = 0.41 on a scale from 0 to 1: 0.67 is beyond what two more epochs turn."""
    criterion = replace(RESPONSE, threshold=threshold)
    assert may_turn(comparison(cases(1), criterion, [trial("case-00", response=value)]), criterion, 3) is turns


@pytest.mark.parametrize(("threshold", "verdict"), [(0.78, Verdict.PASS), (0.82, Verdict.BELOW_THRESHOLD)])
def test_a_close_mean_is_sampled_on_by_whole_epochs(threshold: float, verdict: Verdict) -> None:
    """Of twenty cases four miss in each epoch, others each time: a narrow hit and a narrow miss take as many."""
    suite, asked = cases(20), Counter[str]()

    def agent(case_id: str, _side: object) -> dict[str, float]:
        asked[case_id] += 1
        return {"trajectory": float((int(case_id[-2:]) + asked[case_id]) % 5 > 0)}

    result, _ = follow(suite, [replace(TRAJECTORY, threshold=threshold)], agent)
    assert set(asked.values()) == {3}
    assert result.verdict is verdict


@pytest.mark.parametrize(("value", "verdict"), [(1.0, Verdict.PASS), (0.0, Verdict.BELOW_THRESHOLD)])
def test_a_mean_that_is_far_from_its_threshold_takes_one_epoch(value: float, verdict: Verdict) -> None:
    suite = cases(20)
    result, trials = follow(suite, [HALF], lambda c, _s: {"response": value if c != suite[0].id else 1 - value})
    assert (result.verdict, len(trials)) == (verdict, 20)


def test_a_close_mean_counts_the_epochs_that_are_run_for_later_changes_too() -> None:
    draws = iter([1.0, 0.0] * 100)
    settings = Settings(max_epochs=1, kept_epochs=3)
    close, trials = follow(cases(21), [HALF], lambda _c, _s: {"response": next(draws)}, settings=settings)
    assert len(trials) == 63
    [row] = [row for row in close.criteria if row.criterion.name == "response"]
    assert row.candidate is not None and row.candidate.trials == 63


# --- what the mean decides ------------------------------------------------------------------------


def suites(value: float, n: int = 10, name: str = "old") -> dict[str, float]:
    return {f"{name}-{k}": value for k in range(n)}


def held(now: dict[str, float], before: dict[str, float], criterion: Criterion, **options: object) -> Finding:
    """Return what one trial per case, here and at the base, comes to."""
    suite = [Case(case_id, ()) for case_id in now]
    sides = [[trial(c, response=value) for c, value in side.items()] for side in (now, before)]
    found = suite_threshold(comparison(suite, criterion, *sides, **options), criterion)
    assert found is not None
    return found


HIGH = replace(RESPONSE, threshold=0.8)


def test_the_mean_alone_decides() -> None:
    assert meaning(held(suites(0.8), {}, HIGH)) == "holds"
    found = held(suites(0.79), {}, HIGH)
    assert meaning(found) == "misses"
    assert (found["mean"].value, found["mean"].cases, found["trials"]) == (pytest.approx(0.79), 10, 10)


def test_the_threshold_of_the_first_table_is_missed_without_a_baseline() -> None:
    """0.58 over 24 trials, and 11 of 15: below 0.80, whatever an interval says."""
    for passing, of in ((14, 24), (11, 15)):
        suite = cases(of)
        now = once(suite, {c.id: {"trajectory": 0.0} for c in suite[passing:]}, trajectory=1.0)
        result = judge(suite, [replace(TRAJECTORY, threshold=0.8)], now)
        assert (result.verdict, result.cause) == (
            Verdict.BELOW_THRESHOLD,
            Finding.of("criteria_decide", criteria=("trajectory",)),
        )
        assert exit_code([result], Settings()) is ExitCode.FAILED


def test_added_easy_cases_lift_nothing() -> None:
    easy = suites(1.0, name="easy")
    found = held({**suites(0.7), **easy}, suites(0.9), HIGH)
    assert meaning(found) == "misses"
    assert (found["mean"].value, found["mean"].cases, found["base_cases"]) == (pytest.approx(0.7), 10, True)
    assert meaning(held({**suites(0.7), **easy}, suites(0.75), HIGH)) == "holds", "below before, too"
    assert meaning(held({**suites(0.8), **easy}, suites(0.9), HIGH)) == "holds"


def test_added_hard_cases_lower_the_mean() -> None:
    found = held({**suites(0.9), **suites(0.0, name="hard")}, suites(0.9), HIGH)
    assert meaning(found) == "misses" and not found["base_cases"]
    assert (found["mean"].value, found["mean"].cases) == (pytest.approx(0.45), 20)


def test_a_mean_that_was_below_before_is_excused_on_changes_alone() -> None:
    found = held(suites(0.7), suites(0.75), HIGH)
    assert meaning(found) == "excused"
    assert found["mean"].before == pytest.approx(0.75)
    for options, criterion in (({"excuses": False}, HIGH), ({}, replace(HIGH, ratchet=False))):
        assert meaning(held(suites(0.7), suites(0.75), criterion, **options)) == "misses"
    assert meaning(held(suites(0.7), suites(0.85), HIGH)) == "misses"
    assert meaning(held(suites(0.7), {}, HIGH)) == "misses"


def test_cases_that_the_base_lacks_are_not_excused_by_it() -> None:
    both = {**suites(0.7), **suites(0.6, 2, "new")}
    assert meaning(held(both, suites(0.75), HIGH)) == "misses"
    assert meaning(held({**suites(0.7), **suites(0.9, 2, "new")}, suites(0.75), HIGH)) == "excused"


def test_a_base_that_met_the_threshold_excuses_nothing_however_few_of_its_cases_are_left() -> None:
    """Removed and edited cases count at the base: without one that passed, the others may have missed it."""
    before = {**suites(0.75), **suites(1.0, 4, "passed")}
    left = dict(list(before.items())[:-1])
    assert meaning(held({**left, "old-0": 0.0}, before, HIGH)) == "misses", "removed"
    edited = {"not_comparable": {("passed-3", "response"): Incomparable.EDITED}}
    assert meaning(held({**before, "old-0": 0.0}, before, HIGH, **edited)) == "misses", "edited"
    easy = {**suites(0.75), "passed-0": 0.9, **suites(1.0, 9, "easy")}
    assert meaning(held(easy, before, HIGH)) == "misses", "and added cases lift nothing"


def test_removed_cases_count_in_the_pass_rate_of_the_base() -> None:
    suite, gone = cases(10), Case("gone", ())
    misses = {case.id: {"trajectory": 0.0} for case in suite[:3]}
    before = [replace(t, number=n) for n in range(1, 6) for t in once([*suite, gone], misses, trajectory=1.0)]
    now = once(suite, misses, trajectory=1.0)
    rate = replace(RATE, threshold=0.71)
    assert judge(suite, [TRAJECTORY, rate], now, before).verdict is Verdict.BELOW_THRESHOLD
    assert judge(suite, [TRAJECTORY, replace(rate, threshold=0.75)], now, before).verdict is Verdict.PASS


def test_on_the_default_branch_nothing_excuses_a_mean() -> None:
    suite = cases(10)
    low = {c.id: {"response": 0.0} for c in suite[:3]}
    before = [replace(t, number=n) for n in range(1, 6) for t in once(suite, low, response=1.0)]
    now = once(suite, low, response=1.0)
    assert judge(suite, [HIGH], now, before).verdict is Verdict.PASS
    result = judge(suite, [HIGH], now, before, excuses=False)
    assert (result.verdict, result.below) == (Verdict.BELOW_THRESHOLD, ("response",))


@pytest.mark.parametrize(("lost", "verdict"), [(1, Verdict.BELOW_THRESHOLD), (6, Verdict.ERROR)])
def test_a_miss_counts_if_it_stays_one_with_every_lost_trial_as_a_hit(lost: int, verdict: Verdict) -> None:
    """0.75 over the rest; with the lost one of 40 as a hit 0.756, with six of them 0.7875."""
    suite = cases(20)
    now = [
        lost_trial(c.id, n) if n == 2 and k < lost else trial(c.id, n, response=0.5 + 0.5 * (k % 2))
        for k, c in enumerate(suite)
        for n in (1, 2)
    ]
    criterion = replace(RESPONSE, threshold=0.78)
    settings = Settings(exact_epochs=2, max_error_rate=0.5)
    result = judge(suite, [criterion], now, settings=settings)
    assert result.verdict is verdict
    [found] = findings(result, "response")
    if verdict is Verdict.ERROR:
        assert meaning(found) == "unsure" and found["lost"] == 6
        assert result.cause == Finding.of("criteria_decide", Verdict.ERROR, criteria=("response",))
    else:
        assert meaning(found) == "misses"


def typical_suite(rng: Random, cases_of_it: int) -> list[float]:
    """Rates of a suite of which most cases are steady, some vary, and a few never pass."""
    steady, almost, varied = (round(cases_of_it * share) for share in (0.45, 0.25, 0.25))
    rates = [1.0] * steady
    rates += [rng.uniform(0.97, 0.995) for _ in range(almost)]
    rates += [rng.uniform(0.5, 0.95) for _ in range(varied)]
    return rates + [0.0] * (cases_of_it - len(rates))


@pytest.mark.slow
def test_an_unchanged_agent_five_points_above_its_threshold_seldom_misses_it() -> None:
    """Thirty cases: .025 over three epochs, .121 if one epoch decided. Whoever is far off after one is not run on."""
    rng, missed, runs = Random(5), 0, 400
    suite = cases(30)
    for _ in range(runs):
        rates = dict(zip((case.id for case in suite), typical_suite(rng, 30), strict=True))
        criterion = replace(TRAJECTORY, threshold=sum(rates.values()) / 30 - 0.05)

        def agent(case_id: str, _side: object, rates: dict[str, float] = rates) -> dict[str, float]:
            return {"trajectory": float(rng.random() < rates[case_id])}

        missed += follow(suite, [criterion], agent)[0].verdict is Verdict.BELOW_THRESHOLD
    assert 0.005 * runs <= missed <= 0.045 * runs


@pytest.mark.parametrize(("rest", "verdict"), [(2, Verdict.ERROR), (1, Verdict.BELOW_THRESHOLD)])
def test_cases_that_were_not_run_may_still_hold_the_threshold(rest: int, verdict: Verdict) -> None:
    suite = cases(2 + rest)
    result = judge(suite, [HALF], once(suite[:2], {}, response=0.0), stopped="the budget is spent")
    assert result.verdict is verdict


# --- of single cases ------------------------------------------------------------------------------


def own_case(*others: Case) -> list[Case]:
    return [Case("own", (), thresholds=OWN), *others]


@pytest.mark.parametrize("criterion", [RESPONSE, HALF])
def test_a_case_that_never_reaches_its_own_threshold_fails_the_suite(criterion: Criterion) -> None:
    result, trials = follow(own_case(*cases(9)), [criterion], lambda c, _s: {"response": float(c != "own")})
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert len(trials) == 30


def test_a_new_case_is_held_to_its_own_threshold_beside_a_steady_baseline() -> None:
    suite = [*cases(12), Case("new", (), thresholds=OWN)]
    result, _ = follow(suite, [HALF], lambda c, _s: {"response": float(c != "new")}, stored(cases(12), response=1.0))
    assert (result.verdict, result.cause) == (
        Verdict.BELOW_THRESHOLD,
        Finding.of("criteria_decide", criteria=("response",)),
    )


@pytest.mark.parametrize(
    ("values", "misses"),
    [
        ([0.0], False),
        ([0.8, 0.8], False),
        ([0.8, 0.8, 0.8], True),
        ([0.8, 0.8, 1.0], False),
        ([0.0] * 7 + [1.0], True),
        ([0.0] + [1.0] * 2, False),
        ([0.9] * 3, False),
    ],
)
def test_an_own_threshold_is_missed_beyond_chance_or_in_each_of_three_trials(
    values: list[float], *, misses: bool
) -> None:
    suite = own_case(*cases(3))
    trials = [trial("own", n, response=value) for n, value in enumerate(values, 1)]
    trials += times(suite[1:], len(values), response=1.0)
    result = judge(suite, [HALF], trials, settings=Settings(exact_epochs=len(values)))
    found = findings(result, "response")
    if misses:
        assert (result.verdict, result.below) == (Verdict.BELOW_THRESHOLD, ("response",))
        assert found[0].verdict is Verdict.BELOW_THRESHOLD
        assert (found[0]["missed"].case_id, found[0]["trials"], found[0]["more"]) == ("own", len(values), 0)
    else:
        assert result.verdict is Verdict.PASS
        assert Finding.of("own_thresholds", cases=1, short=int(min(values) < OWN["response"])) in found


def test_a_case_with_a_threshold_of_its_own_stands_outside_the_mean() -> None:
    suite = [*cases(8), *(Case(f"low-{n}", (), thresholds={"response": 0.4}) for n in (1, 2))]
    now = once(suite, {"low-1": {"response": 0.5}, "low-2": {"response": 0.5}}, response=0.9)
    result = judge(suite, [replace(RESPONSE, threshold=0.85)], now)
    assert result.verdict is Verdict.PASS, "0.82 over all ten"
    assert findings(result, "response") == [
        Finding.of("mean", mean=HeldMean(pytest.approx(0.9), 0.85, 8)),
        Finding.of("own_thresholds", cases=2),
    ]
    raised = [*cases(2), *(Case(f"low-{n}", (), thresholds={"response": 0.4}) for n in (1, 2))]
    lifted = judge(raised, [HALF], once(raised, {c.id: {"response": 0.4} for c in raised[:2]}, response=1.0))
    assert lifted.verdict is Verdict.BELOW_THRESHOLD, "cases with their own lift nothing either"


def test_if_all_cases_have_their_own_the_mean_of_the_suite_is_idle() -> None:
    suite = cases(40, thresholds={"response": 0.3})
    result = judge(suite, [HIGH], times(suite, 3, response=0.5), settings=Settings(exact_epochs=3))
    assert (result.verdict, exit_code([result], Settings())) == (Verdict.PASS, ExitCode.PASS)
    assert findings(result, "response") == [Finding.of("own_thresholds", cases=40)]


def test_an_own_threshold_that_its_case_missed_before_is_excused_and_no_other_case_excuses_it() -> None:
    suite = [Case("own", (), thresholds=OWN), *cases(9)]
    now = times(suite[:1], 3, response=0.0) + times(suite[1:], 3, response=1.0)
    missed = stored(suite[:1], response=0.0) + stored(suite[1:], response=1.0)
    three = Settings(exact_epochs=3)
    excused = judge(suite, [HALF], now, missed, settings=three)
    assert excused.verdict is Verdict.PASS
    assert Finding.of("own_thresholds", cases=1, excused=1) in findings(excused, "response")
    not_here = judge(suite, [HALF], now, missed, settings=three, excuses=False)
    assert (not_here.verdict, not_here.below) == (Verdict.BELOW_THRESHOLD, ("response",))
    both = [replace(suite[0], id="other"), *suite]
    trials = times(both[:1], 3, response=0.0) + times(suite[:1], 3, response=0.0) + times(suite[1:], 3, response=1.0)
    result = judge(both, [RESPONSE], trials, missed, settings=three)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    [found] = findings(result, "response")
    assert (found["missed"].case_id, found["more"]) == ("other", 0)


@pytest.mark.slow
def test_own_thresholds_share_the_error_of_thresholds() -> None:
    """Twenty agents on their own thresholds, so high that none misses it in each of three trials by chance."""
    rng = Random(5)
    suite = cases(20, thresholds={"trajectory": 0.95})
    wrong = 0
    for _ in range(30):
        before = [trial(c.id, n, trajectory=float(rng.random() < 0.95)) for c in suite for n in range(1, 6)]
        result, _ = follow(suite, [TRAJECTORY], lambda _c, _s: {"trajectory": float(rng.random() < 0.95)}, before)
        wrong += result.verdict is Verdict.BELOW_THRESHOLD
    assert wrong <= 1


# --- the bound ------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.floats(0, 1), st.sampled_from([0.05, 0.005, 1e-5]))
def test_chernoffs_bound_is_above_the_mean_and_no_tighter_than_the_exact_one(n: int, p: float, error: float) -> None:
    ones = round(p * n)
    bound = bounded_upper_bound(ones / n, n, error)
    assert share_upper_bound(ones, n, error) - 1e-9 <= bound <= 1
    assert bounded_upper_bound(0.0, n, error) == pytest.approx(1 - error ** (1 / n))


def test_the_mean_decides_on_other_scales_and_in_the_other_direction() -> None:
    likert = Criterion("tone", "tone", Scale.LIKERT, threshold=4.0)
    lower = Criterion("harm", "harm", Scale.UNIT, Direction.LOWER, threshold=0.2)
    for criterion, good, bad in ((likert, 4.0, 3.9), (lower, 0.2, 0.21)):
        for value, verdict in ((good, Verdict.PASS), (bad, Verdict.BELOW_THRESHOLD)):
            easy = 5.0 if criterion is likert else 0.0
            now = [trial("case-00", **{criterion.name: easy}), trial("case-01", **{criterion.name: 2 * value - easy})]
            assert judge(cases(2), [criterion], now).verdict is verdict, (criterion.name, value)


# --- what a baseline excuses ----------------------------------------------------------------------


def test_a_baseline_excuses_its_own_cases_alone() -> None:
    suite = cases(12)
    edited = {(c.id, "response"): Incomparable.EDITED for c in suite[1:]}
    before = stored(suite[:1], response=0.0) + stored(suite[1:], response=1.0)
    result = judge(suite, [HALF], once(suite, response=0.0), before, not_comparable=edited)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert meaning(findings(result, "response")[0]) == "misses"
    fine = judge(suite, [HALF], once(suite[:1], response=0.0) + once(suite[1:], response=0.6), before)
    assert fine.verdict is not Verdict.BELOW_THRESHOLD


def test_new_cases_at_zero_miss_a_threshold_of_one_beside_a_baseline_that_held() -> None:
    suite = [*cases(12), Case("new", ())]
    criterion = replace(TRAJECTORY, threshold=1.0)
    now = once(suite, {"new": {"trajectory": 0.0}}, trajectory=1.0)
    assert judge(suite, [criterion], now, stored(cases(12), trajectory=1.0)).verdict is Verdict.BELOW_THRESHOLD


# --- of the pass rate -----------------------------------------------------------------------------

RATE = Criterion("pass_rate", "pass_rate", Scale.BINARY, threshold=0.85, blocks_regression=False)
RATED = [TRAJECTORY, RATE]


def test_a_limit_on_the_pass_rate_is_judged_as_the_threshold_of_metric_0() -> None:
    suite = cases(10)
    half = {case.id: {"trajectory": 0.5} for case in suite[:5]}
    result = judge(suite, RATED, once(suite, half, trajectory=1.0), settings=Settings(exact_epochs=1))
    assert [(r.criterion.name, r.criterion.threshold) for r in result.criteria] == [
        ("pass rate", 0.85),
        ("trajectory", None),
    ]
    assert (result.verdict, result.cause) == (
        Verdict.BELOW_THRESHOLD,
        Finding.of("criteria_decide", criteria=("pass rate",)),
    )
    [found] = findings(result, "pass rate")
    assert meaning(found) == "misses"
    assert found["mean"] == HeldMean(0.5, 0.85, 10)
    assert judge(suite, RATED, once(suite, trajectory=1.0)).verdict is Verdict.PASS


def test_a_pass_rate_that_the_baseline_missed_too_is_excused_and_a_drop_blocks_as_ever() -> None:
    suite = cases(20)
    half = {case.id: {"trajectory": 0.0} for case in suite[:10]}
    before = [replace(t, number=n) for n in range(1, 6) for t in once(suite, half, trajectory=1.0)]
    same, _ = follow(suite, RATED, lambda c, _s: {"trajectory": float(c not in half)}, before)
    assert same.verdict is Verdict.PASS
    assert any(found.kind == "mean" and found.is_excused for found in findings(same, "pass rate"))
    dropped, _ = follow(suite, RATED, lambda _c, _s: {"trajectory": 0.0}, before)
    assert dropped.verdict is Verdict.REGRESSED


def test_where_a_trial_may_pass_or_not_its_pass_rate_is_not_measured() -> None:
    suite = cases(3)
    result = judge(suite, RATED, once(suite, {"case-00": {"trajectory": "judge down"}}, trajectory=1.0))
    assert result.criteria[0].verdict is Verdict.NOT_MEASURED
    assert result.criteria[0].findings[0].kind == "trials_lost"


def test_a_pass_rate_that_only_reports_stands_beside_metric_0() -> None:
    suite = cases(10)
    result = judge(
        suite,
        [TRAJECTORY, replace(RATE, blocking=False)],
        once(suite, {suite[0].id: {"trajectory": 1.0}}, trajectory=0.0),
    )
    assert [r.criterion.name for r in result.criteria] == ["pass rate", "trajectory", "pass_rate"]
    assert result.criteria[0].criterion.threshold is None
    assert result.criteria[2].verdict is Verdict.BELOW_THRESHOLD
    assert result.verdict is not Verdict.BELOW_THRESHOLD


def test_the_spread_of_a_suite_does_not_follow_the_cases_that_ran_more_often() -> None:
    """Eight of twenty cases vary with a variance of 0.3; the others never do: 0.12 on average, in 64 trials."""
    found = standard_error([[1.0, 0.0, 1.0, 1.0, 0.0]] * 8 + [[1.0, 1.0]] * 12)
    assert found == pytest.approx((0.12 / 64) ** 0.5)
