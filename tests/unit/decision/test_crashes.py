"""Trials in which the agent failed: they count, a block on them is confirmed, and an outage has its own name."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

import pytest
from msgspec.structs import replace

from gate.decision import CONCURRENT, Comparison, Settings, exit_code, trials_in_outage
from gate.decision.crashes import is_of_provider, proven, unconfirmed
from gate.decision.engine.drift import FUTILE
from gate.errors import ExitCode
from gate.model import PROBE, CaseStatus, ErrorKind, Side, SuiteResult, Trial, TrialError, Verdict, accepted_by
from gate.model.finding import Finding
from gate.pipeline.terms import own_terms
from gate.pipeline.verdict import judge_record, load_to_judge
from gate.records import parse_record, record_lines
from gate.reports.view import View
from gate.statistics.intervals import fisher_less
from tests.recorded import drawn
from tests.unit.decision.records import (
    FORBIDDEN,
    LATENCY,
    RESPONSE,
    TRAJECTORY,
    ask,
    cases,
    failed_trial,
    findings,
    judge,
    lost_trial,
    once,
    score,
    step_of,
    stored,
    trial,
)

SUITE = cases(40)
BASELINE = stored(SUITE, trajectory=1.0)
CRASHED = ("case-00", "case-01", "case-02", "case-03", "case-04", "case-05")
DOWN = [failed_trial(case_id) for case_id in CRASHED] + once(SUITE[6:], trajectory=1.0)
"""Six of forty cases crash in the one pass there is: what a block needs."""


def probes(failing: bool, *, others: bool = False, base: bool | None = None) -> list[Trial]:
    """A confirmation: the six cases four times each, and as many that had answered."""
    found = []
    for number in range(2, 6):
        for case_id in (*CRASHED, *(f"case-{i:02d}" for i in range(10, 16))):
            falls = failing if case_id in CRASHED else others
            found.append(_probe(case_id, number, Side.CANDIDATE, falls=falls))
            if base is not None and case_id in CRASHED:
                found.append(_probe(case_id, number, Side.BASELINE, falls=base))
    return found


def _probe(case_id: str, number: int, side: Side, *, falls: bool) -> Trial:
    if falls:
        return failed_trial(case_id, number, round=9, tag=PROBE, side=side)
    return trial(case_id, number, round=9, tag=PROBE, side=side, trajectory=1.0)


@pytest.mark.slow
def test_a_block_that_needs_failures_asks_for_a_confirmation_a_minute_later() -> None:
    trials = DOWN
    for _ in range(8):
        more = ask(SUITE, [TRAJECTORY], trials, BASELINE)
        if more.pause:
            break
        for request in more.requests:
            trials = [*trials, *(failed_trial(c, 9, round=more.round, tag=request.tag) for c in request.cases)]
    assert more.pause == 60.0
    (first, *rest) = more.requests
    assert (first.side, first.tag, first.n) == (Side.CANDIDATE, PROBE, 1)
    assert set(first.cases[::2]) == set(CRASHED), "the failing cases"
    assert not set(first.cases[1::2]) & set(CRASHED), "between such as answered"
    assert len(first.cases) == 12 and [len(request.cases) for request in rest] == [4], "a few show if all recur"
    probed = {"failing": [], "others": []}  # type: ignore[var-annotated]
    for request in more.requests:
        for case_id in request.cases:
            make = failed_trial if case_id in CRASHED else partial(trial, trajectory=1.0)
            probed["failing" if case_id in CRASHED else "others"].append(make(case_id, 10, round=9, tag=PROBE))
    assert len(probed["failing"]) == 8
    again = [*trials, *probed["failing"], *probed["others"]]
    assert judge(SUITE, [TRAJECTORY], again, BASELINE).verdict is Verdict.REGRESSED, "all fail again: no more is run"
    answer = trial(probed["failing"][0].case_id, 10, round=9, tag=PROBE, trajectory=1.0)
    answers = trial(probed["failing"][1].case_id, 10, round=9, tag=PROBE, trajectory=1.0)
    again = [*trials, answer, answers, *probed["failing"][2:], *probed["others"]]
    rest = ask(SUITE, [TRAJECTORY], again, BASELINE)
    assert {one.tag for one in rest.requests} == {PROBE} and not rest.pause
    assert sum(len(one.cases) for one in rest.requests) == 2 * (24 - 8), "two answer: the whole confirmation decides"


@pytest.mark.slow
def test_both_sides_are_asked_where_the_base_can_be_run() -> None:
    trials, settings = [*DOWN], Settings(rerun="match", exact_epochs=1)
    more = ask(SUITE, [TRAJECTORY], trials, BASELINE, settings=settings)
    for _ in FUTILE:
        assert [(request.side, request.tag) for request in more.requests] == [(Side.BASELINE, CONCURRENT)]
        now = (more.requests[0].cases, more.round)
        trials += [trial(c, 1, tag=CONCURRENT, side=Side.BASELINE, round=now[1], trajectory=1.0) for c in now[0]]
        more = ask(SUITE, [TRAJECTORY], trials, BASELINE, settings=settings)
        if more.requests[0].tag == PROBE:
            break
    assert more.requests[0].tag == PROBE
    assert {request.side for request in more.requests} == set(Side)


def test_no_run_is_spent_on_drift_where_a_threshold_is_missed_for_certain_and_the_cause_says_so() -> None:
    low = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:12]}, trajectory=1.0)
    held = replace(TRAJECTORY, threshold=0.99)
    result = judge(SUITE, [held], low, BASELINE, settings=Settings(rerun="match", exact_epochs=1))
    assert result.verdict is Verdict.REGRESSED
    assert result.cause.kind == "suite_got_worse"
    assert (result.cause["missed"], result.cause["perhaps_drift"], result.cause["drift_moot"]) == (
        (held.name,),
        True,
        True,
    )
    alone = judge(SUITE, [held], low, BASELINE, settings=Settings(rerun="never", exact_epochs=1))
    assert alone.cause.kind == "suite_got_worse"
    assert (alone.cause["missed"], alone.cause["drift_moot"]) == ((held.name,), False), "there was nothing to ask"


def test_a_base_that_is_gone_is_asked_no_more_and_what_it_said_before_stays() -> None:
    """Ten trials in a row are lost: the schedule goes on as if no base could be run, and says so once."""
    down = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:12]}, trajectory=1.0)
    settings = Settings(rerun="match", exact_epochs=1)
    first = ask(SUITE, [TRAJECTORY], down, BASELINE, settings=settings)
    assert [request.side for request in first.requests] == [Side.BASELINE]
    gone = TrialError(ErrorKind.UNREACHABLE, "127.0.0.1:80: Connection refused")
    lost = [Trial(c.id, 1, 2, CONCURRENT, Side.BASELINE, error=gone) for c in SUITE[:10]]
    result = judge(SUITE, [TRAJECTORY], [*down, *lost], BASELINE, settings=settings)
    assert (
        result.verdict is Verdict.REGRESSED and result.cause.kind == "suite_got_worse" and result.cause["perhaps_drift"]
    )
    error = "unreachable: 127.0.0.1:80: Connection refused"
    assert [w for w in result.warnings if w.kind == "trials_lost"] == [
        Finding.of("trials_lost", Verdict.PASS, lost=10, of=10, error=error, by="base", gone=True)
    ]
    again = ask(SUITE, [TRAJECTORY], [*down, *lost[:9]], BASELINE, settings=settings)
    assert {request.side for request in again.requests} == {Side.BASELINE}, "nine may be a bad moment"
    answered = trial(SUITE[10].id, 1, round=2, tag=CONCURRENT, side=Side.BASELINE, trajectory=1.0)
    again = ask(SUITE, [TRAJECTORY], [*down, *lost, answered], BASELINE, settings=settings)
    assert {request.side for request in again.requests} == {Side.BASELINE}, "and one that answers is there"


@pytest.mark.parametrize("more", [probes(True), probes(True, base=False)])
def test_failures_that_come_again_are_a_loss(more: list[Trial]) -> None:
    result = judge(SUITE, [TRAJECTORY], [*DOWN, *more], BASELINE)
    assert result.verdict is Verdict.REGRESSED
    assert exit_code([result], Settings()) is ExitCode.FAILED


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (probes(False), Finding.of("agent_fails", failed=6, why="gone", trials=24)),
        (
            probes(True, base=True),
            Finding.of(
                "agent_fails",
                failed=6,
                why="perhaps_provider",
                trials=24,
                other_failed=24,
                other_trials=24,
                at_base=True,
                failed_again=24,
            ),
        ),
        ([], Finding.of("agent_fails", failed=6, why="nothing_rerun")),
    ],
)
def test_failures_that_do_not_come_again_leave_it_unmeasured(more: list[Trial], why: Finding) -> None:
    result = judge(SUITE, [TRAJECTORY], [*DOWN, *more], BASELINE)
    assert (result.verdict, why_unmeasured(result)) == (Verdict.ERROR, why)
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED
    assert not result.is_acceptable


def test_the_failures_that_were_to_be_confirmed_are_told_without_those_of_the_confirmation() -> None:
    result = judge(SUITE, [TRAJECTORY], [*DOWN, *probes(True, base=True)], BASELINE)
    assert result.cause.kind == "agent_fails"
    assert result.cause["failed"] == 6


def why_unmeasured(result: SuiteResult) -> Finding | None:
    """Return why failures were not confirmed, if that is what the verdict rests on."""
    return result.cause if result.cause.kind == "agent_fails" else None


def with_message(message: str, trials: list[Trial]) -> list[Trial]:
    return [
        replace(t, error=TrialError(ErrorKind.CRASH, message if t.tag != PROBE else "Traceback")) if t.failed else t
        for t in trials
    ]


@pytest.mark.parametrize("message", ["HTTP 429: slow down", "the model is overloaded"])
def test_of_a_providers_failures_that_are_gone_the_later_answers_count(message: str) -> None:
    trials = with_message(message, [*DOWN, *probes(False)])
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    assert (result.verdict, exit_code([result], Settings())) == (Verdict.PASS, ExitCode.PASS)
    assert result.warnings


@pytest.mark.parametrize(
    ("message", "is_providers"),
    [
        ("HTTP 429: slow down", True),
        ("upstream said 503", True),
        ("529", True),
        ("the model is overloaded", True),
        ("Rate limit reached", True),
        ("Too Many Requests", True),
        ("KeyError: 'order'", False),
        ("order 14290 is unknown", False),
        ("HTTP 500", False),
    ],
)
def test_which_failures_look_like_a_providers(message: str, *, is_providers: bool) -> None:
    trials = with_message(message, [*DOWN, *probes(False)])
    made = Comparison(tuple(SUITE), (TRAJECTORY,), tuple(trials), tuple(BASELINE), Settings())
    assert is_of_provider(made, Finding.of("agent_fails", failed=6, why="gone", trials=24)) is is_providers


def test_one_failure_of_another_kind_is_enough_to_doubt_that_a_provider_was_it() -> None:
    trials = with_message("HTTP 429", [*DOWN, *probes(False)])
    trials[0] = replace(trials[0], error=TrialError(ErrorKind.CRASH, "KeyError: 'order'"))
    why = Finding.of("agent_fails", failed=6, why="gone", trials=24)
    made = Comparison(tuple(SUITE), (TRAJECTORY,), tuple(trials), tuple(BASELINE), Settings())
    assert not is_of_provider(made, why)
    all_of_it = Comparison(tuple(SUITE), (TRAJECTORY,), tuple(with_message("429", trials)), tuple(BASELINE), Settings())
    assert is_of_provider(all_of_it, why)
    for other in (
        Finding.of("agent_fails", failed=6, why="nothing_rerun"),
        Finding.of("agent_fails", failed=6, why="lost", lost=12, trials=24),
        Finding.of(
            "agent_fails",
            failed=6,
            why="perhaps_provider",
            trials=24,
            other_failed=24,
            other_trials=24,
            at_base=True,
            failed_again=24,
        ),
    ):
        assert not is_of_provider(all_of_it, other), "only what is gone is known not to be the agent's"


@pytest.mark.slow
def test_failures_all_over_that_may_be_a_providers_are_no_measurement() -> None:
    """Six of forty fail, and so do those that had answered: it is the agent or its provider, and not green."""
    trials = [*DOWN, *probes(True, others=True)]
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    assert why_unmeasured(result) == Finding.of(
        "agent_fails",
        failed=6,
        why="perhaps_provider",
        trials=24,
        other_failed=24,
        other_trials=24,
        at_base=False,
        failed_again=24,
    )
    assert (result.verdict, exit_code([result], Settings())) == (Verdict.ERROR, ExitCode.NOT_MEASURED)
    assert trials_in_outage(Comparison(SUITE, [TRAJECTORY], trials, BASELINE, Settings())) == tuple(trials)
    broke = {f"case-{i}": {"trajectory": 0.0} for i in range(20, 32)}
    worse = [*DOWN, *once(SUITE[6:], broke, trajectory=1.0), *probes(True, others=True)]
    assert judge(SUITE, [TRAJECTORY], worse, BASELINE).verdict is Verdict.REGRESSED
    assert trials_in_outage(Comparison(SUITE, [TRAJECTORY], worse, BASELINE, Settings())) == (), (
        "it is proven, and no new draw"
    )
    few = [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0), *probes(True, others=True)]
    assert judge(SUITE, [TRAJECTORY], few, BASELINE).verdict is Verdict.ERROR


LIMITED = replace(LATENCY, limit=10.0)
TIMED = stored(SUITE, trajectory=1.0, latency=1.0)
RERUN = [failed_trial(c, n, round=n, tag="confirm") for n in range(2, 12) for c in CRASHED[:2]]


def slow(crashing: int, failing: Collection[str] = ()) -> list[Trial]:
    """One epoch in which the first cases crash, some fail in what they answer, and one is slower than it may be."""
    down = [failed_trial(case_id) for case_id in CRASHED[:crashing]]
    return down + [
        trial(c.id, trajectory=float(c.id not in failing), latency=12.0 if c.id == "case-30" else 1.0)
        for c in SUITE[crashing:]
    ]


@pytest.mark.parametrize("more", [[], probes(False)])
def test_beside_a_limit_that_fails_anyway_unconfirmed_failures_are_no_regression(more: list[Trial]) -> None:
    more = [replace(t, scores={**t.scores, "latency": score(1.0)}) if t.answered else t for t in more]
    result = judge(SUITE, [TRAJECTORY, LIMITED], [*slow(6), *more], TIMED)
    assert (result.verdict, result.cause) == (
        Verdict.BELOW_THRESHOLD,
        Finding.of("criteria_decide", criteria=("latency",)),
    )


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], probes(False)])
def test_beside_a_limit_that_fails_anyway_nothing_is_run_to_confirm_failures(more: list[Trial]) -> None:
    more = [replace(t, scores={**t.scores, "latency": score(1.0)}) if t.answered else t for t in more]
    trials = [*slow(6), *more]
    result = judge(SUITE, [TRAJECTORY, LIMITED], trials, TIMED)
    assert (result.below, result.is_acceptable) == (("latency",), False)
    assert exit_code([result], Settings()) is ExitCode.FAILED
    step = step_of(Comparison(SUITE, [TRAJECTORY, LIMITED], trials, TIMED, Settings()))
    assert isinstance(step, SuiteResult), "nothing is run to confirm what decides nothing"


def test_where_a_threshold_is_missed_without_the_failures_nothing_is_said_of_their_confirmation() -> None:
    held = replace(TRAJECTORY, threshold=0.9)
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=0.0)]
    for before in ([], stored(SUITE[1:], trajectory=0.0)):
        result = judge(SUITE, [replace(held, ratchet=False)], trials, before)
        assert result.verdict is Verdict.BELOW_THRESHOLD
        assert result.cases[0].status is (CaseStatus.NEW if before else CaseStatus.FAILED)
        assert result.cause == Finding.of("criteria_decide", criteria=("trajectory",))


def test_a_threshold_that_unconfirmed_failures_miss_is_accepted_by_nobody_unseen() -> None:
    """Something else regressed, so that nobody waits for the confirmation: that is no way round a missed threshold."""
    held = replace(RESPONSE, threshold=0.85)
    before = stored(SUITE, trajectory=1.0, response=0.95)
    broke = [c.id for c in SUITE[6:9]]
    trials = [failed_trial(case_id) for case_id in CRASHED]
    trials += [trial(c.id, trajectory=float(c.id not in broke), response=0.95) for c in SUITE[6:]]
    trials += [trial(c, n, round=2, tag="confirm", trajectory=0.0, response=0.95) for c in broke for n in range(2, 12)]
    result = judge(SUITE, [TRAJECTORY, held], trials, before)
    assert (result.verdict, result.below) == (Verdict.REGRESSED, ("response",))
    assert exit_code([accepted_by(result, "somebody")], Settings()) is ExitCode.FAILED


def test_beside_a_limit_failures_that_are_confirmed_are_a_regression() -> None:
    more = [replace(t, scores={**t.scores, "latency": score(1.0)}) if t.answered else t for t in probes(True)]
    assert judge(SUITE, [TRAJECTORY, LIMITED], [*slow(6), *more], TIMED).verdict is Verdict.REGRESSED


def test_a_block_of_failures_alone_that_were_not_confirmed_is_an_error() -> None:
    result = judge(SUITE, [TRAJECTORY], [*slow(2), *RERUN], TIMED)
    assert result.verdict is Verdict.ERROR
    assert result.cause == Finding.of("agent_fails", failed=22, why="nothing_rerun")


def test_recordings_are_judged_without_a_confirmation() -> None:
    result = judge(SUITE, [TRAJECTORY], DOWN, BASELINE, settings=Settings(confirm_after=None))
    assert result.verdict is Verdict.REGRESSED


def test_failures_while_answers_slow_down_prove_nothing() -> None:
    slow = [replace(t, duration=9.0) if t.answered else t for t in probes(True)]
    usual = [replace(t, duration=2.0) for t in BASELINE]
    result = judge(SUITE, [TRAJECTORY], [*DOWN, *slow], usual)
    assert (result.verdict, why_unmeasured(result)) == (
        Verdict.ERROR,
        Finding.of("agent_fails", failed=6, why="slowed_down", now=9.0, before=2.0),
    )


def test_answers_that_are_slower_within_the_latency_margin_explain_no_failure() -> None:
    slower = [replace(t, duration=9.0) if t.answered else t for t in probes(True)]
    usual = [replace(t, duration=2.0) for t in BASELINE]
    wide = replace(LATENCY, margin=4.0)
    assert judge(SUITE, [TRAJECTORY, wide], [*DOWN, *slower], usual).verdict is Verdict.REGRESSED


def test_a_block_that_needs_no_failure_is_not_held_up() -> None:
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=0.0)]
    assert judge(SUITE, [TRAJECTORY], trials, BASELINE).verdict is Verdict.REGRESSED


@pytest.mark.parametrize("crash", [5, pytest.param(99, marks=pytest.mark.slow)])
def test_a_broken_case_is_proven_by_its_answers_where_trials_crashed_too(crash: int) -> None:
    suite, trials = cases(50), list[Trial]()
    before = stored(suite, trajectory=1.0)
    for _ in range(20):
        step = step_of(Comparison(suite, [TRAJECTORY], trials, before, Settings()))
        if isinstance(step, SuiteResult):
            break
        assert not step.pause, "nothing is left to be confirmed"
        for request in step.requests:
            for case_id in request.cases * request.n:
                number = sum(t.case_id == case_id for t in trials) + 1
                where = {"round": step.round, "tag": request.tag}
                if (case_id, number) in (("case-00", crash), ("case-07", 1)):
                    trials.append(failed_trial(case_id, number, **where))
                else:
                    trials.append(trial(case_id, number, **where, trajectory=float(case_id != "case-00")))
    assert isinstance(step, SuiteResult)
    assert step.cause.kind == "cases_broke"
    assert (step.verdict, step.cause["cases"][0].case_id) == (Verdict.REGRESSED, "case-00")


def test_one_new_crash_keeps_a_pass_until_six_answers_clear_it() -> None:
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("agent_fails", failed=1, why="new", cases=1),
    )
    assert result.crashes is not None
    assert result.crashes.unexplained == ("case-00",)
    answers = [trial("case-00", n, round=2, tag="confirm", trajectory=1.0) for n in range(2, 8)]
    cleared = judge(SUITE, [TRAJECTORY], [*trials, *answers], BASELINE)
    assert cleared.verdict is Verdict.PASS
    assert View(cleared).agent_failures.startswith("the agent failed in 1 of 7 trials of 1 case")
    assert View(result).agent_failures == "", "the headline says it"
    crashes = cleared.crashes
    assert crashes is not None and (crashes.baseline_failed, crashes.baseline_trials) == (0, 5)
    assert (crashes.cases, crashes.failed, crashes.trials) == (("case-00",), 1, 7)
    assert judge(SUITE, [TRAJECTORY], [*trials, *answers[:5]], BASELINE).verdict is Verdict.ERROR


def test_a_crash_that_the_baseline_knew_is_compared_like_any_failure() -> None:
    known = [failed_trial("case-00", n) for n in range(1, 6)] + stored(SUITE[1:], trajectory=1.0)
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, known)
    assert result.verdict is Verdict.PASS
    assert (result.cases[0].crashes, result.cases[0].baseline_crashes) == (1, 5)


def test_an_outage_is_an_error_and_no_regression() -> None:
    trials = [failed_trial(case.id) for case in SUITE[:25]] + once(SUITE[25:], trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    assert result.verdict is Verdict.ERROR
    assert result.cause.kind == "outage"
    assert (result.cause["cases"], result.cause["of"], result.cause["compared"]) == (
        25,
        40,
        True,
    )
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED
    error = trials[0].error
    assert error is not None
    lost = Finding.of("trials_lost", Verdict.PASS, lost=25, of=40, error=f"timeout: {error.message}", by="agent")
    assert [one for one in result.warnings if one.kind == "trials_lost"] == [lost], "no infrastructure failed"
    assert result.errors == 0


def test_a_confirmation_of_which_more_than_a_third_is_lost_confirms_nothing() -> None:
    """They may be lost as the failures were."""
    lost = [replace(lost_trial(c, n, round=9), tag=PROBE) for n in (9, 10, 11) for c in CRASHED]
    for asked, why in ((30, "lost"), (36, "perhaps_provider")):
        confirming = [*probes(True, others=True)[:asked], *lost]
        found = unconfirmed(Comparison(SUITE, [TRAJECTORY], [*DOWN, *confirming], BASELINE, Settings()))
        assert found is not None
        assert (found["why"], found["failed"]) == (why, 6)
    assert unconfirmed(Comparison(SUITE, [TRAJECTORY], [*DOWN, *probes(True)], BASELINE, Settings())) is None


def test_in_an_outage_nothing_is_asked_again() -> None:
    trials = [failed_trial(case.id) for case in SUITE[:25]] + once(SUITE[25:], trajectory=1.0)
    step = step_of(Comparison(SUITE, [TRAJECTORY], trials, BASELINE, Settings(exact_epochs=1)))
    assert isinstance(step, SuiteResult), step
    assert step.cause.kind == "outage"


def test_the_proof_is_of_the_cases_that_failed_before_their_confirmation() -> None:
    """The result does not depend on which cases fail in the confirmation: that would pick them by their proof."""
    confirming = probes(True)
    late = next(n for n, one in enumerate(confirming) if one.case_id not in CRASHED)
    confirming[late] = _probe(confirming[late].case_id, 2, Side.CANDIDATE, falls=True)
    found = proven(Comparison(SUITE, [TRAJECTORY], [*DOWN, *confirming], BASELINE, Settings()))
    assert found is not None and found["p"] == fisher_less(0, 24, 30, 30)


def test_what_fails_each_in_its_own_way_is_no_outage() -> None:
    errors = ("KeyError: 'a'", "ValueError: b", "HTTP 500: c", "TypeError: d")
    trials = [
        replace(failed_trial(case.id), error=TrialError(ErrorKind.CRASH, errors[n % 4]))
        for n, case in enumerate(SUITE[:25])
    ]
    trials += once(SUITE[25:], trajectory=1.0)
    assert why_unmeasured(judge(SUITE, [TRAJECTORY], trials, BASELINE)) == Finding.of(
        "agent_fails", failed=25, why="nothing_rerun"
    )
    confirmed = judge(SUITE, [TRAJECTORY], trials, BASELINE, settings=Settings(confirm_after=None))
    assert confirmed.verdict is Verdict.REGRESSED


def test_without_a_baseline_an_outage_is_every_case() -> None:
    held = replace(TRAJECTORY, threshold=0.5)
    result = judge(SUITE, [held], [failed_trial(case.id) for case in SUITE])
    assert result.verdict is Verdict.ERROR
    assert result.cause.kind == "outage"
    assert (result.cause["cases"], result.cause["of"], result.cause["compared"]) == (
        40,
        40,
        False,
    )
    but_one = [*(failed_trial(case.id) for case in SUITE[1:]), trial("case-00", trajectory=1.0)]
    assert why_unmeasured(judge(SUITE, [held], but_one)) == Finding.of("agent_fails", failed=39, why="nothing_rerun")
    confirmed = judge(SUITE, [held], but_one, settings=Settings(confirm_after=None))
    assert confirmed.verdict is Verdict.BELOW_THRESHOLD


def test_a_failure_counts_as_a_miss_without_a_baseline() -> None:
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    for threshold, verdict in ((0.97, Verdict.PASS), (0.98, Verdict.BELOW_THRESHOLD)):
        held = replace(TRAJECTORY, threshold=threshold)
        result = judge(SUITE, [held], trials, settings=Settings(confirm_after=None))
        assert result.verdict is verdict, threshold
        [row] = [row for row in result.criteria if row.criterion.name == "trajectory"]
        assert row.findings[0]["mean"].value == pytest.approx(39 / 40)  # type: ignore[union-attr]


def test_a_case_that_no_side_answers_is_compared_as_failed_on_both() -> None:
    before = [t if t.case_id != "case-00" else replace(failed_trial("case-00"), number=t.number) for t in BASELINE]
    result = judge(SUITE, [TRAJECTORY], [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0)], before)
    assert result.verdict is Verdict.PASS
    assert [r.verdict for r in result.criteria] == [Verdict.PASS, Verdict.PASS]


def test_a_new_case_that_crashes_once_leaves_no_pass() -> None:
    before = [t for t in BASELINE if t.case_id != "case-00"]
    trials = [failed_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    answered = [trial("case-00", number=2, trajectory=1.0)]
    assert judge(SUITE, [TRAJECTORY], [*once(SUITE, trajectory=1.0)], before).verdict is Verdict.PASS
    result = judge(SUITE, [TRAJECTORY], [*trials, *answered], before)
    assert result.verdict is Verdict.ERROR
    assert result.crashes is not None
    assert result.crashes.unexplained == ("case-00",)


def test_a_threshold_counts_a_failed_trial_as_the_worst_score() -> None:
    held = replace(TRAJECTORY, threshold=0.6)
    answered = [trial(case.id, trajectory=0.7) for case in SUITE]
    fallen = [failed_trial(case.id, 2) for case in SUITE[:20]]
    result = judge(SUITE, [held], [*answered, *fallen], settings=Settings(confirm_after=None))
    assert result.verdict is Verdict.BELOW_THRESHOLD, "0.7 over what answered, 0.525 with what did not"
    [found] = findings(result, "trajectory")
    assert found["mean"].value == pytest.approx(0.525)
    assert (found["mean"].failed, found["mean"].failed_as) == (20, 0.0)


def test_what_a_hard_rule_found_before_a_crash_stands() -> None:
    broken = replace(failed_trial("case-00"), scores={"forbidden_tools": score(0.0)})
    result = judge(SUITE, [FORBIDDEN, TRAJECTORY], [broken, *once(SUITE[1:], trajectory=1.0, forbidden_tools=1.0)])
    assert result.verdict is Verdict.BELOW_THRESHOLD


def test_a_pass_holds_with_what_is_unmeasured_counted_as_failed() -> None:
    twice = [trial(c.id, n, trajectory=1.0) for c in SUITE for n in (1, 2)]
    few = [lost_trial("case-00", 2) if (t.case_id, t.number) == ("case-00", 2) else t for t in twice]
    settings = Settings(exact_epochs=2)
    assert judge(SUITE, [TRAJECTORY], few, BASELINE, settings=settings).verdict is Verdict.PASS
    lost = {f"case-{i:02d}" for i in range(8)}
    many = [lost_trial(t.case_id, 2) if t.number == 2 and t.case_id in lost else t for t in twice]
    result = judge(SUITE, [TRAJECTORY], many, BASELINE, settings=settings)
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("trials_lost", lost=8, of=80, decide=True),
    )


def refused(trials: list[Trial], n: int) -> list[Trial]:
    """The second trial of so many cases without a score: the judge would not say."""
    cases = {case.id for case in SUITE[:n]}
    return [
        replace(t, scores={"trajectory": score("the judge refused")}) if t.number == 2 and t.case_id in cases else t
        for t in trials
    ]


def test_a_pass_holds_with_what_no_judge_would_score_counted_as_failed() -> None:
    """Eight of eighty answers stay within what may be missing, and may be all that is wrong."""
    twice, settings = stored(SUITE, 2, trajectory=1.0), Settings(exact_epochs=2)
    assert judge(SUITE, [TRAJECTORY], refused(twice, 1), BASELINE, settings=settings).verdict is Verdict.PASS
    result = judge(SUITE, [TRAJECTORY], refused(twice, 8), BASELINE, settings=settings)
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("trials_lost", lost=0, of=80, unscored=8, decide=True),
    )
    reported = replace(TRAJECTORY, blocking=False)
    assert judge(SUITE, [reported], refused(twice, 8), BASELINE, settings=settings).verdict is Verdict.PASS


def test_a_judge_that_refused_as_often_at_the_baseline_is_no_change() -> None:
    twice, settings = stored(SUITE, 2, trajectory=1.0), Settings(exact_epochs=2)
    before = [replace(t, number=t.number + 2 * k) for k in range(2) for t in refused(twice, 8)]
    assert judge(SUITE, [TRAJECTORY], refused(twice, 8), before, settings=settings).verdict is Verdict.PASS


def test_repeated_attempts_are_shown() -> None:
    trials = [replace(t, attempts=3) if t.case_id == "case-00" else t for t in once(SUITE, trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    assert result.retried == 2
    assert Finding.of("trials_lost", Verdict.PASS, lost=0, of=40, repeated=2) in result.warnings


def test_a_base_that_fails_where_the_change_fails_too_excuses_no_failure_of_its_own() -> None:
    """Both may depend on what is down: the change then has not lost what the base's agent lacks as well."""
    names = drawn.named(10)
    bad, good = names[:4], names[4:8]
    criteria = [drawn.with_threshold(drawn.CALLS, None)]
    now = drawn.trials({case: [1.0, "crash" if case in bad else 1.0] for case in names}, criteria, started=2.0)
    for side, asked, told, first in (
        (Side.CANDIDATE, bad, "crash", 3),
        (Side.CANDIDATE, good, 1.0, 3),
        (Side.BASELINE, bad, "crash", 1),
    ):
        rows = {case: [told] * 2 for case in asked}
        now += drawn.trials(rows, criteria, first=first, round=3, tag=PROBE, side=side, started=9.0)
    settings = Settings(rerun="match", max_epochs=2)
    record = drawn.run({}, criteria, cases=drawn.plan(names), more=now, settings=settings)
    record = load_to_judge(parse_record(b"".join(record_lines(record))))
    base = drawn.against(drawn.stored(drawn.always(names, 5), criteria))
    assert judge_record(record, [base], own_terms(record)).verdict is Verdict.INCONCLUSIVE
