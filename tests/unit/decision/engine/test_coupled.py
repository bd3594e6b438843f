"""Coupled trials in the rule: what may change labels, what a pair says, and what is asked for next."""

from __future__ import annotations

from random import Random

import pytest

from gate.decision.engine.coupled import compared, paired_difference
from gate.decision.engine.evidence import gather
from gate.decision.engine.rule import decide
from gate.decision.engine.state import CONCURRENT, Config, Metric, More, Partner, Round, State
from gate.model import CONFIRM, FULL, Outcome, Side

PASSED, FAILED = [1.0], [0.0]
METRIC = (Metric("pass rate", "binary"),)


def suite(
    stored: dict[str, list[list[float]]],
    now: dict[str, list[list[float]]],
    links: dict[str, list[Partner | None]] | None = None,
    config: Config | None = None,
) -> State:
    round_ = Round(FULL, Side.CANDIDATE, now, links or {})
    return State(METRIC, stored, (round_,), config or Config(), seed=3)


def replayed(cases: int, rate: float = 0.7, seed: int = 1) -> State:
    """Every case answered wholly from its first recording, with the outcome that was stored."""
    rng = Random(seed)
    stored = {f"c{i:03d}": [[float(rng.random() < rate)] for _ in range(5)] for i in range(cases)}
    now = {case: [rows[0]] for case, rows in stored.items()}
    return suite(stored, now, {case: [Partner(0, whole=True)] for case in stored})


def test_a_suite_that_met_the_same_world_passes_at_once_however_flaky_its_cases_are() -> None:
    step = decide(replayed(100))
    assert isinstance(step, Outcome)
    assert step.verdict == "PASS"
    evidence = gather(replayed(100))
    assert evidence.looks[0].p == 1
    assert evidence.bounds[0].change == 0


def test_without_the_pairs_the_same_trials_are_noise_that_takes_more_of_them() -> None:
    state = replayed(100)
    bare = suite(dict(state.baseline), dict(state.rounds[0].trials))
    assert isinstance(decide(bare), More)
    assert gather(bare).bounds[0].low < gather(state).bounds[0].low


def test_what_was_replayed_is_never_proof_that_nothing_can_change() -> None:
    """One epoch without a difference leaves a change that is too rare to show in it."""
    found = gather(replayed(100)).bounds[0]
    assert found.low < -0.005
    assert found.excluded < -0.02


def test_a_pair_changes_labels_within_itself_alone() -> None:
    before = [PASSED, FAILED, PASSED]
    found = compared([FAILED, PASSED], [Partner(1), None], 0, before)
    assert found.links == [(0, 1)]
    assert (found.now, found.before, found.held) == ([FAILED, PASSED], before, [])


def test_a_pair_that_a_look_has_seen_keeps_its_labels() -> None:
    before = [PASSED, FAILED, PASSED]
    found = compared([FAILED, PASSED], [Partner(0), Partner(2)], 1, before)
    assert found.held == [FAILED, PASSED]
    assert (found.now, found.before, found.links) == ([PASSED], [FAILED, PASSED], [(0, 1)])


def test_a_trial_whose_partner_was_relabelled_freely_enters_no_second_look() -> None:
    found = compared([FAILED, PASSED], [None, Partner(0)], 1, [PASSED, PASSED])
    assert found.now == []


def test_a_change_of_every_second_pair_is_found_by_its_direction() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(60)}
    worse = {case: [FAILED if i % 4 == 0 else PASSED] for i, case in enumerate(stored)}
    links: dict[str, list[Partner | None]] = {case: [Partner(0, whole=True)] for case in stored}
    step = decide(suite(stored, worse, links, Config(can_run=False)))
    assert isinstance(step, Outcome)
    assert step.verdict == "REGRESSION"


def test_a_recorded_failure_that_is_met_again_is_not_suspicious() -> None:
    stored = {f"c{i:03d}": [FAILED if i < 5 else PASSED, *[PASSED] * 4] for i in range(100)}
    now = {case: [rows[0]] for case, rows in stored.items()}
    whole: dict[str, list[Partner | None]] = {case: [Partner(0, whole=True)] for case in stored}
    evidence = gather(suite(stored, now, whole))
    assert not any(case.newest_failed for case in evidence.cases.values())
    evidence = gather(suite(stored, now, {case: [Partner(0)] for case in stored}))
    assert sum(case.newest_failed for case in evidence.cases.values()) == 5


def test_a_case_that_fails_where_its_recording_passed_is_rerun_and_proven() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(100)}
    now = {case: [FAILED if case == "c000" else PASSED] for case in stored}
    links: dict[str, list[Partner | None]] = {case: [Partner(0, whole=True)] for case in stored}
    state = suite(stored, now, links)
    world = 1
    while isinstance(step := decide(state), More):
        (request,) = step.requests
        assert request.tag == CONFIRM
        assert request.cases == ("c000",)
        more = [Partner(world + i, whole=True) if world + i < 5 else None for i in range(request.n)]
        world += request.n
        round_ = Round(CONFIRM, Side.CANDIDATE, {"c000": [FAILED] * request.n}, {"c000": more})
        state = State(METRIC, state.baseline, (*state.rounds, round_), state.config, seed=3)
    assert (step.verdict, step.cases) == ("REGRESSION", ("c000",))


@pytest.mark.parametrize(("recorded", "needed"), [(True, 17), (False, 21)])
def test_where_the_baseline_was_recorded_the_cases_that_pass_say_nothing_against_a_break(
    *, recorded: bool, needed: int
) -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(100)}
    rest = {f"c{i:03d}": [PASSED] for i in range(1, 100)}
    for failures in (needed - 1, needed):
        first = Round(FULL, Side.CANDIDATE, {"c000": [FAILED], **rest})
        more = Round(CONFIRM, Side.CANDIDATE, {"c000": [FAILED] * (failures - 1)})
        evidence = gather(State(METRIC, stored, (first, more), Config(), seed=3, recorded=recorded))
        assert (evidence.proof is not None) == (failures == needed)


def test_a_case_that_met_every_recorded_world_is_not_run_once_more() -> None:
    stored = {f"c{i:03d}": [PASSED] for i in range(30)}
    now = {case: [FAILED if i < 2 else PASSED] for i, case in enumerate(stored)}
    links: dict[str, list[Partner | None]] = {c: [Partner(0, whole=True)] for i, c in enumerate(stored) if i >= 15}
    step = decide(suite(stored, now, links))
    assert isinstance(step, More)
    fresh = [request for request in step.requests if request.tag == FULL]
    assert all(request.cases == tuple(list(stored)[:15]) for request in fresh)


def test_drift_is_looked_for_where_something_went_live_alone() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(60)}
    worse = {case: [FAILED] if 20 <= i < 50 else [PASSED] for i, case in enumerate(stored)}
    links: dict[str, list[Partner | None]] = {c: [Partner(0, whole=True)] for i, c in enumerate(stored) if i < 20}
    state = suite(stored, worse, links, Config(rerun="match"))
    step = decide(state)
    assert isinstance(step, More)
    assert {request.tag for request in step.requests} == {CONCURRENT}
    asked = {case for request in step.requests for case in request.cases}
    assert asked
    assert asked <= set(list(stored)[20:])


def test_no_drift_is_looked_for_where_nothing_went_live() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(60)}
    worse = {case: [FAILED] if i < 30 else [PASSED] for i, case in enumerate(stored)}
    links: dict[str, list[Partner | None]] = {case: [Partner(0, whole=True)] for case in stored}
    for rerun in ("match", "never"):
        step = decide(suite(stored, worse, links, Config(rerun=rerun, can_run=rerun == "match")))  # type: ignore[arg-type]
        assert isinstance(step, Outcome)
        assert step.verdict == "REGRESSION"
        assert not step.stage.drift_open


def test_drift_stays_another_explanation_where_something_went_live() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(60)}
    worse = {case: [FAILED] if i < 30 else [PASSED] for i, case in enumerate(stored)}
    step = decide(suite(stored, worse, {case: [Partner(0)] for case in stored}, Config(can_run=False)))
    assert isinstance(step, Outcome)
    assert not step.stage.replayed


@pytest.mark.parametrize(
    ("links", "change", "inverse"),
    [
        ([None, None], 0.5 - 2 / 3, 1 / 2 + 1 / 3),
        ([Partner(0, whole=True), Partner(1, whole=True)], 0.0, 1 / 2),
        ([Partner(0), Partner(1)], 0.0, 1.0),
        ([Partner(0, whole=True), None], -1 / 3, 2 / 4 + 1 / 4 / 3),
    ],
)
def test_a_coupled_trial_is_compared_with_its_partner(
    links: list[Partner | None], change: float, inverse: float
) -> None:
    found = paired_difference([PASSED, FAILED], links, [PASSED, FAILED, PASSED], 0)
    assert found == pytest.approx((change, inverse))


def test_a_pair_that_broke_is_rerun_as_soon_as_a_trial_of_its_own_would_be() -> None:
    stored = {f"c{i:03d}": [PASSED] * 5 for i in range(100)}
    stored["c000"] = [PASSED, FAILED, PASSED, PASSED, PASSED]
    now = {case: [FAILED if case == "c000" else PASSED] for case in stored}
    step = decide(suite(stored, now, {case: [Partner(0)] for case in stored}))
    assert isinstance(step, More)
    assert {(request.tag, request.cases) for request in step.requests} == {(CONFIRM, ("c000",))}
