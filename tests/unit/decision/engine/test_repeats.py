"""Cases that failed once and are asked again together: which, when not, and what their test may block."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from gate.decision.engine.drift import REPEATED_LEVEL, repeats_confirmed
from gate.decision.engine.evidence import gather
from gate.decision.engine.repeats import LEAST_CASES, REPEATS, REPEATS_SHARES, AskedAgain
from gate.decision.engine.rule import decide
from gate.decision.engine.state import Config, More, Partner, Round, State
from gate.model import Outcome, Side, Stage, StageKind
from tests.unit.decision.numbers import confirm, full, ids, rows, state

STEADY = {c: rows(1, 1, 1, 1, 1) for c in ids(60)}
SIX = tuple(ids(6))
"""Few enough that the look at the whole suite proves nothing, and enough to be asked again."""
SCREENED = full({c: rows(0 if c in SIX else 1) for c in STEADY})
FLAKY = {c: rows(1, 1, 1, 1, 0) if int(c[1:]) % 6 == 1 else rows(1, 1, 1, 1, 1) for c in ids(60)}


def wanted(known: State) -> tuple[str, ...]:
    step = decide(known)
    assert isinstance(step, More), step
    return step.requests[0].cases


def test_all_cases_that_failed_are_asked_whether_they_pass_or_not() -> None:
    known = state(FLAKY, SCREENED)
    assert set(wanted(known)) >= set(SIX)
    mixed = confirm({c: rows(0 if c in SIX[:3] else 1) for c in wanted(known)})
    assert set(wanted(state(FLAKY, SCREENED, mixed))) >= set(SIX), "the test is of all that were picked"


def test_failures_that_come_again_in_many_cases_are_a_regression() -> None:
    rounds = [confirm({c: rows(*[i % 2] * n) for i, c in enumerate(SIX)}) for n in REPEATS[:1]]
    rounds += [confirm({c: rows(*([0, 1] * n)[:n]) for c in SIX}) for n in REPEATS[1:]]
    evidence = gather(state(FLAKY, SCREENED, *rounds))
    (test,) = evidence.repeats.tests
    assert (test.cases, test.passed, test.trials, test.baseline_passed, test.baseline_trials) == (6, 27, 60, 29, 30)
    assert test.threshold == pytest.approx(REPEATS_SHARES[0] * 0.02)
    assert test.blocks
    assert evidence.proof is not None
    assert evidence.proof.kind is StageKind.REPEATS


def test_where_hardly_any_fails_again_nobody_is_asked_further() -> None:
    once = confirm({c: rows(0 if c == SIX[0] else 1) for c in SIX})
    repeats = gather(state(FLAKY, SCREENED, once)).repeats
    assert (repeats.over, repeats.newest, repeats.tests) == (True, (), [])


def test_cases_that_fail_each_time_are_left_to_their_own_evidence() -> None:
    """Two that broke, and four that had bad luck once: asking those on would cost runs, and tell nothing."""
    once = confirm({c: rows(0 if c in SIX[:2] else 1) for c in SIX})
    twice = confirm({c: rows(*[0 if c in SIX[:2] else 1] * 2) for c in SIX})
    repeats = gather(state(FLAKY, SCREENED, once, twice)).repeats
    assert (repeats.over, repeats.newest, repeats.tests) == (True, (), [])


def test_a_round_that_leaves_one_out_ends_it() -> None:
    """What an earlier version, or a budget, did not ask: then outcomes may have decided who is tested."""
    some = confirm({c: rows(0) for c in SIX[1:]})
    assert gather(state(FLAKY, SCREENED, some)).repeats.over


def test_cases_that_share_a_fixture_are_not_tested_as_if_they_were_free() -> None:
    known = state(FLAKY, SCREENED)
    shared = State(known.metrics, known.baseline, known.rounds, known.config, 7, dict.fromkeys(SIX, "account"))
    assert not gather(shared).repeats.newest
    assert gather(known).repeats.newest == SIX


def failing(n: int, passed: int = 5, before: int = 5) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(ids(n), (passed, before))


def test_few_cases_thin_baselines_and_flaky_cases_are_left_to_themselves() -> None:
    for found in (failing(LEAST_CASES - 1), failing(9, 2), failing(9, 2, 2)):
        repeats = AskedAgain()
        repeats.pick(found, 0.03, 1)
        assert not repeats.newest
        assert not repeats.over


def test_a_suite_that_is_about_to_pass_repeats_nothing_then_or_later() -> None:
    repeats = AskedAgain()
    repeats.pick(failing(6), 0.3, 1)
    repeats.pick(failing(9), 0.03, 2)
    assert not repeats.newest


def test_a_case_is_picked_at_its_first_failure_only() -> None:
    repeats = AskedAgain()
    repeats.pick(failing(3), 0.03, 1)
    repeats.pick(failing(9), 0.03, 2)
    assert repeats.newest == tuple(ids(9)[3:])


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("rate", "runs"), [(0.9, 100), *(pytest.param(rate, 1500, marks=SLOW) for rate in (0.8, 0.9, 0.95))]
)
def test_unchanged_cases_are_blocked_at_most_as_often_as_the_tests_may(rate: float, runs: int) -> None:
    """Two epochs of 20 unchanged cases each, at an alpha that makes misses count: 3 · (.08 + .03) = .33."""
    rng, alpha, blocked = Random(f"{rate}"), 3.0, 0
    for _ in range(runs):
        stored = {c: sum(rng.random() < rate for _ in range(5)) for c in ids(20)}
        repeats = AskedAgain()
        for epoch in (1, 2):
            repeats.pick({c: (b, 5) for c, b in stored.items() if rng.random() >= rate}, 0.03, epoch)
            for n in REPEATS:
                asked = {c: [rng.random() < rate for _ in range(n)] for c in repeats.newest}
                repeats.add(asked, epoch, alpha)
        blocked += any(test.blocks for test in repeats.tests)
    assert blocked / runs <= alpha * sum(REPEATS_SHARES[:2])


def test_the_baselines_reruns_are_no_repeats() -> None:
    evidence = gather(state(FLAKY, SCREENED, confirm({c: rows(1) for c in SIX}, Side.BASELINE)))
    assert (evidence.repeats.newest, evidence.repeats.rounds) == (SIX, 0)


def test_cases_that_wait_for_their_reruns_are_tested_with_those_of_the_next_epoch() -> None:
    """Epochs that are stored anyway come first: which cases one test is of must not depend on that."""
    repeats = AskedAgain()
    repeats.pick(failing(6), 0.03, 1)
    repeats.pick(failing(7), 0.03, 2)
    assert repeats.newest == tuple(ids(7))
    for n in REPEATS:
        repeats.add({c: [False, True, False, True][:n] for c in repeats.newest}, 2, 0.02)
    (test,) = repeats.tests
    assert (test.cases, test.trials, test.threshold) == (7, 70, pytest.approx(REPEATS_SHARES[1] * 0.02))


def test_an_epoch_between_two_rounds_ends_it() -> None:
    repeats = AskedAgain()
    repeats.pick(failing(6), 0.03, 1)
    repeats.add({c: [False] for c in repeats.newest}, 1, 0.02)
    repeats.pick(failing(9), 0.03, 2)
    assert (repeats.over, repeats.newest, repeats.tests) == (True, (), [])


def test_nothing_is_asked_for_a_test_that_has_no_budget() -> None:
    repeats = AskedAgain()
    repeats.pick(failing(9), 0.03, len(REPEATS_SHARES) + 1)
    assert (repeats.over, repeats.newest) == (True, ())


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_a_round_asks_each_case_as_often_as_the_others(asked: int) -> None:
    """A budget of money, or reruns for another purpose, may have decided by outcomes how often one was asked."""
    repeats = AskedAgain()
    repeats.pick(failing(6), 0.03, 1)
    repeats.add({c: [False] for c in repeats.newest}, 1, 0.02)
    repeats.add({c: [False, False] for c in ids(5)} | {ids(6)[5]: [False] * asked}, 1, 0.02)
    assert (repeats.over, repeats.tests) == (True, [])


def test_a_repeat_that_was_lost_or_answered_from_a_recording_is_not_counted() -> None:
    """Answered from the recording of a stored trial, it passes where that one passed: no draw of its own."""
    lost = {c: [[None]] if c == SIX[0] else rows(0) for c in SIX}
    once = Round("confirm", Side.CANDIDATE, lost, {SIX[1]: (Partner(0),)})
    twice = Round("confirm", Side.CANDIDATE, {c: rows(0, 1) for c in SIX}, {SIX[1]: (Partner(1), None)})
    further = [confirm({c: rows(*[0] * n) for c in SIX}) for n in REPEATS[2:]]
    (test,) = gather(state(FLAKY, SCREENED, once, twice, *further)).repeats.tests
    assert (test.cases, test.passed, test.trials) == (6, 6, 60 - 3)


HALF_BROKEN = [
    confirm({c: rows(*([0, 1, 0, 1] if n > 1 else [i % 2])[:n]) for i, c in enumerate(SIX)}) for n in REPEATS
]


def beside(passes: int, trials: int = 6, cases: tuple[str, ...] = SIX) -> Round:
    """Reruns of the baseline's agent in this job."""
    return confirm({c: rows(*[1] * passes, *[0] * (trials - passes)) for c in cases}, Side.BASELINE)


HALF_NOW = confirm({c: rows(1, 1, 1, 1, i % 2, 0) for i, c in enumerate(SIX)}, Side.BASELINE)
"""Of the base's agent, between what confirms a drop and what rules it out."""


@pytest.mark.parametrize(
    ("now", "stage"),
    [
        (beside(6), Stage(StageKind.REPEATS, 1, confirmed=True)),
        (beside(2), Stage(StageKind.DRIFTED)),
    ],
)
def test_repeats_of_both_sides_tell_the_change_from_a_drift(now: Round, stage: Stage) -> None:
    """No epoch of the baseline's agent is needed: the cases that broke were asked on both sides."""
    answer = decide(state(FLAKY, SCREENED, *HALF_BROKEN, now, config=Config(rerun="match")))
    assert isinstance(answer, Outcome), answer
    assert answer.stage == stage
    assert answer.verdict == ("REGRESSION" if stage.confirmed else "INCONCLUSIVE")


@pytest.mark.parametrize(
    "now", [(HALF_NOW,), (beside(6, cases=SIX[1:]),), (beside(6, cases=SIX[1:]), beside(3, 3, SIX[:1]))]
)
def test_repeats_that_do_not_tell_or_were_not_asked_alike_leave_it_to_an_epoch_of_the_base(
    now: tuple[Round, ...],
) -> None:
    step = decide(state(FLAKY, SCREENED, *HALF_BROKEN, *now, config=Config(rerun="match")))
    assert isinstance(step, More), step
    assert {(r.side, r.tag) for r in step.requests} == {(Side.BASELINE, "concurrent")}


@pytest.mark.parametrize(
    ("rate", "runs"), [(0.5, 5), *(pytest.param(rate, 120, marks=SLOW) for rate in (0.5, 0.8, 0.95))]
)
def test_a_change_that_is_no_worse_than_the_base_is_now_is_seldom_confirmed(rate: float, runs: int) -> None:
    """Both moved: whatever was stored and made the repeats a proof, those of both sides are of one law."""
    rng, confirmed = Random(f"{rate}"), 0
    start = state(FLAKY, SCREENED, config=Config(rerun="match"))
    for _ in range(runs):
        asked = [confirm({c: rows(*(rng.random() < rate for _ in range(n))) for c in SIX}) for n in REPEATS]
        base = confirm({c: rows(*(rng.random() < rate for _ in range(6))) for c in SIX}, Side.BASELINE)
        evidence = gather(replace(start, rounds=(*start.rounds, *asked)))
        if evidence.proof is not None and evidence.proof.kind is StageKind.REPEATS:
            found = gather(replace(start, rounds=(*start.rounds, *asked, base)))
            confirmed += bool(repeats_confirmed(found))
    assert confirmed / runs <= REPEATED_LEVEL * 0.02 + 3 * (0.01 / runs) ** 0.5
