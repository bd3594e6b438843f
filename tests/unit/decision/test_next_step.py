"""The record level: what a suite of trials asks for next, and the verdict it comes to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gate.decision import PASS_RATE, Comparison, More, Settings, exit_code, next_step, verdict_on
from gate.decision.comparison import Incomparable
from gate.errors import ExitCode
from gate.model import (
    NARROW,
    Case,
    CaseStatus,
    Criterion,
    Direction,
    ErrorKind,
    Invocation,
    Part,
    Replay,
    Scale,
    Score,
    Side,
    Stage,
    StageKind,
    SuiteResult,
    ToolCall,
    Trial,
    TrialError,
    Turn,
    Verdict,
)
from gate.model.finding import CaseTally, Finding, HeldMean, Uncompared
from tests.properties import examples

from .records import (
    FORBIDDEN,
    LATENCY,
    RESPONSE,
    TRAJECTORY,
    ask,
    by_name,
    cases,
    findings,
    follow,
    judge,
    lost_trial,
    not_scored,
    once,
    step_of,
    stored,
    trial,
)

SUITE = cases(40)
BASELINE = stored(SUITE, trajectory=1.0)
BLOCK = Settings(on_inconclusive="block")


def status(result, case_id: str) -> CaseStatus:  # type: ignore[no-untyped-def]
    return next(c.status for c in result.cases if c.id == case_id)


# --- the schedule ---------------------------------------------------------------------------------


def test_first_every_case_once() -> None:
    more = ask(SUITE, [TRAJECTORY], [], BASELINE)
    assert (more.round, more.runs, more.requests[0].cases) == (1, 40, tuple(c.id for c in SUITE))


def test_then_the_suspicious_ones_in_a_round_of_their_own() -> None:
    more = ask(SUITE, [TRAJECTORY], once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0), BASELINE)
    assert (more.round, [(r.tag, r.cases, r.n) for r in more.requests]) == (2, [("confirm", ("case-07",), 1)])


TOKENS = Criterion("tokens", "tokens", Scale.COUNT, Direction.LOWER, limit=1_000.0)
NO_USAGE = "the agent reports no input_tokens or output_tokens"


@pytest.mark.parametrize("stored_trials", [0, 2, 5])
def test_scores_that_no_epoch_can_make_up_for_are_not_asked_for_again(stored_trials: int) -> None:
    suite = cases(7)
    before = stored(suite, stored_trials, trajectory=1.0, tokens=500.0)
    now = once(suite, trajectory=1.0, tokens=NO_USAGE)
    assert judge(suite, [TRAJECTORY, TOKENS], now, before, can_run=True).verdict is Verdict.ERROR


def test_a_threshold_out_of_reach_is_not_asked_for_again() -> None:
    missed = once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0)
    assert judge(SUITE, [replace(TRAJECTORY, threshold=1.0)], missed, can_run=True).verdict is Verdict.BELOW_THRESHOLD
    assert ask(SUITE, [replace(TRAJECTORY, threshold=0.98)], missed).runs == 40, "two epochs without a miss reach it"


@pytest.mark.parametrize("seed", range(40))
def test_no_epoch_is_asked_for_if_a_threshold_or_lost_scores_decide_whatever_its_outcome(seed: int) -> None:
    chance = Random(seed)
    suite = cases(chance.randrange(1, 9))
    criteria = [replace(TRAJECTORY, threshold=chance.choice([None, 0.5, 0.8, 1.0])), TOKENS][: chance.randrange(1, 3)]
    rates = {case.id: chance.choice([1.0, 1.0, 1.0, 0.5, 0.0]) for case in suite}
    lost = chance.choice([0.0, 0.1, 1.0])

    def scored(case_id: str, draw: Callable[[], float]) -> dict[str, float | str]:
        tokens = NO_USAGE if chance.random() < lost else 500.0
        return {"trajectory": draw(), "tokens": tokens}

    def answered(trials: Sequence[Trial], more: More, draw: Callable[[str], float]) -> list[Trial]:
        further = list(trials)
        for request in more.requests:
            for case_id in request.cases:
                for _ in range(request.n):
                    scores = scored(case_id, lambda case_id=case_id: draw(case_id))  # type: ignore[misc]
                    further.append(
                        trial(
                            case_id,
                            len(further) + 1,
                            round=more.round,
                            tag=request.tag,
                            side=request.side,
                            **scores,
                        )
                    )
        return further

    def end(trials: list[Trial], draw: Callable[[str], float]) -> Verdict:
        while True:
            step = next_step(Comparison(suite, criteria, trials, before, Settings()))
            if not isinstance(step, More):
                return step
            trials = answered(trials, step, draw)

    def usual(case_id: str) -> float:
        return float(chance.random() < rates[case_id])

    before = [trial(c.id, n, trajectory=usual(c.id), tokens=500.0) for c in suite for n in range(chance.choice([0, 5]))]
    trials: list[Trial] = []
    for _ in range(60):
        step = next_step(Comparison(suite, criteria, trials, before, Settings()))
        if not isinstance(step, More):
            return
        if (
            trials
            and step.requests[0].tag == "full"
            and ("threshold" in step.why or (lost == 1.0 and TOKENS in criteria))
        ):
            ends = {end(answered(trials, step, draw), draw) for draw in (lambda _: 1.0, lambda _: 0.0, usual, usual)}
            if_stopped = verdict_on(Comparison(suite, criteria, trials, before, Settings()), scheduled=True).verdict
            assert len({*ends, if_stopped}) > 1, step
        trials = answered(trials, step, usual)


def test_new_cases_are_run_in_full_passes() -> None:
    suite = [*SUITE, Case("brand-new", ())]
    assert "brand-new" in ask(suite, [TRAJECTORY], [], BASELINE).requests[0].cases


def test_a_whole_run_tells_its_story() -> None:
    down = {"case-03", "case-11"}
    result, trials = follow(SUITE, [TRAJECTORY], lambda c, _s: {"trajectory": float(c not in down)}, BASELINE)
    assert result.verdict is Verdict.REGRESSED
    broke = tuple(CaseTally(one, 0, 7, 5, 5) for one in ("case-03", "case-11"))
    assert result.cause == Finding.of("cases_broke", cases=broke, of=40)
    assert {c.id for c in result.cases if c.status is CaseStatus.BROKEN} == down
    assert result.agent_runs == len(trials) < 80
    course, outcome = result.course, result.outcome
    assert (course.epochs, course.cases, course.rerun_cases) == (1, 40, 2)
    assert (course.runs, course.fixed_runs) == (len(trials), 200)
    assert outcome.cases == ("case-03", "case-11")
    assert outcome.evidence.highest_e_value >= outcome.evidence.e_threshold
    assert exit_code([result], Settings()) is ExitCode.FAILED


def test_an_unchanged_suite_passes_after_one_trial() -> None:
    result, trials = follow(SUITE, [TRAJECTORY], lambda _c, _s: {"trajectory": 1.0}, BASELINE)
    assert (result.verdict, len(trials)) == (Verdict.PASS, 40)
    assert result.cause.kind == "passes" and result.cause["compared"] == 40
    assert result.outcome.stage == Stage(StageKind.CERTIFIED, 1)
    assert 0 < result.criteria[0].spent < 1


def test_a_closed_record_is_judged_as_its_run_was() -> None:
    down = {"case-03"}
    result, trials = follow(SUITE, [TRAJECTORY], lambda c, _s: {"trajectory": float(c not in down)}, BASELINE)
    assert judge(SUITE, [TRAJECTORY], trials, BASELINE) == result


# --- the last epoch: the cases that vary ------------------------------------------------------------

TWENTY = cases(20)
VARYING = [
    trial(case.id, n, trajectory=float(place >= 8 or n not in (2, 5)))
    for place, case in enumerate(TWENTY)
    for n in range(1, 6)
]
"""A baseline in which eight of twenty cases vary."""
AFTER_TWO = [
    trial(case.id, n, round=n, trajectory=float(place not in failing))
    for n, failing in enumerate([(0, 1, 2, 3), (3, 4, 5, 6)], 1)
    for place, case in enumerate(TWENTY)
]
"""Two epochs after which only the interval of the change is open."""


def narrowed(step: More, agent: Callable[[Case], float]) -> list[Trial]:
    """The trials that a step asks for."""
    found = []
    for request in step.requests:
        for case in TWENTY:
            for n in range(request.n if case.id in request.cases else 0):
                found.append(trial(case.id, 3 + n, round=step.round, tag=request.tag, trajectory=agent(case)))
    return found


def test_the_last_epoch_goes_to_cases_that_vary_if_only_the_interval_is_open() -> None:
    step = ask(TWENTY, [TRAJECTORY], AFTER_TWO, VARYING)
    assert ({request.tag for request in step.requests}, step.runs) == ({"narrow"}, 20)


@pytest.mark.parametrize(
    "criterion",
    [
        replace(TRAJECTORY, threshold=0.8),
        Criterion("three in a row", "pass_k", Scale.BINARY, k=3, blocks_regression=False),
    ],
    ids=["a close threshold", "pass^3"],
)
def test_the_last_epoch_runs_every_case_while_a_threshold_needs_it(criterion: Criterion) -> None:
    """Or that threshold would take an epoch beyond the maximum."""
    criteria = list({one.name: one for one in (TRAJECTORY, criterion)}.values())
    step = ask(TWENTY, criteria, AFTER_TWO, VARYING)
    assert [(request.tag, len(request.cases), request.n) for request in step.requests] == [("full", 20, 1)]


def test_what_replaces_the_last_epoch_counts_against_the_maximum() -> None:
    """The mean is close to the threshold only after these trials."""
    step = ask(TWENTY, [replace(TRAJECTORY, threshold=0.6)], AFTER_TWO, VARYING)
    assert {request.tag for request in step.requests} == {NARROW}
    trials = [*AFTER_TWO, *narrowed(step, lambda case: float(case.id > "case-03"))]
    value = judge(TWENTY, [TRAJECTORY], trials, VARYING).criteria[1].candidate.value
    close = [replace(TRAJECTORY, threshold=round(value, 2) - 0.01)]
    known = Comparison(TWENTY, close, trials, VARYING, Settings())
    assert (known.epochs, known.epochs_spent) == (2, 3)
    while isinstance(step := step_of(known), More):
        assert all(request.tag == "confirm" for request in step.requests)
        more = [
            trial(case_id, 20 + len(known.trials) + n, round=step.round, tag="confirm", trajectory=1.0)
            for request in step.requests
            for case_id in request.cases
            for n in range(request.n)
        ]
        known = replace(known, trials=[*known.trials, *more])


def test_a_lost_trial_that_narrows_the_interval_may_decide_a_threshold() -> None:
    step = ask(TWENTY, [TRAJECTORY], AFTER_TWO, VARYING)
    last = narrowed(step, lambda _case: 1.0)
    lost = [replace(lost_trial(one.case_id, one.number, round=one.round), tag="narrow") for one in last]
    value = judge(TWENTY, [TRAJECTORY], AFTER_TWO, VARYING).criteria[1].candidate.value
    missed = [replace(TRAJECTORY, threshold=value + 0.01, ratchet=False)]
    settings = Settings(max_error_rate=1.0)
    judged = judge(TWENTY, missed, [*AFTER_TWO, *lost], VARYING, settings=settings)
    assert judged.criteria[1].verdict is Verdict.NOT_MEASURED


def test_a_quantile_does_not_follow_the_cases_that_run_more_often() -> None:
    """Eight of twenty cases are slow, so the median is quick, however often the slow ones run."""
    median = replace(LATENCY, quantiles=((0.5, 1.0),))
    slow = {case.id for case in TWENTY[:8]}

    def timed(trials: Sequence[Trial]) -> list[Trial]:
        found = []
        for one in trials:
            scores = {**one.scores, "latency": Score(2.0 if one.case_id in slow else 0.5)}
            found.append(replace(one, scores=scores))
        return found

    first, stored_trials = timed(AFTER_TWO), timed(VARYING)
    step = ask(TWENTY, [TRAJECTORY, median], first, stored_trials)
    assert {request.tag for request in step.requests} == {NARROW}
    result = judge(TWENTY, [TRAJECTORY, median], [*first, *timed(narrowed(step, lambda _case: 1.0))], stored_trials)
    ((q, found),) = result.criteria[2].quantiles
    assert (q, found.value, found.trials) == (0.5, 0.5, 40)
    assert result.criteria[2].verdict is Verdict.PASS


def test_running_out_of_runs_says_so_and_decides_on_what_there_is() -> None:
    one = once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], one, BASELINE, can_run=True, stopped="the budget of 40 runs is spent")
    assert result.verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    assert result.course.stopped == "the budget of 40 runs is spent"
    assert judge(SUITE, [TRAJECTORY], one, BASELINE, can_run=True, settings=Settings(runs=40)).agent_runs == 40


def test_an_exact_design_runs_exactly_so_many_passes() -> None:
    settings = Settings(exact_epochs=3)
    _, trials = follow(SUITE, [TRAJECTORY], lambda _c, _s: {"trajectory": 1.0}, BASELINE, settings)
    assert len(trials) == 120
    _, trials = follow(SUITE, [replace(TRAJECTORY, threshold=0.5)], lambda _c, _s: {"trajectory": 1.0}, (), settings)
    assert len(trials) == 120, "without a baseline too"


@pytest.mark.slow
def test_a_thin_baseline_is_filled_up_and_then_asked_in_parts_whether_it_drifted() -> None:
    """The trials that fill it up are no step of the check."""
    rng = Random(2)
    thin = stored(SUITE, 1, trajectory=1.0)

    def run(_case_id: str, _side: Side) -> dict[str, float]:
        return {"trajectory": float(rng.random() >= 0.06)}

    result, trials = follow(SUITE, [TRAJECTORY], run, thin, Settings(rerun="match"))
    assert {trial.tag for trial in trials if trial.side is Side.BASELINE} >= {"full", "concurrent"}
    assert result.verdict is not Verdict.REGRESSED


@pytest.mark.slow
def test_whole_epochs_of_the_baselines_agent_are_baseline_trials_everywhere() -> None:
    thin = stored(SUITE, 1, trajectory=1.0)
    rng = Random(2)

    def run(_case_id: str, _side: Side) -> dict[str, float]:
        return {"trajectory": float(rng.random() >= 0.06)}

    _, trials = follow(SUITE, [TRAJECTORY], run, thin, Settings(rerun="match"))
    beside = [t for t in trials if t.side is Side.BASELINE and t.tag == "full"]
    assert {t.case_id for t in beside} == {case.id for case in SUITE}
    result = judge(SUITE, [TRAJECTORY], trials, thin, can_run=True, settings=Settings(rerun="match"), stopped="x")
    assert result.course.baseline_runs == len([t for t in trials if t.side is Side.BASELINE])
    epochs = 1 + len(beside) // len(SUITE)
    by_id = Counter(t.case_id for t in trials if t.side is Side.BASELINE)
    assert all(case.baseline_trials == 1 + by_id[case.id] for case in result.cases)
    row = next(r for r in result.criteria if r.criterion.name == "trajectory")
    assert row.baseline is not None
    assert row.baseline.trials == epochs * len(SUITE)


# --- no baseline ----------------------------------------------------------------------------------


def test_without_a_baseline_thresholds_decide_alone() -> None:
    criterion = replace(TRAJECTORY, threshold=0.8)
    good, trials = follow(SUITE, [criterion], lambda _c, _s: {"trajectory": 1.0})
    assert (good.verdict, len(trials)) == (Verdict.PASS, 40)
    assert (good.cause, good.has_baseline) == (
        Finding.of("passes", compared=0, checked=40, cases=40, uncompared=Uncompared()),
        False,
    )
    bad, trials = follow(SUITE, [criterion], lambda c, _s: {"trajectory": float(c < "case-15")})
    assert (bad.verdict, len(trials)) == (Verdict.BELOW_THRESHOLD, 40)
    [found] = findings(bad, "trajectory")
    assert (found.kind, found.verdict) == ("mean", Verdict.BELOW_THRESHOLD)
    assert (found["mean"], found["trials"]) == (HeldMean(0.375, 0.8, 40), 40)


@pytest.mark.parametrize(
    ("passing", "verdict"), [(29, Verdict.BELOW_THRESHOLD), (31, Verdict.BELOW_THRESHOLD), (33, Verdict.PASS)]
)
def test_a_close_mean_is_sampled_on_and_then_decides(passing: int, verdict: Verdict) -> None:
    """Of an agent that answers alike each time the second epoch says that no further one turns anything."""
    criterion = replace(TRAJECTORY, threshold=0.8)
    result, trials = follow(SUITE, [criterion], lambda c, _s: {"trajectory": float(c < f"case-{passing}")})
    assert (result.verdict, len(trials)) == (verdict, 80)
    held = next(row for row in result.criteria if row.criterion.name == "trajectory")
    assert (held.candidate.value, held.candidate.trials) == (passing / 40, 80)
    expected = ExitCode.PASS if verdict is Verdict.PASS else ExitCode.FAILED
    assert exit_code([result], Settings()) is exit_code([result], BLOCK) is expected


def test_nothing_to_compare_with_is_said() -> None:
    result = judge(SUITE, [TRAJECTORY], once(SUITE, {"case-00": {"trajectory": 0.0}}, trajectory=1.0))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert result.cause == Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet")
    assert findings(result, "trajectory") == [Finding.of("not_judged", why="no_yardstick")]
    assert not any(found.checked for found in result.criteria)


@pytest.mark.parametrize(("direction", "worst"), [(Direction.HIGHER, 0.0), (Direction.LOWER, 1.0)])
def test_a_threshold_that_every_score_reaches_is_none(direction: Direction, worst: float) -> None:
    idle = replace(TRAJECTORY, direction=direction, threshold=worst)
    result = judge(SUITE, [idle], once(SUITE, {"case-00": {"trajectory": 0.5}}, trajectory=worst))
    assert (result.verdict, result.cause) == (Verdict.INCONCLUSIVE, NOTHING_YET)
    assert not any(found.is_warning for found in findings(result, "trajectory")), "nothing can miss it"


def test_thresholds_of_all_cases_that_every_score_reaches_are_none() -> None:
    criterion = replace(TRAJECTORY, threshold=0.5)
    now = once(SUITE, {"case-00": {"trajectory": 0.5}}, trajectory=0.0)
    own = [replace(case, thresholds={"trajectory": 0.0}) for case in SUITE]
    assert judge(own, [criterion], now).cause == NOTHING_YET
    assert judge([SUITE[0], *own[1:]], [criterion], now).cause.kind == "passes", "one case is held to the suite's"
    lower = replace(criterion, direction=Direction.LOWER)
    own = [replace(case, thresholds={"trajectory": 1.0}) for case in SUITE]
    assert judge(own, [lower], now).cause.kind == "passes", "the suite's mean counts these cases, too"


NOTHING_YET = Finding.of("not_judged", Verdict.INCONCLUSIVE, why="nothing_yet")


def test_without_a_baseline_a_suite_in_which_no_trial_passes_is_below_its_threshold() -> None:
    """An imported check without a threshold of its own is no way round: nothing passes, and that is red."""
    result = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=0.0))
    assert (result.verdict, result.cause) == (Verdict.BELOW_THRESHOLD, Finding.of("nothing_passes", trials=40))
    assert exit_code([result], Settings()) is ExitCode.FAILED
    assert (
        judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=0.0), stored(SUITE, trajectory=0.0)).verdict is Verdict.PASS
    )
    beside = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=0.0), stored(SUITE, trajectory=0.0), base_ran_now=True)
    assert beside.verdict is Verdict.BELOW_THRESHOLD, "the base's agent, run now, is no stored baseline"
    assert judge(SUITE, [replace(TRAJECTORY, blocking=False)], once(SUITE, trajectory=0.0)).cause == Finding.of(
        "not_judged", Verdict.INCONCLUSIVE, why="nothing_yet"
    )


# --- metric 0 -------------------------------------------------------------------------------------


def test_the_pass_rate_is_recomputed_for_both_sides_under_the_criteria_of_now() -> None:
    """A stricter mark fails the baseline's trials as it fails the candidate's."""
    before, now = stored(SUITE, trajectory=0.8), once(SUITE, trajectory=0.8)
    for mark, rate in ((0.7, 1.0), (0.9, 0.0)):
        result = judge(SUITE, [replace(TRAJECTORY, pass_threshold=mark)], now, before)
        found = result.criteria[0]
        assert found.criterion.name == PASS_RATE
        assert (found.candidate.value, found.baseline.value) == (rate, rate)
        assert result.verdict is Verdict.PASS


def test_a_case_says_how_long_its_trials_took_where_all_of_them_say() -> None:
    first = [replace(t, duration=0.5) for t in once(SUITE, trajectory=1.0)]
    now = first + [replace(t, number=2) for t in first]
    now[0] = replace(now[0], duration=None)
    durations = [case.duration for case in judge(SUITE, [TRAJECTORY], now).cases]
    assert durations == [None, *[1.0] * 39]


def test_a_trial_passes_when_every_blocking_criterion_holds() -> None:
    criteria = [TRAJECTORY, replace(RESPONSE, pass_threshold=0.5), replace(LATENCY, blocking=False, limit=1.0)]
    result = judge(SUITE, criteria, once(SUITE, trajectory=1.0, response=0.4, latency=9.0))
    assert result.cases[0].passed == 0
    assert result.cases[0].reasons == ("response: scored 0.4",)
    result = judge(SUITE, criteria, once(SUITE, trajectory=1.0, response=0.5, latency=9.0))
    assert result.cases[0].passed == 1


def test_a_case_has_its_own_mark() -> None:
    suite = [Case("easy", (), thresholds={"trajectory": 0.2}), Case("hard", ())]
    result = judge(suite, [TRAJECTORY], once(suite, trajectory=0.5))
    assert [c.passed for c in result.cases] == [1, 0]


def test_what_does_not_apply_is_no_failure() -> None:
    suite = cases(12)
    special = {c.id: {"response": None} for c in suite[:6]}
    criteria = [TRAJECTORY, replace(RESPONSE, threshold=0.5)]
    result = judge(suite, criteria, once(suite, special, trajectory=1.0, response=0.9))
    assert result.verdict is Verdict.PASS
    assert [c.passed for c in result.cases] == [1] * 12
    assert next(r for r in result.criteria if r.criterion.name == "response").candidate.n == 6


# --- hard failures --------------------------------------------------------------------------------


def test_one_forbidden_call_fails_at_once_and_is_never_rerun() -> None:
    special = {"case-09": {"forbidden_tools": 0.0}}
    trials = once(SUITE, special, trajectory=1.0, forbidden_tools=1.0)
    trials[9] = trial("case-09", forbidden_tools=0.0)
    result = judge(
        SUITE, [FORBIDDEN, TRAJECTORY], trials, stored(SUITE, trajectory=1.0, forbidden_tools=1.0), can_run=True
    )
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert result.cause == Finding.of("criteria_decide", criteria=("forbidden_tools",))
    assert findings(result, "forbidden_tools") == [
        Finding.of("hard_rule", Verdict.BELOW_THRESHOLD, case_id="case-09", more=0, reason="scored 0.0")
    ]
    assert status(result, "case-09") is CaseStatus.FAILED
    assert by_name(result)["trajectory"] is not Verdict.NOT_MEASURED
    assert exit_code([result], Settings()) is ExitCode.FAILED


def test_a_hard_failure_outranks_errors_and_quarantine() -> None:
    trials = [lost_trial(c.id) for c in SUITE[1:]] + [trial("case-00", forbidden_tools=0.0)]
    settings = Settings(quarantine={"case-00": "known"})
    result = judge(SUITE, [FORBIDDEN], trials, settings=settings)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert exit_code([result], settings) is ExitCode.FAILED


def test_a_hard_criterion_that_does_not_block_only_reports() -> None:
    result = judge(
        SUITE,
        [replace(FORBIDDEN, blocking=False), replace(TRAJECTORY, threshold=0.5)],
        once(SUITE, trajectory=1.0, forbidden_tools=0.0),
    )
    assert result.verdict is Verdict.PASS
    assert by_name(result)["forbidden_tools"] is Verdict.BELOW_THRESHOLD


# --- what could not be measured -------------------------------------------------------------------


def test_a_case_whose_score_never_came_is_not_measured() -> None:
    trials = once(SUITE, {"case-04": {"trajectory": "judge timed out"}}, trajectory=1.0)
    result = judge(SUITE, [replace(TRAJECTORY, threshold=0.5)], trials)
    assert result.verdict is Verdict.ERROR
    assert result.cause == Finding.of("criteria_decide", Verdict.ERROR, criteria=("trajectory",))
    assert findings(result, "trajectory") == [not_scored(1, 1, cases=("case-04",), error="judge timed out")]
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED


def test_a_score_that_came_in_another_trial_is_enough() -> None:
    trials = [*once(SUITE, {"case-04": {"trajectory": "judge timed out"}}, trajectory=1.0)]
    trials += [trial(c.id, 2, round=2, trajectory=1.0) for c in SUITE]
    result = judge(SUITE, [replace(TRAJECTORY, threshold=0.5)], trials)
    assert result.verdict is Verdict.PASS
    assert Finding.of("trials_lost", Verdict.PASS, by="scoring", lost=1, of=80, error="judge timed out") in findings(
        result, "trajectory"
    )
    assert next(r for r in result.criteria if r.criterion.name == "trajectory").not_measured == 1


def test_a_criterion_of_which_too_many_scores_are_lost_is_not_measured() -> None:
    """Every case has one score, and the other two of its trials have none: the agent reported what suits it."""
    trials = [trial(c.id, n, trajectory=1.0, cost=0.1 if n == 1 else "no cost") for c in SUITE for n in (1, 2, 3)]
    cost = replace(LATENCY, name="cost", limit=1.0)
    result = judge(SUITE, [TRAJECTORY, cost], trials)
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("criteria_decide", Verdict.ERROR, criteria=("cost",)),
    )
    assert findings(result, "cost") == [not_scored(80, 120, most=0.1, error="no cost")]
    assert judge(SUITE, [TRAJECTORY, cost], trials, settings=Settings(max_error_rate=0.7)).verdict is Verdict.PASS
    mute = [trial(c.id, n, trajectory=1.0, cost=0.1 if n == 1 else None) for c in SUITE for n in (1, 2, 3)]
    assert judge(SUITE, [TRAJECTORY, cost], mute).verdict is Verdict.PASS, "what does not apply is no loss"


def test_a_criterion_that_is_not_in_the_record_is_not_measured() -> None:
    assert judge(SUITE, [TRAJECTORY, RESPONSE], once(SUITE, trajectory=1.0)).verdict is Verdict.ERROR


def test_a_criterion_that_applies_to_no_case_is_never_green() -> None:
    result = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=None))
    assert result.verdict is Verdict.ERROR
    assert findings(result, "trajectory") == [Finding.of("not_judged", Verdict.NOT_MEASURED, why="applies_to_none")]


def test_pairs_without_a_measured_pass_are_never_a_pass() -> None:
    """One half of each trial could not be judged, and the other half holds: neither passed nor failed."""
    criteria = [TRAJECTORY, replace(RESPONSE, pass_threshold=0.5)]
    one, two = once(SUITE, trajectory=1.0, response="down"), once(SUITE, trajectory="down", response=0.9)
    both = [*one, *(replace(t, number=2) for t in two)]
    before = stored(SUITE, trajectory=1.0, response=0.9)
    assert judge(SUITE, criteria, both, before).verdict is Verdict.ERROR
    result = judge(SUITE, criteria, both, before, settings=Settings(max_error_rate=0.5))
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("trials_lost", lost=0, of=80, unscored=80, decide=True),
    )
    assert result.criteria[0].verdict is Verdict.INCONCLUSIVE


def test_a_judge_that_is_down_is_no_regression() -> None:
    """Of flaky cases only the failures would be left, if a failure counted without its judge."""
    criteria = [TRAJECTORY, replace(RESPONSE, pass_threshold=0.5)]
    before = [trial(c.id, n, trajectory=float(n > 1), response=0.9) for c in SUITE for n in range(1, 6)]
    now = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:8]}, trajectory=1.0, response="judge is down")
    result = judge(SUITE, criteria, now, before)
    assert result.verdict is Verdict.ERROR
    assert result.cases[0].reasons[0] == "trajectory: scored 0.0"


def test_an_unmeasured_criterion_that_does_not_block_changes_nothing() -> None:
    result = judge(
        SUITE,
        [replace(TRAJECTORY, threshold=0.5), replace(RESPONSE, blocking=False)],
        once(SUITE, trajectory=1.0, response="no key"),
    )
    assert result.verdict is Verdict.PASS


def test_too_many_infrastructure_errors_are_an_error_not_a_regression() -> None:
    trials = [lost_trial(c.id) for c in SUITE[:6]] + once(SUITE[6:], trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE, can_run=True)
    assert result.verdict is Verdict.ERROR
    error = "unreachable: 127.0.0.1:80: Connection refused"
    assert result.cause == Finding.of("trials_lost", lost=6, of=40, most=0.1, error=error)
    assert (result.errors, status(result, "case-00")) == (6, CaseStatus.ERROR)
    assert exit_code([result], Settings()) is ExitCode.NOT_MEASURED


def test_a_case_without_one_measured_trial_is_an_error_within_the_limit_too() -> None:
    trials = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE)
    error = "unreachable: 127.0.0.1:80: Connection refused"
    assert result.verdict is Verdict.ERROR
    assert result.cause == Finding.of("trials_lost", lost=1, of=1, cases=("case-00",), error=error)
    assert result.cases[0].reasons == (error,)


@pytest.mark.parametrize("settings", [Settings(), Settings(exact_epochs=1)])
def test_one_passing_crash_is_run_again_and_takes_its_place(settings: Settings) -> None:
    trials = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    more = ask(SUITE, [TRAJECTORY], trials, BASELINE, settings=settings)
    assert (more.round, more.again) == (1, True)
    assert [(r.side, r.tag, r.cases, r.n) for r in more.requests] == [(Side.CANDIDATE, "full", ("case-00",), 1)]
    healed = [*trials, replace(trial("case-00", 2, trajectory=1.0), again=True)]
    result = judge(SUITE, [TRAJECTORY], healed, BASELINE, settings=settings, can_run=True)
    assert (result.verdict, result.errors) == (Verdict.PASS, 1)
    assert (result.course.epochs, result.course.cases) == (1, 40)
    assert result.outcome.evidence.looks[-1].epochs == 1
    assert judge(SUITE, [TRAJECTORY], healed, BASELINE, settings=settings).verdict is Verdict.PASS


def test_a_case_that_is_lost_each_time_is_run_again_twice_and_no_more() -> None:
    trials = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    trials.append(lost_trial("case-00", 2, again=True))
    assert ask(SUITE, [TRAJECTORY], trials, BASELINE).again
    assert ask(SUITE, [TRAJECTORY], trials, ()).again
    trials.append(lost_trial("case-00", 3, again=True))
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE, can_run=True)
    assert result.verdict is Verdict.ERROR
    assert (result.cause.kind, result.cause["cases"]) == ("trials_lost", ("case-00",))


def test_a_trial_that_asked_what_is_not_recorded_is_made_up_for_by_no_other() -> None:
    """The change asked for it: where it did not, the trial is another one."""
    refused = replace(
        lost_trial("case-00"),
        error=TrialError(ErrorKind.MISSING, "request 2 differs in messages[3]"),
        replay=Replay("run:1:a", 1, 0, "request 2 differs in messages[3]"),
    )
    again = trial("case-00", 2, again=True, trajectory=1.0)
    result = judge(SUITE, [TRAJECTORY], [refused, *once(SUITE[1:], trajectory=1.0), again], BASELINE)
    assert result.verdict is Verdict.ERROR
    error = "missing: request 2 differs in messages[3]"
    assert result.cause == Finding.of("trials_lost", lost=1, of=2, cases=("case-00",), error=error)
    lost = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0), again]
    assert judge(SUITE, [TRAJECTORY], lost, BASELINE).verdict is Verdict.PASS


def test_what_crashed_is_run_again_within_the_runs_and_the_error_rate_alone() -> None:
    trials = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0)]
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE, can_run=True, settings=Settings(runs=40))
    assert result.verdict is Verdict.ERROR
    strict = Settings(max_error_rate=0.01)
    assert judge(SUITE, [TRAJECTORY], trials, BASELINE, can_run=True, settings=strict).verdict is Verdict.ERROR


def test_a_case_that_crashed_and_then_fails_is_confirmed_as_any_other() -> None:
    trials = [lost_trial("case-00"), *once(SUITE[1:], trajectory=1.0), trial("case-00", 2, round=2, trajectory=0.0)]
    more = ask(SUITE, [TRAJECTORY], trials, BASELINE)
    assert [(r.tag, r.cases) for r in more.requests] == [("confirm", ("case-00",))]


def test_a_case_most_of_whose_trials_crash_is_an_error_however_few_they_are() -> None:
    """Whoever crashes where it would fail is not measured there."""
    trials = [trial(c.id, n, trajectory=1.0) for c in SUITE for n in (1, 2, 3, 4, 5)]
    for n in (2, 3, 4):
        trials[15 + n - 1] = lost_trial("case-03", n)
    settings = Settings(exact_epochs=5)
    result = judge(SUITE, [TRAJECTORY], trials, BASELINE, settings=settings)
    assert result.verdict is Verdict.ERROR
    error = "unreachable: 127.0.0.1:80: Connection refused"
    assert result.cause == Finding.of("trials_lost", lost=3, of=5, cases=("case-03",), error=error)
    trials[17] = trial("case-03", 3, trajectory=1.0)
    assert judge(SUITE, [TRAJECTORY], trials, BASELINE, settings=settings).verdict is Verdict.PASS


@pytest.mark.parametrize("baseline", [BASELINE, []])
def test_a_run_that_was_stopped_before_its_first_decision_is_an_error(baseline: list[Trial]) -> None:
    two = [trial(c.id, n, trajectory=1.0) for c in SUITE for n in (1, 2)]
    held = replace(TRAJECTORY, threshold=0.5)
    result = judge(
        SUITE, [held], two, baseline, settings=Settings(exact_epochs=5), can_run=True, stopped="the budget is spent"
    )
    assert (result.verdict, exit_code([result], Settings())) == (Verdict.ERROR, ExitCode.NOT_MEASURED)
    assert result.cause == Finding.of("not_run", epochs=2, wanted=5)
    whole = judge(SUITE, [held], two, baseline, settings=Settings(exact_epochs=2), stopped="the budget is spent")
    assert whole.verdict is Verdict.PASS
    down = [trial(c.id, n, trajectory=0.0) for c in SUITE for n in (1, 2)]
    fell = judge(SUITE, [held], down, baseline, settings=Settings(exact_epochs=5), stopped="the budget is spent")
    assert fell.verdict in (Verdict.BELOW_THRESHOLD, Verdict.REGRESSED), "what is proven stands"


def test_no_trial_at_all_is_an_error() -> None:
    assert judge(SUITE, [TRAJECTORY], [], BASELINE).verdict is Verdict.ERROR
    assert judge(SUITE, [TRAJECTORY], []).verdict is Verdict.ERROR


def test_a_proven_regression_stands_beside_errors() -> None:
    down = once(SUITE[8:], trajectory=0.0)
    result = judge(SUITE, [TRAJECTORY], [lost_trial(c.id) for c in SUITE[:8]] + down, BASELINE)
    assert result.verdict is Verdict.REGRESSED
    assert exit_code([result], Settings()) is ExitCode.FAILED


# --- thresholds and limits ------------------------------------------------------------------------


def test_ratchet_does_not_block_what_was_below_before() -> None:
    criterion = replace(RESPONSE, threshold=0.8)
    before, now = stored(SUITE, response=0.5), once(SUITE, response=0.5)
    result = judge(SUITE, [criterion], now, before)
    assert result.verdict is Verdict.PASS
    assert any(found.kind == "mean" and found.is_excused for found in findings(result, "response"))
    assert judge(SUITE, [replace(criterion, ratchet=False)], now, before).verdict is Verdict.BELOW_THRESHOLD


def test_ratchet_does_not_excuse_a_fall_below_the_threshold() -> None:
    result = judge(SUITE, [replace(RESPONSE, threshold=0.8)], once(SUITE, response=0.5), stored(SUITE, response=0.9))
    assert result.verdict is Verdict.REGRESSED


def test_a_threshold_of_one_is_missed_by_one_failure_with_and_without_a_baseline() -> None:
    criterion = replace(TRAJECTORY, threshold=1.0)
    one = once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0)
    assert judge(SUITE, [criterion], one).verdict is Verdict.BELOW_THRESHOLD
    assert judge(SUITE, [criterion], one, BASELINE).verdict is Verdict.BELOW_THRESHOLD
    eight = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:8]}, trajectory=1.0)
    assert by_name(judge(SUITE, [criterion], eight, BASELINE))["trajectory"] is Verdict.REGRESSED


def test_a_narrow_miss_is_a_miss_with_the_error_of_its_mean() -> None:
    criterion = replace(TRAJECTORY, threshold=0.99)
    one = once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0)
    result = judge(SUITE, [criterion], one)
    assert (result.verdict, result.cause) == (
        Verdict.BELOW_THRESHOLD,
        Finding.of("criteria_decide", criteria=("trajectory",)),
    )
    [found] = findings(result, "trajectory")
    assert (found.kind, found.verdict) == ("mean", Verdict.BELOW_THRESHOLD)
    assert (found["mean"], found["trials"], found["base_cases"]) == (HeldMean(0.975, 0.99, 40), 40, False)
    assert found["error"] == pytest.approx((40 / 39 * 0.975 * 0.025 / 40) ** 0.5)


def test_a_threshold_with_room_is_proposed_from_the_base() -> None:
    """One that the broken agent meets would hide the loss."""
    criterion = replace(TRAJECTORY, threshold=0.8)
    now = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[:9]}, trajectory=1.0)
    [found] = findings(judge(SUITE, [criterion], now), "trajectory")
    assert 0.6 < found["room"] < found["mean"].value, "without a base, this agent is all that is known"

    def room(failing: int) -> float | None:
        before = once(SUITE, {c.id: {"trajectory": 0.0} for c in SUITE[-failing:]}, trajectory=1.0)
        row = judge(SUITE, [criterion], now, before).row("trajectory")
        assert row is not None
        missed = row.finding("mean", Verdict.BELOW_THRESHOLD)
        assert missed is not None
        proposed: float | None = missed["room"]
        return proposed

    assert room(1) is None, "the threshold leaves the base's agent room: this one is worse"
    close = room(7)
    assert close is not None
    assert 0.7 < close < 0.8


def test_a_limit_is_the_most_that_any_trial_may_reach() -> None:
    criterion = replace(LATENCY, limit=2.0)
    trials = once(SUITE, {"case-03": {"latency": 2.5}}, latency=1.0)
    result = judge(SUITE, [criterion], trials)
    assert result.verdict is Verdict.BELOW_THRESHOLD
    assert (result.cause, result.has_baseline) == (Finding.of("criteria_decide", criteria=("latency",)), False)
    assert findings(result, "latency") == [
        Finding.of("limit", Verdict.BELOW_THRESHOLD, case_id="case-03", value=2.5, limit=2.0, over=1)
    ]
    before = stored(SUITE, latency=1.0)
    assert judge(SUITE, [criterion], trials, before).verdict is Verdict.BELOW_THRESHOLD
    before[0] = trial("case-00", 1, latency=3.0)
    assert judge(SUITE, [criterion], trials, before).verdict is Verdict.BELOW_THRESHOLD, "another case excuses nothing"
    before[15] = trial("case-03", 1, latency=2.4)
    result = judge(SUITE, [criterion], trials, before)
    assert result.verdict is Verdict.PASS
    assert Finding.of("limit", case_id="case-03", value=2.5, limit=2.0) in findings(result, "latency")
    before[15] = trial("case-03", 1, latency=2.1)
    assert judge(SUITE, [replace(criterion, margin=0.1)], trials, before).verdict is Verdict.BELOW_THRESHOLD


@pytest.mark.parametrize(
    ("slow", "verdict"),
    [(0, Verdict.PASS), (1, Verdict.PASS), (5, Verdict.INCONCLUSIVE), (20, Verdict.BELOW_THRESHOLD)],
)
def test_a_quantile_limit_is_judged_by_how_many_trials_lie_above_it(slow: int, verdict: Verdict) -> None:
    criterion = replace(LATENCY, quantiles=((0.95, 3.0),))
    special = {c.id: {"latency": 4.0} for c in SUITE[:slow]}
    result = judge(SUITE, [criterion], once(SUITE, special, latency=1.0))
    assert result.verdict is verdict
    assert result.criteria[1].quantiles[0][0] == 0.95


def test_a_quantile_above_its_limit_is_excused_within_the_margin_of_the_baselines() -> None:
    criterion = replace(LATENCY, quantiles=((0.95, 3.0),))
    before = stored(SUITE, latency=3.3)
    same = judge(SUITE, [criterion], once(SUITE, latency=3.5), before)
    assert same.verdict is Verdict.PASS
    assert Finding.of("limit", q=0.95, value=3.5, limit=3.0) in findings(same, "latency")
    worse = judge(SUITE, [criterion], once(SUITE, latency=330.0), before)
    assert worse.verdict is Verdict.BELOW_THRESHOLD
    assert findings(worse, "latency") == [
        Finding.of("limit", Verdict.BELOW_THRESHOLD, q=0.95, value=330.0, limit=3.0, before=3.3)
    ]
    new = [*SUITE, *(replace(c, id=f"new-{c.id}") for c in SUITE)]
    assert judge(new, [criterion], once(new, latency=3.5), before).verdict is Verdict.BELOW_THRESHOLD


@pytest.mark.parametrize("runs", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_an_unchanged_agent_above_its_quantile_limit_is_not_blocked_for_its_noise(runs: int) -> None:
    rng = Random(11)
    criterion = replace(LATENCY, quantiles=((0.95, 1.0),))
    wrong = 0
    for _ in range(runs):
        now = [trial(c.id, latency=rng.lognormvariate(0, 1)) for c in SUITE]
        before = [trial(c.id, n, latency=rng.lognormvariate(0, 1)) for c in SUITE for n in range(1, 6)]
        wrong += judge(SUITE, [criterion], now, before).verdict is Verdict.BELOW_THRESHOLD
    assert wrong <= runs / 50


def test_a_mean_where_lower_is_better() -> None:
    criterion = replace(LATENCY, threshold=2.0)
    assert judge(SUITE, [criterion], once(SUITE, latency=1.0)).verdict is Verdict.PASS
    assert judge(SUITE, [criterion], once(SUITE, latency=3.0)).verdict is Verdict.BELOW_THRESHOLD


def test_cost_and_latency_only_warn_unless_asked() -> None:
    before = stored(SUITE, trajectory=1.0, latency=1.0)
    now = once(SUITE, trajectory=1.0, latency=1.6)
    result = judge(SUITE, [TRAJECTORY, LATENCY], now, before)
    assert result.verdict is Verdict.PASS
    [found] = findings(result, "latency")
    assert (found.kind, found["only_warns"], found["change"].value) == ("change", True, pytest.approx(0.6))
    assert found.is_warning
    assert (
        judge(SUITE, [TRAJECTORY, replace(LATENCY, blocks_regression=True)], now, before).verdict is Verdict.REGRESSED
    )


# --- what changed ---------------------------------------------------------------------------------


def test_new_changed_and_removed_cases_are_outside_the_pairing_and_said() -> None:
    suite = [*SUITE[1:], Case("brand-new", ())]
    not_comparable = {("case-01", "trajectory"): Incomparable.EDITED}
    now = once(suite, {"brand-new": {"trajectory": 0.0}, "case-01": {"trajectory": 0.0}}, trajectory=1.0)
    result = judge(suite, [TRAJECTORY], now, BASELINE, not_comparable=not_comparable)
    assert result.verdict is Verdict.NOT_COMPARED
    assert result.cause == Finding.of(
        "incomplete", gaps=(Finding.of("cases_changed", Verdict.NOT_COMPARED, how="edited", cases=("case-01",)),)
    )
    assert exit_code([result], Settings()) is ExitCode.FAILED
    fine = once(suite, {"brand-new": {"trajectory": 0.0}}, trajectory=1.0)
    assert judge(suite, [TRAJECTORY], fine, BASELINE, not_comparable=not_comparable).verdict is Verdict.PASS
    assert result.changes == (
        Finding.of("cases_changed", how="new", cases=("brand-new",), never_passed=("brand-new",)),
        Finding.of("cases_changed", how="edited", cases=("case-01",), never_passed=("case-01",)),
        Finding.of("cases_changed", how="removed", cases=("case-00",)),
    )
    assert [status(result, c) for c in ("brand-new", "case-01", "case-00")] == [
        CaseStatus.NEW,
        CaseStatus.EDITED,
        CaseStatus.REMOVED,
    ]
    assert result.outcome.evidence.paired == 38


def test_new_cases_that_never_passed_are_named_though_the_mean_holds() -> None:
    suite = [*SUITE, Case("bad", ()), Case("good", ()), Case("lost", ())]
    now = once(suite[:-1], {"bad": {"trajectory": 0.0}}, trajectory=1.0)
    result = judge(suite, [replace(TRAJECTORY, threshold=0.5)], now, BASELINE)
    found = Finding.of("cases_changed", how="new", cases=("bad", "good", "lost"), never_passed=("bad",))
    assert found in result.changes, "nothing is known of a case that was not measured"


def test_quarantined_cases_are_counted_beside_a_pass() -> None:
    suite = [*SUITE[1:], Case("brand-new", ())]
    settings = Settings(quarantine={case.id: "known" for case in suite[-31:]})
    trials = [*once(suite, trajectory=1.0), *once(suite, trajectory=1.0), *once(suite, trajectory=1.0)]
    passes = judge(suite, [replace(TRAJECTORY, threshold=0.9)], trials, settings=settings).cause
    assert (passes.kind, passes["uncompared"]) == ("passes", Uncompared(quarantined=31))


def test_new_cases_are_held_to_thresholds() -> None:
    suite = [*cases(2), *(Case(f"new-{i}", ()) for i in range(30))]
    special = {c.id: {"trajectory": 0.0} for c in suite[2:]}
    result = judge(
        suite,
        [replace(TRAJECTORY, threshold=0.9)],
        once(suite, special, trajectory=1.0),
        stored(suite[:2], trajectory=1.0),
    )
    assert result.verdict is Verdict.BELOW_THRESHOLD


def test_a_criterion_that_cannot_be_compared_leaves_the_others_compared() -> None:
    """Metric 0 of both sides is then judged by what can be compared."""
    criteria = [TRAJECTORY, replace(RESPONSE, pass_threshold=0.5)]
    not_comparable = {(c.id, "response"): Incomparable.CHANGED for c in SUITE}
    before, now = stored(SUITE, trajectory=1.0, response=0.9), once(SUITE, trajectory=1.0, response=0.1)
    result = judge(SUITE, criteria, now, before, not_comparable=not_comparable)
    assert (result.verdict, result.cause) == (
        Verdict.NOT_COMPARED,
        Finding.of("incomplete", gaps=(Finding.of("not_compared", criterion="response", why="changed"),)),
    )
    assert result.changes == (Finding.of("not_compared", criterion="response", why="changed"),)
    rate, trajectory, response = result.criteria
    assert (rate.not_compared, rate.verdict) == (
        Finding.of("not_compared", criterion="pass rate", why="without_others", others=("response",)),
        Verdict.NOT_COMPARED,
    )
    assert (trajectory.not_compared, trajectory.verdict) == (None, Verdict.PASS)
    assert (response.not_compared, response.verdict) == (
        Finding.of("not_compared", criterion="response", why="changed"),
        Verdict.NOT_COMPARED,
    )
    broken = once(SUITE, trajectory=0.0, response=0.1)
    assert judge(SUITE, criteria, broken, before, not_comparable=not_comparable).verdict is Verdict.REGRESSED


def test_a_criterion_that_warns_only_is_not_compared_and_the_suite_passes() -> None:
    criteria = [TRAJECTORY, replace(RESPONSE, blocking=False)]
    not_comparable = {(c.id, "response"): Incomparable.CHANGED for c in SUITE}
    before, now = stored(SUITE, trajectory=1.0, response=0.9), once(SUITE, trajectory=1.0, response=0.1)
    result = judge(SUITE, criteria, now, before, not_comparable=not_comparable)
    assert result.verdict is Verdict.PASS
    assert result.criteria[2].not_compared == Finding.of("not_compared", criterion="response", why="changed")


@pytest.mark.parametrize("why", ["edited", "removed"])
def test_a_criterion_is_owed_though_the_cases_it_was_measured_on_are_a_tenth(why: str) -> None:
    """What may be lost of cases is no margin for a criterion that applies to these alone."""
    few = {c.id for c in SUITE[:4]}
    before = [
        replace(t, scores={n: v for n, v in t.scores.items() if n == "trajectory" or t.case_id in few})
        for t in stored(SUITE, trajectory=1.0, response=0.9)
    ]
    criteria = [TRAJECTORY, RESPONSE]
    edits = {(case_id, c.name): Incomparable.EDITED for case_id in few for c in criteria} if why == "edited" else {}
    left = SUITE if why == "edited" else SUITE[4:]
    for extra, verdict in (({}, Verdict.NOT_COMPARED), ({"blocking": False}, Verdict.PASS)):
        criteria = [TRAJECTORY, replace(RESPONSE, **extra)]
        now = once(left, trajectory=1.0, response=0.1)
        result = judge(left, criteria, now, before, not_comparable=edits)
        assert result.verdict is verdict
        assert result.criteria[2].not_compared == Finding.of(
            "not_compared", criterion="response", why="cases_gone", of=4
        )
    kept = {pair: reason for pair, reason in edits.items() if pair[0] != SUITE[0].id}
    if kept:
        assert judge(left, criteria, now, before, not_comparable=kept).criteria[2].not_compared is None


def test_quarantine_keeps_a_broken_case_from_blocking() -> None:
    trials = once(SUITE, {"case-07": {"trajectory": 0.0}}, trajectory=1.0)
    settings = Settings(quarantine={"case-07": "flaky upstream (ana, until 2030-01-01)"})
    result = judge(SUITE, [replace(TRAJECTORY, threshold=1.0)], trials, BASELINE, settings=settings)
    assert result.verdict is Verdict.PASS
    assert (status(result, "case-07"), result.cases[7].quarantine) == (
        CaseStatus.QUARANTINED,
        settings.quarantine["case-07"],
    )


@pytest.mark.parametrize("before", [[], BASELINE])
def test_with_every_case_in_quarantine_nothing_is_measured_and_nothing_more_asked_for(before: list[Trial]) -> None:
    everything = Settings(quarantine={c.id: "known" for c in SUITE})
    result, trials = follow(SUITE, [TRAJECTORY], lambda _c, _s: {"trajectory": 1.0}, before, everything)
    assert len(trials) == len(SUITE)
    assert (result.verdict, result.cause) == (
        Verdict.ERROR,
        Finding.of("not_run", quarantined=True),
    )


@pytest.mark.slow
@given(st.data())
@hypothesis.settings(max_examples=examples(60))
def test_whatever_the_suite_every_round_asks_for_a_trial_and_the_schedule_ends(data: st.DataObject) -> None:
    """Baselines of any part of the cases, any quarantine, any budget, any mix of scores, errors and silence."""
    suite = cases(data.draw(st.integers(1, 6)))
    ids = [case.id for case in suite]
    values = st.sampled_from([0.0, 1.0, None, "no answer", "crash"])
    stored_of = data.draw(st.lists(st.sampled_from(ids), unique=True))
    before = [
        trial(name, n, trajectory=data.draw(values.filter(lambda value: value != "crash")))
        for name in stored_of
        for n in (1, 2)
    ]
    options = Settings(
        quarantine=dict.fromkeys(data.draw(st.lists(st.sampled_from(ids), unique=True)), "known"),
        exact_epochs=data.draw(st.sampled_from([None, 1, 3])),
        runs=data.draw(st.sampled_from([None, 1, 7])),
        rerun=data.draw(st.sampled_from(["never", "match"])),
        max_error_rate=data.draw(st.sampled_from([0.1, 1.0])),
    )
    criterion = replace(TRAJECTORY, threshold=data.draw(st.sampled_from([None, 0.5, 1.0])))
    trials: list[Trial] = []
    for _ in range(80):
        step = step_of(Comparison(suite, [criterion], trials, before, options))
        if isinstance(step, SuiteResult):
            return
        assert step.runs > 0
        assert all(request.cases and request.n > 0 for request in step.requests)
        for request in step.requests:
            for name in request.cases:
                done = sum(t.case_id == name and t.side is request.side for t in trials)
                for number in range(done + 1, done + request.n + 1):
                    value = data.draw(values)
                    made = trial(name, number, round=step.round, tag=request.tag, side=request.side, trajectory=value)
                    crashed = replace(made, scores={}, error=TrialError(ErrorKind.UNREACHABLE, "refused"))
                    trials.append(crashed if value == "crash" else made)
    raise AssertionError("the schedule does not end")


def test_quarantined_cases_are_run_once() -> None:
    settings = Settings(quarantine={"case-07": "known"})
    assert "case-07" in ask(SUITE, [TRAJECTORY], [], BASELINE, settings=settings).requests[0].cases
    ten = {c.id: {"trajectory": 0.0} for c in SUITE[10:14]}
    one = once(SUITE, ten, trajectory=1.0)
    more = ask(SUITE, [replace(TRAJECTORY, threshold=0.95)], one, (), settings=settings)
    assert "case-07" not in more.requests[0].cases


def test_numbers_read_as_what_they_are() -> None:
    """A spread of nothing, and a bound that is just short of the threshold."""
    steady = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0), BASELINE)
    detectable = steady.outcome.evidence.metrics[PASS_RATE].detectable
    assert 0.1 < detectable < 0.3, "a spread of nothing in what was seen does not make every drop visible"
    [found] = findings(steady, "trajectory")
    assert (found["change"].value, found["change"].cases) == (0.0, 40)
    many = cases(400)
    one = [trial(c.id, n, f=float((c.id, n) != ("case-07", 1))) for c in many for n in range(1, 31)]
    binary = Criterion("f", "f", Scale.BINARY, threshold=1.0)
    [found] = findings(judge(many, [binary], one, settings=Settings(exact_epochs=30)), "f")
    assert (found.kind, found.verdict) == ("mean", Verdict.BELOW_THRESHOLD) and 0.9999 < found["mean"].value < 1.0
    below = Criterion("sentiment", "custom", Scale.COUNT, threshold=1.0)
    [found] = findings(judge(cases(1), [below], once(cases(1), sentiment=-1.5)), "sentiment")
    assert found["mean"] == HeldMean(-1.5, 1.0, 1)


# --- cases and warnings ---------------------------------------------------------------------------


def test_a_case_shows_expected_actual_and_reference_trajectories() -> None:
    case = Case("c", (Turn("hi", (ToolCall("refund"),)),))
    suite = [case, *cases(11)]

    def called(name: str, value: float, number: int = 1):  # type: ignore[no-untyped-def]
        calls = (Invocation(tool_calls=(ToolCall(name),)),)
        return replace(trial("c", number, trajectory=value), invocations=calls)

    before = [called("refund", 1.0, n) for n in range(1, 6)] + stored(suite[1:], trajectory=1.0)
    result = judge(suite, [TRAJECTORY], [called("cancel", 0.0), *once(suite[1:], trajectory=1.0)], before)
    found = result.cases[0]
    assert found.expected == ((ToolCall("refund"),),)
    assert found.actual == ((ToolCall("cancel"),),)
    assert found.reference == ((ToolCall("refund"),),)
    assert (found.status, found.scores) == (CaseStatus.SUSPECT, {"trajectory": (0.0, 1.0)})
    assert found.e_value > 2


def test_a_flaky_case_is_flagged() -> None:
    before = [
        t if t.number > 2 or t.case_id != "case-02" else trial("case-02", t.number, trajectory=0.0) for t in BASELINE
    ]
    assert status(judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0), before), "case-02") is CaseStatus.FLAKY


def test_a_thin_baseline_is_said() -> None:
    suite = cases(4)
    result = judge(suite, [TRAJECTORY], once(suite, trajectory=1.0), stored(suite, 2, trajectory=1.0))
    (thin,) = result.warnings
    assert (thin["cases"], thin["wanted"], thin["least"], thin["typical"]) == (4, 5, 2, 2)
    five = judge(cases(5), [TRAJECTORY], once(cases(5), trajectory=1.0), stored(cases(5), 5, trajectory=1.0))
    assert not five.warnings


def test_a_baseline_is_as_thin_as_its_thinner_half() -> None:
    suite = cases(8)
    before = [*stored(suite[:4], 2, trajectory=1.0), *stored(suite[4:], 3, trajectory=1.0)]
    result = judge(suite, [TRAJECTORY], once(suite, trajectory=1.0), before)
    thin = result.warnings[0]
    assert (thin["cases"], thin["least"], thin["typical"]) == (8, 2, 2)
    before = [*stored(suite[:2], 1, trajectory=1.0), *stored(suite[2:], 5, trajectory=1.0)]
    thin = judge(suite, [TRAJECTORY], once(suite, trajectory=1.0), before).warnings[0]
    assert (thin["cases"], thin["typical"], thin["blind"]) == (2, 5, True), (
        "with one stored trial a break is not proven"
    )


def test_repeats_that_never_differ_are_suspected_of_a_cache() -> None:
    suite = cases(5)

    def said(number: int):  # type: ignore[no-untyped-def]
        answer = (Invocation(response=(Part("Your order is on its way."),)),)
        return [replace(trial(c.id, number, round=number, trajectory=1.0), invocations=answer) for c in suite]

    repeated = judge(suite, [TRAJECTORY], said(1) + said(2))
    assert repeated.warnings[-1] == Finding.of("answers_say_little", cases=5, of=5, why="steady")
    assert not judge(suite, [TRAJECTORY], said(1)).warnings


def test_an_inconclusive_answer_says_what_is_ruled_out_and_what_would_decide() -> None:
    suite = cases(12)
    before = [trial(c.id, n, trajectory=float(n % 2)) for c in suite for n in range(1, 6)]
    result = judge(
        suite, [TRAJECTORY], once(suite, {c.id: {"trajectory": 0.0} for c in suite[:5]}, trajectory=1.0), before
    )
    assert result.verdict is Verdict.INCONCLUSIVE
    rate = result.outcome.evidence.metrics[PASS_RATE]
    assert rate.low is not None and rate.low < -rate.margin < rate.change and not rate.holds
    assert rate.detectable is not None
    assert result.criteria[0].detectable > 0.1


def test_reruns_stored_with_a_baseline_are_no_fair_sample_and_left_out() -> None:
    picked = [trial("case-00", 6, tag="confirm", round=2, trajectory=0.0)] * 9
    result = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0), BASELINE + picked)
    assert result.cases[0].baseline_trials == 5


# --- exit codes -----------------------------------------------------------------------------------


def test_the_worst_suite_decides_the_exit_code() -> None:
    good = judge(SUITE, [TRAJECTORY], once(SUITE, trajectory=1.0))
    bad = judge(SUITE, [replace(TRAJECTORY, threshold=1.0)], once(SUITE, trajectory=0.0))
    lost = judge(SUITE, [TRAJECTORY], [])
    assert exit_code([good], Settings()) is ExitCode.PASS
    assert exit_code([good, lost], Settings()) is ExitCode.NOT_MEASURED
    assert exit_code([good, lost, bad], Settings()) is ExitCode.FAILED
    assert exit_code([], Settings()) is ExitCode.NOT_MEASURED


def test_what_no_proof_names_has_a_tick_only_where_its_loss_is_bounded() -> None:
    """The run ends at the proof of one criterion, and by then nothing may be known of another."""
    suite = cases(20)
    before = stored(suite, trajectory=1.0, response=0.8)
    fell = {case.id: {"trajectory": 0.0} for case in suite[:8]}
    fell |= {suite[0].id: {"trajectory": 0.0, "response": 0.0}, suite[1].id: {"trajectory": 0.0, "response": 0.9}}
    result = judge(suite, [TRAJECTORY, RESPONSE], once(suite, fell, trajectory=1.0, response=0.8), before)
    rows = {row.criterion.name: row for row in result.criteria}
    assert result.verdict is Verdict.REGRESSED
    assert rows["response"].verdict is Verdict.INCONCLUSIVE
    assert rows["response"].findings[-1]["why"] == "beyond_margin"
    broke = {case.id: {"trajectory": 0.0} for case in suite[:8]}
    same = judge(suite, [TRAJECTORY, RESPONSE], once(suite, broke, trajectory=1.0, response=0.8), before)
    assert by_name(same)["response"] is Verdict.PASS
