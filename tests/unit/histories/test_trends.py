"""A suite over time: what moved and since when, where it goes, and what is not compared."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from gate.decision.outcomes import PASS_RATE
from gate.histories.runs import COST, DURATION
from gate.histories.trends import PastRun, Series, SuiteHistory, suite_history
from gate.model import Criterion, Direction, Scale

from .drawn import QUALITY, drawn_run, drawn_runs

IDS = [f"case-{n:02d}" for n in range(40)]


def whole(suite: SuiteHistory, name: str) -> Series:
    return next(one for one in suite.whole if one.name == name)


def test_every_criterion_has_average_ends_spread_and_interval_by_run() -> None:
    suite = suite_history("s", drawn_runs(6, lambda _: 0.8))
    assert [one.name for one in suite.whole] == [PASS_RATE, "quality", COST, DURATION, "tokens of a trial"]
    quality = whole(suite, "quality")
    assert quality.summary.lowest <= quality.summary.average <= quality.summary.highest
    assert quality.summary.spread is not None and quality.summary.spread > 0
    point = quality.newest
    assert (point.least, point.most) == (0.1, 0.9)
    assert (point.estimate.n, point.estimate.trials) == (40, 120)
    assert point.estimate.low < point.estimate.value < point.estimate.high
    assert point.estimate.sd == pytest.approx(0.32, abs=0.05)


def test_tags_part_the_suite() -> None:
    suite = suite_history("s", drawn_runs(4, lambda _: 0.8))
    assert {one.tag for one in suite.by_tag(PASS_RATE)} == {"order", "refund"}
    refund = next(one for one in suite.by_tag(PASS_RATE) if one.tag == "refund")
    assert refund.newest.estimate.n == 14


def test_a_move_names_the_commit_after_which_it_was() -> None:
    suite = suite_history("s", drawn_runs(16, lambda run: 0.95 if run < 9 else 0.7))
    (move,) = whole(suite, PASS_RATE).moves
    assert suite.runs[move.run].commit == suite.runs[9].commit
    assert move.first <= 9 <= move.last
    assert move.change == pytest.approx(-0.25, abs=0.06)
    assert not move.same_agent


def test_a_move_under_the_same_agent_says_so() -> None:
    suite = suite_history("s", drawn_runs(16, lambda run: 0.95 if run < 9 else 0.7, agent="one"))
    assert [move.same_agent for move in whole(suite, PASS_RATE).moves] == [True]


def test_what_moved_by_tag_is_found_though_the_suite_hides_it() -> None:
    runs = [
        drawn_run(n, lambda case, n=n: 0.3 if n >= 8 and int(case[-2:]) % 3 == 0 else 0.9, ids=IDS)  # type: ignore[misc]
        for n in range(16)
    ]
    suite = suite_history("s", runs)
    refund = next(one for one in suite.by_tag(PASS_RATE) if one.tag == "refund")
    order = next(one for one in suite.by_tag(PASS_RATE) if one.tag == "order")
    assert [move.run for move in refund.moves] == [8]
    assert order.moves == ()


# --- trends ---------------------------------------------------------------------------------------


def declining(runs: int = 16, slope: float = 0.012, **options: object) -> SuiteHistory:
    return suite_history("s", drawn_runs(runs, lambda run: 0.97 - slope * run, cases=120, **options))


def test_a_decline_has_a_slope_a_run_and_a_week_with_intervals() -> None:
    going = whole(declining(), PASS_RATE).going
    assert going is not None and going.found and going.by_week is not None
    assert going.by_run.low <= -0.012 <= going.by_run.high < 0
    assert going.by_week.low <= -0.012 * 7 <= going.by_week.high < 0


def test_an_early_warning_comes_before_the_threshold_is_crossed() -> None:
    series = whole(declining(), "quality")  # quality = .1 + .8 · rate, so that .5 is at a rate of .5
    assert series.going is not None and series.going.found
    assert series.ahead is None, "runs in which it would be crossed are further off than there is evidence for"
    near = replace(QUALITY, threshold=0.68)  # at a rate of .725, which is that of run 20.4
    ahead = whole(declining(criteria=(near,)), "quality").ahead
    assert ahead is not None
    assert ahead.first <= 6 <= ahead.last <= 12  # 15 is the newest


@pytest.mark.parametrize(
    ("slope", "threshold", "direction"),
    [
        (-0.012, 0.68, Direction.HIGHER),  # it gets better
        (0.012, 0.8, Direction.HIGHER),  # it is below already
        (0.012, 0.68, Direction.LOWER),  # falling is good
        (0.0, 0.85, Direction.HIGHER),  # nothing happens
    ],
)
def test_no_early_warning_without_a_reason(slope: float, threshold: float, direction: Direction) -> None:
    start = 0.6 if slope < 0 else 0.97
    criterion = replace(QUALITY, threshold=threshold, direction=direction)
    runs = drawn_runs(16, lambda run: start - slope * run, cases=120, criteria=(criterion,))
    assert whole(suite_history("s", runs), "quality").ahead is None


def test_few_runs_have_no_trend() -> None:
    suite = suite_history("s", drawn_runs(7, lambda run: 0.97 - 0.05 * run))
    assert whole(suite, PASS_RATE).going is None


@pytest.mark.parametrize("seeds", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_flat_histories_are_seldom_warned_of(seeds: int) -> None:
    said = 0
    for seed in range(seeds):
        criterion = replace(QUALITY, threshold=0.75)
        suite = suite_history("s", drawn_runs(12, lambda _: 0.85, cases=20, criteria=(criterion,), seed=seed))
        said += any(one.ahead is not None for one in suite.series)
    assert said <= 1


# --- what is not compared -------------------------------------------------------------------------


def test_a_criterion_measured_in_another_way_begins_a_new_stretch() -> None:
    other = replace(QUALITY, fingerprint="q2")
    before, after = drawn_runs(8, lambda _: 0.95), drawn_runs(16, lambda _: 0.5, criteria=(other,))[8:]
    suite = suite_history("s", [*before, *after])
    for name in (PASS_RATE, "quality"):
        series = whole(suite, name)
        assert [(one.start, one.changed) for one in series.stretches] == [(0, ()), (8, ("quality",))]
        assert series.moves == ()
        assert series.summary.runs == 8
        assert series.summary.highest < 0.7
    assert whole(suite, COST).stretches[-1].start == 0


def test_another_model_under_the_judges_name_begins_a_new_stretch() -> None:
    """The agent did not move, and neither did its provider."""

    def judged(runs: list[PastRun], name: str) -> list[PastRun]:
        models = {"quality": {("judge", name)}}
        return [replace(run, values=replace(run.values, models=models)) for run in runs]

    before = judged(drawn_runs(8, lambda _: 0.95), "judge-1")
    after = judged(drawn_runs(16, lambda _: 0.5)[8:], "judge-2")
    suite = suite_history("s", [*before, *after])
    for name in (PASS_RATE, "quality"):
        series = whole(suite, name)
        assert [(one.start, one.changed) for one in series.stretches] == [(0, ()), (8, ("quality",))]
        assert series.moves == ()


def test_edited_cases_are_other_cases() -> None:
    before = drawn_runs(8, lambda _: 0.95, content="old")
    after = drawn_runs(16, lambda _: 0.5, content="new")[8:]
    suite = suite_history("s", [*before, *after])
    assert [(one.start, one.changed) for one in whole(suite, PASS_RATE).stretches] == [(0, ()), (8, ())]
    assert suite.cases[0].by_record[:8] == ((0, 0),) * 8


def test_a_run_of_the_hard_cases_alone_moves_nothing() -> None:
    def rate(case: str) -> float:
        return 0.4 if int(case[-2:]) < 10 else 0.98

    runs = [drawn_run(n, rate, ids=IDS[:10] if n > 9 else IDS) for n in range(16)]
    series = whole(suite_history("s", runs), PASS_RATE)
    assert series.moves == ()
    assert series.points[-1].estimate.value < 0.6


def test_a_run_counts_once_wherever_it_lies() -> None:
    runs = drawn_runs(5, lambda _: 0.9)
    assert len(suite_history("s", [*runs, *reversed(runs)]).runs) == 5


def test_versions_unite_the_runs_of_an_agent() -> None:
    runs = [*drawn_runs(4, lambda _: 0.9, agent="one"), *drawn_runs(8, lambda _: 0.6, agent="two")[4:]]
    one, two = suite_history("s", runs).versions
    assert (one.agent, one.runs, two.runs) == ("one", (0, 1, 2, 3), (4, 5, 6, 7))
    rate = {value.name: value.estimate for value in one.values}[PASS_RATE]
    assert rate.trials == 480
    assert rate.value == pytest.approx(0.9, abs=0.05)


def test_without_a_fingerprint_a_commit_is_a_version() -> None:
    runs: list[PastRun] = [replace(run, agent="") for run in drawn_runs(3, lambda _: 0.9)]
    assert len(suite_history("s", runs).versions) == 3


def test_cost_is_not_followed_twice() -> None:
    cost = Criterion("cost", "cost", Scale.USD, Direction.LOWER)
    names = {one.name for one in suite_history("s", drawn_runs(3, lambda _: 0.9, criteria=(QUALITY, cost))).series}
    assert "cost" in names and COST not in names


@pytest.mark.parametrize("order", [1, -1])
def test_a_run_is_of_the_commit_that_measured_it(order: int) -> None:
    """The record of a later commit with the same agent repeats the run."""
    first, *_ = drawn_runs(1, lambda _: 0.9)
    again = replace(first, commit="b" * 40, subject="Revert it", recorded=first.created + 60)
    copies = [replace(first, recorded=first.created, verdict="pass"), again][::order]
    (run,) = suite_history("s", copies).runs
    assert (run.commit, run.subject, run.verdict) == (first.commit, first.subject, "pass")
