"""A drop of the whole suite is the change's only if it shows against what the baseline's agent does now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from msgspec.structs import replace

from gate.decision.engine.drift import PARTS, next_check
from gate.decision.engine.evidence import gather, look_part
from gate.decision.engine.rule import decide, follow
from gate.decision.engine.state import Config, Metric, More, Request, Round, Row, State
from gate.model import Outcome, Side, Stage, StageKind
from tests.unit.decision.numbers import bernoulli, drive, full, ids, rows, state

CASES = ids(60)
STEADY = {c: rows(1, 1, 1, 1, 1) for c in CASES}
FLAKY = {c: rows(1, 0, 1, 0, 1) for c in CASES}
MATCH = Config(rerun="match")
FELL = full({c: rows(float(i % 4 == 0)) for i, c in enumerate(CASES)})
"""From 60 % to 25 %: no single case shows it."""


def beside(passes: float, tag: str = "concurrent", side: Side = Side.BASELINE, cases: Sequence[str] = CASES) -> Round:
    """Trials of which this share passes."""
    return Round(tag, side, {c: rows(float((i % 10) < 10 * passes)) for i, c in enumerate(CASES) if c in cases})


def some(passing: int, seed: int) -> dict[str, list[Row]]:
    """One trial of each case, of which so many pass."""
    chosen = frozenset(Random(seed).sample(CASES, passing))
    return {c: rows(float(c in chosen)) for c in CASES}


UNCLEAR = state(FLAKY, full({c: rows(float((i * 7) % 20 < 6)) for i, c in enumerate(CASES)}), beside(0.5), config=MATCH)
"""A drop that is proven, and a base that is below its record, but not as far."""


def asked(step: object) -> tuple[str, ...]:
    """The cases of a step that is of the baseline's agent alone."""
    assert isinstance(step, More)
    assert [(r.side, r.tag, r.n) for r in step.requests] == [(Side.BASELINE, "concurrent", 1)]
    return step.requests[0].cases


@pytest.mark.slow
def test_the_baselines_agent_is_asked_before_a_suite_is_blocked_a_quarter_of_the_cases_at_a_time() -> None:
    rounds: list[Round] = []
    for passes in (0.6, 0.5, 0.5, 0.5):
        part = asked(decide(state(FLAKY, FELL, *rounds, config=MATCH)))
        assert len(part) == 60 / PARTS
        rounds.append(beside(passes, cases=part))
    assert sorted(c for r in rounds for c in r.trials) == sorted(CASES)
    assert asked(decide(state(FLAKY, FELL, *rounds, config=MATCH))) == tuple(CASES), "all of them once more"


@pytest.mark.slow
@pytest.mark.parametrize("parts", [(30, 30), (50, 10)])
def test_a_check_whose_steps_were_larger_goes_on_once_every_case_was_asked(parts: Sequence[int]) -> None:
    """As in records of earlier versions, whose first step was of half of the cases."""
    rounds, left = [], list(CASES)
    for n in parts:
        rounds.append(beside(0.5, cases=left[:n]))
        left = left[n:]
    assert asked(decide(state(FLAKY, FELL, *rounds, config=MATCH))) == tuple(CASES)


def test_trials_of_the_change_that_earlier_versions_ran_in_a_check_change_nothing() -> None:
    ended = state(FLAKY, FELL, beside(0.5), beside(0.3), config=MATCH)
    both = replace(ended, rounds=(*ended.rounds, beside(0.0, side=Side.CANDIDATE)))
    answer, again = decide(ended), decide(both)
    assert isinstance(answer, Outcome) and isinstance(again, Outcome)
    assert (again.verdict, again.stage) == (answer.verdict, answer.stage)


def test_the_first_cases_are_the_cases_that_were_steadiest_when_they_were_stored() -> None:
    """And not those that the change failed: they are exchangeable because nothing that it did chose them."""
    mixed = {c: rows(1, 1, 1, 1, 1) if i % 3 else rows(1, 0, 1, 0, 0) for i, c in enumerate(CASES)}
    fell = full({c: rows(float(i % 4 == 0)) for i, c in enumerate(CASES)})
    first = asked(decide(state(mixed, fell, config=MATCH)))
    assert all(mixed[c] == rows(1, 1, 1, 1, 1) for c in first)
    other = full({c: rows(float(i % 4 == 1)) for i, c in enumerate(CASES)})
    assert asked(decide(state(mixed, other, config=MATCH))) == first


@pytest.mark.slow
@pytest.mark.parametrize(("cases", "parts"), [(20, [10, 10]), (41, [11, 11, 11, 8])])
def test_a_step_is_of_ten_cases_at_least_and_the_last_of_the_base_alone_has_its_share(
    cases: int, parts: list[int]
) -> None:
    few, rounds = CASES[:cases], []
    start = state({c: FLAKY[c] for c in few}, full({c: rows(0.0) for c in few}), config=MATCH)
    while True:
        found = gather(replace(start, rounds=(*start.rounds, *rounds)))
        step = next_check(found)
        if step is None or len(step.requests[0].cases) == cases:
            break
        rounds.append(Round("concurrent", Side.BASELINE, {c: rows(0.0) for c in step.requests[0].cases}))
    assert [len(r.trials) for r in rounds] == parts


def test_a_small_suite_is_asked_whole() -> None:
    few = CASES[:18]
    start = state({c: FLAKY[c] for c in few}, full({c: rows(0.0) for c in few}), config=MATCH)
    assert asked(decide(start)) == tuple(few)


@pytest.mark.slow
def test_where_a_test_alone_forbids_a_pass_the_baselines_agent_is_asked_and_may_clear_it() -> None:
    """Nine of 60 flaky cases fewer: no proof, and every loss is within its margin."""
    wide = (Metric("success", "binary", margin=0.5),)
    fell = full({c: rows(float(i % 20 < 5)) for i, c in enumerate(CASES)})
    start = State(wide, {c: rows(1, 0, 1, 0, 0) for c in CASES}, (fell,), MATCH)
    first = asked(decide(start))
    alike = replace(
        start, rounds=(fell, beside(0.1, cases=first), beside(0.1, cases=[c for c in CASES if c not in first]))
    )
    answer = decide(alike)
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage.kind) == ("PASS", StageKind.CERTIFIED)
    alone = decide(replace(start, config=Config()))
    assert isinstance(alone, More)
    assert alone.requests == (Request(Side.CANDIDATE, "full", tuple(CASES), 1),), "nothing else to ask"


def test_of_a_baseline_that_is_of_this_very_job_no_drift_is_looked_for() -> None:
    asked(decide(state(FLAKY, FELL, config=MATCH)))
    answer = decide(state(FLAKY, FELL, config=Config(rerun="beside")))
    assert isinstance(answer, Outcome)
    assert answer.verdict == "REGRESSION"


def test_a_drop_that_shows_against_the_baselines_agent_now_is_blocked() -> None:
    answer = decide(state(FLAKY, FELL, beside(1.0), config=MATCH))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1, confirmed=True))
    assert not answer.stage.drift_open


@pytest.mark.slow
def test_the_record_counts_while_the_baselines_agent_agrees_with_it() -> None:
    """From 60 % to 40 %, and more than 60 % by the baseline's agent now: it need not run twice."""
    fell, now = full(some(23, 0)), Round("concurrent", Side.BASELINE, some(38, 100))
    agreeing = state(FLAKY, fell, now, config=MATCH)
    answer = decide(agreeing)
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1, confirmed=True))
    unclear = Round("concurrent", Side.BASELINE, some(34, 100))
    assert asked(decide(replace(agreeing, rounds=(fell, unclear)))) == tuple(CASES)
    both_fell = decide(replace(agreeing, rounds=(fell, Round("concurrent", Side.BASELINE, some(24, 300)))))
    assert isinstance(both_fell, Outcome)
    assert (both_fell.verdict, both_fell.stage.kind) == ("INCONCLUSIVE", StageKind.DRIFTED)


@pytest.mark.slow
@pytest.mark.parametrize(("passes", "verdict"), [(0.6, "REGRESSION"), (0.2, "INCONCLUSIVE")])
def test_a_base_that_does_not_agree_is_asked_once_more_and_the_change_has_to_be_worse(
    passes: float, verdict: str
) -> None:
    assert asked(decide(UNCLEAR)) == tuple(CASES)
    answer = decide(replace(UNCLEAR, rounds=(*UNCLEAR.rounds, beside(passes))))
    assert isinstance(answer, Outcome)
    assert answer.verdict == verdict


@pytest.mark.slow
@pytest.mark.parametrize(("passes", "verdict"), [(0.3, "REGRESSION"), (0.6, "INCONCLUSIVE")])
def test_a_further_epoch_of_the_change_settles_what_two_runs_of_the_base_leave_open(
    passes: float, verdict: str
) -> None:
    left_open = replace(UNCLEAR, rounds=(*UNCLEAR.rounds, Round("concurrent", Side.BASELINE, some(22, 7))))
    step = decide(left_open)
    assert isinstance(step, More)
    assert step.requests == (Request(Side.CANDIDATE, "full", tuple(CASES), 1),)
    unaffordable = decide(replace(left_open, config=replace(MATCH, runs_left=59)))
    assert isinstance(unaffordable, Outcome)
    assert unaffordable.stage.kind == StageKind.DRIFTED
    answer = decide(replace(left_open, rounds=(*left_open.rounds, full(beside(passes).trials))))
    assert isinstance(answer, Outcome)
    assert answer.verdict == verdict


def test_the_base_is_not_asked_in_cases_that_never_passed_when_stored() -> None:
    """Unless another metric may show a drop in them."""
    failing = {c: rows(0, 0, 0, 0, 0) for c in CASES[:45]}
    known = state({**FLAKY, **failing}, FELL, config=MATCH)
    assert asked(next_check(gather(known))) == tuple(CASES[45:])

    def doubled(trials: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
        return {c: [[row[0], row[0]] for row in of_case] for c, of_case in trials.items()}

    metrics = (Metric("success", "binary"), Metric("rouge"))
    wide = state(doubled(known.baseline), full(doubled(FELL.trials)), config=MATCH, metrics=metrics)
    assert len(gather(wide).cases) == len(CASES)
    assert len(asked(next_check(gather(wide)))) == len(CASES) / PARTS


def test_a_base_that_fell_is_asked_in_fewer_cases() -> None:
    """Its record will not count, so the check ends at half of the p-value that ends it otherwise."""
    fell = full({c: rows(0.0 if i % 3 == 0 else 1.0) for i, c in enumerate(CASES)})
    first = asked(decide(state(STEADY, fell, config=MATCH)))

    def after(failing: int) -> More | Outcome:
        now = Round("concurrent", Side.BASELINE, {c: rows(float(i >= failing)) for i, c in enumerate(first)})
        return decide(state(STEADY, fell, now, config=MATCH))

    failed = sum(fell.trials[c] == rows(0.0) for c in first)
    assert asked(after(0))
    ended = after(failed)
    assert isinstance(ended, Outcome)
    assert (ended.verdict, ended.stage.kind) == ("INCONCLUSIVE", StageKind.DRIFTED)


def test_a_baselines_agent_that_is_down_never_agrees_with_its_record() -> None:
    silent = Round("concurrent", Side.BASELINE, {c: [[None]] for c in CASES})
    assert gather(state(FLAKY, FELL, silent, config=MATCH)).beside == []


def test_a_look_with_the_bases_trials_beside_the_record_may_prove_what_the_record_alone_does_not() -> None:
    fell = full({c: rows(float((i * 7) % 60 < 25)) for i, c in enumerate(CASES)})
    alone = state(FLAKY, fell, config=MATCH)
    assert gather(alone).proof is None
    answer = decide(replace(alone, rounds=(fell, beside(1.0))))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.stage) == ("REGRESSION", Stage(StageKind.SUITE_LOOK, 1, confirmed=True))
    assert answer.evidence.looks[-1].blocks, "and the evidence shows which look it was"


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


@pytest.mark.slow
def test_a_check_that_can_no_longer_be_paid_for_proves_nothing() -> None:
    begun = state(FLAKY, FELL, beside(0.5), config=MATCH)  # whole at once, as in records of earlier versions
    assert asked(decide(begun)) == tuple(CASES)
    ended = decide(replace(begun, config=replace(MATCH, runs_left=59)))
    assert isinstance(ended, Outcome)
    assert ended.verdict == "INCONCLUSIVE", "what began and did not show is not proven"


@pytest.mark.parametrize("config", [Config(), replace(MATCH, runs_left=14), replace(MATCH, can_run=False)])
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


@pytest.mark.slow
def test_epochs_that_were_run_of_both_sides_count_in_a_check() -> None:
    thin = {c: rows(1) for c in CASES}
    beside_it = full({c: rows(1) for c in CASES}, Side.BASELINE)
    found = gather(state(thin, FELL, beside_it, FELL, beside(1.0), config=MATCH))
    assert [len(case.now) for case in found.cases.values()] == [2] * 60


@pytest.mark.slow
def test_however_far_the_provider_moved_unchanged_agents_are_rarely_blocked() -> None:
    """Both sides fall from 0.6 to 0.4: most of these would be blocked against the stored trials."""
    rates = dict.fromkeys(CASES, 0.4)
    verdicts = []
    for seed in range(40):
        start = replace(state(FLAKY, config=MATCH), seed=seed)
        verdicts.append(drive(start, bernoulli(Random(seed), rates, rates))[0].verdict)
    assert verdicts.count("REGRESSION") <= 5, "at most 4 % of them: 6 of 40 would come once in 300 times"


def test_a_drop_that_is_plain_beside_the_base_takes_no_more_of_its_runs() -> None:
    """From 90 % to none, and the base as ever: half of the cases show it."""
    plain = {c: rows(1, 1, 1, 1, float(i % 2)) for i, c in enumerate(CASES)}
    none_pass = full({c: rows(0.0) for c in CASES})
    steps: list[Round] = []
    while isinstance(step := decide(state(plain, none_pass, *steps, config=MATCH)), More):
        steps.append(Round("concurrent", Side.BASELINE, {c: rows(1.0) for c in asked(step)}))
    assert (step.verdict, step.stage.confirmed) == ("REGRESSION", True)
    assert sum(len(one.trials) for one in steps) <= len(CASES) // 2


# --- what is stored of the newest runs --------------------------------------------------------------

NEWEST = dict.fromkeys(CASES, (5, 6, 7))
"""Of each case three trials of the newest runs, beside the five of STEADY."""


def aged(newest: float, now: float, config: Config = Config(), seed: int = 1) -> State:  # noqa: B008 - frozen
    """Five steady trials, then three that pass by chance at one rate, and one of the change at another."""
    rng = Random(seed)

    def drawn(rate: float, n: int) -> list[list[float | None]]:
        return rows(*(float(rng.random() < rate) for _ in range(n)))

    stored = {c: [*STEADY[c], *drawn(newest, 3)] for c in CASES}
    fell = full({c: drawn(now, 1) for c in CASES})
    return State((Metric("success", "binary"),), stored, (fell,), config, newest=NEWEST)


def ended(step: object) -> tuple[str, StageKind]:
    assert isinstance(step, Outcome)
    return step.verdict, step.stage.kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("newest", "now", "verdict"),
    [
        (0.75, 0.75, ("INCONCLUSIVE", StageKind.MOVED_BEFORE)),  # what the newest runs show already
        (0.75, 0.2, ("REGRESSION", StageKind.SUITE_LOOK)),  # far below those, too
        (1.0, 0.75, ("REGRESSION", StageKind.SUITE_LOOK)),  # nothing moved
    ],
)
def test_a_drop_has_to_show_against_the_newest_of_the_stored_runs_alone(
    newest: float, now: float, verdict: tuple[str, StageKind]
) -> None:
    known = aged(newest, now)
    assert ended(decide(known)) == verdict
    assert ended(decide(replace(known, newest={})))[0] == "REGRESSION", "where their age is no matter"
    assert ended(decide(replace(known, recorded=True)))[0] == "REGRESSION", "a recording does not drift"


@pytest.mark.slow
def test_the_newest_runs_spare_a_check_only_where_the_drop_is_out_of_sight_against_them() -> None:
    assert ended(decide(aged(0.65, 0.75, MATCH, seed=3))) == ("INCONCLUSIVE", StageKind.MOVED_BEFORE)
    assert asked(decide(aged(0.75, 0.75, MATCH))), "what the agent does now says more"
    unaffordable = decide(aged(0.75, 0.75, replace(MATCH, runs_left=0)))
    assert ended(unaffordable) == ("INCONCLUSIVE", StageKind.MOVED_BEFORE), "nor is it blocked where it cannot be asked"


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 12))])
def test_the_newest_runs_only_take_blocks_of_the_whole_back(seed: int) -> None:
    rng = Random(seed)
    known = aged(rng.uniform(0.6, 1.0), rng.uniform(0.2, 1.0))
    with_age, without = decide(known), decide(replace(known, newest={}))
    if with_age != without:
        assert (ended(without)[0], ended(with_age)) == ("REGRESSION", ("INCONCLUSIVE", StageKind.MOVED_BEFORE))


def test_a_case_that_broke_is_no_drift() -> None:
    """Its own trials prove it, whatever the suite did before."""
    known = aged(0.75, 0.75)
    steady = {**known.baseline, CASES[0]: rows(1, 1, 1, 1, 1, 1, 1, 1)}
    broken = [Round("confirm", Side.CANDIDATE, {CASES[0]: rows(0, 0, 0, 0, 0, 0)}) for _ in range(4)]
    failing = full({**known.rounds[0].trials, CASES[0]: rows(0.0)})
    answer = decide(replace(known, rounds=(failing, *broken), baseline=steady, config=Config(can_run=False)))
    assert isinstance(answer, Outcome)
    assert (answer.verdict, answer.cases) == ("REGRESSION", (CASES[0],))


@pytest.mark.parametrize("cases", [30, 60])
def test_what_the_looks_may_show_against_the_newest_runs_adds_up_to_alpha(cases: int) -> None:
    """So a provider that moved before them blocks at most that share, whichever look it was."""
    known = {f"c{n}": rows(1, 1, 1, 1, 1) for n in range(cases)}
    looked, parts = State((Metric("success", "binary"),), known, ()), []
    for _ in range(3):
        looked = replace(looked, rounds=(*looked.rounds, full({c: rows(1) for c in known})))
        parts.append(look_part(gather(looked)))
    assert sum(parts) == pytest.approx(1.0)
    assert parts == sorted(parts, reverse=True)
    alone = replace(looked, rounds=looked.rounds[:1], config=Config(can_run=False))
    assert look_part(gather(alone)) == pytest.approx(1.0), "a design that looks once has all of it"


@pytest.mark.parametrize(
    ("base_passes", "verdict", "kind"),
    [
        (1.0, "REGRESSION", StageKind.CASE_RERUNS),
        (0.0, "INCONCLUSIVE", StageKind.DRIFTED),
        (None, "REGRESSION", StageKind.CASE_RERUNS),
    ],
)
def test_a_few_cases_that_broke_are_the_changes_only_if_the_baselines_agent_passes_them_now(
    base_passes: float | None, verdict: str, kind: StageKind
) -> None:
    """Stored trials alone would prove them: with a provider that broke them, an unchanged agent, too."""
    few, broke = CASES[:12], CASES[:4]
    asked_base: list[str] = []

    def run(side: Side, cases: Sequence[str], n: int) -> dict[str, list[Row]]:
        found = {}
        for case_id in cases:
            value = float(case_id not in broke)
            if side is Side.BASELINE:
                asked_base.append(case_id)
                found[case_id] = [(base_passes,)] * n
            else:
                found[case_id] = rows(*[value] * n)
        return found

    outcome, _ = follow(state({c: STEADY[c] for c in few}, config=MATCH), run)
    assert (outcome.verdict, outcome.stage.kind) == (verdict, kind)
    assert set(broke) <= set(asked_base)
    assert (set(outcome.cases) == set(broke)) is (verdict == "REGRESSION")
