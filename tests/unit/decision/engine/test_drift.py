"""A drop of the whole suite is the change's only if it shows against what the baseline's agent does now."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from gate.decision.engine.drift import CHECKS
from gate.decision.engine.evidence import gather
from gate.decision.engine.rule import decide
from gate.decision.engine.state import Config, Continue, Request, Round
from gate.model import Outcome, Side, Stage, StageKind
from tests.unit.decision.numbers import bernoulli, drive, full, ids, rows, state

CASES = ids(60)
STEADY = {c: rows(1, 1, 1, 1, 1) for c in CASES}
FLAKY = {c: rows(1, 0, 1, 0, 1) for c in CASES}
MATCH = Config(rerun="match")
FELL = full({c: rows(float(i % 4 == 0)) for i, c in enumerate(CASES)})
"""From 60 % to 25 %: no single case shows it."""


def beside(passes: float, tag: str = "concurrent", side: Side = Side.BASELINE, n: int = 1) -> Round:
    """Trials of which every other one, or so, passes."""
    return Round(tag, side, {c: rows(*[float((i % 10) < 10 * passes)] * n) for i, c in enumerate(CASES)})


def test_the_baselines_agent_is_asked_for_an_epoch_before_a_suite_is_blocked() -> None:
    step = decide(state(FLAKY, FELL, config=MATCH))
    assert step == Continue((Request(Side.BASELINE, "concurrent", tuple(CASES), 1),), "tell the change from a drift")


def test_a_drop_that_shows_against_the_baselines_agent_now_is_blocked() -> None:
    answer = decide(state(FLAKY, FELL, beside(1.0), config=MATCH))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1, confirmed=True))
    assert not answer.stage.drift_open


def test_a_drop_that_both_sides_share_is_no_regression() -> None:
    answer = decide(state(FLAKY, FELL, beside(0.2), config=MATCH))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("INCONCLUSIVE", Stage(StageKind.DRIFTED))
    assert answer.evidence.named == ()


def test_a_baselines_agent_that_does_not_answer_excuses_nothing() -> None:
    silent = Round("concurrent", Side.BASELINE, {c: [[None]] for c in CASES})
    answer = decide(state(FLAKY, FELL, silent, config=MATCH))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage.confirmed, answer.stage.drift_open) == ("REGRESSION", False, True)


def test_an_open_check_goes_on_with_both_sides_until_it_has_an_answer() -> None:
    step = decide(state(FLAKY, FELL, beside(0.4), config=MATCH))
    assert isinstance(step, Continue)
    both = (
        Request(Side.BASELINE, "concurrent", tuple(CASES), 1),
        Request(Side.CANDIDATE, "concurrent", tuple(CASES), 1),
    )
    assert step.requests == both
    ended = decide(state(FLAKY, FELL, beside(0.4), config=replace(MATCH, runs_left=119)))
    assert isinstance(ended, Outcome)
    assert ended.verdict == "INCONCLUSIVE", "what began and did not show is not proven"


@pytest.mark.parametrize("config", [Config(), replace(MATCH, runs_left=59), replace(MATCH, can_run=False)])
def test_where_the_baselines_agent_cannot_be_run_the_block_stands_and_drift_is_its_other_explanation(
    config: Config,
) -> None:
    answer = decide(state(FLAKY, FELL, config=config))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1))
    assert answer.stage.drift_open


def test_few_broken_cases_are_proven_by_their_reruns_and_need_no_epoch() -> None:
    rates = dict.fromkeys(CASES, 1.0)
    now = rates | dict.fromkeys(CASES[:6], 0.0)
    answer, requests = drive(state(STEADY, config=MATCH), bernoulli(Random(2), now, rates))
    assert (answer.verdict, answer.cases) == ("REGRESSION", tuple(CASES[:6]))
    assert answer.stage.of_cases
    assert not [r for r in requests if r.tag == "concurrent"]


def test_trials_of_a_check_enter_neither_looks_nor_bounds_nor_evidence_of_cases() -> None:
    plain, checked = (gather(state(FLAKY, FELL, *more, config=MATCH)) for more in ((), (beside(0.3),)))
    assert checked.looks == plain.looks
    assert checked.bounds == plain.bounds
    assert checked.highest_suite_e == plain.highest_suite_e
    assert len(checked.checks) == 1
    assert checked.runs == {Side.CANDIDATE: 60, Side.BASELINE: 60}


def test_epochs_that_were_run_of_both_sides_count_in_a_check() -> None:
    thin = {c: rows(1) for c in CASES}
    beside_it = full({c: rows(1) for c in CASES}, Side.BASELINE)
    found = gather(state(thin, FELL, beside_it, FELL, beside(1.0), config=MATCH))
    assert [len(case.now) for case in found.cases.values()] == [2] * 60


def test_however_far_the_provider_moved_unchanged_agents_are_rarely_blocked() -> None:
    """Both sides fall from 0.6 to 0.4: most of these would be blocked against the stored trials."""
    rates = dict.fromkeys(CASES, 0.4)
    verdicts = []
    for seed in range(40):
        start = replace(state(FLAKY, config=MATCH), seed=seed)
        verdicts.append(drive(start, bernoulli(Random(seed), rates, rates))[0].verdict)
    assert verdicts.count("REGRESSION") <= 5, "at most 4 % of them: 6 of 40 would come once in 300 times"


def test_the_shares_of_the_checks_are_a_whole() -> None:
    assert sum(check.share for check in CHECKS) == pytest.approx(1.0)
    assert CHECKS[-1].futile == 0.0, "the last one leaves nothing open"
